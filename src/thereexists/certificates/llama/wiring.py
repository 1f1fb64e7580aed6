"""Tables as a circuit: which rows hold what, and which layer fetches and makes it.

*Claim.* Every signal made here is right at every token of a string: of each of its digits exactly the row of the value
is 1. Its digits' rows exclude each other at *all* tokens, <s> and answers too. *Proof*, signal by signal. Symbols are
in the embedding; <s> and answers have none. "Before t" is the mark of <s> fetched from t back, "not" that of a symbol:
the token t back is <s>, or further than <s>, exactly if t or fewer symbols stand before here and here; and at most one
of two rows that exclude each other is 1 wherever they are fetched from. An atom of another token is fetched from a
fixed distance, or from one place, whose token is the only one with the mark of that place (it needs a symbol of its
own, so <s> has no such mark). It is fetched for the positions where it matters only; everywhere else the table does not
depend on it, and is asked for the position first (``_settled``). What gates make is one path of a tree at the most
(``decide.py``), and exactly one where all that it asks is right. ∎ Look-ups are in ``cells.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from thereexists.certificates.llama.cells import resolved
from thereexists.certificates.llama.circuit import ByContent, CircuitLayer
from thereexists.certificates.llama.decide import Digit, Path, Runs, paths
from thereexists.certificates.llama.finite import Atom, Made, Space, Symbol, Table, Taken, narrowed
from thereexists.certificates.llama.lookup import MOST_READ, MOST_ROWS
from thereexists.certificates.llama.signals import Held, Meaning, Says, Signal
from thereexists.core.errors import NotProved
from thereexists.functions.target import Array

MOST_GATES = 1 << 16
MOST_WAYS = 64  # distances and places of one operation
BACK, PLACE = "back", "place"
EMBEDDING, HEADS, GATES = "embedding", "heads", "gates"  # who writes a row


@dataclass
class Draft:
    """A layer, as it grows; ``key``: what its head looks for, if that is no distance."""

    key: tuple[int, int] | None = None
    fetched: list[tuple[int, int, int]] = field(default_factory=list)  # offset, source, target
    made: list[tuple[Path, int]] = field(default_factory=list)
    cleared: list[int] = field(default_factory=list)

    def layer(self) -> CircuitLayer:
        offset, source, target = np.array(self.fetched, dtype=np.int64).reshape(-1, 3).T
        most = max((len(path) for path, _ in self.made), default=1)
        reads = np.array([[*path, *[-1] * (most - len(path))] for path, _ in self.made], dtype=np.int64)
        parts = (offset, source, target, reads.reshape(-1, most), np.array([z for _, z in self.made], dtype=np.int64))
        cleared = np.array(self.cleared, dtype=np.int64)
        if self.key is None:
            return CircuitLayer(*parts, cleared)
        query, key = self.key
        return ByContent(*parts, cleared, np.array([query]), np.array([key]), 1)


class Wiring:
    """Rows and layers; row 0 is 1 at <s>, row 1 at a symbol."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.groups: list[int] = []
        self.symbols: dict[int, Array] = {}  # rows of the embedding: which symbols have it
        self.layers: list[Draft] = []
        self.known: dict[Any, Any] = {}
        self.nothing: list[int] = []  # rows of cells that are 1 at <s>
        self.notes: dict[tuple[int, str, int], Meaning] = {}  # what a row says after a layer's heads, or gates
        self.start, self.here = self.rows(2)

    def rows(self, count: int) -> tuple[int, ...]:
        """New rows, of one group."""
        first, group = len(self.groups), max(self.groups, default=-1) + 1
        if first + count > MOST_ROWS:
            raise NotProved(f"the program takes more than {MOST_ROWS:,} rows; fewer symbols or tokens help most.")
        self.groups += [group] * count
        return tuple(range(first, first + count))

    def draft(self, layer: int) -> Draft:
        while len(self.layers) <= layer:
            self.layers.append(Draft())
        return self.layers[layer]

    def note(self, layer: int, half: str, row: int, says: Meaning) -> None:
        """What a row says from here on; of the embedding, layer −1."""
        self.notes[layer, half, row] = says

    def note_classes(self, layer: int, half: str, rows: tuple[int, ...], says: Says, classes: Array) -> None:
        """Row k says that what is meant is of class k."""
        for k, row in enumerate(rows):
            self.note(layer, half, row, replace(says, which=tuple(np.flatnonzero(classes == k).tolist())))

    # ---- heads -------------------------------------------------------------------------------------------------------

    def fetch(self, layer: int, offset: int, source: tuple[int, ...], target: tuple[int, ...]) -> int:
        """Rows from so far back, in this layer or the next that looks back."""
        while self.draft(layer).key is not None:
            layer += 1
        self.draft(layer).fetched += [(offset, s, t) for s, t in zip(source, target, strict=True)]
        return layer

    def fetch_from(self, layer: int, place: int, source: tuple[int, ...], target: tuple[int, ...]) -> int:
        """Rows of the token at a position, in this layer or the next that looks at nothing else."""
        mark, made = self.mark(place)
        layer, key = max(layer, made), (self.here, mark)
        while self.draft(layer).key != key and (self.draft(layer).key is not None or self.draft(layer).fetched):
            layer += 1
        self.draft(layer).key = key
        self.draft(layer).fetched += [(0, s, t) for s, t in zip(source, target, strict=True)]
        return layer

    def edge(self, t: int) -> tuple[tuple[int, int], int]:
        """Rows "before position t" and "not", and the layer that fetches them."""
        if ("edge", t) not in self.known:
            rows = self.rows(2)
            layer, n = self.fetch(0, t, (self.start, self.here), rows), self.space.n
            self.known["edge", t] = rows, layer
            says = Says(self.space.position, (), np.ones(n, dtype=bool))
            self.note_classes(layer, HEADS, rows, says, np.arange(n) >= t)
        return self.known["edge", t]

    def mark(self, place: int) -> tuple[int, int]:
        """A row that is 1 at the token of this position only, and the layer from which on it is there."""
        if ("mark", place) not in self.known:
            (row,), path, layer = self.rows(1), [self.here], 0
            if place + 1 < self.space.n:
                (before, _), layer = self.edge(place + 1)
                path.append(before)
            if place:
                (_, not_before), at = self.edge(place)
                path, layer = [*path, not_before], max(layer, at)
            self.make(layer, [(tuple(path), row)])
            self.note(layer, GATES, row, Says(self.space.position, (place,), np.ones(self.space.n, dtype=bool)))
            self.known["mark", place] = row, layer + 1
        return self.known["mark", place]

    # ---- gates -------------------------------------------------------------------------------------------------------

    def make(self, layer: int, gates: list[tuple[Path, int]]) -> None:
        longest = max((len(path) for path, _ in gates), default=0)
        self.draft(layer).made += gates
        if longest > MOST_READ or len(self.draft(layer).made) > MOST_GATES:
            raise NotProved(f"a table takes more than {MOST_GATES:,} gates, or one of more than {MOST_READ} rows.")

    def tree(self, table: Table) -> tuple[list[tuple[Path, int]], int]:
        """Paths to every value of a table without look-ups, and the first layer whose gates can read them."""
        table = self._settled(narrowed(table))
        position, runs, codes = self.space.position, np.zeros(1, dtype=np.int64), table.codes
        axes: list[Digit | Runs] = []
        shape, layer = [], 0
        if position in table.atoms:  # then it is the first: everything else may depend on it
            atoms = (position, *(atom for atom in table.atoms if atom is not position))
            table = Table(atoms, table.over(atoms), table.values)
            runs = np.flatnonzero(np.r_[True, _changes(table.codes)])
            edges = [self.edge(int(t)) for t in runs[1:]]
            codes = table.codes[runs]
            axes.append(Runs(tuple(rows for rows, _ in edges)))
            shape, layer = [len(runs)], max(at for _, at in edges)
        for axis, atom in enumerate(table.atoms):
            if atom is position:
                continue
            signal, right = self.signal(table, axis), np.ones(self.space.n, dtype=bool)
            if isinstance(atom, Taken):
                right = _matters(table, axis)
            where = np.logical_and.reduceat(right, runs)
            codes = _spread(codes, axis, signal)
            axes += [Digit(rows, () if where.all() else tuple(where.tolist())) for rows in signal.digits]
            shape += [len(rows) for rows in signal.digits]
            layer = max(layer, signal.gates)
        found = paths(codes.reshape(shape), axes)
        return [(path or (self.here,), value) for path, value in found], layer

    def made(self, table: Table) -> Signal:
        """The value of a table, made by gates: a row for each, or what look-ups leave."""
        key = ("made", table.atoms, table.codes.tobytes())
        if key not in self.known:
            self.known[key] = self._made(table)
        return self.known[key]

    def _made(self, table: Table) -> Signal:
        atom = table.atoms[0] if len(table.atoms) == 1 else None
        if isinstance(atom, Made) and np.array_equal(table.codes, np.arange(atom.size)):
            return self.made(atom.table)  # itself
        meant = table
        if table.looks_up:
            rest = resolved(self, table)
            if isinstance(rest, Signal):
                return rest
            table = rest
        gates, layer = self.tree(table)
        rows = self.rows(len(table.values))
        self.make(layer, [(path, rows[value]) for path, value in gates])
        says = Says(meant, (), np.ones(self.space.n, dtype=bool))
        self.note_classes(layer, GATES, rows, says, np.arange(len(rows)))
        return Signal((rows,), np.arange(len(rows))[:, None], layer + 1, layer + 1)

    # ---- signals -----------------------------------------------------------------------------------------------------

    def signal(self, table: Table, axis: int) -> Signal:
        """Of one atom: values that make no difference to the table may be one row."""
        atom, classes = table.atoms[axis], _classes(table.codes, axis)
        if isinstance(atom, Symbol):
            return self.symbol(classes)
        if isinstance(atom, Taken):
            return self.taken(atom, classes, _matters(table, axis))
        if isinstance(atom, Held):
            return atom.signal
        assert isinstance(atom, Made)
        return self.made(atom.table)

    def symbol(self, classes: Array) -> Signal:
        key = ("symbol", classes.tobytes())
        if key not in self.known:
            rows = self.rows(int(classes.max()) + 1)
            self.symbols |= {row: classes == k for k, row in enumerate(rows)}
            says = Says(self.space.symbol, (), np.ones(self.space.n, dtype=bool))
            self.note_classes(-1, EMBEDDING, rows, says, classes)
            self.known[key] = Signal((rows,), classes[:, None], 0, 0)
        return self.known[key]

    def taken(self, atom: Taken, classes: Array, matters: Array) -> Signal:
        """What stands elsewhere, for the positions where it matters; several ways are chosen among by the position."""
        ways = _ways(atom, matters)
        signals = [self._fetched(atom.of, classes, way) for way in dict.fromkeys(ways[matters].tolist())]
        if len(signals) < 2:
            return signals[0]
        number = {way: k for k, way in enumerate(dict.fromkeys(ways[matters].tolist()))}
        chosen = np.array([number[way] if m else 0 for way, m in zip(ways.tolist(), matters.tolist(), strict=True)])
        which, layer = self.tree(Table((self.space.position,), chosen, tuple(range(len(number)))))
        layer = max([layer, *(signal.gates for signal in signals)])
        rows = self.rows(int(classes.max()) + 1)
        for path, k in which:
            (found,) = signals[k].digits
            self.make(layer, [((*path, here), row) for here, row in zip(found, rows, strict=True)])
        self.note_classes(layer, GATES, rows, Says(atom, (), matters), classes)
        return Signal((rows,), classes[:, None], layer + 1, layer + 1)

    def _fetched(self, of: Atom, classes: Array, way: tuple[str, int]) -> Signal:
        key = ("fetched", of, classes.tobytes(), way)
        if key not in self.known:
            source = self.symbol(classes) if isinstance(of, Symbol) else self._alone(of, classes)
            target = self.rows(int(classes.max()) + 1)
            rows, where = source.digits[0], source.code[:, 0]
            into = np.zeros(len(rows), dtype=np.int64)
            into[where] = classes  # rows of values that are one become one
            fetch = self.fetch if way[0] == BACK else self.fetch_from
            layer = fetch(source.heads, way[1], rows, tuple(target[k] for k in into.tolist()))
            back, place = (way[1], None) if way[0] == BACK else (0, way[1])
            there = np.arange(self.space.n) >= way[1]
            self.note_classes(layer, HEADS, target, Says(of, (), there, back, place), classes)
            self.known[key] = Signal((target,), classes[:, None], layer, layer + 1)
        return self.known[key]

    def _alone(self, of: Atom, classes: Array) -> Signal:
        """A made value in one digit."""
        assert isinstance(of, Made)
        signal = self.made(of.table)
        if len(signal.digits) == 1 and len(signal.digits[0]) == len(classes):
            return signal
        rows = self.rows(int(classes.max()) + 1)
        table = Table((Held(of.possible, signal),), classes, tuple(range(len(rows))))
        gates, layer = self.tree(table)
        self.make(layer, [(path, rows[value]) for path, value in gates])
        self.note_classes(layer, GATES, rows, Says(of, (), np.ones(self.space.n, dtype=bool)), classes)
        return Signal((rows,), classes[:, None], layer + 1, layer + 1)

    def _settled(self, table: Table) -> Table:
        """Asked for the position wherever an atom of another token is not there, or does not matter."""
        before = None
        while before is not table:
            before = table
            for atom in [atom for atom in table.atoms if isinstance(atom, Taken)]:
                table = self._without(table, atom) if atom in table.atoms else table
        return table

    def _without(self, table: Table, atom: Taken) -> Table:
        """The same, and independent of the atom at positions where it does not matter; itself if it is so already."""
        position, matters = self.space.position, _matters(table, table.atoms.index(atom))
        atoms = (position, *(other for other in table.atoms if other is not position))
        old = np.broadcast_to(table.over(atoms), tuple(one.size for one in atoms))
        codes, axis, any_one = old.copy(), atoms.index(atom), atom.possible.argmax(axis=1)
        for p in np.flatnonzero(~matters).tolist():
            codes[p] = codes[p].take([any_one[p]], axis=axis - 1)
        return table if np.array_equal(codes, old) else narrowed(Table(atoms, codes, table.values))


