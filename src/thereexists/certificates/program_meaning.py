"""What a program means: every operation of a saved graph, written out in exact forms, position by position.

This table is the specification that networks are compared with. It shares nothing with the compiler: each entry is the
definition of its operation, or an identity with its proof beside it. To teach the verifier an operation, add an entry.

A value has a form for every feature and token, and a *gap*: how far the form may be from the ideal value, in which
functions are themselves and not their splines. Gaps are carried by the Lipschitz constants of the operations, over the
range of the values; and, where that is less, by a gap for each part of the range (``program_profile.py``).

Linear operations and hinges are here, the others in ``program_meaning_order.py`` and ``program_meaning_curves.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from thereexists.certificates.program_forms import TRACE, Allowance, Form, Terms, exact, ratio
from thereexists.certificates.program_meaning_curves import (
    apply_meaning,
    attend_meaning,
    interp_meaning,
    multiply_meaning,
    soft_largest_meaning,
    where_meaning,
)
from thereexists.certificates.program_meaning_order import (
    argsort_meaning,
    largest,
    rank_meaning,
    smallest,
    sort_meaning,
    sorting_rounds,
    tournament_meaning,
)
from thereexists.certificates.program_meant import (
    ROUNDED_UP,
    Meaning,
    Meant,
    map_forms,
    profile_of,
    range_of,
    with_profile,
)
from thereexists.certificates.program_numbers import TINY, above, below, linear_weights
from thereexists.certificates.program_profile import Profile, larger_of, size_of, sum_of, sum_rounded_up
from thereexists.core.errors import BadWitnessFile, InvalidInput, ThereExistsError

NOTHING = Profile.flat(0.0, 0.0, 0.0)


def is_shorter(program: dict[str, Any]) -> bool:
    """Whether a program is for all lengths up to n."""
    first = next((node for node in program["nodes"] if node["operation"] == "tokens"), None)
    return first is not None and bool(first["settings"].get("shorter"))


def meaning_of(
    program: dict[str, Any], length: int | None = None, allowed: Allowance | None = None
) -> tuple[Meaning, Meant]:
    """Run a saved program through the table, for sequences of ``length`` tokens (default: all n).

    ``allowed``: how much may be written down for it (``program_limits.py``).
    """
    meaning = Meaning(length or program["n"], program["n"], Terms(allowed))
    values = every_value(meaning, program["nodes"])
    meaning.terms.allowed = Allowance(meaning.terms.allowed.numbers)  # the rest limits the program only
    meaning.terms.traces = exact(exact(TRACE) * meaning.terms.largest)  # before a network adds its own
    if not meaning.box:
        raise InvalidInput("A program reads 'tokens'; this one does not.")
    return meaning, values[-1]


def _not_lost(value: Meant, given: list[Meant]) -> Meant:
    """A gap times a small factor may underflow to 0, and a large factor later would not bring it back."""
    if not any(part.gap.any() for part in given):
        return value
    return replace(value, gap=value.gap + TINY)


def every_value(meaning: Meaning, nodes: list[dict[str, Any]]) -> list[Meant]:
    """What every operation means, in their order."""
    values: list[Meant] = []
    first: list[int] = []  # of every operation: the first one that is the same on the same values
    known: dict[str, int] = {}
    for number, node in enumerate(nodes):
        operation, arguments = node["operation"], node["arguments"]
        if operation not in MEANINGS:
            raise InvalidInput(f"'{operation}' is not an operation that the verifier knows.")
        if any(type(a) is not int or not 0 <= a < number for a in arguments):
            raise InvalidInput(f"'{operation}' reads a value that does not stand before it.")
        try:
            given = [values[first[a]] for a in arguments]
            value = _not_lost(MEANINGS[operation](meaning, node["settings"], *given), given)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, ThereExistsError):
                raise
            raise BadWitnessFile(f"'{operation}' is not complete: {type(error).__name__}: {error}") from error
        for row in value.forms:
            meaning.terms.weigh(row)
        values.append(value)
        first.append(number if _is_stated(node) else known.setdefault(_written(node, first), number))
        if len(value.forms) != node["d"]:
            raise InvalidInput(f"'{operation}' has {len(value.forms)} features; the program says {node['d']}.")
    return values


def _is_stated(node: dict[str, Any]) -> bool:
    """A user's own function: two of them may have one spline, and be different between its knots."""
    return node["operation"] == "apply" and not node["settings"].get("function")


def _written(node: dict[str, Any], first: list[int]) -> str:
    """An operation and what it reads: (x − mean(x))·(x − mean(x)) is a square, though its factors are written twice."""
    return json.dumps([node["operation"], [first[a] for a in node["arguments"]], node["settings"]], sort_keys=True)


