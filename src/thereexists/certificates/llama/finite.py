"""Features of a program over symbols as tables: what they are is a function of finitely many *atoms* at the same token.

An atom is one of finitely many things at every token of a string: its symbol, its position, an atom of another token
(``Taken``), a feature that is worth rows of its own (``Made``), or what a look-up finds (``Found``). A ``Table`` says
for all its atoms together which of its ``values``, exact numbers, the feature has. ``possible`` (n, size) of an atom
holds, for each position, everything that it can be there, over all strings; it may hold more.

Tables are joined and mapped without loss. Only where too many cases would stand in one table is a part of it *cut* out:
it becomes an atom, and what it had in common with others is forgotten. That makes tables larger than need be, never
wrong: each atom still is what it is, at every token, and a table is right at everything that its atoms may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.errors import NotProved
from thereexists.functions.target import Array

MOST_CASES = 1 << 12  # of a table whose cases become gates
MOST_WORK = 1 << 27  # cases of a table at all positions
MOST_FOUND = 1 << 20  # of one for look-ups, whose cases are few when it becomes gates
MOST_WRITTEN = 1 << 24  # cases of all tables and look-ups of a program together: a minute


@dataclass(frozen=True, eq=False)
class Atom:
    """Compared by identity."""

    possible: Array

    @property
    def size(self) -> int:
        return self.possible.shape[1]


class Symbol(Atom):
    """The symbol of the token."""


class Position(Atom):
    """The number of the token in its string, from 0."""


@dataclass(frozen=True, eq=False)
class Taken(Atom):
    """At position i, the atom ``of`` of the token ``places[i]``; ``called``: the operation, for errors."""

    of: Atom
    places: Array
    called: str


@dataclass(frozen=True, eq=False)
class Table:
    """``codes``: for all atoms together (an axis each) the number of one of ``values``."""

    atoms: tuple[Atom, ...]
    codes: Array
    values: tuple[Any, ...]

    @property
    def looks_up(self) -> bool:
        return any(isinstance(atom, Found) for atom in self.atoms)

    def over(self, atoms: tuple[Atom, ...]) -> Array:
        """The codes with an axis for each of these atoms, of which its own are some; of size 1 where it is not."""
        mine = [self.atoms.index(atom) for atom in atoms if atom in self.atoms]
        shape = [atom.size if atom in self.atoms else 1 for atom in atoms]
        return self.codes.transpose(mine).reshape(shape)

    def reached(self, n: int) -> Array:
        """(n, values): which values it can have at each position."""
        if n * self.codes.size > MOST_WORK:
            raise NotProved(f"a table of {self.codes.size:,} cases at {n:,} positions is too large to be written out.")
        found = np.zeros((n, len(self.values)), dtype=bool)
        for p in range(n):
            found[p, np.unique(self.codes[self.there(p)])] = True
        return found

    def there(self, p: int) -> tuple[Array, ...]:
        """Where in the table the position p is."""
        return np.ix_(*(np.flatnonzero(atom.possible[p]) for atom in self.atoms))


@dataclass(frozen=True, eq=False)
class Made(Atom):
    """The number of a table's value, with rows of its own."""

    table: Table


@dataclass(frozen=True, eq=False)
class Found(Atom):
    """What a look-up finds: of the tokens up to here the last (or first) one that *hits*, if any does.

    ``query`` at the token that asks, ``key`` at the tokens that are asked; ``hits`` (queries, keys). What is found is
    the number of a key. If no token hits it is that of any token; whoever reads it must not care which.
    """

    query: Table
    key: Table
    hits: Array
    last: bool
    called: str


