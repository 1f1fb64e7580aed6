"""The command, run in the process of the tests."""

import io
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

import pytest

from thereexists.cli import main


class Done(NamedTuple):
    stdout: str
    stderr: str


def thereexists(*arguments, cwd, code=0):
    """Run the command in this process: exactly what the installed script does, without starting Python again."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["thereexists", *map(str, arguments)]
    with (
        chdir(cwd),
        patch.object(sys, "argv", argv),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as exit,
    ):
        main()
    assert (exit.value.code or 0) == code, err.getvalue()
    return Done(out.getvalue(), err.getvalue())
