"""The command, run in this process: exactly what the installed script does, without starting Python again."""

import io
import shlex
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

import pytest

from thereexists.cli import main


class Done(NamedTuple):
    code: int
    stdout: str
    stderr: str


def ran(line, *more, cwd):
    """Exit code and output of ``thereexists line more…``; the line is split at its spaces."""
    out, err = io.StringIO(), io.StringIO()
    with (
        chdir(cwd),
        patch.object(sys, "argv", ["thereexists", *shlex.split(line), *map(str, more)]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())