@dataclass(frozen=True)
class Space:
    """All strings of n of so many symbols, and the atoms that were made for them."""

    n: int
    symbol: Symbol
    position: Position
    known: dict[Any, Atom]
    written: list[int]

    @classmethod
    def of(cls, n: int, symbols: int) -> Space:
        return cls(n, Symbol(np.ones((n, symbols), dtype=bool)), Position(np.eye(n, dtype=bool)), {}, [])

    def write(self, cases: int) -> None:
        """Count what is written out: a small file must not ask for hours."""
        self.written.append(cases)
        if sum(self.written) > MOST_WRITTEN:
            raise NotProved(f"this program has more than {MOST_WRITTEN:,} cases; no more are written out.")

    def cut(self, table: Table) -> Table:
        """The same feature, as an atom."""
        if len(table.atoms) < 2 and not table.looks_up:
            return table
        key = (table.atoms, table.codes.tobytes(), table.values)
        if key not in self.known:
            self.known[key] = Made(table.reached(self.n), table)
        return Table((self.known[key],), np.arange(len(table.values)), table.values)

    def taken(self, table: Table, places: Array, called: str) -> Table:
        """The feature of the token ``places[i]`` at token i."""
        if table.atoms in ((), (self.position,)):
            return table if not table.atoms else pruned(Table(table.atoms, table.codes[places], table.values))
        table = self.cut(table)
        (atom,) = table.atoms
        if isinstance(atom, Taken):  # of a token that is taken from elsewhere itself
            atom, places = atom.of, atom.places[places]
        key = (atom, places.tobytes())
        if key not in self.known:
            self.known[key] = Taken(atom.possible[places], atom, places, called)
        return Table((self.known[key],), table.codes, table.values)

    def fitting(self, tables: list[Table], called: str, most: int = MOST_CASES) -> list[Table]:
        """Tables that can be joined: parts are cut out of them, the largest first, until they can."""
        while True:
            size, most = _size(tables), MOST_FOUND if any(table.looks_up for table in tables) else most
            if size <= most:
                return tables
            large = [k for k, table in enumerate(tables) if len(table.atoms) > 1 and not table.looks_up]
            large = large or [k for k, table in enumerate(tables) if table.looks_up]
            if not large:
                raise NotProved(
                    f"The inputs of '{called}' have {size:,} cases together; at most {most:,} are written out."
                )
            k = max(large, key=lambda k: tables[k].codes.size)
            cut = self.cut(tables[k])
            tables = [cut if table is tables[k] else table for table in tables]


def _size(tables: list[Table]) -> int:
    atoms = dict.fromkeys(atom for table in tables for atom in table.atoms)
    return int(np.prod([float(atom.size) for atom in atoms]))


def constant(value: Any) -> Table:
    return Table((), np.zeros((), dtype=np.int64), (value,))


def joined(tables: list[Table]) -> Table:
    """All features at once: a value is the tuple of theirs."""
    atoms = tuple(dict.fromkeys(atom for table in tables for atom in table.atoms))
    shape, values = tuple(atom.size for atom in atoms), [()]
    codes = np.zeros(shape, dtype=np.int64)
    for table in tables:
        both = codes * len(table.values) + table.over(atoms)
        seen, codes = np.unique(both, return_inverse=True)
        codes = codes.reshape(shape)
        values = [values[k // len(table.values)] + (table.values[k % len(table.values)],) for k in seen.tolist()]
    return Table(atoms, codes, tuple(values))


def mapped(function: Callable[..., Any], table: Table) -> Table:
    """A function of a tuple's parts; values that become equal are one."""
    values = [function(*parts) for parts in table.values]
    number = {value: k for k, value in enumerate(dict.fromkeys(values))}
    of = np.array([number[value] for value in values])
    return pruned(Table(table.atoms, of[table.codes], tuple(number)))


def narrowed(table: Table) -> Table:
    """Without atoms that make no difference."""
    atoms, codes = list(table.atoms), table.codes
    for axis in reversed(range(len(atoms))):
        if (codes == codes.take([0], axis=axis)).all():
            codes = codes.take(0, axis=axis)
            del atoms[axis]
    return Table(tuple(atoms), codes, table.values)


def pruned(table: Table) -> Table:
    """Without such atoms, and without values that it never has."""
    table = narrowed(table)
    used, codes = np.unique(table.codes, return_inverse=True)
    return Table(table.atoms, codes.reshape(table.codes.shape), tuple(table.values[k] for k in used.tolist()))
