"""A feed-forward half, run symbolically: what it makes of the forms of the rows, and of their errors.

Units that read one direction w·z are a group, a piecewise linear function h_g of it. So a row becomes
z + Σ h_g(w_g·z), and what may be carried, |row − form| ≤ error, follows from

    |change|  ≤  max over slopes m of h_g of Σ_r |lin_r + m·w_r|·error_r   (one group g; the others by their slopes),

the gradient of a piecewise linear function along the segment between the two arguments. So min and max hand on the
larger of two errors, not their sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from thereexists.certificates.program_forms import NO_BEND, ZERO, Bent, Form, Number, Terms, exact, ratio
from thereexists.certificates.program_nearest import CLOSE, NOISE, UP, flattened
from thereexists.certificates.program_numbers import TINY, above, carried

if TYPE_CHECKING:
    from thereexists.certificates.program_execute import Execution

LEAST = exact(2.0**-900)  # of a unit: its product with a row's weight is far from underflow


@dataclass
class Group:
    """Units that bend one direction w·z: (which, its sign, the weight to the target)."""

    weights: list[tuple[int, Number]]
    constants: list[int]  # rows of constants that they read
    units: list[tuple[int, int, Number]] = field(default_factory=list)


@dataclass
class WrittenRow:
    """One row written by a feed-forward half: linear part, constant, and groups."""

    row: int
    linear: dict[int, Number]
    constant: Number
    groups: list[Group]


def written_row(state: Execution, row: int, W_1: Any, b_1: Any, c: Any, b_2: float) -> WrittenRow:
    """z_row + Σ c_u·ReLU(f_u) + b_2, with c·ReLU(f) + e·ReLU(−f) = c·f + (c + e)·ReLU(−f)."""
    linear: dict[int, Number] = {row: 1}
    constant = exact(b_2)
    seen: dict[bytes, int] = {}
    weight: dict[int, Number] = {}
    for u in np.flatnonzero(c).tolist():
        mirror = seen.pop(_bytes(-W_1[u], -b_1[u]), None)
        if mirror is None:
            seen[_bytes(W_1[u], b_1[u])] = u
            weight[u] = weight.get(u, 0) + exact(c[u])
            continue
        first = weight.pop(mirror)
        for r in np.flatnonzero(W_1[mirror]).tolist():
            linear[r] = linear.get(r, 0) + first * exact(W_1[mirror, r])
        constant = constant + first * exact(b_1[mirror])
        weight[u] = exact(first + exact(c[u]))
    varying = np.array([r not in state.constants for r in range(W_1.shape[1])])
    groups: dict[bytes, Group] = {}
    for u, w in weight.items():
        if w == 0:
            continue
        w_1 = np.where(varying, W_1[u], 0.0)
        used = np.flatnonzero(w_1)
        sign = -1 if len(used) and w_1[used[0]] < 0 else 1
        key = _bytes(sign * w_1, 0.0)
        if key not in groups:
            groups[key] = Group([(int(r), exact(sign * w_1[r])) for r in used], [])
        groups[key].units.append((u, sign, w))
    for group in groups.values():
        which = [u for u, _, _ in group.units]
        group.constants = [r for r in state.constants if W_1[which, r].any()]
    linear = {r: exact(w) for r, w in linear.items() if w != 0}
    return WrittenRow(row, linear, exact(constant), list(groups.values()))


def bend(state: Execution, target: WrittenRow, W_1: Any, b_1: Any, cache: dict) -> tuple[list[Form], np.ndarray]:
    parts = [[(w, state.rows[r][i]) for r, w in target.linear.items()] for i in range(state.n)]
    off = np.zeros(state.n)
    for group in target.groups:
        kinds, shifts = _shifts(state, group, W_1, b_1)
        bents: dict[tuple, Bent] = {}
        steepest: float | None = None
        places = cache.setdefault(tuple(group.weights), {})
        for i in range(state.n):
            if i not in places:
                places[i] = _direction(state, group, i)
            s, factor, kappa, snapped = places[i]
            units = shifts[kinds[i]]
            if snapped:  # the units together are Lipschitz with their steepest slope
                if steepest is None:
                    steepest = max(abs(slope) for slope in _slopes(state, group, W_1, b_1)) * UP
                off[i] += steepest * snapped + TINY
            if s is None:
                state.terms.count(len(units))
                value = sum((c * max(sign * kappa + b, 0) for c, sign, b in units), start=0)
                parts[i].append((1, Form({}, {}, exact(value))))
                continue
            ends = state.terms.directions[s]
            key = (int(kinds[i]), factor, kappa, ends.low, ends.high)
            if key not in bents:
                bents[key] = state.terms.bent(s, [(c, sign * factor, sign * kappa + b) for c, sign, b in units])
            bent = bents[key]
            if bent.slope == 0:
                bends = {s: bent.bend} if bent.bend != NO_BEND else {}
                parts[i].append((1, Form({}, bends, bent.constant)))
            else:
                parts[i].append((1, state.terms.apply(s, bent)))
    forms = [state.terms.combine(part, target.constant) for part in parts]
    return forms, off * (1 + 2.0**-30) + _carried(state, target, W_1, b_1)


def _direction(state: Execution, group: Group, i: int) -> tuple[int | None, Number, Number, float]:
    """w·z at token i as factor·s + constant, s a direction of the program if one is near; and how near."""
    terms = state.terms
    form = terms.combine([(w, state.rows[r][i]) for r, w in group.weights]) if group.weights else ZERO
    if form.is_constant:
        return None, 0, form.constant, 0.0
    key, factor = terms.split(form)
    s = terms.find_direction(key)
    if s is not None and s < state.near.directions:
        return s, factor, form.constant, 0.0
    scale = sum((abs(w) * terms.size(state.rows[r][i]) for r, w in group.weights), start=0)
    for k in state.near.directions_like(form):
        found = _multiple(state, form, k, scale)
        if found is not None:
            return k, *found
    plain, error = flattened(terms, form)
    moving = Form(plain.linear, plain.bends)
    if terms.size(moving) + error <= NOISE * scale:  # what rounding has left of a sum that vanishes
        return None, 0, plain.constant, above(exact(terms.size(moving) + error)) * UP
    return terms.direction(key), factor, form.constant, 0.0


def _multiple(state: Execution, form: Form, k: int, scale: Number) -> tuple[Number, Number, float] | None:
    """form = factor·direction + constant ± error, or None if the error is not small."""
    terms, direction = state.terms, state.terms.as_form(k)
    factor = _leading_ratio(terms, form, direction)
    if factor is None:
        return None
    rest, error = flattened(terms, terms.combine([(1, form), (-factor, direction)]))
    away = terms.size(Form(rest.linear, rest.bends)) + error
    ends = terms.directions[k]
    if away > max(exact(CLOSE) * abs(factor) * (ends.high - ends.low), NOISE * scale):
        return None
    return factor, rest.constant, above(exact(away)) * UP


def _shifts(
    state: Execution, group: Group, W_1: Any, b_1: Any
) -> tuple[np.ndarray, list[list[tuple[Number, int, Number]]]]:
    """What the units add to w·z: b_1 and rows of constants, which may differ from token to token."""
    which = [u for u, _, _ in group.units]
    if not group.constants:
        return np.zeros(state.n, dtype=int), [[(c, sign, exact(b_1[u])) for u, sign, c in group.units]]
    columns = np.stack([state.constants[r] for r in group.constants], axis=1)
    distinct, kinds = np.unique(columns, axis=0, return_inverse=True)
    state.terms.count(len(distinct) * len(which) * (1 + len(group.constants)))
    weights = [[exact(W_1[u, r]) for r in group.constants] for u in which]
    shifts = []
    for values in distinct:
        numbers = [exact(v) for v in values]
        shifts.append(
            [
                (c, sign, exact(sum((a * v for a, v in zip(row, numbers, strict=True)), start=exact(b_1[u]))))
                for (u, sign, c), row in zip(group.units, weights, strict=True)
            ]
        )
    return kinds.reshape(-1), shifts


def _carried(state: Execution, target: WrittenRow, W_1: Any, b_1: Any) -> np.ndarray:
    """The rows' errors through the half block: the gradient bound at the head of this file."""
    if not state.error.any():
        return np.zeros(state.n)
    d_model = state.error.shape[1]
    lin = np.zeros(d_model)
    for r, w in target.linear.items():
        lin[r] = float(w)
    ways, alone, small = [], [], False
    for group in target.groups:
        w = np.zeros(d_model)
        for r, a in group.weights:
            w[r] = float(a)
        steepest = sum(above(abs(c)) for _, _, c in group.units)
        alone.append(carried(state.error, w) * steepest)
        small = small or any(0 < abs(c) < LEAST for _, _, c in group.units)
        ways.append((w, _slopes(state, group, W_1, b_1)))
    plain = carried(state.error, lin)
    total = sum(alone, start=np.zeros(state.n))
    best = plain + total
    if small:  # slopes that cancel may underflow beside each other
        return best * (1 + 2.0**-30) + TINY
    for (w, slopes), own in zip(ways, alone, strict=True):
        state.terms.count(len(slopes) * state.n >> 4)
        along = np.max([state.error @ np.abs(lin + m * w) for m in slopes], axis=0)
        rounded = 2.0**-48 * (plain + total)  # lin + m·w was
        best = np.minimum(best, along + (total - own) + rounded)
    return best * (1 + 2.0**-30) + TINY


