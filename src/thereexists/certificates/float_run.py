"""What a compact network computes in floating point, proved from all its weights. Knows nothing of what built them.

*Safe in a dtype* means: for every input of the domain off the grid's ramps, rounded to the dtype, the run in that dtype
gives the float64 output rounded once; for tokens (every position filled), gives it exactly. The proof gives every row
of the residual stream one role and every hidden unit of every layer one kind. A network in which some row or unit has
none is not judged: *undecided*. With p significand bits, u = 2^-p, and sums accumulated in the dtype, or in float32 if
that is more, in any order, with or without fused multiply-add:

- *constants* hold E, 0 or 1; nothing writes them. *Inputs* hold one feature, or whole numbers of the embedding.
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
  pairwise), and fl(fl(v) + fl(w)) = fl(v + w) is checked for every unit, for tokens = v + w itself; or all values are
  multiples of 2^-k that sum to at most 2^(p−k), and nothing is rounded.

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

from thereexists.certificates.float_kinds import (
    Undecided,
    Weights,
    as_array,
    check_literals,
    count_units,
    demand,
    edge_units,
    first_rows,
    gates,
    key_signs,
    pairs_of_literals,
    plain_sum,
    slots_before,
)
from thereexists.certificates.mass import disjoint_at
from thereexists.core.dtypes import SIGNIFICAND, as_dtype, represents
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.core.verdict import Verdict
from thereexists.functions.grid import Grid
from thereexists.functions.target import Array
from thereexists.model import EmbeddedTransformer


def dtype_verdicts(network: EmbeddedTransformer, names: Iterable[str], grid: Grid | None = None) -> dict[str, Verdict]:
    """Safe, not safe, or undecided (None), with the reason. Networks on features need their grid."""
    with np.errstate(all="ignore"):  # what overflows here is not finite, and no comparison with it passes
        try:
            run = FloatRun.of(network, grid)
        except Undecided as reason:
            return {name: Verdict(None, (f"undecided: {reason}",)) for name in names}
        return {name: run.verdict(name) for name in names}


def summed(network: EmbeddedTransformer) -> str | None:
    """What the attention adds up. Counts: the answers depend on the multiset of tokens and the position only; slots:
    nothing but rows that one position fills; None for anything else, and where the form is unknown.
    """
    with np.errstate(all="ignore"):
        try:
            return FloatRun.of(network).sums
        except Undecided:
            return None


@dataclass(frozen=True)
class FloatRun:
    """Every unit has its kind; what the kinds say in a dtype, :meth:`verdict` works out."""

    weights: Weights
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
    top: float  # the largest sum, and the largest |value| of a count unit
    whole: float  # the largest sum of absolute values of whole numbers
    gate: Array  # (positions, writers): what opens a unit that writes outputs, 0 or 1
    values: Array  # (writers, outputs): what it writes
    signs: Array  # (writers, pairs): what it asks of each pair of literals, −1, 0 or 1
    default: Array  # (positions, outputs)
    sums: str | None  # counts, slots, or neither

    @classmethod
    def of(cls, network: EmbeddedTransformer, grid: Grid | None = None) -> FloatRun:
        """Give every row its role and every unit its kind, or raise ``Undecided``."""
        demand((network.W_in is None) == (grid is None), "a network on features needs its grid, one on tokens has none")
        w = Weights.of(network)
        n = len(w.E) if grid is None else grid.n
        demand(
            network.E is None if grid is not None and not grid.positional else len(w.E) == n, "E has other positions"
        )
        t, W_V, W_O = w.attention
        read, write = plain_sum(W_V, W_O, n)
        first, numbers = first_rows(network, grid)  # rows of the embedding; the largest number there
        out = w.W_out.argmax(axis=1)
        one_hot = np.isin(w.W_out, (0.0, 1.0)).all() and (np.count_nonzero(w.W_out, axis=1) == 1).all()
        demand(one_hot and len(set(out.tolist())) == len(out), "the read-out is not one row for each output")
        is_out, attended = np.zeros(len(first), dtype=bool), np.zeros(len(first), dtype=bool)
        is_out[out], attended[write] = True, True

        written = w.W_2.any(axis=0) | w.b_2.any(axis=0) | attended
        constant = ~(written | first | is_out)
        demand(np.isin(w.E[:, constant], (0.0, 1.0)).all(), "a constant row holds something else than 0 and 1")
        demand(not w.E[:, ~(constant | is_out)].any(), "a row that is filled or written starts at a constant")
        demand(not w.b_2[:, ~is_out].any(), "a bias is added to a row that is not an output")
        demand(not (first & (written | is_out)).any(), "a row of the embedding is written or read out")
        demand(not (is_out & attended).any() and not is_out[read].any(), "the attention reads or writes an output row")

        reads = w.W_1 != 0
        demand(not reads[:, is_out].any(), "an output row is read by a unit")
        features = first if grid is not None else np.zeros_like(first)
        edge, count = reads[:, features].any(axis=1), reads[:, attended].any(axis=1)
        single, other = edge | count, ~(edge | count)
        demand((reads[single].sum(axis=1) == 1).all(), "a unit that reads an input or a sum reads another row too")
        demand((w.layer[count] >= t).all(), "a sum is read before the attention")
        literal = np.asarray(w.W_2[single].any(axis=0))
        check_literals(w, single, literal, is_out | first | attended)
        writer = np.where(literal, w.layer[(w.W_2 != 0).argmax(axis=0)] if len(w.layer) else 0, -1)

        W_1, b_1, W_2, layer = w.W_1[other], w.b_1[other], w.W_2[other], w.layer[other]
        tokens = first & ~features
        demand(
            not W_1[:, ~(constant | literal | tokens)].any(), "a unit reads a row that is neither constant nor literal"
        )
        late = np.where(reads[other], writer, -1).max(axis=1, initial=-1) >= layer
        demand(not late.any(), "a literal is read before it is written")
        gate, whole = gates(W_1, b_1, w.E, constant, literal, tokens, numbers)
        slot = W_2.any(axis=0) & ~is_out
        held, whole_slots = slots_before(W_2, gate, slot, layer, t, n)
        whole = max(whole, whole_slots, float(numbers.max(initial=0.0)))
        demand((slot | tokens)[read].all(), "the attention reads a row that is neither a slot nor an embedding")
        source = held.sum(axis=0) * (n // len(held)) + n * numbers  # the sum over all positions, at most
        total = np.zeros(len(first))
        total[write] = source[read] + held.max(axis=0)[write]

        writes = W_2[:, out].any(axis=1)
        demand((gate[:, writes] <= 1).all(), "a unit that writes an output may exceed 1")
        by_counts = bool(tokens[read].all() and not (attended & slot).any() and not W_1[writes][:, tokens].any())
        by_slots = bool(slot[read].all() and (np.count_nonzero(held[:, read], axis=0) <= 1).all())
        sums = "counts" if by_counts else "slots" if by_slots else None
        row = reads.argmax(axis=1)
        knots, number, largest = edge_units(w, edge, row, network, grid)
        at = row[count]
        slope, threshold, margin = count_units(w.W_1[count, at], w.b_1[count])
        sources = (w.E[:, out] != 0).astype(int) + (w.b_2[:, out] != 0).sum(axis=0)
        demand((sources <= 1).all(), "a default is made of several constants")
        keys = pairs_of_literals(w, edge, count, row, number, threshold)
        return cls(
            weights=w, network=network, n=n, out=out, knots=knots,
            edges=(w.W_1[edge, row[edge]], w.b_1[edge]),
            reach=np.abs(w.W_1[edge, row[edge]]) * largest + np.abs(w.b_1[edge]), largest=largest,
            slope=np.abs(slope), margin=margin, total=total[at],
            top=max(total.max(), (np.abs(slope) * total[at] + np.abs(w.b_1[count])).max(initial=0.0)), whole=whole,
            gate=gate[:, writes], values=W_2[writes][:, out], signs=key_signs(W_1[writes], keys),
            default=w.E[:, out] + w.b_2[:, out].sum(axis=0), sums=sums,
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
            weight = as_array(tensor)
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
            return f"it does not represent every whole number up to {self.whole:.0f}"
        error = average_error(self.n, p)
        wrong = ~(self.slope * self.total * error <= self.margin)
        if wrong.any():
            off, most = rounded_up(error, 2), in_full(float(self.total[wrong][0]))
            return f"an average over {self.n} tokens may be off by {off}, too much to count to {most}"
        limits = torch.finfo(dtype)
        if not self.top <= limits.max / 4 or 2 * self.n * limits.tiny > 1:
            return "a sum overflows, or a share of it is subnormal"
        return None

    def _values_hold(self, dtype: torch.dtype, p: int) -> str | None:
        exact = self.network.embedding is not None
        if not np.isfinite(_rounded(self.values, dtype)).all():  # of units that never open too: 0·∞ is not a number
            return "a stored value overflows"
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
            if exact and _lost(default, values).any():
                return "a stored value would be rounded, in float64 too"
            if not (twice == (once if exact else _rounded(once, dtype))).all():
                return "a stored value would be rounded" + ("" if exact else " twice")
            if not self._one_fires[position]:
                return "undecided: two units may fire at once"
        return None

    @cached_property
    def _one_fires(self) -> list[bool]:
        return disjoint_at(self.signs, self.gate > 0)


def average_error(n: int, p: int) -> float:
    """The relative error of n times a mean: 5 roundings with p bits, n + 2 of the accumulation; a little more."""
    u, accumulated = 2.0**-p, 2.0 ** -max(p, 24)
    return math.expm1(5 * math.log1p(u) + (n + 2) * math.log1p(accumulated)) * (1 + 1e-9)


# --- numbers of a dtype ----------------------------------------------------------------------------------------------


def _rounded(values: Array, dtype: torch.dtype) -> Array:
    return torch.from_numpy(np.ascontiguousarray(values)).to(dtype).double().numpy()


def _lost(a: Array, b: Array) -> Array:
    """a + b − fl(a + b) in float64, which is a number of it (Knuth's TwoSum; the sums are finite)."""
    total = a + b
    part = total - a
    return (a - (total - part)) + (b - part)


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