def _classes(codes: Array, axis: int) -> Array:
    """Numbers for the indices of an axis, the same where the table is the same."""
    slices = np.moveaxis(codes, axis, 0).reshape(codes.shape[axis], -1)
    return np.unique(slices, axis=0, return_inverse=True)[1].reshape(-1)


def _changes(codes: Array) -> Array:
    """Whether the table changes from an index of its first axis to the next."""
    slices = codes.reshape(len(codes), -1)
    return (slices[1:] != slices[:-1]).any(axis=1)


def _spread(codes: Array, axis: int, signal: Signal) -> Array:
    """The table over the digits of an atom, in place of the atom; −1 where no value has these digits."""
    sizes = tuple(len(rows) for rows in signal.digits)
    flat = np.ravel_multi_index(tuple(signal.code.T), sizes)
    moved = np.moveaxis(codes, axis, 0)
    found = np.full((int(np.prod(sizes)), *moved.shape[1:]), -1)
    found[flat] = moved
    return np.moveaxis(found, 0, axis)


def _matters(table: Table, axis: int) -> Array:
    """At which positions the table depends on an atom, by all that is possible there."""
    n = len(table.atoms[axis].possible)
    found = np.zeros(n, dtype=bool)
    for p in range(n):
        here = table.codes[table.there(p)]
        found[p] = (here != here.take([0], axis=axis)).any()
    return found


def _ways(atom: Taken, matters: Array) -> Array:
    """For each position how the atom is fetched: by distance or by place, the way that serves most positions first."""
    here = np.arange(len(matters))
    if (matters & (atom.places > here)).any():
        raise NotProved(f"'{atom.called}' looks at later tokens, which a causal network has not seen.")
    ways = np.empty(len(matters), dtype=object)
    left, count = matters.copy(), 0
    while left.any():
        served = Counter((BACK, int(p - atom.places[p])) for p in np.flatnonzero(left).tolist())
        served.update(Counter((PLACE, int(atom.places[p])) for p in np.flatnonzero(left).tolist()))
        way = max(served, key=lambda way: (served[way], way[0] == BACK))
        by = here - atom.places == way[1] if way[0] == BACK else atom.places == way[1]
        for p in np.flatnonzero(left & by).tolist():
            ways[p] = way
        left, count = left & ~by, count + 1
        if count > MOST_WAYS:
            raise NotProved(f"'{atom.called}' takes tokens from more than {MOST_WAYS} distances and places.")
    return ways