def _tokens(meaning: Meaning, settings: dict[str, Any], *_: Meant) -> Meant:
    d, low, high = settings["d"], settings["low"], settings["high"]
    if meaning.box or not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidInput("A program has one 'tokens', with finite ends low < high.")
    meaning.box = [(low, high)] * d
    ends = (exact(low), exact(high))
    forms = [
        [Form({meaning.terms.term(("token", i, f), *ends, f"token {i}"): 1}) for i in range(meaning.n)]
        for f in range(d)
    ]
    return Meant(forms, np.zeros((d, meaning.n)))


def _constant(meaning: Meaning, settings: dict[str, Any], *_: Meant) -> Meant:
    array = np.asarray(settings["array"], dtype=np.float64)
    if array.ndim != 2 or len(array) != meaning.full or not np.isfinite(array).all():
        raise InvalidInput(f"'constant' is a finite array ({meaning.full}, d); got the shape {array.shape}.")
    array = array[: meaning.n]
    return Meant([[Form({}, {}, exact(value)) for value in column] for column in array.T], np.zeros(array.T.shape))


def _linear(meaning: Meaning, settings: dict[str, Any], *values: Meant) -> Meant:
    coefficients = linear_weights(settings)
    if len(coefficients) != len(values):
        raise InvalidInput("'linear' has one coefficient for each of its arguments.")
    forms = map_forms(
        meaning, lambda *parts: meaning.terms.combine(list(zip(coefficients, parts, strict=True))), *values
    )
    sizes = [above(abs(c)) for c in coefficients]  # a quotient need not be a float64: it may lie below all of them
    gap = np.asarray(sum(size * value.gap for size, value in zip(sizes, values, strict=True)))
    gap = gap * sum_rounded_up(len(values))
    if not gap.any() or "divisor" in settings:
        return Meant(forms, gap)
    parts = [(float(c), profile_of(meaning, value)) for c, value in zip(coefficients, values, strict=True)]
    return with_profile(forms, gap, sum_of(parts))


