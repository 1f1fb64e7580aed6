"""What the operations that are no sums mean: gates, splines, products, softmax. Entries of ``program_meaning.py``."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from thereexists.certificates.program_forms import Form, Number, Soft, Terms, differing, exact, ratio
from thereexists.certificates.program_joint import join
from thereexists.certificates.program_meant import (
    ROUNDED_UP,
    Meaning,
    Meant,
    map_forms,
    positive,
    profile_of,
    with_profile,
)
from thereexists.certificates.program_numbers import SMALLEST, TINY, above, below
from thereexists.certificates.program_profile import product_of, sum_rounded_up
from thereexists.certificates.program_splines import EVEN, Pieces, Spline, spline_error, spline_profile
from thereexists.core.errors import InvalidInput
from thereexists.core.rounded_figures import from_to, rounded_up

AS_GOOD_AS_NOTHING = 2.0**-40  # what enclosures of an argument may leave below 0, relatively to the largest one


def apply_meaning(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """f(t_0) + Σ_k (s_k − s_{k−1})·ReLU(v − t_k): the spline through the knots, constant before and after them."""
    spline = Spline.of(settings)
    forms, low, high = _splines(meaning, spline, x.forms, "apply")
    profile = profile_of(meaning, x)
    error = spline_error(spline, float(x.gap.max()), low, high, profile.ends)
    texts = (*error.assumptions, *_roots_of_less_than_nothing(spline, *profile.ends, exactly=not x.gap.any()))
    meaning.assumptions += [text for text in texts if text not in meaning.assumptions]
    meaning.splines.append({"function": spline.name, "own": error.own, "knots": len(spline.knots)})
    moved = x.gap + error.outside
    gap = error.own + np.where(moved > 0, error.slope, 0.0) * moved + np.where(moved > 0, TINY, 0.0)
    known = moved.any() or spline.name in EVEN  # a spline of squares goes below 0, where no square is
    found = with_profile(forms, gap * ROUNDED_UP, spline_profile(Pieces.of(spline), profile) if known else None)
    if not np.isfinite(found.gap).all():
        raise InvalidInput(
            f"The argument of 'apply' of {spline.name} may be off by up to {rounded_up(float(moved.max()), 3)}, and so "
            f"lie anywhere {from_to(profile.low, profile.high)}, where the function is not differentiable; put a "
            "P.maximum or P.clip around the argument, or make what comes before it finer."
        )
    return found


def _roots_of_less_than_nothing(spline: Spline, low: float, high: float, exactly: bool) -> tuple[str, ...]:
    """The spline of a root is 0 there, so that its error is as small as anywhere; but the program has no value."""
    if spline.name != "sqrt" or low >= 0:
        return ()
    if exactly or -low > max(AS_GOOD_AS_NOTHING * high, 2.0**-1000):
        raise InvalidInput(
            f"The argument of 'apply' of sqrt may be anywhere {from_to(low, high)}, and numbers below 0 have "
            "no root; put a P.maximum or P.clip around it."
        )
    least = f"-1e{math.ceil(math.log10(-low))}"  # another machine finds another last bit
    return (f"the root of a number from {least} to 0 is taken for 0, as an argument of a root may be that low",)


def _splines(
    meaning: Meaning, spline: Spline, rows: list[list[Form]], label: str
) -> tuple[list[list[Form]], Number, Number]:
    """The spline of every form, named, with an enclosure of its values; and the range of all the forms together."""
    terms, ranges = meaning.terms, []
    known: dict[tuple[Number, Number], tuple[Number, Number]] = {}

    def one(form: Form) -> Form:
        ends = terms.range(form)
        ranges.append(ends)
        if ends not in known:
            terms.count(len(spline.knots))
            known[ends] = spline.range(*ends)
        return terms.name(spline_form(terms, spline, form), *known[ends], label)

    forms = [[one(form) for form in row] for row in rows]
    return forms, min(low for low, _ in ranges), max(high for _, high in ranges)


def interp_meaning(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """The straight lines through (knots, values), constant outside; the gap grows by the steepest slope."""
    spline = Spline.of({**settings, "function": "", "curvature": 0.0})
    forms, _, _ = _splines(meaning, spline, x.forms, "interp")
    return Meant(forms, x.gap * spline.steepest * ROUNDED_UP)


def multiply_meaning(meaning: Meaning, settings: dict[str, Any], a: Meant, b: Meant) -> Meant:
    """a·b = ((t·a + b)² − (t·a − b)²)/(4t), both squares by splines through float64 squares at the knots.

    A chord of the square lies above it. With values off by at most e, each spline is between −e and own + e above the
    square, so their difference is off by at most the larger own + 2e. What becomes of gaps of a and b is in
    ``program_profile.product_of``. Term by term the two splines know nothing of each other; that their difference is
    within ``own`` of a product, and so where that is, is noted in the terms (``program_joint.py``).
    """
    terms, t = meaning.terms, exact(settings["balance"])
    if t <= 0:
        raise InvalidInput("'multiply' must balance its factors with a positive number.")
    squares, own, noise, knots = [], 0.0, 0.0, []
    for which, sign in (("plus", 1), ("minus", -1)):
        points = [float(k) for k in settings[which]]
        spline = Spline.of({"knots": points, "values": [k * k for k in points], "function": "square"})
        sums = [
            [terms.combine([(t, v), (sign, w)]) for v, w in zip(*rows, strict=True)]
            for rows in zip(a.forms, b.forms, strict=True)
        ]
        forms, low, high = _splines(meaning, spline, sums, "multiply")
        error = spline_error(spline, 0.0, low, high)
        own = max(own, error.own + error.slope * error.outside)
        size = max(above(abs(v)) for v in spline.values)
        noise = max(noise, size * 2.0**-52) + error.slope * error.outside + SMALLEST  # before it is divided
        squares.append(forms)
        knots.append(len(points))
    own = (own + 2 * noise) / (4 * float(t)) * ROUNDED_UP + TINY
    c = ratio(1, 4 * t)
    forms = [
        [terms.combine([(c, p), (-c, m)]) for p, m in zip(plus, minus, strict=True)]
        for plus, minus in zip(*squares, strict=True)
    ]
    for product, v, w in zip(*(itertools.chain(*rows) for rows in (forms, a.forms, b.forms)), strict=True):
        join(terms, product, *_product_range(terms, v, w, own))
    meaning.splines.append({"function": "multiply", "own": own, "knots": knots[0]})
    first, second = profile_of(meaning, a), profile_of(meaning, b)
    sizes = [max(map(abs, (*p.ends, float(p.edges[0]), float(p.edges[-1])))) for p in (first, second)]
    gap = (sizes[1] * a.gap + sizes[0] * b.gap + own) * ROUNDED_UP
    gaps = a.gap.any() or b.gap.any()
    same = a is b or (not gaps and a.forms == b.forms)
    profile = product_of(first, second, own, same) if gaps or same else None
    return with_profile(forms, gap, profile)


def _product_range(terms: Terms, v: Form, w: Form, own: float) -> tuple[Number, Number]:
    """Where v·w and the difference of splines that stands for it are, as short numbers.

    Of v = f·s + c and w = g·s + d with one direction s (of a square, of x·(1 − x)) it is a parabola: its extremes are
    at the ends of s and at its vertex, s = −(f·d + g·c)/(2·f·g).
    """
    (a, b), (c, d) = terms.range(v), terms.range(w)
    corners = [a * c, a * d, b * c, b * d]
    if not v.is_constant and not w.is_constant:
        (key, f), (other, g) = terms.split(v), terms.split(w)
        if key == other:
            s = terms.directions[terms.direction(key)]
            vertex = ratio(exact(-f * w.constant - g * v.constant), exact(2 * f * g))
            points = [s.low, s.high, *([vertex] if s.low <= vertex <= s.high else [])]
            corners = [(f * point + v.constant) * (g * point + w.constant) for point in points]
    return exact(below(exact(min(corners) - exact(own)))), exact(above(exact(max(corners) + exact(own))))


def where_meaning(meaning: Meaning, settings: dict[str, Any], g: Meant, a: Meant, b: Meant) -> Meant:
    """l + ReLU(a − l − R·(1 − g)) + ReLU(b − l − R·g): a for g = 1 and b for g = 0, if l ≤ a, b ≤ l + R.

    For other flags this formula is the meaning. Where a or b may leave [l, l + R], by v below and w above, the formula
    is off by at most v + w from the choice it stands for: a lower end that is missed, and a unit that does not close.
    It is convex in g, so its largest value is at an end of the flag's range.
    """
    terms, least, R = meaning.terms, exact(settings["bottom"]), exact(settings["height"])
    below = above = 0

    def one(flag: Form, first: Form, second: Form) -> Form:
        nonlocal below, above
        (low_a, high_a), (low_b, high_b) = terms.range(first), terms.range(second)
        below, above = max(below, least - min(low_a, low_b)), max(above, max(high_a, high_b) - least - R)
        units = [
            terms.relu(terms.combine([(1, first), (R, flag)], -least - R)),
            terms.relu(terms.combine([(1, second), (-R, flag)], -least)),
        ]
        most = max(
            max(high_a - least - R * (1 - end), 0) + max(high_b - least - R * end, 0) for end in terms.range(flag)
        )
        return terms.name(terms.combine([(1, unit) for unit in units], least), least, exact(least + most), "where")

    forms = map_forms(meaning, one, g, a, b)
    missed = sum(math.nextafter(float(part), math.inf) for part in (below, above) if part > 0)
    gap = a.gap + b.gap + abs(float(R)) * g.gap + missed
    return Meant(forms, gap * ROUNDED_UP)


def attend_meaning(meaning: Meaning, settings: dict[str, Any], q: Meant, k: Meant, v: Meant) -> Meant:
    """Σ_j softmax_j(⟨q_i, k_j⟩) v_j over all tokens, or over the tokens up to i if it is causal.

    Logits off by δ move the output by at most δ·(spread of v)/2 (a covariance, see ``program_execute.py``).
    """
    terms, n, causal = meaning.terms, meaning.n, bool(settings["causal"])
    if len(q.forms) != len(k.forms):
        raise InvalidInput("'attend' takes queries and keys with the same number of features.")
    forms: list[list[Form]] = [[] for _ in v.forms]
    for i in range(n):
        seen = range(i + 1 if causal else n)
        query, keys = [row[i] for row in q.forms], [[row[j] for row in k.forms] for j in seen]
        kept = differing(query, keys)
        query, keys = [query[f] for f in kept], [[key[f] for f in kept] for key in keys]
        for f, row in enumerate(v.forms):
            values = [row[j] for j in seen]
            constant = all(form.is_constant and form.constant == values[0].constant for form in values)
            forms[f].append(values[0] if constant else terms.soft(Soft(query, keys, values), "attend"))
    size_q, size_k = (np.array([max(above(terms.size(x)) for x in row) for row in part.forms]) for part in (q, k))
    e_q, e_k = q.gap.max(axis=1), k.gap.max(axis=1)
    delta = float((size_k * e_q + size_q * e_k + e_q * e_k).sum()) * sum_rounded_up(3 * len(e_q))
    delta += 4 * len(e_q) * SMALLEST if e_q.any() or e_k.any() else 0.0  # what underflowed
    gap = []
    for row, own in zip(v.forms, v.gap, strict=True):
        ends = [terms.range(form) for form in row]
        spread = above(max(high for _, high in ends) - min(low for low, _ in ends)) + 2 * float(own.max())
        gap.append(np.full(n, delta * spread / 2 + own.max()))
    return Meant(forms, np.array(gap) * ROUNDED_UP)


def soft_largest_meaning(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """max x, missed from below by at most log(n)/λ: λ·Σ p x + entropy(p) = log Σ exp(λx) ≥ λ·max, entropy ≤ log n."""
    terms, n, sharpness = meaning.terms, meaning.n, positive(settings, "sharpness")
    forms = []
    for row in x.forms:
        keys = [[terms.combine([(sharpness, form)])] for form in row]
        constant = all(form.is_constant and form.constant == row[0].constant for form in row)
        kept = differing([Form({}, {}, 1)], keys)
        query, keys = [Form({}, {}, 1)] * len(kept), [[key[f] for f in kept] for key in keys]
        one = row[0] if constant else terms.soft(Soft(query, keys, row), "soft_largest")
        forms.append([one] * n)
    missed = math.log(n) / float(sharpness) if n > 1 else 0.0
    gap = x.gap.max(axis=1, keepdims=True) + missed
    return Meant(forms, np.broadcast_to(gap, x.gap.shape) * ROUNDED_UP)


def spline_form(terms: Terms, spline: Spline, form: Form) -> Form:
    if form.is_constant:
        value = sum((c * max(form.constant - t, 0) for t, c in spline.jumps), start=spline.values[0])
        return Form({}, {}, exact(value))
    key, factor = terms.split(form)
    s = terms.direction(key)
    bent = terms.bent(s, [(c, factor, form.constant - t) for t, c in spline.jumps])
    return terms.combine([(1, terms.apply(s, bent))], spline.values[0])
