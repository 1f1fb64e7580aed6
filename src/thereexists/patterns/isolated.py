"""Run a function in a Python process of its own that is killed at the deadline.

A SAT solver looks at no clock while it propagates, and a compiled loop at none while it runs; only the end of a process
is certain. The child is a plain ``python -c``, so the caller's main script is not run again, and it gets the caller's
``sys.path``. Arguments go in and results come out through pipes. Three things end it: its result, the caller's kill (at
the deadline, on Ctrl-C, on any exception), and its own alarm a second later, should the caller have been killed itself.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

Tell = Callable[[Any], None]


@dataclass(frozen=True, eq=False)
class Outcome:
    """``value`` when ``finished``; otherwise ``told``, the last thing the function told, and ``why`` it ended."""

    finished: bool
    value: Any = None
    told: Any = None
    why: str = ""


def call(module: str, function: str, arguments: tuple[Any, ...], seconds: float | int) -> Outcome:
    """``function(*arguments, tell)`` of ``module``, for at most ``seconds``; ``tell(x)`` reports progress."""
    deadline = time.perf_counter() + seconds
    if seconds <= 0:
        return Outcome(False, why="no time was left")
    if not sys.executable or getattr(sys, "frozen", False):  # no interpreter to start: then without a deadline
        return Outcome(True, getattr(import_module(module), function)(*arguments, lambda _: None))
    start = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import _child; _child()"
    with subprocess.Popen(
        [sys.executable, "-I", "-c", start],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C reaches the caller, who then ends the child
    ) as process:
        try:
            out, _ = process.communicate(
                pickle.dumps((module, function, arguments, seconds)), deadline - time.perf_counter()
            )
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            return _read(out, "the time was over")
        finally:
            process.kill()  # does nothing when it has ended; leaving the block waits for it
    return _read(out, f"the search process ended with code {process.returncode}")


def _read(out: bytes, why: str) -> Outcome:
    """The messages that came through whole; the last may be cut."""
    stream, told = io.BytesIO(out), None
    while True:
        try:
            kind, content = pickle.load(stream)
        except (EOFError, pickle.UnpicklingError):
            return Outcome(False, told=told, why=why)
        if kind == "value":
            return Outcome(True, content, told)
        told = content


def _child() -> None:
    """The other side: read the call, answer on what was standard output, and keep everything else off it."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    module, function, arguments, seconds = pickle.load(sys.stdin.buffer)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the kernel ends the process, whatever it is doing
        signal.setitimer(signal.ITIMER_REAL, seconds + 1)

    def send(kind: str, content: Any) -> None:
        pickle.dump((kind, content), answers)
        answers.flush()

    send("value", getattr(import_module(module), function)(*arguments, lambda content: send("told", content)))
