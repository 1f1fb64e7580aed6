"""What a value is in a circuit: rows, digit by digit, from some layer on; and what one row says.

What a row says, its *meaning*, is written down by whoever makes the row (``Wiring.note``). No proof rests on it: it is
there for whoever wants to know what the parts of a network do, and who looks at all strings
(``suites/circuits/stock``).
"""

from __future__ import annotations

from dataclasses import dataclass

from thereexists.certificates.llama.finite import Atom, Found, Table
from thereexists.functions.target import Array


@dataclass(frozen=True)
class Signal:
    """``digits``: rows of each; ``code`` (values, digits); from which layer on gates and heads can read it."""

    digits: tuple[tuple[int, ...], ...]
    code: Array
    gates: int
    heads: int


@dataclass(frozen=True, eq=False)
class Held(Atom):
    """What a signal holds."""

    signal: Signal


@dataclass(frozen=True, eq=False)
class Says:
    """1 where ``of``, at the token that is meant, is one of ``which`` (numbers of an atom's or a table's values).

    Which token: the one so far ``back``, or that of the position ``place`` if there is one. ``where``: at which
    positions that is so; (n,).
    """

    of: Atom | Table
    which: tuple[int, ...]
    where: Array
    back: int = 0
    place: int | None = None


@dataclass(frozen=True, eq=False)
class Remembers:
    """1 where, of the ``window`` tokens up to the one so far ``back``, the last (first) that hits the query ``asked``

    has one of ``keys``; or, of ``nothing``, where none hits.
    """

    of: Found
    asked: int
    keys: tuple[int, ...]
    nothing: bool
    window: int
    back: int = 0


@dataclass(frozen=True, eq=False)
class Recalls:
    """1 where the look-up of the query here gives one of ``which``: ``value`` (queries, keys), or ``miss``

    (queries,) where nothing hits.
    """

    of: Found
    value: Array
    miss: Array
    which: tuple[int, ...]


Meaning = Says | Remembers | Recalls
