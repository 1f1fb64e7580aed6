"""Sums of terms that are far narrower than their terms: products.

A range is added up term by term, as if terms knew nothing of each other. A product is the difference of two splines
that do: each of them may be anything, but p = (a − b)/4t is within an error of a product of two numbers, and that stays
where it stays. Added up term by term, x·x on [0, 1] would go down to −1/4, outside of the knots of whoever reads it,
and 3·x·x·x would be bounded by 3.81 where its error is 0.0013. So such a sum gets a range of its own, and whatever
holds λ·p has the range of λ·p and of the rest, wherever that is narrower. Both are true of all inputs of the box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from thereexists.certificates.program_numbers import Number, exact, ratio

if TYPE_CHECKING:
    from thereexists.certificates.program_forms import Form, Terms


@dataclass(frozen=True, slots=True)
class Joint:
    """A sum of terms, without a constant, and an interval that holds it."""

    linear: dict[int, Number]
    low: Number
    high: Number


def join(terms: Terms, form: Form, low: Number, high: Number) -> None:
    """From now on a form is known to stay in [low, high], whatever its terms do by themselves. True of all inputs."""
    if form.bends or not form.linear:
        return
    least, most = terms.range(form)
    low, high = exact(max(low, least) - form.constant), exact(min(high, most) - form.constant)
    last = max(form.linear)
    if len(form.linear) > 1:
        terms.count(len(form.linear) + 2)
        terms.joint.setdefault(last, Joint(form.linear, low, high))
        return
    ends = sorted((ratio(low, form.linear[last]), ratio(high, form.linear[last])))
    terms.low[last], terms.high[last] = max(terms.low[last], ends[0]), min(terms.high[last], ends[1])


def taken_out(
    terms: Terms, linear: dict[int, Number], low: Number, high: Number
) -> tuple[dict[int, Number], Number, Number]:
    """Joint sums taken out of a sum, where that is narrower: what is left of it, and [low, high] with their ranges."""
    left = dict(linear)
    for last in sorted(terms.joint.keys() & linear.keys(), reverse=True):  # a product of products before its factors
        if last not in left:
            continue
        joint = terms.joint[last]
        terms.count(len(joint.linear))
        factor = ratio(left[last], joint.linear[last])
        rest = {t: exact(left.get(t, 0) - factor * c) for t, c in joint.linear.items()}
        together = abs(factor) * (joint.high - joint.low) + _span(terms, rest)
        if together < _span(terms, {t: left.get(t, 0) for t in joint.linear}):
            ends = (factor * joint.low, factor * joint.high)
            low, high = low + min(ends), high + max(ends)
            left = {t: c for t, c in (left | rest).items() if c != 0}
    return left, low, high


def _span(terms: Terms, linear: dict[int, Number]) -> Number:
    return sum((abs(c) * (terms.high[t] - terms.low[t]) for t, c in linear.items()), start=0)
