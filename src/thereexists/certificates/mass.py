"""How large can a compact network's output be, on any input at all? Read off the weights by the mass lemma.

**Literals.** A row that starts at 0 and is written by exactly one hidden unit of the whole network, with factor 1,
holds r = ReLU(g) ≥ 0 from then on. Two of them are a *pair* if their units read the same unchanged rows, with opposite
weights, and their biases add up to at least 1: then r⁺ + r⁻ ≥ g − g + 1 = 1 on every input.

**Lemma.** Let units a_C = ReLU(gate_C − Σ literals) read each a set of literals, with gate_C ≤ 1 made of constant rows,
so that any two of them that are open at a position contradict each other in a pair (one subtracts r⁺, the other r⁻).
Then Σ_C a_C ≤ 1 at that position. Proof: put q^± = 1 − min(1, r^∓), so q⁺ + q⁻ ≤ 1. By 1 − Σ x ≤ Π(1 − x), a_C is at
most the product of its literals' q, the probability that independent bits take the signs that C asks for;
contradicting events are disjoint, and their probabilities sum to at most 1. ∎

An output row that starts at a constant v and receives Σ_C a_C w_C then lies between v + min(0, w) and v + max(0, w).
Where the hypotheses fail, the answer is "no bound" (infinity); where they are too expensive to check, Σ|w| is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from thereexists.arithmetic.balls import Array
from thereexists.model import EmbeddedTransformer

_MOST_COMPARISONS = 40_000**2  # of units that are open together, pair by pair, at all positions
_BLOCK = 2048
_SMALLEST = 512  # so few units are compared at once


@dataclass(frozen=True)
class Mass:
    """What the lemma says of a network: the bounds on |output_i|; whether any two open units contradict each other;
    how many pairs there are; and of each output the largest |constant|, the largest |w| and the largest Σ|w|."""

    bounds: list[float]
    disjoint: bool
    pairs: int
    units: int
    literals: int  # the most rows that a unit reads
    constant: list[float]
    largest: list[float]
    total: list[float]


def mass_bound(network: EmbeddedTransformer) -> list[float]:
    """An upper bound of |g(X)_i| over all inputs X, for every output i."""
    mass = mass_of(network)
    return [math.inf] * len(network.W_out) if mass is None else mass.bounds


def mass_of(network: EmbeddedTransformer) -> Mass | None:
    """The lemma applied to all weights; None where its hypotheses fail."""
    W_out = network.W_out.detach().numpy()
    layers = [stage.feed_forward for stage in network.stages.values() if stage.feed_forward is not None]
    if not layers or any(layer.phi is not None for layer in layers):  # the lemma is about ReLU
        return None
    flow = Flow.of(network)
    if (np.count_nonzero(W_out, axis=1) != 1).any() or not np.isin(W_out, (0.0, 1.0)).all():
        return None
    out = W_out.argmax(axis=1)
    if flow.attended[out].any() or flow.from_input[out].any():
        return None
    memory = Memory.reading(flow, out)
    if memory is None:
        return None
    bounds, constant, always = [Fraction(0)] * len(out), [Fraction(0)] * len(out), True
    if (memory.gate > 1).any():
        return None
    for position, disjoint in enumerate(disjoint_at(memory.signs, memory.gate > 0)):
        open_units = np.flatnonzero(memory.gate[position] > 0)
        always = always and disjoint
        for i, row in enumerate(out):
            start = Fraction(float(flow.constants[position, row])) + sum(Fraction(float(b[row])) for b in flow.biases)
            w = memory.writes[open_units, i]
            if disjoint:
                low, high = (Fraction(float(x)) for x in (w.min(initial=0.0), w.max(initial=0.0)))
            else:
                low, high = (sum((Fraction(x) for x in side.tolist()), Fraction(0)) for side in (w[w < 0], w[w > 0]))
            bounds[i] = max(bounds[i], abs(start + low), abs(start + high))
            size = abs(Fraction(float(flow.constants[position, row]))) + sum(
                abs(Fraction(float(b[row]))) for b in flow.biases
            )
            constant[i] = max(constant[i], size)
    sizes = np.abs(memory.writes)
    return Mass(
        bounds=[_float_above(bound) for bound in bounds],
        disjoint=always,
        pairs=memory.signs.shape[1],
        units=len(sizes),
        literals=memory.literals,
        constant=[_float_above(size) for size in constant],
        largest=sizes.max(axis=0, initial=0.0).tolist(),
        total=(sizes.sum(axis=0) * (1 + 1e-9)).tolist(),
    )


@dataclass(frozen=True)
class Flow:
    """Who writes which row: every hidden unit of every layer in one list, with the number of its layer (``stage``)."""

    W_1: Array  # (units, d_model)
    b_1: Array
    W_2: Array  # (units, d_model): what each unit writes
    stage: Array  # (units,)
    biases: list[Array]  # b_2 of every layer
    attends: list[Array]  # per layer: rows its attention writes
    from_input: Array  # rows that the embedding fills from the input
    constants: Array  # (positions or 1, d_model): E

    @classmethod
    def of(cls, network: EmbeddedTransformer) -> Flow:
        d_model = network.W_out.shape[1]
        parts, biases, attends = [], [], []
        for stage in network.stages.values():
            for layer in range(stage.depth):  # "stage" below numbers these: attention first, then feed-forward
                attends.append(np.zeros(d_model, dtype=bool))
                biases.append(np.zeros(d_model))
                if stage.attention is not None:
                    attends[-1] = stage.attention.W_O.detach().numpy()[layer].any(axis=(0, 2))
                if stage.feed_forward is None:
                    continue
                W_1, b_1, W_2, b_2 = (w.detach().numpy()[layer] for w in stage.feed_forward.parameters_list())
                biases[-1] = b_2
                parts.append((W_1, b_1, W_2.T, np.full(len(b_1), len(biases) - 1)))
        W_1, b_1, W_2, stage = (np.concatenate(column) for column in zip(*parts, strict=True))
        table = network.W_in.detach().numpy().T if network.W_in is not None else network.embedding.detach().numpy()  # pyright: ignore[reportOptionalMemberAccess]
        E = np.zeros((1, d_model)) if network.E is None else network.E.detach().numpy()
        return cls(W_1, b_1, W_2, stage, biases, attends, np.asarray(table.any(axis=0)), E)

    @property
    def attended(self) -> Array:
        return np.any(self.attends, axis=0)

    def constant_rows(self) -> Array:
        """Rows that hold E and nothing else, always."""
        written = self.W_2.any(axis=0) | np.any([b != 0 for b in self.biases], axis=0)
        return ~(written | self.attended | self.from_input)

    def literals(self) -> dict[int, int]:
        """Row -> the one unit that writes it."""
        alone = np.count_nonzero(self.W_2, axis=0) == 1
        alone &= ~self.attended & ~self.from_input & ~self.constants.any(axis=0)
        alone &= ~np.any([b != 0 for b in self.biases], axis=0)
        writer = (self.W_2 != 0).argmax(axis=0)
        return {int(row): int(writer[row]) for row in np.flatnonzero(alone) if self.W_2[writer[row], row] == 1.0}

    def pairs(self, literals: dict[int, int]) -> dict[int, tuple[int, int]]:
        """Literal row -> (number of its pair, sign)."""
        by_direction: dict[bytes, list[int]] = {}
        for row, unit in literals.items():
            by_direction.setdefault((self.W_1[unit] + 0.0).tobytes(), []).append(row)
        paired: dict[int, tuple[int, int]] = {}
        for row, unit in literals.items():
            if row in paired:
                continue
            for other in by_direction.get((-self.W_1[unit] + 0.0).tobytes(), []):
                mirror = literals[other]
                enough = Fraction(float(self.b_1[unit])) + Fraction(float(self.b_1[mirror])) >= 1
                if other != row and other not in paired and enough and self._same_input(unit, mirror):
                    number = len(paired) // 2
                    paired[row], paired[other] = (number, 1), (number, -1)
                    break
        return paired

    def _same_input(self, unit: int, mirror: int) -> bool:
        """The rows that both read do not change between their two stages."""
        first, last = sorted((int(self.stage[unit]), int(self.stage[mirror])))
        if first == last:
            return True
        read = self.W_1[unit] != 0
        between = (self.stage >= first) & (self.stage < last)
        changed = self.W_2[between].any(axis=0) | np.any(self.attends[first + 1 : last + 1], axis=0)
        changed |= np.any([b != 0 for b in self.biases[first:last]], axis=0)
        return not bool((read & changed).any())


@dataclass(frozen=True)
class Memory:
    """The units that write outputs: their gates (positions, units), signs on the pairs (units, pairs) and writes."""

    gate: Array
    signs: Array
    writes: Array
    literals: int  # the most rows that a unit reads

    @classmethod
    def reading(cls, flow: Flow, out: Array) -> Memory | None:
        units = np.flatnonzero(flow.W_2[:, out].any(axis=1))
        W_1 = flow.W_1[units]
        constant, literals = flow.constant_rows(), flow.literals()
        is_literal = np.zeros(W_1.shape[1], dtype=bool)
        is_literal[list(literals)] = True
        written_at = np.full(W_1.shape[1], -1)
        for row, unit in literals.items():
            written_at[row] = flow.stage[unit]
        understood = (W_1 == 0) | constant | (is_literal & (W_1 == -1.0))
        early = (W_1 == 0) | (written_at[None] < flow.stage[units][:, None])
        one_gate = np.count_nonzero(W_1[:, constant], axis=1) + (flow.b_1[units] != 0) <= 1  # so the gate is exact
        # A gate is then one product of small integers, or the bias: no rounding can hide that it exceeds 1.
        # Only the rows that some unit reads: a constant output is a constant row too, of any value.
        read = constant & W_1.any(axis=0)
        whole = all(bool((w == np.rint(w)).all()) for w in (W_1[:, read], flow.constants[:, read]))
        if not (understood.all() and early.all() and one_gate.all() and whole):
            return None
        gate = flow.constants[:, read] @ W_1[:, read].T + flow.b_1[units]
        pairs = flow.pairs(literals)
        signs = np.zeros((len(units), len(pairs) // 2), dtype=np.float32)
        for row, (number, sign) in pairs.items():
            signs[W_1[:, row] == -1.0, number] += -sign  # a unit that subtracts both literals of a pair gets 0
        reads = int(np.count_nonzero(W_1, axis=1).max(initial=0))
        return cls(gate, signs, flow.W_2[units][:, out], reads)


def disjoint_at(signs: Array, opened: Array) -> list[bool]:
    """Of each position, whether any two of the units ``opened`` (positions, units) there contradict each other.

    Positions with the same units have one answer, and the work is bounded for all of them together.
    """
    left, answers = _MOST_COMPARISONS, dict[bytes, bool]()
    for units in opened:
        if units.tobytes() not in answers:
            answers[units.tobytes()], left = _disjoint(signs[units], left)
    return [answers[units.tobytes()] for units in opened]


def pairwise_disjoint(signs: Array) -> bool:
    """Whether any two rows have opposite signs somewhere. False also where that is too much work."""
    return _disjoint(signs, _MOST_COMPARISONS)[0]


def _disjoint(signs: Array, left: int) -> tuple[bool, int]:
    """The same for so many comparisons at the most, and how many are left.

    Rows with opposite signs in one column contradict each other: what is left to compare are the rows with + or 0 there
    among themselves, and those with − or 0. The column that splits best is taken, again and again.
    """
    waiting = [signs.astype(np.float32)]
    while waiting:
        S = waiting.pop()
        plus, minus = (S > 0).sum(axis=0), (S < 0).sum(axis=0)
        smaller = np.minimum(plus, minus)
        splits = len(S) > _SMALLEST and smaller.max(initial=0) * 8 >= len(S)
        left -= len(S) * (_SMALLEST if splits else len(S))
        if left < 0:
            return False, left
        if splits:
            column = S[:, int(smaller.argmax())]
            waiting += [S[column >= 0], S[column <= 0]]
        elif not _compared(S):
            return False, left
    return True, left


def _compared(S: Array) -> bool:
    """Every pair of rows."""
    for start in range(0, len(S), _BLOCK):
        block = S[start : start + _BLOCK]
        conflicts = np.abs(block) @ np.abs(S).T - block @ S.T  # twice the number of contradictions: small integers
        conflicts[np.arange(len(block)), start + np.arange(len(block))] = 1.0
        if (conflicts <= 0).any():
            return False
    return True


def _float_above(x: Fraction) -> float:
    value = float(x)
    return value if Fraction(value) >= x else float(np.nextafter(value, np.inf))
