"""What a compact network computes in floating point, proved from all its weights. Knows nothing of what built them.

*Safe in a dtype* means: for every input of the domain off the grid's ramps, rounded to the dtype, the run in that dtype
gives the float64 output rounded once; for tokens (every position filled), gives it exactly. The proof gives every row
of the residual stream one role and every hidden unit of every layer one kind. A network in which some row or unit has
none is not judged: *undecided*. With p significand bits, u = 2^-p, and sums accumulated in the dtype, or in float32 if
that is more, in any order, with or without fused multiply-add:

- *constants* hold E, 0 or 1; nobody writes them. *Inputs* hold one feature, or whole numbers of the embedding.
- **Edge units** w·x + b, w a power of two, are 0 and 1 at the two ends of a grid ramp. If these ends are numbers of the
  dtype, then, as rounding is monotone and keeps such numbers, an input off the ramps stays on its side, and the unit
  gives exactly 0, or at least 1, in the dtype and in exact arithmetic alike.
- **Exact units** read whole numbers with whole weights. If the absolute values sum to at most 2^p, every partial sum
  in every order is a whole number of the dtype: nothing is rounded.
- **Memory units** 1 − Σ literals, the 1 from one constant or the bias. A sum of literals is 0 or at least 1 in any
  order (rounding is monotone, 0 and 1 are kept), so the unit gives exactly 1 or exactly 0.
- *Slots* start at 0 and add whole multiples of exact and memory units before the attention.
- **The attention**, one head with zero logits, adds n times the mean of slots or embedded numbers: the whole number s.
  At most 5 roundings to the dtype and n + 2 of the accumulation act on sums without cancellation: the float number is
  within s·((1+u)^5 (1+u_a)^(n+2) − 1) of s.
- **Count units** a·s + b, a a power of two, are at most −m or at least 1 + m on whole s, where m is at least |a| times
  that distance: exactly 0, or at least 1, in both arithmetics.
- *Literals* start at 0 and are written by one edge or count unit, with factor 1.
- *Outputs* hold a default and what memory units write. Either at most one unit fires (their keys contradict each other
  pairwise), and fl(fl(v) + fl(w)) = fl(v + w) is checked for every unit; or all values are multiples of 2^-k that sum
  to at most 2^(p−k), and nothing is rounded.

Nothing overflows to +∞ (a sum of literals may go to −∞; its unit gives 0), and below float64 nothing that matters is
subnormal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from thereexists.certificates.mass import pairwise_disjoint
from thereexists.grid import Grid
from thereexists.model import EmbeddedTransformer
from thereexists.precision import SIGNIFICAND, as_dtype, represents
from thereexists.target import Array
from thereexists.verdict import Verdict

_WHOLE = 2.0**40  # beyond this size whole numbers and halves are not told apart with certainty


class Undecided(Exception):
    """The network is of another shape than the proof covers."""


def dtype_verdicts(network: EmbeddedTransformer, names: Iterable[str], grid: Grid | None = None) -> dict[str, Verdict]:
    """Safe, not safe, or undecided (None), with the reason. Networks on features need their grid."""
    with np.errstate(all="ignore"):  # what overflows here is not finite, and no comparison with it passes
        try:
            run = FloatRun.of(network, grid)
        except Undecided as reason:
            return {name: Verdict(None, (f"undecided: {reason}",)) for name in names}
        return {name: run.verdict(name) for name in names}


def sums_by_counts(network: EmbeddedTransformer) -> bool | None:
    """Whether the answers depend on the multiset of tokens and the position only; None where the form is unknown."""
    with np.errstate(all="ignore"):
        try:
            return FloatRun.of(network).by_counts
        except Undecided:
            return None


def _demand(condition: object, otherwise: str) -> None:
    if not condition:
        raise Undecided(otherwise)


@dataclass(frozen=True)
class _Weights:
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
    def of(cls, network: EmbeddedTransformer) -> _Weights:
        d = network.W_out.shape[1]
        parts, biases, attention, number = [], [], [], 0
        for stage in network.stages.values():
            for l in range(stage.depth):
                if stage.attention is not None:
                    attention.append((number, *_only_head(stage.attention, l)))
                b_2 = np.zeros(d)
                if stage.feed_forward is not None:
                    W_1, b_1, W_2, b_2 = (_array(w[l]) for w in stage.feed_forward.parameters_list())
                    parts.append((W_1, b_1, W_2.T, np.full(len(b_1), number)))
                biases.append(b_2)
                number += 1
        _demand(len(attention) == 1, f"it has {len(attention)} attention layers where one is understood")
        _demand(parts, "it has no feed-forward layer")
        W_1, b_1, W_2, layer = (np.concatenate(column) for column in zip(*parts, strict=True))
        E = np.zeros((1, d)) if network.E is None else _array(network.E)
        found = cls(W_1, b_1, W_2, layer, np.array(biases), E, _array(network.W_out), attention[0])
        finite = all(np.isfinite(w).all() for w in (W_1, b_1, W_2, found.b_2, E, found.W_out, *attention[0][1:]))
        _demand(finite, "a weight is not finite")
        return found


@dataclass(frozen=True)
class FloatRun:
    """Every unit has its kind; what the kinds say in a dtype, :meth:`verdict` works out."""

    weights: _Weights
    network: EmbeddedTransformer
    n: int
    out: Array  # the output rows
    knots: Array  # (edge units, 2): where each is 0, and where it is 1
    edges: tuple[Array, Array]  # w and b of the edge units
    reach: Array  # (edge units,): the largest |w x| + |b|
    largest: float  # |x|
    slope: Array  # of the count units
    margin: Array  # of the count units: how far from 0 and 1 on whole numbers
    total: Array  # of the count units: the largest sum they read
    top: Array  # of the count units: the largest |value|
    whole: float  # the largest sum of absolute values of whole numbers
    gate: Array  # (positions, writers): what opens a unit that writes outputs, 0 or 1
    values: Array  # (writers, outputs): what it writes
    signs: Array  # (writers, pairs): what it asks of each pair of literals, −1, 0 or 1
    default: Array  # (positions, outputs)
    by_counts: bool

    @classmethod
    def of(cls, network: EmbeddedTransformer, grid: Grid | None = None) -> FloatRun:
        """Give every row its role and every unit its kind, or raise ``Undecided``."""
        _demand(
            (network.W_in is None) == (grid is None), "a network on features needs its grid, one on tokens has none"
        )
        w = _Weights.of(network)
        n = len(w.E) if grid is None else grid.n
        _demand(
            network.E is None if grid is not None and not grid.positional else len(w.E) == n, "E has other positions"
        )
        t, W_V, W_O = w.attention
        read, write = _plain_sum(W_V, W_O, n)
        first, numbers = _first_rows(network, grid)  # rows of the embedding; the largest number there
        out = w.W_out.argmax(axis=1)
        one_hot = np.isin(w.W_out, (0.0, 1.0)).all() and (np.count_nonzero(w.W_out, axis=1) == 1).all()
        _demand(one_hot and len(set(out.tolist())) == len(out), "the read-out is not one row for each output")
        is_out, attended = np.zeros(len(first), dtype=bool), np.zeros(len(first), dtype=bool)
        is_out[out], attended[write] = True, True

        written = w.W_2.any(axis=0) | w.b_2.any(axis=0) | attended
        constant = ~(written | first | is_out)
        _demand(np.isin(w.E[:, constant], (0.0, 1.0)).all(), "a constant row holds something else than 0 and 1")
        _demand(not w.E[:, ~(constant | is_out)].any(), "a row that is filled or written starts at a constant")
        _demand(not w.b_2[:, ~is_out].any(), "a bias is added to a row that is no output")
        _demand(not (first & (written | is_out)).any(), "a row of the embedding is written or read out")
        _demand(not (is_out & attended).any() and not is_out[read].any(), "the attention reads or writes an output row")

        reads = w.W_1 != 0
        _demand(not reads[:, is_out].any(), "an output row is read by a unit")
        features = first if grid is not None else np.zeros_like(first)
        edge, count = reads[:, features].any(axis=1), reads[:, attended].any(axis=1)
        single, other = edge | count, ~(edge | count)
        _demand((reads[single].sum(axis=1) == 1).all(), "a unit that reads an input or a sum reads another row too")
        _demand((w.layer[count] >= t).all(), "a sum is read before the attention")
        literal = w.W_2[single].any(axis=0)
        _check_literals(w, single, literal, is_out | first | attended)
        writer = np.where(literal, w.layer[(w.W_2 != 0).argmax(axis=0)] if len(w.layer) else 0, -1)

        W_1, b_1, W_2, layer = w.W_1[other], w.b_1[other], w.W_2[other], w.layer[other]
        tokens = first & ~features
        _demand(
            not W_1[:, ~(constant | literal | tokens)].any(), "a unit reads a row that is no constant and no literal"
        )
        late = np.where(reads[other], writer, -1).max(axis=1, initial=-1) >= layer
        _demand(not late.any(), "a literal is read before it is written")
        gate, whole = _gates(W_1, b_1, w.E, constant, literal, tokens, numbers)
        slot = W_2.any(axis=0) & ~is_out
        held, whole_slots = _slots(W_2, gate, slot, layer, t, n)
        whole = max(whole, whole_slots, float(numbers.max(initial=0.0)))
        _demand((slot | tokens)[read].all(), "the attention reads a row that is no slot and no row of the embedding")
        source = held.sum(axis=0) * (n // len(held)) + n * numbers  # the sum over all positions, at most
        total = np.zeros(len(first))
        total[write] = source[read] + held.max(axis=0)[write]

        writes = W_2[:, out].any(axis=1)
        _demand((gate[:, writes] <= 1).all(), "a unit that writes an output may exceed 1")
        by_counts = bool(tokens[read].all() and not (attended & slot).any() and not W_1[writes][:, tokens].any())
        row = reads.argmax(axis=1)
        knots, number, largest = _edges(w, edge, row, network, grid)
        at = row[count]
        slope, threshold, margin = _counts(w.W_1[count, at], w.b_1[count])
        sources = (w.E[:, out] != 0).astype(int) + (w.b_2[:, out] != 0).sum(axis=0)
        _demand((sources <= 1).all(), "a default is made of several constants")
        keys = _pairs(w, edge, count, row, number, threshold)
        return cls(
            weights=w, network=network, n=n, out=out, knots=knots,
            edges=(w.W_1[edge, row[edge]], w.b_1[edge]),
            reach=np.abs(w.W_1[edge, row[edge]]) * largest + np.abs(w.b_1[edge]), largest=largest,
            slope=np.abs(slope), margin=margin, total=total[at],
            top=np.abs(slope) * total[at] + np.abs(w.b_1[count]), whole=whole,
            gate=gate[:, writes], values=W_2[writes][:, out], signs=_signs(W_1[writes], keys),
            default=w.E[:, out] + w.b_2[:, out].sum(axis=0), by_counts=by_counts,
        )  # fmt: skip

    def verdict(self, name: str) -> Verdict:
        """Safe or not in one dtype."""
        dtype, p = as_dtype(name), SIGNIFICAND[name]
        for check in (self._edges_hold, self._weights_hold, self._sums_hold, self._values_hold):
            problem = check(dtype, p)
            if problem is not None:
                return Verdict(False, (problem,))
        return Verdict(True, ("edges, averages and stored values all keep their meaning when rounded to it",))

    def _edges_hold(self, dtype: torch.dtype, p: int) -> str | None:
        wrong = ~_keeps(self.knots, dtype)
        if wrong.any():
            edge = f"{self.knots[wrong][0]:.17g}"
            return f"the cell edges need a resolution that it does not have: {edge} is not one of its numbers"
        w, b = self.edges
        if not _keeps(np.concatenate([w * self.knots[:, 0], w * self.knots[:, 1], b]), dtype).all():
            return "the distance to an edge, in ramp widths, is not one of its numbers"
        if not max(self.largest, self.reach.max(initial=0.0)) <= torch.finfo(dtype).max / 4:
            return "the distance to an edge, in ramp widths, overflows"
        return None

    def _weights_hold(self, dtype: torch.dtype, p: int) -> str | None:
        """All weights but the stored values (they are rounded, and judged below)."""
        for name, tensor in self.network.state_dict().items():
            weight = _array(tensor)
            if name.endswith("W_2"):
                weight = np.delete(weight, self.out, axis=1)
            elif name.endswith("b_2") or name == "E":
                weight = np.delete(weight, self.out, axis=-1)
            wrong = ~_keeps(weight, dtype)
            if wrong.any():
                return f"the weight {weight[wrong].flat[0]:.17g} of {name} is not a number of that dtype"
        return None

    def _sums_hold(self, dtype: torch.dtype, p: int) -> str | None:
        if not self.whole <= 2.0**p:
            return f"it has not all whole numbers up to {self.whole:.0f}"
        error = average_error(self.n, p)
        wrong = ~(self.slope * self.total * error <= self.margin)
        if wrong.any():
            most = self.total[wrong][0]
            return f"an average over {self.n} tokens may be off by {error:.2g}, too much to count to {most:g}"
        limits = torch.finfo(dtype)
        if max(self.top.max(initial=0.0), self.total.max(initial=0.0)) > limits.max / 4 or 2 * self.n * limits.tiny > 1:
            return "a sum overflows, or a share of it is subnormal"
        return None

    def _values_hold(self, dtype: torch.dtype, p: int) -> str | None:
        exact = self.network.embedding is not None
        for position, default in enumerate(self.default):
            values = self.values[self.gate[position] > 0]  # (open units, outputs)
            if _on_a_lattice(values, default, p, dtype):
                continue
            once = np.concatenate([default[None], default + values])
            v, w = (_rounded(x, dtype) for x in (default[None], values))
            twice = np.concatenate([v, _rounded(v + w, dtype)])  # float64 has more than 2p + 2 bits: one rounding
            if not np.isfinite(twice).all() or not np.isfinite(_rounded(once, dtype)).all():
                return "a stored value overflows"
            if not all(_keeps_size(x, dtype) for x in (default, values, once)):
                return "a stored value is subnormal in it"
            if not (twice == (once if exact else _rounded(once, dtype))).all():
                return "a stored value would be rounded" + ("" if exact else " twice")
            if not self._one_fires[position]:
                return "undecided: two units may fire at once"
        return None

    @cached_property
    def _one_fires(self) -> list[bool]:
        return [pairwise_disjoint(self.signs[self.gate[position] > 0]) for position in range(len(self.gate))]


def average_error(n: int, p: int) -> float:
    """The relative error of n times a mean: 5 roundings with p bits, n + 2 of the accumulation; a little more."""
    u, accumulated = 2.0**-p, 2.0 ** -max(p, 24)
    return math.expm1(5 * math.log1p(u) + (n + 2) * math.log1p(accumulated)) * (1 + 1e-9)


# --- roles and kinds -------------------------------------------------------------------------------------------------


def _only_head(attention, l: int) -> tuple[Array, Array]:
    W_Q, b_Q, W_K, W_V, W_O = (_array(w[l]) for w in attention.parameters_list())
    _demand(attention.pattern is None and len(W_Q) == 1, "its attention has a pattern or several heads")
    _demand(not (W_Q.any() or b_Q.any() or W_K.any()), "its attention is not a plain average")
    return W_V[0], W_O[0]


def _plain_sum(W_V: Array, W_O: Array, n: int) -> tuple[Array, Array]:
    """Which rows are summed, and where the sums go."""
    plain = np.isin(W_V, (0.0, 1.0)).all() and (np.count_nonzero(W_V, axis=1) == 1).all()
    plain = plain and np.isin(W_O, (0.0, float(n))).all() and (np.count_nonzero(W_O, axis=0) == 1).all()
    plain = plain and (np.count_nonzero(W_O, axis=1) <= 1).all()
    _demand(plain, "its attention is not a plain sum over the positions, row by row")
    m = len(W_V)
    return (W_V.argmax(axis=1), W_O.argmax(axis=0)) if m else (np.zeros(0, int), np.zeros(0, int))


def _first_rows(network: EmbeddedTransformer, grid: Grid | None) -> tuple[Array, Array]:
    if grid is not None:
        W_in = _array(network.W_in)
        plain = np.isin(W_in, (0.0, 1.0)).all() and (np.count_nonzero(W_in, axis=1) <= 1).all()
        _demand(plain and W_in.shape[1] == grid.d, "the embedding is not one feature a row")
        return W_in.any(axis=1), np.zeros(len(W_in))
    table = _array(network.embedding)
    whole = (table >= 0).all() and (table <= _WHOLE).all() and (table == np.rint(table)).all()
    _demand(whole, "the embedding holds something else than whole numbers")
    return table.any(axis=0), table.max(axis=0)


def _check_literals(w: _Weights, single: Array, literal: Array, taken: Array) -> None:
    W_2 = w.W_2[single]
    once = np.isin(W_2, (0.0, 1.0)).all() and (np.count_nonzero(W_2, axis=1) <= 1).all()
    alone = (np.count_nonzero(w.W_2[:, literal], axis=0) == 1).all()
    _demand(once and alone and not (literal & taken).any(), "a literal is not one unit in one row of its own")


def _gates(
    W_1: Array, b_1: Array, E: Array, constant: Array, literal: Array, tokens: Array, numbers: Array
) -> tuple[Array, float]:
    """(positions, units): the largest value of every exact and memory unit; and the largest sum of exact ones."""
    C, L, T = W_1[:, constant], W_1[:, literal], W_1[:, tokens]
    _demand(np.isin(L, (0.0, -1.0)).all(), "a literal is read with another weight than −1")
    whole = all((np.abs(x) <= _WHOLE).all() and (x == np.rint(x)).all() for x in (C, T, b_1))
    _demand(whole, "a unit that reads constants has weights that are not whole numbers")
    E = E[:, constant]
    gate = E @ C.T + b_1 + np.maximum(T, 0) @ numbers[tokens]
    memory = L.any(axis=1)
    terms = (E != 0).astype(float) @ (C[memory] != 0).T.astype(float) + (b_1[memory] != 0)
    single = (terms <= 1).all() and not T[memory].any() and (gate[:, memory] <= 1).all()
    _demand(single, "a memory unit is not gated by one constant of at most 1")
    size = np.abs(E) @ np.abs(C).T + np.abs(b_1) + np.abs(T) @ numbers[tokens]
    return np.maximum(gate, 0.0), float(size.max(initial=0.0))


def _slots(W_2: Array, gate: Array, slot: Array, layer: Array, t: int, n: int) -> tuple[Array, float]:
    """(positions, d_model): the largest number in every slot before the attention; and the largest of all."""
    _demand(len(gate) in (1, n), "E has other positions")
    held = np.zeros((len(gate), len(slot)))
    writes = W_2[:, slot]
    whole = (writes >= 0).all() and (writes <= _WHOLE).all() and (writes == np.rint(writes)).all()
    _demand(whole, "a slot receives something else than whole numbers")
    _demand((layer[writes.any(axis=1)] < t).all(), "a slot is written after the attention")
    held[:, slot] = gate @ writes
    return held, float(held.max(initial=0.0))


def _edges(
    w: _Weights, edge: Array, row: Array, network: EmbeddedTransformer, grid: Grid | None
) -> tuple[Array, Array, float]:
    """Where edge units are 0 and 1, the number of the edge whose ramp that is, and the largest |x|."""
    if grid is None:
        return np.zeros((0, 2)), np.zeros(0, dtype=int), 0.0
    slope, b = w.W_1[edge, row[edge]], w.b_1[edge]
    _demand(_powers_of_two(slope), "a unit that reads the input is not a power of two times one feature")
    above = 1.0 - b
    _demand(((1.0 - above == b) & (above + b == 1.0)).all(), "the bias of an edge is beyond the resolution of float64")
    knots = np.stack([-b / slope, above / slope], axis=1)
    feature = _array(network.W_in)[row[edge]].argmax(axis=1)
    origin, step, ramp = (np.array(x)[feature] for x in (grid.origin, grid.step, grid.ramp))
    number = np.rint((knots.max(axis=1) - origin) / step)
    upper = origin + number * step
    lower = upper - ramp
    there = (knots.max(axis=1) == upper) & (knots.min(axis=1) == lower) & (number >= 1) & (number < grid.N)
    there &= (upper - lower == ramp) & (lower + ramp == upper)  # the difference is exact
    _demand(there.all(), "a unit that reads the input rises elsewhere than on a ramp of the grid")
    sides = np.maximum(np.abs(grid.origin), np.abs(np.array(grid.origin) + grid.N * np.array(grid.step)))
    return knots, number.astype(int), float(max(sides.max(), np.abs(grid.high).max()))


def _counts(slope: Array, b: Array) -> tuple[Array, Array, Array]:
    """Slopes, the whole number after which each count unit opens or closes, and how clear of 0 and 1 it stays."""
    small = (np.abs(b) <= 2.0**30) & (b * 1024 == np.rint(b * 1024)) & (np.abs(np.log2(np.abs(slope))) <= 10)
    _demand(_powers_of_two(slope) and small.all(), "a unit that reads a sum is not 2^k times it plus a dyadic number")
    threshold = np.floor(-b / slope)
    ends = np.stack([slope * threshold + b, slope * (threshold + 1) + b])
    return slope, threshold, np.minimum(ends.max(axis=0) - 1.0, -ends.min(axis=0))


def _pairs(
    w: _Weights, edge: Array, count: Array, row: Array, number: Array, threshold: Array
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


def _signs(W_1: Array, keys: tuple[Array, Array, Array]) -> Array:
    """A unit that subtracts a literal fires only where that literal is 0: −1 for one that opens upwards, else 1."""
    rows, pair, sign = keys
    size = int(pair.max(initial=-1)) + 1
    asked = (W_1[:, rows] != 0).astype(np.float32)
    place = np.zeros((2, len(rows), size), dtype=np.float32)
    place[(sign > 0).astype(int), np.arange(len(rows)), pair] = 1.0
    below, above = (asked @ side > 0 for side in place)
    return below.astype(np.float32) - above.astype(np.float32)


# --- numbers of a dtype ----------------------------------------------------------------------------------------------


def _array(weight: torch.Tensor | None) -> Array:
    return np.zeros((0, 0)) if weight is None else weight.detach().double().cpu().numpy()


def _powers_of_two(values: Array) -> bool:
    return bool((np.abs(np.frexp(values)[0]) == 0.5).all())


def _rounded(values: Array, dtype: torch.dtype) -> Array:
    return torch.from_numpy(np.ascontiguousarray(values)).to(dtype).double().numpy()


def _keeps(values: Array, dtype: torch.dtype) -> Array:
    """Which are numbers of the dtype, and not subnormal there."""
    return represents(values, dtype) & ((values == 0) | (np.abs(values) >= torch.finfo(dtype).tiny))


def _keeps_size(values: Array, dtype: torch.dtype) -> bool:
    """Nothing becomes subnormal; in float64, where all machines of ours keep subnormal numbers, anything goes."""
    return dtype == torch.float64 or bool(((values == 0) | (np.abs(values) >= torch.finfo(dtype).tiny)).all())


def _on_a_lattice(values: Array, default: Array, p: int, dtype: torch.dtype) -> bool:
    """All are multiples of one 2^-k, and their absolute values sum to at most 2^(p−1−k): every sum is exact."""
    total = np.abs(values).sum(axis=0) + np.abs(default)
    if not np.isfinite(total).all() or (total > torch.finfo(dtype).max / 4).any():
        return False
    k = p - 1 - np.ceil(np.log2(np.where(total > 0, total, 1.0)) + 1e-6)
    if (np.abs(k) > 100).any() or (2.0**-k < torch.finfo(dtype).tiny).any():
        return False
    scaled = np.concatenate([default[None], values]) * 2.0**k
    return bool((scaled == np.rint(scaled)).all())
