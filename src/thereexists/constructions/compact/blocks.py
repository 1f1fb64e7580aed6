"""The compact construction (beyond the papers): the same f̄ as the proof's network, in four standard blocks.

Statement. For a grid of N cells per feature there is a network of four blocks (softmax attention and ReLU, residuals)
over d_model scratch rows that equals f̄ off the ramps: on every cube, those with equal columns included. All numbers
that matter are 0, 1 or a stored value, so it holds in any floating-point arithmetic that represents the cell edges.

    edges    FF         r⁺_{f,k} = ReLU((x_f − e_k)/η + 1), r⁻_{f,k} = ReLU((e_k − x_f)/η) for the N−1 inner edges e_k
                        of every feature: exactly 0 on the wrong side of the edge, at least 1 on the right one; the
                        two always add up to at least 1
    cells    FF         units ReLU(gate − r⁺_{k+1} − r⁻_k) = [x is in cell k]
                        Theorem 2: gate = the position's one-hot row; writes the bits of k into the position's slots
                        Theorem 1: one unit for each cell q of a token (all d features); adds 1 to the rows 1 … q
    gather   attention  zero logits: the mean over the tokens, times n. Theorem 2: every token has the bits of the whole
                        sequence. Theorem 1: row m holds the number of tokens in the cells ≥ m, multiplicities included
             FF         literals of those: ReLU(4s − 3/2), ReLU(5/2 − 4s) of a bit; ReLU(2(c−j) + 3/2),
                        ReLU(2(j−c) − 1/2) of "at least j tokens": a mean that is off by 1/8 does no harm
    recall   FF         the keyed memory (``keyed_memory.py``). Theorem 2: the key is the sequence's bits, gated by the
                        position; Theorem 1: the counts and the token's own edges

Compact support. For a function that is 0 outside its box, one more slot (or count) says whether some token is outside:

    edges    FF         2d more literals: r⁻ at the upper end of every feature, r⁺ at the lower one, 0 from the end on
    cells    FF         units ReLU(1 − r): 1 from the end of the box on, 0 a ramp's width inside; added to the slot
    gather              its sum over the tokens is 0, or at least 1, and becomes a literal like the others
    recall   FF         the literal is one more bit of every key: no unit fires where a token is outside, and what no
                        unit writes is 0 there, so the default is 0

The ramps lie on the inner side of the ends. The proof from the weights is ``certificates/support_wide.py``.

A domain that is not a box: only the contexts of cubes that may meet it are stored; elsewhere the default is answered.

Hypotheses: none on f; on the arithmetic, see ``certificates/float_run.py``. Off the cores the mass lemma bounds the
output by the stored values. ``max_width`` spreads the units of a layer over several blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import torch

from thereexists.constructions.compact.keyed_memory import Cubes, best_default, share, wrong_literals
from thereexists.constructions.compact.rows import Layer, Rows, block_count, uniform_attention
from thereexists.functions.grid import Grid
from thereexists.functions.target import Array, Target
from thereexists.model import Attention, EmbeddedTransformer, Stage


@dataclass(frozen=True)
class Memory:
    """What is stored: for every position (or once, without positions) the cubes, their values, and the default.

    ``values[g]`` (labels, d) are the values of group g, ``default[g]`` (d,) the one that needs no unit.
    """

    cubes: tuple[Cubes, ...]
    values: tuple[Array, ...]
    default: Array
    contexts: int

    @property
    def units(self) -> int:
        return sum(len(group) for group in self.cubes)

    @property
    def largest(self) -> float:
        """The largest |output| that the memory can give, on any input."""
        gaps = [np.abs(v - c).max(initial=0.0) for v, c in zip(self.values, self.default, strict=True)]
        return float(np.abs(self.default).max() + max(gaps))


def tabulate_contexts(target: Target, grid: Grid) -> Memory:
    """f̄ on every context, equal outputs merged."""
    if not grid.positional:
        codes, values = _counted(target, grid)
        return _memory([_guarded(codes, grid)], [values], grid)
    index = grid.cube(np.arange(grid.cells))  # (cells, n, d)
    values = grid.values(target, index)
    bits = bits_per_feature(grid)
    codes = (index[..., None] >> np.arange(bits) & 1).reshape(len(index), -1).astype(np.int8)
    return _memory([_guarded(codes, grid)] * grid.n, [values[:, j] for j in range(grid.n)], grid)


def _guarded(codes: Array, grid: Grid) -> Array:
    """The codes of contexts inside the box: one more bit, 0, where it is guarded."""
    return np.concatenate([codes, np.zeros((len(codes), 1), dtype=np.int8)], axis=1) if grid.low else codes


def _counted(target: Target, grid: Grid) -> tuple[Array, Array]:
    """Every multiset of n cells with every own cell in it: thermometer codes of the counts and of the own cell."""
    K, n = grid.K, grid.n
    multisets = np.array(list(combinations_with_replacement(grid.columns().tolist(), n)))  # (M, n), cells increasing
    digits = multisets[..., None] // grid.N ** np.arange(grid.d) % grid.N  # (M, n, d)
    values = grid.values(target, digits)  # (M, n, d)
    at_least = (multisets[:, :, None] >= np.arange(1, K)).sum(axis=1)  # tokens in the cells ≥ m: (M, K−1)
    counts = (at_least[..., None] >= np.arange(1, n + 1)).reshape(len(multisets), -1)
    first = np.ones(multisets.shape, dtype=bool)
    first[:, 1:] = multisets[:, 1:] != multisets[:, :-1]  # tokens of one cell have one value: the first stands for all
    multiset, token = np.nonzero(first)
    own = (digits[multiset, token][..., None] >= np.arange(1, grid.N)).reshape(len(token), -1)  # (·, d(N−1))
    return np.concatenate([counts[multiset], own], axis=1).astype(np.int8), values[multiset, token]


def _memory(codes: list[Array], values: list[Array], grid: Grid) -> Memory:
    groups, tables, defaults = [], [], []
    for code, value in zip(codes, values, strict=True):
        distinct, label = np.unique(value, axis=0, return_inverse=True)
        cubes = share(code, label.reshape(-1))
        default = best_default(distinct, np.bincount(cubes.labels, minlength=len(distinct)))
        default = np.zeros_like(default) if grid.low else default
        same = np.flatnonzero((distinct == default).all(axis=1))
        groups.append(cubes.without(int(same[0])) if len(same) else cubes)
        tables.append(distinct)
        defaults.append(default)
    return Memory(tuple(groups), tuple(tables), np.array(defaults), sum(len(code) for code in codes))


def bits_per_feature(grid: Grid) -> int:
    return math.ceil(math.log2(grid.N))


def context_count(grid: Grid) -> int:
    """How many contexts are tabulated, before any of them share a unit; computed without tabulating."""
    cells = grid.token_cells
    return grid.cells * grid.n if grid.positional else math.comb(cells + grid.n - 1, grid.n) * min(grid.n, cells)


def rows_of(grid: Grid) -> Rows:
    return Rows(**row_counts(grid))


def row_counts(grid: Grid) -> dict[str, int]:
    """How many rows of every kind; nothing is made yet."""
    edges = grid.d * (grid.N - 1)
    if grid.positional:
        slots = grid.n * grid.d * bits_per_feature(grid)
        own = {"position": grid.n, "edges": 2 * edges, "slots": slots, "literals": 2 * slots}
        outside = {"outside": 1}  # gathered where it is, as a slot
    else:
        cells = grid.K - 1
        own = {"edges": 2 * edges, "cells": cells, "counts": cells, "literals": 2 * cells * grid.n}
        outside = {"outside": 1, "outsiders": 1}
    guards = {"ends": 2 * grid.d, **outside, "closed": 2} if grid.low else {}
    return {"x": grid.d, "out": grid.d} | own | guards


def widths(grid: Grid, memory: Memory) -> dict[str, int]:
    """Feed-forward width of every part."""
    edges = 2 * grid.d * (grid.N - 1)
    if grid.positional:
        slots = grid.n * grid.d * bits_per_feature(grid)
        plain = {"edges": edges, "cells": grid.n * edges // 2, "gather": 2 * slots}
    else:
        cells = grid.K - 1
        plain = {"edges": edges, "cells": cells, "gather": 2 * cells * grid.n}
    guards = {"edges": 2 * grid.d, "cells": 2 * grid.d, "gather": 2} if grid.low else {}
    return {name: width + guards.get(name, 0) for name, width in plain.items()} | {"recall": max(1, memory.units)}


def layer_counts(grid: Grid, memory: Memory, max_width: int | None) -> dict[str, int]:
    """Blocks by name, as the network will have them."""
    layers: dict[str, int] = {}
    for name, width in widths(grid, memory).items():
        layers |= {name if i == 0 else f"{name}_{i + 1}": 1 for i in range(block_count(width, max_width))}
    return layers


def parameter_count(grid: Grid, memory: Memory, max_width: int | None) -> int:
    """Exactly the parameters of :func:`compact_network`."""
    d_model, parts = rows_of(grid).d_model, widths(grid, memory)
    guards = 1 if grid.low else 0
    heads = parts["gather"] // 2 if grid.positional else grid.K - 1 + guards  # m: the rows that the attention sums
    blocks = sum(layer_counts(grid, memory, max_width).values())
    feed_forward = sum(parts.values()) * (2 * d_model + 1) + blocks * d_model
    ends = 2 * grid.d * d_model + (grid.n * d_model if grid.positional else 0)
    return feed_forward + heads * (4 * d_model + 1) + ends


def compact_network(grid: Grid, memory: Memory, max_width: int | None = None) -> EmbeddedTransformer:
    """The four blocks."""
    rows = rows_of(grid)
    edges, cells = _edges(grid, rows), _cells(grid, rows) if grid.positional else _cumulative_cells(grid, rows)
    gather = _gather_slots(grid, rows) if grid.positional else _gather_counts(grid, rows)
    if grid.low:
        edges, cells, gather = _guards(grid, rows, edges, cells, gather)
    stages: dict[str, Stage] = {
        **edges.stages("edges", max_width),
        **cells.stages("cells", max_width),
        **gather[1].stages("gather", max_width, gather[0]),
        **_recall(grid, rows, memory).stages("recall", max_width),
    }
    W_in = torch.zeros(rows.d_model, grid.d, dtype=torch.float64)
    W_in[rows["x"], torch.arange(grid.d)] = 1.0
    W_out = torch.zeros(grid.d, rows.d_model, dtype=torch.float64)
    W_out[torch.arange(grid.d), rows["out"]] = 1.0
    E = None
    if grid.positional:
        E = torch.zeros(grid.n, rows.d_model, dtype=torch.float64)
        E[torch.arange(grid.n), rows["position"]] = 1.0
        E[:, rows["out"]] = torch.from_numpy(memory.default)
    return EmbeddedTransformer(stages, W_out, W_in=W_in, E=E)


def _edges(grid: Grid, rows: Rows) -> Layer:
    layer = Layer(len(rows["edges"]), rows.d_model)
    above, below = _edge_rows(grid, rows)
    for f in range(grid.d):
        eta, edge = grid.ramp[f], grid.origin[f] + np.arange(1, grid.N) * grid.step[f]
        units = f * (grid.N - 1) + np.arange(grid.N - 1)
        for unit, sign, bias, row in (
            (units, 1.0, 1.0 - edge / eta, above[f]),
            (units + grid.d * (grid.N - 1), -1.0, edge / eta, below[f]),
        ):
            layer.W_1[unit, rows["x"][f]] = sign / eta
            layer.b_1[unit], layer.W_2[unit, row] = bias, 1.0
    return layer


def _edge_rows(grid: Grid, rows: Rows) -> tuple[Array, Array]:
    """The rows of r⁺ and of r⁻: (d, N−1) each, edge k at index k−1."""
    above, below = rows["edges"].reshape(2, grid.d, grid.N - 1)
    return above, below


def _cells(grid: Grid, rows: Rows) -> Layer:
    """[token i has feature f in cell k], k ≥ 1, written as the bits of k into the slots of (i, f)."""
    bits = bits_per_feature(grid)
    layer = Layer(grid.n * grid.d * (grid.N - 1), rows.d_model)
    above, below = _edge_rows(grid, rows)
    slots = rows["slots"].reshape(grid.n, grid.d, bits)
    i, f, k = (axis.ravel() for axis in np.indices((grid.n, grid.d, grid.N - 1)))
    k = k + 1
    unit = np.arange(len(k))
    layer.W_1[unit, rows["position"][i]] = 1.0
    layer.W_1[unit, below[f, k - 1]] = -1.0
    inner = k < grid.N - 1  # the last cell has no upper edge
    layer.W_1[unit[inner], above[f[inner], k[inner]]] = -1.0
    for l in range(bits):
        layer.W_2[unit, slots[i, f, l]] = k >> l & 1
    return layer


def _cumulative_cells(grid: Grid, rows: Rows) -> Layer:
    """[the token is in cell q], q ≥ 1, added to the rows 1 … q: row m becomes [the token's cell is at least m]."""
    layer = Layer(grid.K - 1, rows.d_model)
    above, below = _edge_rows(grid, rows)
    q = np.arange(1, grid.K)
    layer.b_1[:] = 1.0
    for f in range(grid.d):
        k = q // grid.N**f % grid.N
        lower, upper = np.flatnonzero(k > 0), np.flatnonzero(k < grid.N - 1)
        layer.W_1[lower, below[f, k[lower] - 1]] = -1.0
        layer.W_1[upper, above[f, k[upper]]] = -1.0
    layer.W_2[:, rows["cells"]] = np.tril(np.ones((grid.K - 1, grid.K - 1)))
    return layer


def _gather_slots(grid: Grid, rows: Rows):
    """Every token receives all slots; a bit s is 0, or 1 at the least (2 at its own token, which has it already)."""
    D = len(rows["slots"])
    layer = Layer(2 * D, rows.d_model)
    unit = np.arange(D)
    layer.W_1[unit, rows["slots"]], layer.b_1[unit] = 4.0, -1.5
    layer.W_1[D + unit, rows["slots"]], layer.b_1[D + unit] = -4.0, 2.5
    layer.W_2[np.arange(2 * D), rows["literals"]] = 1.0
    return uniform_attention(rows["slots"], rows["slots"], float(grid.n), rows.d_model), layer


def _gather_counts(grid: Grid, rows: Rows):
    """Every token receives the counts c_m; the literals of c_m ≥ j for all m and j."""
    D = len(rows["counts"]) * grid.n
    layer = Layer(2 * D, rows.d_model)
    unit, row, j = np.arange(D), np.repeat(rows["counts"], grid.n), np.tile(np.arange(1, grid.n + 1), grid.K - 1)
    layer.W_1[unit, row], layer.b_1[unit] = 2.0, 1.5 - 2.0 * j
    layer.W_1[D + unit, row], layer.b_1[D + unit] = -2.0, 2.0 * j - 0.5
    layer.W_2[np.arange(2 * D), rows["literals"]] = 1.0
    return uniform_attention(rows["cells"], rows["counts"], float(grid.n), rows.d_model), layer


def _guards(grid: Grid, rows: Rows, edges: Layer, cells: Layer, gather: tuple[Attention, Layer]):
    """The same layers with the units and rows that tell whether a token is outside the box."""
    d, ends = grid.d, rows["ends"]
    outside, closed = rows["outside"], rows["closed"]
    told, flags, sums = Layer(2 * d, rows.d_model), Layer(2 * d, rows.d_model), Layer(2, rows.d_model)
    for f in range(d):
        low, high = guarded_ends(grid, f)
        for unit, slope, zero in ((f, 1.0, low), (d + f, -1.0, high)):  # 0 at the end of the box, and from there on
            told.W_1[unit, rows["x"][f]] = slope / grid.ramp[f]
            told.b_1[unit], told.W_2[unit, ends[unit]] = -slope * zero / grid.ramp[f], 1.0
    unit = np.arange(2 * d)
    flags.W_1[unit, ends], flags.b_1[:], flags.W_2[unit, outside] = -1.0, 1.0, 1.0
    read = rows["slots"] if grid.positional else rows["cells"]
    write = rows["slots"] if grid.positional else rows["counts"]
    summed = outside if grid.positional else rows["outsiders"]
    sums.W_1[0, summed], sums.b_1[0], sums.W_2[0, closed[0]] = 4.0, -1.5, 1.0
    sums.W_1[1, summed], sums.b_1[1], sums.W_2[1, closed[1]] = -4.0, 2.5, 1.0
    read, write = np.concatenate([read, outside]), np.concatenate([write, summed])
    attention = uniform_attention(read, write, float(grid.n), rows.d_model)
    return edges.with_(told), cells.with_(flags), (attention, gather[1].with_(sums))


def guarded_ends(grid: Grid, f: int) -> tuple[float, float]:
    """Where entries of a feature are outside from: the ends of the box, moved inwards to multiples of η·2^-11."""
    quantum = Fraction(float(grid.ramp[f])) / (1 << 11)
    low, high = Fraction(grid.low[f]) / quantum, Fraction(grid.high[f]) / quantum
    return float(math.ceil(low) * quantum), float(math.floor(high) * quantum)


def _recall(grid: Grid, rows: Rows, memory: Memory) -> Layer:
    layer = Layer(max(1, memory.units), rows.d_model)  # a constant function needs none: one unit that writes nothing
    literals = rows["literals"]
    if not grid.positional:  # the token's own edges are bits of the key too
        half = len(literals) // 2
        above, below = _edge_rows(grid, rows)
        literals = np.concatenate([literals[:half], above.ravel(), literals[half:], below.ravel()])
    if grid.low:  # and so is whether some token is outside
        half, (is_outside, is_inside) = len(literals) // 2, rows["closed"][:, None]
        literals = np.concatenate([literals[:half], is_outside, literals[half:], is_inside])
    start = 0
    for group, (cubes, values, default) in enumerate(zip(memory.cubes, memory.values, memory.default, strict=True)):
        unit = np.arange(start, start + len(cubes))
        layer.W_1[unit[:, None], literals] = wrong_literals(cubes)
        if grid.positional:
            layer.W_1[unit, rows["position"][group]] = 1.0
        else:
            layer.b_1[unit] = 1.0
        layer.W_2[unit[:, None], rows["out"]] = values[cubes.labels] - default
        start += len(cubes)
    if not grid.positional:
        layer.b_2[rows["out"]] = memory.default[0]
    return layer
