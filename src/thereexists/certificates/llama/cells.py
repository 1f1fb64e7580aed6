"""Look-ups as memory: for every query a cell that holds what the last token that hits it has, by doubling.

A cell is a group of rows for each digit of its value; row 0 is "nothing yet". Before round t the cell of a query holds,
at every token, what the last (first) of the 2^t tokens up to here that hits has: the layer fetches the cell from 2^t
back and takes its value where the own one is nothing (for the first one: wherever the fetched one is something). At <s>
a cell is nothing, before and after, and so it is what stands before the beginning. ∎ After ⌈log2 n⌉ rounds the cell of
the query that stands here is read. No logit decides anything: that is why bfloat16 does as well as float32.

*What a cell holds* is not the key that was found but what the table makes of it: keys between which no entry of the
table differs, for one query, are one value. All keys that do not hit must be one value, "nothing": which of them a
softmax would find does not matter then. (Of ``find`` it is the default.)
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thereexists.certificates.llama.decide import Path
from thereexists.certificates.llama.finite import Found, Table
from thereexists.certificates.llama.signals import Held, Recalls, Remembers, Signal
from thereexists.core.errors import NotProved
from thereexists.functions.target import Array

MOST_CELLS = 1 << 10
_DIGITS = 3


@dataclass(frozen=True)
class _Meant:
    """Of one table and one look-up: ``value`` (queries, keys), the number of what a key is worth to a query, ``miss``

    (queries,) that of all keys that do not hit. ``same``: the numbers are those of the table's own values."""

    value: Array
    miss: Array
    count: int
    same: bool
    rest: Table  # the table, with such numbers in place of keys; the last axis


def resolved(wiring: Any, table: Table) -> Table | Signal:
    """A table without look-ups that is the same; or the signal itself, where nothing but a look-up is in it."""
    while table.looks_up:
        found = next(atom for atom in table.atoms if isinstance(atom, Found))
        meant = _meant(table, found)
        signal = _read(wiring, found, meant)
        if meant.same:
            return signal
        held = Held(np.ones((wiring.space.n, meant.count), dtype=bool), signal)
        table = Table((*meant.rest.atoms[:-1], held), meant.rest.codes, table.values)
    return table


def _meant(table: Table, found: Found) -> _Meant:
    others = tuple(dict.fromkeys((*found.query.atoms, *(atom for atom in table.atoms if atom is not found))))
    atoms, keys = (*others, found), len(found.key.values)
    codes = np.broadcast_to(table.over(atoms), tuple(atom.size for atom in atoms))
    asked = found.query.codes.reshape(-1)  # the query of every case of its atoms, which come first
    flat = codes.reshape(len(asked), -1, keys)
    of = [flat[asked == a].reshape(-1, keys) for a in range(len(found.query.values))]  # (cases, keys) each
    same = all((part == part[:1]).all() for part in of)
    value, miss = np.zeros((len(of), keys), dtype=np.int64), np.zeros(len(of), dtype=np.int64)
    ever = found.possible.any(axis=0)
    rest = np.full((len(asked), flat.shape[1], max(keys, len(table.values))), -1)
    for a, part in enumerate(of):
        value[a] = part[0] if same else np.unique(part, axis=1, return_inverse=True)[1].reshape(-1)
        missed = value[a][ever & ~found.hits[a]]
        if len(np.unique(missed)) > 1:
            raise NotProved(
                f"'{found.called}' would have to count which keys were found even where none is the query; give it a "
                "default."
            )
        miss[a] = missed[0] if len(missed) else value[a][ever][0]
        for k in np.unique(value[a]).tolist():
            rest[asked == a, :, k] = flat[asked == a][:, :, int((value[a] == k).argmax())]
    count = int(value.max()) + 1
    left = rest[:, :, :count].reshape(*codes.shape[:-1], count)
    return _Meant(value, miss, count, same, Table(atoms, left, table.values))