def _slopes(state: Execution, group: Group, W_1: Any, b_1: Any) -> list[float]:
    """All slopes of Σ c·ReLU(±v + b) over the whole line, for every token's b."""
    found: set[float] = set()
    for units in _shifts(state, group, W_1, b_1)[1]:
        slope: Number = sum((c * sign for c, sign, _ in units if sign < 0), start=0)  # far on the left
        found.add(float(slope))
        for _, c in sorted(((-sign * b, c) for c, sign, b in units), key=lambda pair: pair[0]):
            slope = slope + c  # opening adds c, closing takes away −c
            found.add(float(slope))
    return sorted(found)


def _leading_ratio(terms: Terms, form: Form, direction: Form) -> Number | None:
    """The ratio of two forms at the part of the direction that counts most."""
    sizes = {t: abs(c) * (terms.high[t] - terms.low[t]) for t, c in direction.linear.items()}
    lead = max(sizes, key=lambda t: sizes[t], default=None)
    if lead is not None and lead in form.linear:
        return ratio(form.linear[lead], direction.linear[lead])
    if lead is not None:
        return None
    shared = [s for s in direction.bends if s in form.bends]
    if not shared:
        return None
    (_, a), (_, b) = (max(terms.jumps(f.bends[shared[0]]), key=lambda jump: abs(jump[1])) for f in (form, direction))
    return ratio(a, b)


def _bytes(weights: Any, bias: float) -> bytes:
    return (weights + 0.0).tobytes() + np.float64(bias + 0.0).tobytes()
