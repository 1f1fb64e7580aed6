"""The circuit: which component computes which operation, and which edges of the residual stream carry which value.

A row of the residual stream belongs to an operation from the half block that makes it (the compiler's ``places``)
until it is given to another one. Read off the weights: a component *reads* the rows where its matrices are not 0, and
*writes* those where its output matrices are not. What stands in a row is the sum of all that was written into it since
it was last all zero. So an edge from a writer to a place is in the circuit if the place reads a row into which the
writer has written since then; the values it carries are the operations of those rows. What was written before cancels:
its writers, and the one that cleared the row. If one of these has an edge to the place for another row's sake, the
others must have one too, or nothing would cancel: those edges are in the circuit as well.

**Checked, not believed.** With every edge outside of the circuit cut, and fed from runs on other inputs, the output
must be what it was; and for each edge of the circuit the change of the output if it alone is cut is measured
(``effect``): on 64 inputs, and if that is nothing on many more. An edge whose cutting changes nothing on any of them
(it carries positions only, or clears a row that nothing reads any more) is marked ``needed: false``, and counts neither
for nor against a method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Array
from thereexists.suites.circuits.run import Edge, Run, Writes, run
from thereexists.suites.net import Block, Net

Pair = tuple[Array, Array]  # inputs, and others that cut edges are fed from
SAME = 1e-9  # float64, a few blocks of numbers around 1


@dataclass(frozen=True)
class Circuit:
    """``carries``: the rows that an edge carries; ``rows``: those that a component writes, each with its operation."""

    carries: dict[Edge, tuple[int, ...]]
    rows: dict[str, dict[int, str]]
    units: dict[str, dict[str, list[int]]]  # of a feed-forward half: operation → its hidden units

    def record(self, go: Callable[..., Run], few: Pair, many: Pair, same: float = SAME) -> dict[str, Any]:
        """Plain data, with what cutting each edge does; refused if the circuit is not all of the network.

        ``go(X, kept, other)`` runs it; ``same``: outputs that are no further apart count as equal. An edge that does
        nothing on a ``few`` inputs is cut on ``many``: it may matter for one in a hundred.
        """
        tried = [_Tried.on(go, *few)]
        kept = set(self.carries)
        if not tried[0].moved(go, kept) <= same:
            raise CannotBuild("The circuit is not all of the network: its output changes without the other edges.")
        edges = []
        for edge, rows in self.carries.items():
            effect = tried[0].moved(go, kept - {edge})
            if effect <= same:
                tried = tried if len(tried) > 1 else [*tried, _Tried.on(go, *many)]
                effect = tried[1].moved(go, kept - {edge})
            effect = effect if effect > same else 0.0  # what is less is rounding, and differs from machine to machine
            values = sorted({self.rows[edge[0]][row] for row in rows})
            edges.append(
                {"from": edge[0], "to": edge[1], "carries": values, "effect": float(f"{effect:.6g}")}
                | {"needed": effect > 0}
            )
        components = {
            name: {"operations": sorted(set(made.values())), "units": self.units.get(name, {})}
            for name, made in self.rows.items()
        }
        return {"components": components, "edges": edges}


@dataclass(frozen=True)
class _Tried:
    """Inputs, what comes out, and what runs on other inputs write."""

    X: Array
    clean: Array
    corrupt: Writes

    @classmethod
    def on(cls, go: Callable[..., Run], X: Array, other: Array) -> _Tried:
        return cls(X, go(X).output, go(other).writes)

    def moved(self, go: Callable[..., Run], kept: set[Edge]) -> float:
        """The largest change of the output with these edges kept."""
        return float(np.abs(go(self.X, kept, self.corrupt).output - self.clean).max())


class Stream:
    """The residual stream, half block by half block: who has written into a row since it was last all zero.

    ``still``: what counts as zero.
    """

    def __init__(self, first: Array, still: float = 0.0) -> None:
        self.now, self.still = first.copy(), still
        self.since: dict[int, list[str]] = {row: ["input"] for row in range(first.shape[-1]) if first[..., row].any()}
        self.cancelled: dict[int, list[list[str]]] = {}  # of a row: whoever wrote until it was zero, time after time
        self.carries: dict[Edge, tuple[int, ...]] = {}

    def reads(self, place: str, rows: list[int]) -> None:
        found: dict[str, list[int]] = {}
        for row in rows:
            for writer in self.since.get(row, []):
                found.setdefault(writer, []).append(row)
        groups = [(row, group) for row in rows for group in self.cancelled.get(row, [])]
        while groups:  # until no group is there in part
            met = [(row, group) for row, group in groups if found.keys() & set(group)]
            if not met:
                break
            groups = [pair for pair in groups if pair not in met]
            for row, group in met:
                for writer in group:
                    found.setdefault(writer, []).append(row)
        self.carries.update({(writer, place): tuple(sorted(set(rows))) for writer, rows in found.items()})

    def wrote(self, rows: dict[str, list[int]], writes: Writes) -> list[int]:
        """The rows of each writer of a half, and what all add; returns rows that are all zero afterwards."""
        for name, some in rows.items():
            for row in some:
                self.since[row] = [*self.since.get(row, []), name]
            self.now += writes[name]
        zero = [
            row
            for row in sorted({row for some in rows.values() for row in some})
            if not (np.abs(self.now[..., row]) > self.still).any()
        ]
        for row in zero:
            self.cancelled.setdefault(row, []).append(self.since.pop(row, []))
        return zero


def circuit_of(net: Net, places: list[dict[str, Any]], X: Array) -> Circuit:
    """From the plain weights (not rotated) and the compiler's places; ``X`` shows when a row is all zero again."""
    names = {(place["block"], place["half"]): {row: name for name, row in place["made"]} for place in places}
    owner: dict[int, str] = dict(names.get((0, "embedding"), {}))
    state = run(net, X).writes
    stream = Stream(state["input"])
    rows = {"input": {row: owner.get(row, "constant") for row in stream.since}}
    units: dict[str, dict[str, list[int]]] = {}

    def reads(place: str, W: Array) -> None:
        stream.reads(place, [int(row) for row in np.flatnonzero(W.any(axis=1))])

    def wrote(writers: dict[str, Array], half: tuple[int, str]) -> None:
        owner.update(names.get(half, {}))
        for name, W in writers.items():
            rows[name] = {int(row): owner.get(int(row), "clears") for row in np.flatnonzero(W.any(axis=0))}
        for row in stream.wrote({name: list(rows[name]) for name in writers}, state):
            owner.pop(row, None)

    for i, block in enumerate(net.blocks):
        for j, head in enumerate(block.softmax_heads):
            for way, W in zip("qkv", (head.W_Q, head.W_K, head.W_V), strict=True):
                reads(f"a{i}.h{j}.{way}", W)
        wrote({f"a{i}.h{j}": head.W_O for j, head in enumerate(block.heads)}, (i + 1, "attention"))
        if block.hidden is not None:
            h = block.hidden
            reads(f"m{i}", h.W_1)
            wrote({f"m{i}": np.concatenate([h.W_2, h.b_2[None]])}, (i + 1, "feed-forward"))
            units[f"m{i}"] = _units(block, rows[f"m{i}"])
    reads("output", net.W_out)
    return Circuit(stream.carries, rows, units)


def _units(block: Block, rows: dict[int, str]) -> dict[str, list[int]]:
    """Which hidden units write into the rows of which operation."""
    found: dict[str, list[int]] = {}
    if block.hidden is not None:
        for row, name in rows.items():
            found.setdefault(name, []).extend(int(u) for u in np.flatnonzero(block.hidden.W_2[:, row]))
    return {name: sorted(set(some)) for name, some in found.items()}
