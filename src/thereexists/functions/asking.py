"""How far the questions to a function have come, told to whoever listens: a slow function must not look like a hang.

Whoever asks many questions says beforehand how many sequences they hold (``phase``); ``Target`` counts the answers. The
listener is the one thing kept here, for the length of a ``with`` block and this thread of work alone; nothing that is
computed depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Listener = Callable[[str, int, int], object]  # what is done, sequences answered, sequences in all


@dataclass
class _Phase:
    what: str
    total: int
    done: int = 0


_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
_PHASE: ContextVar[_Phase | None] = ContextVar("phase", default=None)


@contextmanager
def listening(tell: Listener) -> Iterator[None]:
    """``tell(what, done, total)`` after every answer of a phase."""
    token = _LISTENER.set(tell)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def phase(what: str, total: int) -> Iterator[None]:
    """The questions asked in this block, ``total`` sequences in all."""
    token = _PHASE.set(_Phase(what, total))
    try:
        yield
    finally:
        _PHASE.reset(token)


def answered(sequences: int) -> None:
    """A function has answered so many sequences more."""
    tell, now = _LISTENER.get(), _PHASE.get()
    if tell is not None and now is not None:
        now.done += sequences
        tell(now.what, now.done, now.total)
