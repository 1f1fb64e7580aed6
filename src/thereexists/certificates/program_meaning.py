"""What a program means: every operation of a saved graph, written out in exact forms, position by position.

This table is the specification that networks are compared with. It shares nothing with the compiler: each entry is the
definition of its operation, or an identity with its proof beside it. To teach the verifier an operation, add an entry.

A value has a form for every feature and token, and a *gap*: how far the form may be from the ideal value, in which
functions are themselves and not their splines. Gaps are carried by the Lipschitz constants of the operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thereexists.certificates.program_forms import Allowance, Form, Number, Soft, Terms, differing, exact, ratio
from thereexists.certificates.program_splines import Spline, spline_error
from thereexists.core.errors import BadWitnessFile, InvalidInput, ThereExistsError

_ROUNDED_UP = 1.0 + 2.0**-40  # of a few float64 operations on numbers that are not negative


@dataclass(frozen=True)
class Meant:
    """``forms[feature][token]``, the gaps (d, n), and, where known, ends that the *ideal* value never leaves."""

    forms: list[list[Form]]
    gap: np.ndarray
    ends: tuple[Number, Number] | None = None


@dataclass
class Meaning:
    """The whole program in forms over ``terms``, for sequences of n tokens; ``full`` is the most it is made for."""

    n: int
    full: int
    terms: Terms = field(default_factory=Terms)
    assumptions: list[str] = field(default_factory=list)
    splines: list[dict[str, Any]] = field(default_factory=list)  # own error and name of every function
    box: list[tuple[float, float]] = field(default_factory=list)  # ends of every feature of the input


def is_shorter(program: dict[str, Any]) -> bool:
    """Whether a program is for all lengths up to n."""
    first = next((node for node in program["nodes"] if node["operation"] == "tokens"), None)
    return first is not None and bool(first["settings"].get("shorter"))


def meaning_of(
    program: dict[str, Any], length: int | None = None, allowed: Allowance | None = None
) -> tuple[Meaning, Meant]:
    """Run a saved program through the table, for sequences of ``length`` tokens (all n unless said).

    ``allowed``: how much may be written down for it (``program_limits.py``).
    """
    n, nodes = program["n"], program["nodes"]
    meaning, values = Meaning(length or n, n, Terms(allowed)), []
    for number, node in enumerate(nodes):
        operation, arguments = node["operation"], node["arguments"]
        if operation not in MEANINGS:
            raise InvalidInput(f"'{operation}' is not an operation that the verifier knows.")
        if any(type(a) is not int or not 0 <= a < number for a in arguments):
            raise InvalidInput(f"'{operation}' reads a value that does not stand before it.")
        try:
            value = MEANINGS[operation](meaning, node["settings"], *(values[a] for a in arguments))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, ThereExistsError):
                raise
            raise BadWitnessFile(f"'{operation}' is not complete: {type(error).__name__}: {error}") from error
        for row in value.forms:
            meaning.terms.weigh(row)
        values.append(value)
        if len(values[-1].forms) != node["d"]:
            raise InvalidInput(f"'{operation}' has {len(values[-1].forms)} features; the program says {node['d']}.")
    meaning.terms.allowed = Allowance(meaning.terms.allowed.numbers)  # the rest limits the program only
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
    if array.ndim != 2 or len(array) != meaning.full or not np.isfinite(array).all():
        raise InvalidInput(f"'constant' is a finite array ({meaning.full}, d); got the shape {array.shape}.")
    array = array[: meaning.n]
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


def _take(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    source = settings["source"][: meaning.n]
    if len(settings["source"]) != meaning.full or any(type(j) is not int or not 0 <= j < meaning.n for j in source):
        raise InvalidInput(f"'take' takes {meaning.full} positions that a sequence of {meaning.n} tokens has.")
    return Meant([[row[j] for j in source] for row in x.forms], x.gap[:, source], x.ends)


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

    return Meant(_map(meaning, one, x), x.gap, (least, most))


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
        for pairs in sorting_rounds(meaning.full):  # with +∞ at the positions that are not there
            for i, j in pairs:
                if j >= meaning.n:
                    continue
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
    error = spline_error(spline, float(x.gap.max()), low, high, x.ends)
    meaning.assumptions += [text for text in error.assumptions if text not in meaning.assumptions]
    meaning.splines.append({"function": spline.name, "own": error.own, "knots": len(spline.knots)})
    return Meant(forms, (error.own + error.slope * x.gap + error.slope * error.outside) * _ROUNDED_UP)


def _interp(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """The straight lines through (knots, values), constant outside; the gap grows by the steepest slope."""
    spline = Spline.of({**settings, "function": "", "curvature": 0.0})
    least, most = min(spline.values), max(spline.values)
    one = lambda form: meaning.terms.name(spline_form(meaning.terms, spline, form), least, most, "interp")  # noqa: E731
    return Meant(_map(meaning, one, x), x.gap * spline.steepest * _ROUNDED_UP)


def _scale(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    factors = np.asarray(settings["factors"], dtype=np.float64)
    if factors.shape != (meaning.full, len(x.forms)) or not np.isfinite(factors).all():
        raise InvalidInput(f"'scale' takes factors ({meaning.full}, {len(x.forms)}); got {factors.shape}.")
    factors = factors[: meaning.n]
    forms = [
        [meaning.terms.combine([(exact(c), form)]) for c, form in zip(column, row, strict=True)]
        for column, row in zip(factors.T, x.forms, strict=True)
    ]
    return Meant(forms, np.abs(factors.T) * x.gap * _ROUNDED_UP)


def _prefix_mean(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """Sums by their number, however long: a network may get them by adding up, or by the mean of a causal head."""
    combine = meaning.terms.combine
    forms = [[combine([(ratio(1, i + 1), form) for form in row[: i + 1]]) for i in range(meaning.n)] for row in x.forms]
    return Meant(forms, np.maximum.accumulate(x.gap, axis=1))


def _where(meaning: Meaning, settings: dict[str, Any], g: Meant, a: Meant, b: Meant) -> Meant:
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

    forms = _map(meaning, one, g, a, b)
    gap = a.gap + b.gap + abs(float(R)) * g.gap + float(below) + float(above)
    return Meant(forms, gap * _ROUNDED_UP)


def _multiply(meaning: Meaning, settings: dict[str, Any], a: Meant, b: Meant) -> Meant:
    """a·b = ((t·a + b)² − (t·a − b)²)/(4t), both squares by splines through float64 squares at the knots.

    A chord of the square lies above it. With values off by at most e, each spline is between −e and own + e above the
    square, so their difference is off by at most the larger own + 2e. And |a*b* − ab| ≤ |b|·g_a + |a|·g_b + g_a·g_b.
    """
    terms, t = meaning.terms, exact(settings["balance"])
    if t <= 0:
        raise InvalidInput("'multiply' balances with a positive number.")
    splines, ranges = [], []
    for which, _sign in (("plus", 1), ("minus", -1)):
        knots = [float(k) for k in settings[which]]
        splines.append(Spline.of({"knots": knots, "values": [k * k for k in knots], "function": "square"}))
        ranges.append([])

    def one(v: Form, w: Form) -> Form:
        parts = []
        for k, (spline, sign) in enumerate(zip(splines, (1, -1), strict=True)):
            form = terms.combine([(t, v), (sign, w)])
            ranges[k].append(terms.range(form))
            named = terms.name(spline_form(terms, spline, form), min(spline.values), max(spline.values), "multiply")
            parts.append((sign, named))
        return terms.combine([(ratio(c, 4 * t), form) for c, form in parts])

    forms = _map(meaning, one, a, b)
    own = noise = 0.0
    for spline, found in zip(splines, ranges, strict=True):
        error = spline_error(spline, 0.0, min(r[0] for r in found), max(r[1] for r in found))
        own = max(own, error.own + error.slope * error.outside)
        noise = max(noise, max(float(abs(v)) for v in spline.values) * 2.0**-52)
        noise += error.slope * error.outside
    sizes = [max(float(terms.size(form)) for row in value.forms for form in row) for value in (a, b)]
    gap = sizes[1] * a.gap + sizes[0] * b.gap + a.gap * b.gap + (own + 2 * noise) / (4 * float(t))
    meaning.splines.append(
        {"function": "multiply", "own": (own + 2 * noise) / (4 * float(t)), "knots": len(splines[0].knots)}
    )
    return Meant(forms, gap * _ROUNDED_UP)


def ranked(meaning: Meaning, row: list[Form], margin: Number) -> list[Form]:
    """Σ_j clip((x_i − x_j)/margin + [j < i], 0, 1) over j ≠ i: what `rank` means, ramps included."""
    terms, steep = meaning.terms, ratio(1, margin)
    out = []
    for i, x in enumerate(row):
        parts: list[tuple[Number, Form]] = []
        for j, y in enumerate(row):
            if j != i:
                rise = terms.combine([(steep, x), (-steep, y)], 1 if j < i else 0)
                parts += [(1, terms.relu(rise)), (-1, terms.relu(terms.combine([(1, rise)], -1)))]
        out.append(terms.name(terms.combine(parts), 0, meaning.n - 1, "rank"))
    return out


def _rank(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    forms = [ranked(meaning, row, _positive(settings, "margin")) for row in x.forms]
    worst = x.gap.max(axis=1, keepdims=True) * (meaning.n - 1) * 2 / settings["margin"]
    return Meant(forms, np.broadcast_to(worst, x.gap.shape) * _ROUNDED_UP)


def _argsort(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """Σ_j ReLU(j − n·(1 − e_j)), e_j = ReLU(1 − |rank_j − k|), as the operation is defined.

    e is 1-Lipschitz in the rank and at most 1; each of the summands is n-Lipschitz in e. n is the program's own here,
    whatever the length of the sequence.
    """
    terms, n, forms = meaning.terms, meaning.full, []
    for row in x.forms:
        rank, out = ranked(meaning, row, _positive(settings, "margin")), []
        for k in range(meaning.n):
            parts = []
            for j in range(meaning.n):
                tent = [(c, terms.relu(terms.combine([(1, rank[j])], s - k))) for c, s in ((1, 1), (-2, 0), (1, -1))]
                e = terms.name(terms.combine(tent), 0, 1, "argsort: is it me?")
                parts.append((1, terms.relu(terms.combine([(n, e)], j - n))))
            out.append(terms.name(terms.combine(parts), 0, n * (n - 1) // 2, "argsort"))
        forms.append(out)
    worst = np.minimum(1.0, x.gap.max(axis=1, keepdims=True) * (n - 1) * 2 / settings["margin"]) * n * n
    return Meant(forms, np.broadcast_to(np.where(x.gap.any(), worst, 0.0), x.gap.shape) * _ROUNDED_UP)


def _attend(meaning: Meaning, settings: dict[str, Any], q: Meant, k: Meant, v: Meant) -> Meant:
    """Σ_j softmax_j(⟨q_i, k_j⟩) v_j over all tokens, or over the tokens up to i if it is causal.

    Logits off by δ move the output by at most δ·(spread of v)/2 (a covariance, see ``program_execute.py``).
    """
    terms, n, causal = meaning.terms, meaning.n, bool(settings["causal"])
    if len(q.forms) != len(k.forms):
        raise InvalidInput("'attend' takes queries and keys with equally many features.")
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
    size_q, size_k = (np.array([max(float(terms.size(x)) for x in row) for row in part.forms]) for part in (q, k))
    e_q, e_k = q.gap.max(axis=1), k.gap.max(axis=1)
    delta = float((size_k * e_q + size_q * e_k + e_q * e_k).sum()) * _ROUNDED_UP
    gap = []
    for row, own in zip(v.forms, v.gap, strict=True):
        ends = [terms.range(form) for form in row]
        spread = float(max(high for _, high in ends) - min(low for low, _ in ends)) + 2 * float(own.max())
        gap.append(np.full(n, delta * spread / 2 + own.max()))
    return Meant(forms, np.array(gap) * _ROUNDED_UP)


def _soft_largest(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """max x, missed from below by at most log(n)/λ: λ·Σ p x + entropy(p) = log Σ exp(λx) ≥ λ·max, entropy ≤ log n."""
    terms, n, sharpness = meaning.terms, meaning.n, _positive(settings, "sharpness")
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
    return Meant(forms, np.broadcast_to(gap, x.gap.shape) * _ROUNDED_UP)


def _sum(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    forms = [[meaning.terms.combine([(meaning.n, meaning.terms.mean(row))])] * meaning.n for row in x.forms]
    gap = x.gap.sum(axis=1, keepdims=True) * (1.0 + meaning.n * 2.0**-50)
    return Meant(forms, np.broadcast_to(gap, x.gap.shape))


def _tournament(better: Callable[[Terms, Form, Form, str], Form], label: str) -> Callable[..., Meant]:
    """After round k, position i has the best of i, i + 1, …, i + 2^(k+1) − 1 around the end: after ⌈log2 n⌉ of all.

    Positions that are not there have nothing to offer, but hand on what they see.
    """

    def entry(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
        forms = []
        for row in x.forms:
            best: list[Form | None] = [*row, *[None] * (meaning.full - meaning.n)]
            for k in range((meaning.full - 1).bit_length()):
                pairs = [(best[i], best[(i + 2**k) % meaning.full]) for i in range(meaning.full)]
                best = [
                    better(meaning.terms, a, b, label) if a is not None and b is not None else a or b for a, b in pairs
                ]
            forms.append(best[: meaning.n])
        return Meant(forms, np.broadcast_to(x.gap.max(axis=1, keepdims=True), x.gap.shape))

    return entry


def _positive(settings: dict[str, Any], name: str) -> Number:
    number = exact(settings[name])
    if number <= 0:
        raise InvalidInput(f"'{name}' must be positive; got {settings[name]} instead.")
    return number


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
    "take": _take,
    "mean": _mean,
    "relu": _relu,
    "abs": _abs,
    "maximum": _maximum,
    "minimum": _minimum,
    "clip": _clip,
    "sort": _sort,
    "apply": _apply,
    "sum": _sum,
    "max": _tournament(largest, "max"),
    "min": _tournament(smallest, "min"),
    "interp": _interp,
    "scale": _scale,
    "prefix_mean": _prefix_mean,
    "where": _where,
    "multiply": _multiply,
    "rank": _rank,
    "argsort": _argsort,
    "attend": _attend,
    "soft_largest": _soft_largest,
}
__all__ = ["MEANINGS", "Meaning", "Meant", "meaning_of", "sorting_rounds"]
