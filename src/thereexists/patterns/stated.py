"""A pattern that a record states by name and sizes, built only if that is little work.

A record may be a stranger's, and a name with three numbers can stand for more pairs than a machine holds. What a
pattern costs follows from its sizes (``Entry.work``: how many pairs are listed or counted one by one), so it is known
before anything is built. Patterns that somebody builds in a program of their own have no such limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.patterns.library import build, known, sizes_for
from thereexists.patterns.numbers import FARTHEST, shown, whole
from thereexists.patterns.pattern import Pattern

MOST_TOKENS = 1 << 20
MOST_WORK = 1 << 24  # a few seconds, and less than 1 GB
PER_TOKEN = 1 << 9  # pairs for each token of a sequence that is there
_UNION = 16  # pairs of a union of listed steps are sorted


class TooLarge(InvalidInput):
    """A pattern that a record states is more work than a record may cause."""


def build_stated(name: Any, n: Any, parameters: Any, union: bool = False, at_hand: bool = False) -> Pattern:
    """The pattern of a record, or the union of its steps; one sentence where the record asks for too much.

    ``at_hand``: there is a sequence of n tokens, which the record cannot make longer, and each brings its own share.
    """
    check_stated(name, n, parameters, union, at_hand)
    with _one_sentence(name, parameters):
        pattern = build(name, int(n), **parameters)
    return pattern.union() if union else pattern


def check_stated(name: Any, n: Any, parameters: Any, union: bool = False, at_hand: bool = False) -> None:
    """Refuse, before anything is built, what is not a pattern of the list or too much work."""
    if not isinstance(name, str) or not isinstance(parameters, Mapping):
        raise InvalidInput(f"A pattern is stated by its name and an object of sizes; got {shown(name)}.")
    entry = known(name)
    n = whole(n, f"The number of tokens of '{name}' in a record", 1, None if at_hand else MOST_TOKENS)
    for key, value in parameters.items():
        if not _is_size(value):
            raise InvalidInput(
                f"'{shown(key)}' of the pattern '{name}' must be a number or a list; got {shown(value)}."
            )
    with _one_sentence(name, parameters):
        work = int(entry.work(n=n, **sizes_for(name, n, parameters))) * (_UNION if union and entry.listed else 1)
    most = max(MOST_WORK, PER_TOKEN * n) if at_hand else MOST_WORK
    if work > most:
        raise TooLarge(
            f"The pattern '{name}' of {n:,} tokens with the sizes {shown(dict(parameters))} has {work:,} pairs to "
            f"list; from a record up to {most:,} are taken. Build it yourself with te.patterns.build."
        )


@contextmanager
def _one_sentence(name: str, parameters: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, ThereExistsError):
            raise
        why = (str(error).splitlines() or [""])[0][:200]
        raise InvalidInput(f"The pattern '{name}' cannot have the sizes {shown(dict(parameters))}: {why}.") from error


def _is_size(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) <= MOST_TOKENS and all(type(x) is int and abs(x) <= FARTHEST for x in value)
    return value is None or (isinstance(value, int | float) and abs(value) <= FARTHEST)
