"""The rows and units of a compact network, sorted into the roles and kinds of ``float_run.py``, or *undecided*."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from thereexists.functions.grid import Grid
from thereexists.functions.target import Array
from thereexists.model import Attention, EmbeddedTransformer

_WHOLE = 2.0**40  # beyond this size whole numbers and halves are not told apart with certainty


class Undecided(Exception):
    """The network is of another shape than the proof covers."""


def demand(condition: object, otherwise: str) -> None:
    if not condition:
        raise Undecided(otherwise)


@dataclass(frozen=True)
class Weights:
    """All layers of all stages in one list: units (U, d_model) with the number of their layer, biases (layers, d)."""

    W_1: Array
    b_1: Array
    W_2: Array  # (U, d_model): what each unit writes
    layer: Array
    b_2: Array
    E: Array  # (positions, d_model); one row of zeros without positions
    W_out: Array
    attention: tuple[int, Array, Array]  # its layer, W_V (m, d_model), W_O (d_model, m)

    @classmethod
    def of(cls, network: EmbeddedTransformer) -> Weights:
        d = network.W_out.shape[1]
        parts, biases, attention, number = [], [], [], 0
        for stage in network.stages.values():
            for l in range(stage.depth):
                if stage.attention is not None:
                    attention.append((number, *_only_head(stage.attention, l)))
                b_2 = np.zeros(d)
                if stage.feed_forward is not None:
                    W_1, b_1, W_2, b_2 = (as_array(w[l]) for w in stage.feed_forward.parameters_list())
                    parts.append((W_1, b_1, W_2.T, np.full(len(b_1), number)))
                biases.append(b_2)
                number += 1
        demand(len(attention) == 1, f"it has {len(attention)} attention layers where one is understood")
        demand(parts, "it has no feed-forward layer")
        W_1, b_1, W_2, layer = (np.concatenate(column) for column in zip(*parts, strict=True))
        E = np.zeros((1, d)) if network.E is None else as_array(network.E)
        demand(len(E) <= d, "it has more positions than rows")  # so the work below stays within the size of W_1
        found = cls(W_1, b_1, W_2, layer, np.array(biases), E, as_array(network.W_out), attention[0])
        finite = all(np.isfinite(w).all() for w in (W_1, b_1, W_2, found.b_2, E, found.W_out, *attention[0][1:]))
        demand(finite, "a weight is not finite")
        return found


def _only_head(attention: Attention, l: int) -> tuple[Array, Array]:
    W_Q, b_Q, W_K, W_V, W_O = (as_array(w[l]) for w in attention.parameters_list())
    demand(attention.pattern is None and len(W_Q) == 1, "its attention has a pattern or several heads")
    demand(not (W_Q.any() or b_Q.any() or W_K.any()), "its attention is not a plain average")
    return W_V[0], W_O[0]


def plain_sum(W_V: Array, W_O: Array, n: int) -> tuple[Array, Array]:
    """Which rows are summed, and where the sums go."""
    plain = np.isin(W_V, (0.0, 1.0)).all() and (np.count_nonzero(W_V, axis=1) == 1).all()
    plain = plain and np.isin(W_O, (0.0, float(n))).all() and (np.count_nonzero(W_O, axis=0) == 1).all()
    plain = plain and (np.count_nonzero(W_O, axis=1) <= 1).all()
    demand(plain, "its attention is not a plain sum over the positions, row by row")
    m = len(W_V)
    return (W_V.argmax(axis=1), W_O.argmax(axis=0)) if m else (np.zeros(0, int), np.zeros(0, int))


def first_rows(network: EmbeddedTransformer, grid: Grid | None) -> tuple[Array, Array]:
    if grid is not None:
        W_in = as_array(network.W_in)
        plain = np.isin(W_in, (0.0, 1.0)).all() and (np.count_nonzero(W_in, axis=1) <= 1).all()
        demand(plain and W_in.shape[1] == grid.d, "the embedding is not one feature per row")
        return np.asarray(W_in.any(axis=1)), np.zeros(len(W_in))
    table = as_array(network.embedding)
    whole = (table >= 0).all() and (table <= _WHOLE).all() and (table == np.rint(table)).all()
    demand(whole, "the embedding holds something else than whole numbers")
    return np.asarray(table.any(axis=0)), table.max(axis=0)


def check_literals(w: Weights, single: Array, literal: Array, taken: Array) -> None:
    W_2 = w.W_2[single]
    once = np.isin(W_2, (0.0, 1.0)).all() and (np.count_nonzero(W_2, axis=1) <= 1).all()
    alone = (np.count_nonzero(w.W_2[:, literal], axis=0) == 1).all()
    demand(once and alone and not (literal & taken).any(), "a literal is not one unit in one row of its own")


def gates(
    W_1: Array, b_1: Array, E: Array, constant: Array, literal: Array, tokens: Array, numbers: Array
) -> tuple[Array, float]:
    """(positions, units): the largest value of every exact and memory unit; and the largest sum of exact ones."""
    C, L, T = W_1[:, constant], W_1[:, literal], W_1[:, tokens]
    demand(np.isin(L, (0.0, -1.0)).all(), "a literal is read with another weight than −1")
    whole = all((np.abs(x) <= _WHOLE).all() and (x == np.rint(x)).all() for x in (C, T, b_1))
    demand(whole, "a unit that reads constants has weights that are not whole numbers")
    E = E[:, constant]
    gate = E @ C.T + b_1 + np.maximum(T, 0) @ numbers[tokens]
    memory = L.any(axis=1)
    terms = (E != 0).astype(float) @ (C[memory] != 0).T.astype(float) + (b_1[memory] != 0)
    single = (terms <= 1).all() and not T[memory].any() and (gate[:, memory] <= 1).all()
    demand(single, "a memory unit is not gated by one constant of at most 1")
    size = np.abs(E) @ np.abs(C).T + np.abs(b_1) + np.abs(T) @ numbers[tokens]
    return np.maximum(gate, 0.0), float(size.max(initial=0.0))


def slots_before(W_2: Array, gate: Array, slot: Array, layer: Array, t: int, n: int) -> tuple[Array, float]:
    """(positions, d_model): the largest number in every slot before the attention; and the largest of all."""
    demand(len(gate) in (1, n), "E has other positions")
    held = np.zeros((len(gate), len(slot)))
    writes = W_2[:, slot]
    whole = (writes >= 0).all() and (writes <= _WHOLE).all() and (writes == np.rint(writes)).all()
    demand(whole, "a slot receives something else than whole numbers")
    demand((layer[writes.any(axis=1)] < t).all(), "a slot is written after the attention")
    held[:, slot] = gate @ writes
    return held, float(held.max(initial=0.0))


def edge_units(
    w: Weights, edge: Array, row: Array, network: EmbeddedTransformer, grid: Grid | None
) -> tuple[Array, Array, float]:
    """Where edge units are 0 and 1, the number of the edge whose ramp that is, and the largest |x|."""
    if grid is None:
        return np.zeros((0, 2)), np.zeros(0, dtype=int), 0.0
    slope, b = w.W_1[edge, row[edge]], w.b_1[edge]
    demand(_powers_of_two(slope), "a unit that reads the input is not a power of two times one feature")
    above = 1.0 - b
    demand(((1.0 - above == b) & (above + b == 1.0)).all(), "the bias of an edge is beyond the resolution of float64")
    knots = np.stack([-b / slope, above / slope], axis=1)
    feature = as_array(network.W_in)[row[edge]].argmax(axis=1)
    origin, step, ramp = (np.array(x)[feature] for x in (grid.origin, grid.step, grid.ramp))
    number = np.rint((knots.max(axis=1) - origin) / step)
    upper = origin + number * step
    lower = upper - ramp
    there = (knots.max(axis=1) == upper) & (knots.min(axis=1) == lower) & (number >= 1) & (number < grid.N)
    there &= (upper - lower == ramp) & (lower + ramp == upper)  # the difference is exact
    if grid.low:  # both ends of a guarded box have a ramp, inside, within a core's margin of the end
        spare, low, high = ramp * 2.0**-10, np.array(grid.low)[feature], np.array(grid.high)[feature]
        first = (slope > 0) & (knots[:, 0] >= low) & (knots[:, 0] - low <= spare) & (knots[:, 1] - knots[:, 0] == ramp)
        last = (slope < 0) & (knots[:, 0] <= high) & (high - knots[:, 0] <= spare) & (knots[:, 0] - knots[:, 1] == ramp)
        there, number = there | first | last, np.where(first, -1, np.where(last, grid.N + 1, number))
    demand(there.all(), "a unit that reads the input rises elsewhere than on a ramp of the grid")
    sides = np.maximum(np.abs(grid.origin), np.abs(np.array(grid.origin) + grid.N * np.array(grid.step)))
    return knots, number.astype(int), float(max(sides.max(), np.abs(grid.high).max()))


def count_units(slope: Array, b: Array) -> tuple[Array, Array, Array]:
    """Slopes, the whole number after which each count unit opens or closes, and how clear of 0 and 1 it stays."""
    small = (np.abs(b) <= 2.0**30) & (b * 1024 == np.rint(b * 1024)) & (np.abs(np.log2(np.abs(slope))) <= 10)
    demand(_powers_of_two(slope) and small.all(), "a unit that reads a sum is not 2^k times it plus a dyadic number")
    threshold = np.floor(-b / slope)
    ends = np.stack([slope * threshold + b, slope * (threshold + 1) + b])
    return slope, threshold, np.minimum(ends.max(axis=0) - 1.0, -ends.min(axis=0))


def pairs_of_literals(
    w: Weights, edge: Array, count: Array, row: Array, number: Array, threshold: Array
) -> tuple[Array, Array, Array]:
    """Literal rows, the pair each belongs to, and its sign. Of two literals of one pair with opposite signs exactly one
    is 0: both open at the same edge of one input, or between the same whole numbers of one sum."""
    units = np.concatenate([np.flatnonzero(edge), np.flatnonzero(count)])
    at = np.concatenate([number.astype(float), threshold])
    keep = w.W_2[units].any(axis=1)
    units, at = units[keep], at[keep]
    place = np.stack([row[units].astype(float), at], axis=1)
    _, pair = np.unique(place, axis=0, return_inverse=True)
    return w.W_2[units].argmax(axis=1) if len(units) else units, pair.reshape(-1), np.sign(w.W_1[units, row[units]])


def key_signs(W_1: Array, keys: tuple[Array, Array, Array]) -> Array:
    """A unit that subtracts a literal fires only where that literal is 0: −1 for one that opens upwards, else 1."""
    rows, pair, sign = keys
    size = int(pair.max(initial=-1)) + 1
    asked = (W_1[:, rows] != 0).astype(np.float32)
    place = np.zeros((2, len(rows), size), dtype=np.float32)
    place[(sign > 0).astype(int), np.arange(len(rows)), pair] = 1.0
    below, above = (asked @ side > 0 for side in place)
    return below.astype(np.float32) - above.astype(np.float32)


def as_array(weight: torch.Tensor | None) -> Array:
    return np.zeros((0, 0)) if weight is None else weight.detach().double().cpu().numpy()


def _powers_of_two(values: Array) -> bool:
    return bool((np.abs(np.frexp(values)[0]) == 0.5).all())
