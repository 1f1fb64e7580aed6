"""What operations that compare tokens mean: maxima and minima, sorting, ranks. Entries of ``program_meaning.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thereexists.certificates.program_forms import Form, Number, Terms, ratio
from thereexists.certificates.program_meant import ROUNDED_UP, Meaning, Meant, positive


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


def sort_meaning(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
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


def rank_meaning(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    forms = [ranked(meaning, row, positive(settings, "margin")) for row in x.forms]
    worst = x.gap.max(axis=1, keepdims=True) * (meaning.n - 1) * 2 / settings["margin"]
    return Meant(forms, np.broadcast_to(worst, x.gap.shape) * ROUNDED_UP)


def argsort_meaning(meaning: Meaning, settings: dict[str, Any], x: Meant) -> Meant:
    """Σ_j ReLU(j − n·(1 − e_j)), e_j = ReLU(1 − |rank_j − k|), as the operation is defined.

    e is 1-Lipschitz in the rank and at most 1; each of the summands is n-Lipschitz in e. n is the program's own here,
    whatever the length of the sequence.
    """
    terms, n, forms = meaning.terms, meaning.full, []
    for row in x.forms:
        rank, out = ranked(meaning, row, positive(settings, "margin")), []
        for k in range(meaning.n):
            parts = []
            for j in range(meaning.n):
                tent = [(c, terms.relu(terms.combine([(1, rank[j])], s - k))) for c, s in ((1, 1), (-2, 0), (1, -1))]
                e = terms.name(terms.combine(tent), 0, 1, "argsort: is it me?")
                parts.append((1, terms.relu(terms.combine([(n, e)], j - n))))
            out.append(terms.name(terms.combine(parts), 0, n * (n - 1) // 2, "argsort"))
        forms.append(out)
    worst = np.minimum(1.0, x.gap.max(axis=1, keepdims=True) * (n - 1) * 2 / settings["margin"]) * n * n
    return Meant(forms, np.broadcast_to(np.where(x.gap.any(), worst, 0.0), x.gap.shape) * ROUNDED_UP)


def tournament_meaning(better: Callable[[Terms, Form, Form, str], Form], label: str) -> Callable[..., Meant]:
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
