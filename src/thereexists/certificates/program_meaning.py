"""What a program means: every operation of a saved graph, written out in exact forms, position by position.

This table is the specification that networks are compared with. It shares nothing with the compiler: each entry is the
definition of its operation, or an identity with its proof beside it. To teach the verifier an operation, add an entry.

A value has a form for every feature and token, and a *gap*: how far the form may be from the ideal value, in which
functions are themselves and not their splines. Gaps are carried by the Lipschitz constants of the operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thereexists.certificates.program_forms import ZERO, Form, Number, Terms, exact
from thereexists.certificates.program_splines import Spline, spline_error
from thereexists.errors import InvalidInput

_ROUNDED_UP = 1.0 + 2.0**-40  # of a few float64 operations on numbers that are not negative


@dataclass(frozen=True)
class Meant:
    """``forms[feature][token]``, and the gaps (d, n)."""

    forms: list[list[Form]]
    gap: np.ndarray


@dataclass
class Meaning:
    """The whole program in forms over ``terms``."""

    n: int
    terms: Terms = field(default_factory=Terms)
    assumptions: list[str] = field(default_factory=list)
    splines: list[dict[str, Any]] = field(default_factory=list)  # own error and name of every function
    box: list[tuple[float, float]] = field(default_factory=list)  # ends of every feature of the input


def meaning_of(program: dict[str, Any]) -> tuple[Meaning, Meant]:
    """Run a saved program through the table."""
    n, nodes = program["n"], program["nodes"]
    if type(n) is not int or not 1 <= n <= 1 << 15 or not nodes:
        raise InvalidInput(f"A program has between 1 and {1 << 15:,} tokens and at least one operation.")
    meaning, values = Meaning(n), []
    for number, node in enumerate(nodes):
        operation, arguments = node["operation"], node["arguments"]
        if operation not in MEANINGS:
            raise InvalidInput(f"'{operation}' is not an operation that the verifier knows.")
        if any(type(a) is not int or not 0 <= a < number for a in arguments):
            raise InvalidInput(f"'{operation}' reads a value that does not stand before it.")
        values.append(MEANINGS[operation](meaning, node["settings"], *(values[a] for a in arguments)))
        if len(values[-1].forms) != node["d"]:
            raise InvalidInput(f"'{operation}' has {len(values[-1].forms)} features; the program says {node['d']}.")
    if not meaning.box:
        raise InvalidInput("A program reads 'tokens'; this one does not.")
    return meaning, values[-1]


def _map(meaning: Meaning, function: Callable[..., Form], *values: Meant) -> list[list[Form]]:
    """A function of forms at every feature and token."""
    features = zip(*(value.forms for value in values), strict=True)
    return [[function(*forms) for forms in zip(*rows, strict=True)] for rows in features]


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
    if array.ndim != 2 or len(array) != meaning.n or not np.isfinite(array).all():
        raise InvalidInput(f"'constant' is a finite array ({meaning.n}, d); got the shape {array.shape}.")
    return Meant([[Form({}, {}, exact(value)) for value in column] for column in array.T], np.zeros(array.T.shape))


def _linear(meaning: Meaning, settings: dict[str, Any], *values: Meant) -> Meant:
    coefficients = [exact(c) for c in settings["coefficients"]]
    if len(coefficients) != len(values):
        raise InvalidInput("'linear' has one coefficient for each of its arguments.")
    forms = _map(meaning, lambda *parts: meaning.terms.combine(list(zip(coefficients, parts, strict=True))), *values)
    gap = sum(abs(float(c)) * value.gap for c, value in zip(coefficients, values, strict=True))
    return Meant(forms, np.asarray(gap) * _ROUNDED_UP)


def _mix(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    matrix = np.asarray(settings["matrix"], dtype=np.float64)
    weights = [[exact(c) for c in row] for row in matrix]
    forms = [
        [meaning.terms.combine(list(zip(row, column, strict=True))) for column in zip(*x.forms, strict=True)]
        for row in weights
    ]
    return Meant(forms, np.abs(matrix) @ x.gap * _ROUNDED_UP)


def _gather(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    source = settings["source"]
    if len(source) != meaning.n or any(type(j) is not int or not 0 <= j < meaning.n for j in source):
        raise InvalidInput(f"'gather' takes {meaning.n} positions from 0 to {meaning.n - 1}.")
    return Meant([[row[j] for j in source] for row in x.forms], x.gap[:, source])


def _mean(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    scale = exact(settings["scale"])
    forms = [[meaning.terms.combine([(scale, meaning.terms.mean(row))])] * meaning.n for row in x.forms]
    gap = np.broadcast_to(x.gap.mean(axis=1, keepdims=True), x.gap.shape)
    return Meant(forms, gap * abs(float(scale)) * (1.0 + meaning.n * 2.0**-50))


def _relu(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    def one(form: Form) -> Form:
        low, high = meaning.terms.range(form)
        return meaning.terms.name(meaning.terms.relu(form), max(low, 0), max(high, 0), "relu")

    return Meant(_map(meaning, one, x), x.gap)


def _abs(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """|v| = 2·ReLU(v) − v."""

    def one(form: Form) -> Form:
        low, high = meaning.terms.range(form)
        value = meaning.terms.combine([(2, meaning.terms.relu(form)), (-1, form)])
        return meaning.terms.name(value, max(low, -high, 0), max(-low, high), "abs")

    return Meant(_map(meaning, one, x), x.gap)


def largest(terms: Terms, a: Form, b: Form, label: str) -> Form:
    """max(a, b) = a + ReLU(b − a)."""
    (low_a, high_a), (low_b, high_b) = terms.range(a), terms.range(b)
    value = terms.combine([(1, a), (1, terms.relu(terms.combine([(1, b), (-1, a)])))])
    return terms.name(value, max(low_a, low_b), max(high_a, high_b), label)


def smallest(terms: Terms, a: Form, b: Form, label: str) -> Form:
    """min(a, b) = a − ReLU(a − b)."""
    (low_a, high_a), (low_b, high_b) = terms.range(a), terms.range(b)
    value = terms.combine([(1, a), (-1, terms.relu(terms.combine([(1, a), (-1, b)])))])
    return terms.name(value, min(low_a, low_b), min(high_a, high_b), label)


def _maximum(meaning: Meaning, settings: dict[str, Any], a: Meant, b: Meant) -> Meant:
    forms = _map(meaning, lambda v, w: largest(meaning.terms, v, w, "maximum"), a, b)
    return Meant(forms, np.maximum(a.gap, b.gap))


def _minimum(meaning: Meaning, settings: dict[str, Any], a: Meant, b: Meant) -> Meant:
    forms = _map(meaning, lambda v, w: smallest(meaning.terms, v, w, "minimum"), a, b)
    return Meant(forms, np.maximum(a.gap, b.gap))


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

    return Meant(_map(meaning, one, x), x.gap)


def sorting_rounds(n: int) -> list[list[tuple[int, int]]]:
    """Pairs (i, j), i < j, of every round; the smaller number of a pair always goes to i. The rounds sort n numbers.

    Proof for n = 2^L, by the 0-1 principle. Before merge k all runs of 2^(k−1) are sorted; its first round pairs i with
    its mirror in the run of 2^k. Take zeros and ones, a zeros in the lower half and b in the upper one. Mirrored, the
    upper half is 1…10…0, the lower one 0…01…1, so the minima are all 0 if a + b ≥ 2^(k−1), the maxima all 1 if not,
    and the other half is cyclically one block of equal numbers: bitonic. The further rounds pair i with i XOR 2^m, m
    falling: each splits a bitonic run into a half that is constant and a half that is bitonic again, the smaller one
    below. At the end every run of one token is trivially sorted, and all are in order. For other n imagine +∞ at the
    missing positions: the smaller number goes to the lower position, so none of them ever moves, and no pair with one
    of them changes anything.
    """
    positions = np.arange(n)
    rounds = []
    for k in range(1, (n - 1).bit_length() + 1):
        for code in [2**k - 1, *(2**m for m in reversed(range(k - 1)))]:
            partner = positions ^ code
            lower = positions[(positions < partner) & (partner < n)]
            rounds.append([(int(i), int(i ^ code)) for i in lower])
    return rounds


def exchange(terms: Terms, a: Form, b: Form) -> tuple[Form, Form]:
    """min(a, b) = a − ReLU(a − b) and max(a, b) = b + ReLU(a − b)."""
    (low_a, high_a), (low_b, high_b) = terms.range(a), terms.range(b)
    larger = terms.relu(terms.combine([(1, a), (-1, b)]))
    lower, upper = terms.combine([(1, a), (-1, larger)]), terms.combine([(1, b), (1, larger)])
    return (
        terms.name(lower, min(low_a, low_b), min(high_a, high_b), "sort: exchange"),
        terms.name(upper, max(low_a, low_b), max(high_a, high_b), "sort: exchange"),
    )


def _sort(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """Order statistics are 1-Lipschitz in the maximum norm: every output inherits the largest gap."""
    forms = []
    for row in x.forms:
        row = list(row)
        for pairs in sorting_rounds(meaning.n):
            for i, j in pairs:
                row[i], row[j] = exchange(meaning.terms, row[i], row[j])
        forms.append(row)
    return Meant(forms, np.broadcast_to(x.gap.max(axis=1, keepdims=True), x.gap.shape))


def _apply(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """f(t_0) + Σ_k (s_k − s_{k−1})·ReLU(v − t_k): the spline through the knots, constant before and after them."""
    spline = Spline.of(settings)
    terms = meaning.terms
    least, most = min(spline.values), max(spline.values)
    forms, ranges = [], []
    for row in x.forms:
        out = []
        for form in row:
            ranges.append(terms.range(form))
            out.append(terms.name(spline_form(terms, spline, form), least, most, "apply"))
        forms.append(out)
    low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
    error = spline_error(spline, float(x.gap.max()), low, high)
    meaning.assumptions += [text for text in error.assumptions if text not in meaning.assumptions]
    meaning.splines.append({"function": spline.name, "own": error.own, "knots": len(spline.knots)})
    return Meant(forms, (error.own + error.slope * x.gap + error.slope * error.outside) * _ROUNDED_UP)


def spline_form(terms: Terms, spline: Spline, form: Form) -> Form:
    if form.is_constant:
        value = sum((c * max(form.constant - t, 0) for t, c in spline.jumps), start=spline.values[0])
        return Form({}, {}, exact(value))
    key, factor = terms.split(form)
    s = terms.direction(key)
    bent = terms.bent(s, [(c, factor, form.constant - t) for t, c in spline.jumps])
    return terms.combine([(1, terms.apply(s, bent))], spline.values[0])


MEANINGS: dict[str, Callable[..., Meant]] = {
    "tokens": _tokens,
    "constant": _constant,
    "linear": _linear,
    "mix": _mix,
    "gather": _gather,
    "mean": _mean,
    "relu": _relu,
    "abs": _abs,
    "maximum": _maximum,
    "minimum": _minimum,
    "clip": _clip,
    "sort": _sort,
    "apply": _apply,
}
__all__ = ["MEANINGS", "ZERO", "Meaning", "Meant", "Number", "meaning_of", "sorting_rounds"]
