"""Sorting networks and tournaments (exact), and ranks by comparing every token with every token.

A **rank** is discontinuous in the values, so no Transformer of this class has it as a function of all reals. What is
built, and what the interpreter says, is a rank with ramps: "x_i > x_j" counts 0 up to x_i = x_j, 1 from
x_i = x_j + margin on, and linearly in between. Where different numbers differ by ``margin`` at least it is *the* rank.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.lowering import Atoms, Form, gate_height
from thereexists.constructions.program.primitives.base import Primitive, Ranges, one
from thereexists.constructions.program.primitives.hinges import extreme


def _sort(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    """Padded tokens count as the upper end of the range: they go to the end, or are equal to what stands there."""
    return [bitonic(atoms, atoms.real(form, float(atoms.range(form)[1].max()), "sort")) for form in arguments[0]]


def bitonic(atoms: Atoms, x: Form) -> Form:
    """log2 n (log2 n + 1)/2 rounds of gather and compare-exchange, the smaller one always to the lower position.

    Merge k joins sorted runs of 2^(k−1): the first round pairs i with its mirror in the run of 2^k, the others pair i
    with i XOR 2^j. The lower of a pair is the one whose highest differing bit is 0. If n is not a power of two, imagine
    +∞ at the missing positions: no round moves it down, so a token without a partner just keeps its number.

    With g = 1 at the lower position (keep the minimum), 0 at the upper one, and R at least the width of the range:

        x' = x − ReLU(x − p − R·(1 − g)) + ReLU(p − x − R·g)

    One of the two units is closed because |x − p| ≤ R; the other makes x' = min(x, p) or max(x, p).
    """
    n, positions = atoms.n, np.arange(atoms.n)
    low, high = atoms.range(x)
    low, high = np.full(n, low.min()), np.full(n, high.max())
    R = gate_height(float(low[0]), float(high[0]), atoms.is_snapped(x))
    for k in range(1, (n - 1).bit_length() + 1):
        for mirror, j in [(True, k - 1), *((False, j) for j in reversed(range(k - 1)))]:
            partner = positions ^ (2**k - 1 if mirror else 2**j)
            p = atoms.gather(np.where(partner < n, partner, positions), x, "sort: partner", padded=True)
            upper = atoms.constant(2.0 * (positions >> j & 1) - 1.0, "position")  # ±1: the bit j of the position
            gate = upper * (0.5 * R) + Form.number(0.5 * R)  # R·(1 − g)
            units = [(Fraction(-1), x - p - gate), (Fraction(1), p - x + gate - Form.number(R))]
            x = atoms.hinge(units, x, low, high, "sort: exchange")
    return x


def _tournament(sign: int, name: str):
    """For programs of shorter lengths; all others write the rounds out (``operations``).

    ⌈log2 n⌉ rounds: after round k token i has the best of i, i + 1, …, i + 2^(k+1) − 1, around the end.
    """

    def lowering(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
        out = []
        for x in arguments[0]:
            low, high = atoms.range(x)
            x = atoms.real(x, float(low.min()) if sign > 0 else float(high.max()), name)
            for k in range((atoms.n - 1).bit_length()):
                x = extreme(atoms, x, atoms.gather((np.arange(atoms.n) + 2**k) % atoms.n, x, name, True), sign, name)
            out.append(x)
        return out

    return lowering


def _rank(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    return [ranked(atoms, form, node.settings["margin"]) for form in arguments[0]]


def ranked(atoms: Atoms, x: Form, margin: float) -> Form:
    """One block: n − 1 gathers, by 1, 2, … places around the end, and a ramp for each.

    Σ_j clip((x_i − x_j)/margin, 0, 1) over all later j, and over all earlier j the same of x_i − x_j + margin: among
    equal tokens the earlier one comes first. Padded tokens get a number above all others, at least ``margin`` away.
    """
    n, positions = atoms.n, np.arange(atoms.n)
    x = atoms.real(x, float(atoms.range(x)[1].max()) + margin, "rank")
    steep = 1 / Fraction(margin)
    units, number = [], Form()
    for by in range(1, n):
        other = atoms.gather((positions - by) % n, x, "rank", padded=True)
        earlier = atoms.constant((positions >= by).astype(np.float64), "position")  # the other one comes before us
        rise = (x - other) * steep + earlier
        units += [(Fraction(1), rise), (Fraction(-1), rise - Form.number(1))]
    return atoms.hinge(units, number, np.zeros(n), np.full(n, n - 1.0), "rank") if units else number


def interpret_rank(X: Any, margin: float) -> Any:
    rise = (X[:, :, None] - X[:, None, :]) / margin  # (batch, i, j, d)
    earlier = np.tri(X.shape[1], k=-1)[None, :, :, None]  # j < i
    counts = np.clip(rise + earlier, 0, 1)
    counts[:, np.arange(X.shape[1]), np.arange(X.shape[1])] = 0
    return counts.sum(axis=2)


def _argsort(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    """Position k gets Σ_j j·[rank_j = k]. Three blocks: ranks; e_j = ReLU(1 − |rank_j − k|); Σ_j ReLU(j − n(1 − e_j)).

    The last is j where e_j = 1, and 0 where e_j = 0. ``e`` is min(1 − r + k, 1 + r − k) above 0, and needs a half
    block of its own.
    """
    n, positions = atoms.n, np.arange(atoms.n)
    out = []
    for form in arguments[0]:
        r = ranked(atoms, form, node.settings["margin"])
        units = []
        for by in range(n):
            other = atoms.gather((positions - by) % n, r, "argsort", padded=True) - atoms.constant(positions * 1.0)
            tent = [(Fraction(c), other + Form.number(s)) for c, s in ((1, 1), (-2, 0), (1, -1))]
            e = atoms.hinge(tent, Form(), np.zeros(n), np.ones(n), "argsort: is it me?")
            index = atoms.constant(((positions - by) % n) * 1.0)
            units.append((Fraction(1), index - (Form.number(1) - e) * n))
        out.append(atoms.hinge(units, Form(), np.zeros(n), np.full(n, n * (n - 1) / 2), "argsort"))
    return out


def interpret_argsort(X: Any, margin: float, n: int) -> Any:
    rank, length = interpret_rank(X, margin), X.shape[1]
    mine = np.maximum(1 - np.abs(rank[:, None, :, :] - np.arange(length)[:, None, None]), 0)  # (batch, k, j, d)
    return np.maximum(np.arange(length)[:, None] - n * (1 - mine), 0).sum(axis=2)


def _carry_rank(node: Value, errors: list[float], ranges: Ranges) -> float:
    """Each of the n − 1 ramps reads two tokens."""
    return (node.n - 1) * 2 * errors[0] / node.settings["margin"]


def _carry_argsort(node: Value, errors: list[float], ranges: Ranges) -> float:
    return node.n * node.n * min(1.0, _carry_rank(node, errors, ranges))


TABLE = {
    "sort": Primitive(lambda X: np.sort(X, axis=1), _sort, one),
    "max": Primitive(lambda X: np.broadcast_to(X.max(axis=1, keepdims=True), X.shape), _tournament(1, "max"), one),
    "min": Primitive(lambda X: np.broadcast_to(X.min(axis=1, keepdims=True), X.shape), _tournament(-1, "min"), one),
    "rank": Primitive(lambda X, margin, n: interpret_rank(X, margin), _rank, _carry_rank),
    "argsort": Primitive(interpret_argsort, _argsort, _carry_argsort),
}
