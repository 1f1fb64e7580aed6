"""What hides a circuit and keeps the function, exactly: distractors, several programs in one model, and rotations.

    distractors   a head and four hidden units more in every block, which read what is there and write into new rows,
                  which nothing else reads
    pair          two programs on the same tokens, side by side: rows, heads and units of both, two outputs
    turned        all directions of the residual stream mixed, heads and units shuffled and scaled (``disguise.py``)

A circuit is found on plain weights, where a row means a value; its names follow the heads into the dress.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from thereexists.functions.target import Array
from thereexists.suites.circuits.graph import Circuit
from thereexists.suites.disguise import Key
from thereexists.suites.net import Block, Head, Hidden, Net

Place = dict[str, Any]  # as the compiler tells it: a half block, and which operation it leaves in which row
ROWS, UNITS = 2, 4  # of distractors, in every block


def with_distractors(net: Net, rng: np.random.Generator) -> Net:
    """More heads and units; the rows that they write are new, and read by distractors only."""
    d, more = net.d, ROWS * len(net.blocks)
    wide = _padded(net, 0, more)
    blocks = []
    for i, block in enumerate(wide.blocks):
        start = d + ROWS * i
        reads = np.pad(_numbers(rng, start, 1), ((0, d + more - start), (0, 0)))
        W_Q, W_K = (np.pad(_numbers(rng, start, 2), ((0, d + more - start), (0, 0))) for _ in range(2))
        W_O = np.zeros((1, d + more))
        W_O[0, start] = 1.0
        head = Head(W_Q, _numbers(rng, 2), W_K, np.zeros(2), reads, W_O)
        hidden = block.hidden or Hidden(
            np.zeros((d + more, 0)), np.zeros(0), np.zeros((0, d + more)), np.zeros(d + more)
        )
        W_1 = np.pad(_numbers(rng, start + 1, UNITS), ((0, d + more - start - 1), (0, 0)))
        W_2 = np.zeros((UNITS, d + more))
        W_2[:, start + 1] = _numbers(rng, UNITS)
        hidden = Hidden(
            np.concatenate([hidden.W_1, W_1], axis=1), np.concatenate([hidden.b_1, _numbers(rng, UNITS)]),
            np.concatenate([hidden.W_2, W_2]), hidden.b_2,
        )  # fmt: skip
        blocks.append(Block((*block.heads, head), hidden))
    return dataclasses.replace(wide, blocks=tuple(blocks))


def _numbers(rng: np.random.Generator, *shape: int) -> Array:
    """Short numbers, so that a rotation stays exact."""
    return rng.integers(-4, 5, shape) / 4


def side_by_side(one: Net, two: Net) -> Net:
    """Both programs on the same tokens, in rows of their own."""
    one, two = _padded(one, 0, two.d), _padded(two, one.d, 0)
    blocks = []
    for i in range(max(len(one.blocks), len(two.blocks))):
        some = [net.blocks[i] for net in (one, two) if i < len(net.blocks)]
        hidden = [block.hidden for block in some if block.hidden is not None]
        both = None
        if hidden:
            both = Hidden(
                np.concatenate([h.W_1 for h in hidden], axis=1), np.concatenate([h.b_1 for h in hidden]),
                np.concatenate([h.W_2 for h in hidden]), sum((h.b_2 for h in hidden), np.zeros(one.d)),
            )  # fmt: skip
        blocks.append(Block(tuple(head for block in some for head in block.heads), both))
    W_out = np.concatenate([one.W_out, two.W_out], axis=1)
    return Net(one.W_in + two.W_in, one.E + two.E, tuple(blocks), W_out)


def both_places(one: list[Place], two: list[Place], rows: int) -> list[Place]:
    """The places of two programs in one model: those of the second are behind the first's rows."""
    moved = [place | {"made": [[f"{name} (second)", row + rows] for name, row in place["made"]]} for place in two]
    halves = {(place["block"], place["half"]): place for place in one}
    for place in moved:
        before = halves.get((place["block"], place["half"]), {"made": []})
        halves[place["block"], place["half"]] = place | {"made": [*before["made"], *place["made"]]}
    return list(halves.values())


def renamed(circuit: Circuit, key: Key) -> Circuit:
    """The same circuit where heads and units have the places that a disguise gave them."""

    def place(name: str) -> str:
        if not name.startswith("a"):
            return name
        block, head, *way = name[1:].split(".")
        new = [j for j, _, _ in key.heads[int(block)]].index(int(head[1:]))
        return ".".join([f"a{block}", f"h{new}", *way])

    def units(name: str, made: dict[str, list[int]]) -> dict[str, list[int]]:
        found = key.units[int(name[1:])]
        if found is None:
            return made
        return {op: [int(u) for u in np.flatnonzero(np.isin(found[0], old))] for op, old in made.items()}

    return Circuit(
        {(place(writer), place(to)): rows for (writer, to), rows in circuit.carries.items()},
        {place(name): made for name, made in circuit.rows.items()},
        {name: units(name, made) for name, made in circuit.units.items()},
    )


def _nothing(d: int) -> Hidden:
    return Hidden(np.zeros((d, 0)), np.zeros(0), np.zeros((0, d)), np.zeros(d))


def _padded(net: Net, before: int, after: int) -> Net:
    """The same with more rows of zeros."""

    def reads(W: Array) -> Array:
        return np.pad(W, ((before, after), (0, 0)))

    def writes(W: Array) -> Array:
        return np.pad(W, [(0, 0)] * (W.ndim - 1) + [(before, after)])

    blocks = []
    for block in net.blocks:
        heads = [
            Head(reads(h.W_Q), h.b_Q, reads(h.W_K), h.b_K, reads(h.W_V), writes(h.W_O)) for h in block.softmax_heads
        ]
        h = block.hidden
        hidden = None if h is None else Hidden(reads(h.W_1), h.b_1, writes(h.W_2), writes(h.b_2))
        blocks.append(Block(tuple(heads), hidden))
    return Net(writes(net.W_in), writes(net.E), tuple(blocks), reads(net.W_out))
