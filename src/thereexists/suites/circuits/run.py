"""A network taken apart: what every component adds to the residual stream, and what comes out if some edges are cut.

Components that write: ``input`` (embedding and positions), ``a0.h1`` (a head), ``m0`` (a feed-forward half). Places
that read: ``a0.h1.q``, ``a0.h1.k``, ``a0.h1.v``, ``m0``, ``output``. An edge goes from a component to a place behind
it. To cut an edge is to give the place, instead of what the component writes now, what it wrote in another run.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from thereexists.functions.target import Array
from thereexists.suites.net import Net

Edge = tuple[str, str]
Writes = dict[str, Array]  # component → (batch, n, d)


class Run(NamedTuple):
    writes: Writes
    output: Array


def architecture(heads: list[int], hidden: list[bool]) -> list[Edge]:
    """Every edge between so many heads in each block, and its feed-forward half where it has one."""
    found, writers = [], ["input"]
    for i, (count, has) in enumerate(zip(heads, hidden, strict=True)):
        names = [f"a{i}.h{j}" for j in range(count)]
        found += [(writer, f"{head}.{way}") for head in names for way in "qkv" for writer in writers]
        writers += names
        if has:
            found += [(writer, f"m{i}") for writer in writers]
            writers.append(f"m{i}")
    return found + [(writer, "output") for writer in writers]


def edges_of(net: Net) -> list[Edge]:
    """Every edge that the architecture has."""
    return architecture([len(block.heads) for block in net.blocks], [b.hidden is not None for b in net.blocks])


def run(net: Net, X: Array, kept: Collection[Edge] | None = None, other: Writes | None = None) -> Run:
    """The network on (batch, n, features). With ``kept`` all other edges are cut: they carry ``other``."""
    writes: Writes = {"input": X @ net.W_in + net.E}

    def seen(place: str) -> Array:
        if kept is None or other is None:
            return sum(writes.values(), np.zeros(()))
        return sum((writes[w] if (w, place) in kept else other[w] for w in writes), np.zeros(()))

    for i, block in enumerate(net.blocks):
        made: Writes = {}
        for j, head in enumerate(block.softmax_heads):
            name = f"a{i}.h{j}"
            Q = seen(f"{name}.q") @ head.W_Q + head.b_Q
            K = seen(f"{name}.k") @ head.W_K + head.b_K
            logits = Q @ np.swapaxes(K, -1, -2)
            powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
            weights = powers / powers.sum(axis=-1, keepdims=True)
            made[name] = weights @ (seen(f"{name}.v") @ head.W_V) @ head.W_O
        writes |= made
        if block.hidden is not None:
            h = block.hidden
            writes[f"m{i}"] = np.maximum(seen(f"m{i}") @ h.W_1 + h.b_1, 0.0) @ h.W_2 + h.b_2
    return Run(writes, seen("output") @ net.W_out)
