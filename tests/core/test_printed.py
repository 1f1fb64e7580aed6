"""What functions print goes to stderr, and stdout is where it was afterwards, however many threads there were."""

import sys
import threading

import pytest

from thereexists.core.printed import printed_to_stderr


def test_what_is_printed_inside_goes_to_stderr(capsys):
    with printed_to_stderr():
        print("a function's")
        with printed_to_stderr():
            print("another's")
        print("the first one's again")
    print("ours")
    assert capsys.readouterr() == ("ours\n", "a function's\nanother's\nthe first one's again\n")


def test_two_threads_leave_stdout_where_it_was():
    """The first one to come is the first one to go: each would put back what it found."""
    before, came, goes = sys.stdout, threading.Event(), threading.Event()

    def first():
        with printed_to_stderr():
            came.set()
            goes.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    came.wait(10)
    with printed_to_stderr():
        goes.set()
        thread.join()
        assert sys.stdout is sys.stderr
    assert sys.stdout is before


def test_an_error_inside_puts_it_back_too():
    before = sys.stdout
    with pytest.raises(ValueError, match="inside"), printed_to_stderr():
        raise ValueError("inside")
    assert sys.stdout is before