def _mix(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    matrix = np.asarray(settings["matrix"], dtype=np.float64)
    weights = [[exact(c) for c in row] for row in matrix]
    forms = [
        [meaning.terms.combine(list(zip(row, column, strict=True))) for column in zip(*x.forms, strict=True)]
        for row in weights
    ]
    return Meant(forms, np.abs(matrix) @ x.gap * sum_rounded_up(matrix.shape[1]))


def _take(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    source = settings["source"][: meaning.n]
    if len(settings["source"]) != meaning.full or any(type(j) is not int or not 0 <= j < meaning.n for j in source):
        raise InvalidInput(f"'take' takes {meaning.full} positions that a sequence of {meaning.n} tokens has.")
    return Meant([[row[j] for j in source] for row in x.forms], x.gap[:, source], x.profile)


def _mean(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    scale = exact(settings["scale"])
    forms = [[meaning.terms.combine([(scale, meaning.terms.mean(row))])] * meaning.n for row in x.forms]
    gap = np.broadcast_to(x.gap.mean(axis=1, keepdims=True), x.gap.shape)
    gap = gap * abs(float(scale)) * (1.0 + meaning.n * 2.0**-50)
    return _between(meaning, forms, gap, x) if scale == 1 else Meant(forms, gap)


def _between(meaning: Meaning, forms: list[list[Form]], gap: np.ndarray, *values: Meant) -> Meant:
    """A value whose ideal is never below the least of the ideal arguments, nor above the largest."""
    if not gap.any():
        return Meant(forms, gap)
    ends = [profile_of(meaning, value).ends for value in values]
    low, high = range_of(meaning, Meant(forms, gap))
    ends = (min(low for low, _ in ends), max(high for _, high in ends))
    return Meant(forms, gap, Profile.flat(low, high, float(gap.max()), ends))


def _relu(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    def one(form: Form) -> Form:
        low, high = meaning.terms.range(form)
        return meaning.terms.name(meaning.terms.relu(form), max(low, 0), max(high, 0), "relu")

    forms = map_forms(meaning, one, x)
    return with_profile(forms, x.gap, larger_of(profile_of(meaning, x), NOTHING) if x.gap.any() else None)


def _abs(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """|v| = 2·ReLU(v) − v."""

    def one(form: Form) -> Form:
        low, high = meaning.terms.range(form)
        value = meaning.terms.combine([(2, meaning.terms.relu(form)), (-1, form)])
        return meaning.terms.name(value, max(low, -high, 0), max(-low, high), "abs")

    forms = map_forms(meaning, one, x)
    return with_profile(forms, x.gap, size_of(profile_of(meaning, x)) if x.gap.any() else None)


def _maximum(meaning: Meaning, settings: dict[str, Any], a: Meant, b: Meant) -> Meant:
    forms = map_forms(meaning, lambda v, w: largest(meaning.terms, v, w, "maximum"), a, b)
    return _extreme(meaning, forms, a, b, smaller=False)


def _minimum(meaning: Meaning, settings: dict[str, Any], a: Meant, b: Meant) -> Meant:
    forms = map_forms(meaning, lambda v, w: smallest(meaning.terms, v, w, "minimum"), a, b)
    return _extreme(meaning, forms, a, b, smaller=True)


def _extreme(meaning: Meaning, forms: list[list[Form]], a: Meant, b: Meant, smaller: bool) -> Meant:
    gap = np.maximum(a.gap, b.gap)
    profiles = (profile_of(meaning, a), profile_of(meaning, b)) if gap.any() else None
    return with_profile(forms, gap, None if profiles is None else larger_of(*profiles, smaller=smaller))


def _clip(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """low + ReLU(v − low) − ReLU(v − high), low ≤ high."""
    least, most = exact(settings["low"]), exact(settings["high"])
    if least > most:
        raise InvalidInput("'clip' takes ends low ≤ high.")
    terms = meaning.terms

    def one(form: Form) -> Form:
        low, high = (min(max(end, least), most) for end in terms.range(form))
        above = [terms.relu(terms.combine([(1, form)], -end)) for end in (least, most)]
        return terms.name(terms.combine([(1, above[0]), (-1, above[1])], least), low, high, "clip")

    forms = map_forms(meaning, one, x)
    if not x.gap.any():
        return Meant(forms, x.gap)
    ends = [Profile.flat(below(end), above(end), 0.0) for end in (least, most)]
    profile = larger_of(profile_of(meaning, x), ends[0])
    return with_profile(forms, x.gap, None if profile is None else larger_of(profile, ends[1], smaller=True))


def _scale(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    factors = np.asarray(settings["factors"], dtype=np.float64)
    if factors.shape != (meaning.full, len(x.forms)) or not np.isfinite(factors).all():
        raise InvalidInput(f"'scale' takes factors ({meaning.full}, {len(x.forms)}); got {factors.shape}.")
    factors = factors[: meaning.n]
    forms = [
        [meaning.terms.combine([(exact(c), form)]) for c, form in zip(column, row, strict=True)]
        for column, row in zip(factors.T, x.forms, strict=True)
    ]
    return Meant(forms, np.abs(factors.T) * x.gap * ROUNDED_UP)


def _prefix_mean(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """Sums by their number, however long: a network may get them by adding up, or by the mean of a causal head."""
    combine = meaning.terms.combine
    forms = [[combine([(ratio(1, i + 1), form) for form in row[: i + 1]]) for i in range(meaning.n)] for row in x.forms]
    return _between(meaning, forms, np.maximum.accumulate(x.gap, axis=1), x)


def _sum(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    forms = [[meaning.terms.combine([(meaning.n, meaning.terms.mean(row))])] * meaning.n for row in x.forms]
    gap = x.gap.sum(axis=1, keepdims=True) * (1.0 + meaning.n * 2.0**-50)
    return Meant(forms, np.broadcast_to(gap, x.gap.shape))


def among(entry: Callable[..., Meant]) -> Callable[..., Meant]:
    """Of an operation that gives one of the tokens it is given."""

    def found(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
        value = entry(meaning, settings, x)
        return _between(meaning, value.forms, value.gap, x)

    return found


MEANINGS: dict[str, Callable[..., Meant]] = {
    "tokens": _tokens,
    "constant": _constant,
    "linear": _linear,
    "mix": _mix,
    "take": _take,
    "mean": _mean,
    "relu": _relu,
    "abs": _abs,
    "maximum": _maximum,
    "minimum": _minimum,
    "clip": _clip,
    "sort": among(sort_meaning),
    "apply": apply_meaning,
    "sum": _sum,
    "max": among(tournament_meaning(largest, "max")),
    "min": among(tournament_meaning(smallest, "min")),
    "interp": interp_meaning,
    "scale": _scale,
    "prefix_mean": _prefix_mean,
    "where": where_meaning,
    "multiply": multiply_meaning,
    "rank": rank_meaning,
    "argsort": argsort_meaning,
    "attend": attend_meaning,
    "soft_largest": soft_largest_meaning,
}
__all__ = ["MEANINGS", "Meaning", "Meant", "meaning_of", "sorting_rounds"]