def _read(wiring: Any, found: Found, meant: _Meant) -> Signal:
    """What the cell of the query here holds, as digits."""
    ever = found.possible.any(axis=0)
    cells = {}
    code, sizes = _digits(meant.count)  # (count, digits)
    for a in range(len(meant.miss)):
        if (meant.value[a][ever] != meant.miss[a]).any():
            cells[a] = [wiring.rows(size + 1) for size in sizes]
    if len(cells) > MOST_CELLS:
        raise NotProved(
            f"'{found.called}' asks for {len(cells):,} different keys; at most {MOST_CELLS:,} are remembered."
        )
    layer = _remembered(wiring, found, meant, cells, code)
    which, first = wiring.tree(found.query)
    layer, out = max(layer, first), [wiring.rows(size) for size in sizes]
    gates: list[tuple[Path, int]] = []
    for path, a in which:
        nothing = code[meant.miss[a]]
        if a not in cells:
            gates += [(path, rows[k]) for rows, k in zip(out, nothing.tolist(), strict=True)]
            continue
        for cell, rows, k in zip(cells[a], out, nothing.tolist(), strict=True):
            gates += [((*path, cell[0]), rows[k])]
            gates += [((*path, there), row) for there, row in zip(cell[1:], rows, strict=True)]
    wiring.make(layer, gates)
    for d, rows in enumerate(out):
        for k, row in enumerate(rows):
            numbers = tuple(np.flatnonzero(code[:, d] == k).tolist())
            wiring.note(layer, "gates", row, Recalls(found, meant.value, meant.miss, numbers))
    return Signal(tuple(out), code, layer + 1, layer + 1)


def _remembered(wiring: Any, found: Found, meant: _Meant, cells: dict[int, list[tuple[int, ...]]], code: Array) -> int:
    """The cells are filled, and put together round by round; the first layer that can read them."""
    layer, filled = 0, []
    for a, cell in cells.items():
        held = np.where(found.hits[a], meant.value[a] + 1, 0)  # 0: nothing
        values, number = np.unique(held, return_inverse=True)
        gates, at = wiring.tree(Table(found.key.atoms, number.reshape(-1)[found.key.codes], tuple(values.tolist())))
        layer = max(layer, at)
        for path, k in gates:
            digits = code[values[k] - 1] + 1 if values[k] else np.zeros(len(cell), dtype=np.int64)
            here = path if path[0] == wiring.here else (wiring.here, *path)  # a symbol: at <s> nothing is made
            filled += [(here, rows[d]) for rows, d in zip(cell, digits.tolist(), strict=True)]
    wiring.make(layer, filled)
    wiring.nothing += [rows[0] for cell in cells.values() for rows in cell]
    own = [rows for cell in cells.values() for rows in cell]
    fetched = [wiring.rows(len(rows)) for rows in own]
    says = [says for a in cells for says in _held(found, meant, a, code)]
    _note(wiring, layer, "gates", own, says, 1, 0)
    for t in range((wiring.space.n - 1).bit_length() if own else 0):
        layer += 1
        while wiring.draft(layer).key is not None:
            layer += 1
        for mine, theirs in zip(own, fetched, strict=True):
            wiring.fetch(layer, 2**t, mine, theirs)
            cleared = [mine[0], *theirs]
            if found.last:
                wiring.make(layer, [((mine[0], other), row) for other, row in zip(theirs, mine, strict=True)])
            else:
                wiring.make(layer, [((theirs[0], row), row) for row in mine])
                wiring.make(layer, [((other,), row) for other, row in zip(theirs[1:], mine[1:], strict=True)])
                cleared = [*mine, *theirs]
            wiring.draft(layer).cleared += cleared
        _note(wiring, layer, "heads", fetched, says, 2**t, 2**t)
        _note(wiring, layer, "gates", own, says, 2 ** (t + 1), 0)
    return layer + 1


def _held(found: Found, meant: _Meant, a: int, code: Array) -> list[list[Remembers]]:
    """For each digit of the cell of a query, what its rows say: that nothing hits, then which keys were found."""
    hits = np.flatnonzero(found.hits[a])
    digits = code[meant.value[a][hits]]  # (hits, digits)
    return [
        [
            Remembers(found, a, (), True, 1),
            *(
                Remembers(found, a, tuple(hits[digits[:, d] == k].tolist()), False, 1)
                for k in range(int(code[:, d].max()) + 1)
            ),
        ]
        for d in range(code.shape[1])
    ]


def _note(wiring: Any, layer: int, half: str, own: Any, says: list[list[Remembers]], window: int, back: int) -> None:
    for rows, meanings in zip(own, says, strict=True):
        for row, meaning in zip(rows, meanings, strict=True):
            wiring.note(layer, half, row, replace(meaning, window=window, back=back))


def _digits(count: int) -> tuple[Array, tuple[int, ...]]:
    """So many values in up to three digits, in as few rows as can be; one more of each digit is "nothing"."""
    ways = []
    for digits in range(1, _DIGITS + 1):
        side = next(m for m in itertools.count(1) if m**digits >= count)
        sizes = [side] * digits
        for k in range(digits):
            while sizes[k] > 1 and np.prod(sizes) // sizes[k] * (sizes[k] - 1) >= count:
                sizes[k] -= 1
        ways.append((sum(sizes) + digits, tuple(sizes)))
    _, sizes = min(ways)
    return np.array(np.unravel_index(np.arange(count), sizes)).T, sizes
