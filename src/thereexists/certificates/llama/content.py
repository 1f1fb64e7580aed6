"""A head that looks for a code: from the token whose key rows hold what the query rows hold here, or from the first.

Query row i and key row i stand on one frequency that is their own, both on its real part; the constant of the query and
the mark of the first token stand on another. So the logit of a token Δ back is

    Σ_i A_i x_i y_i cos(w_i Δ)   and of the first token   S cos(w Δ),

x the bits of the query, y those of the key, A_i and S products of weights over √m. The frequencies are slow:
w·reach ≤ 1, and a cosine is between cos(w·reach) and 1. Codes have c rows that are 1, so that the same code gives at
least c·min A_i cos(w_i reach) and another at most (c − 1)·max A_i. S lies between the two. All of it less by the errors
of bits, sums, turning and logits (``offsets.py``), of which at most c are of a bit that is 1 on both sides.
"""

from __future__ import annotations

import numpy as np

from thereexists.certificates.llama.circuit import BITS, CONSTANT, FIRST, ByContent
from thereexists.certificates.llama.gates import Errors, Scale
from thereexists.certificates.llama.offsets import Turning, Vector, logit_errors
from thereexists.certificates.llama.rounding import SLACK, Rounding, sums
from thereexists.core.errors import NotProved
from thereexists.functions.target import Array


def content_lead(
    q: Array, k: Array, layer: ByContent, scale: Scale, errors: Errors, turning: Turning, rounding: Rounding
) -> float:
    """The least lead of the right token, for all queries and keys; ``q`` and ``k`` (size, d_model) of one head."""
    rows_q, rows_k = np.r_[CONSTANT, BITS + layer.queries], np.r_[FIRST, BITS + layer.keys]
    place = _places(q, rows_q)
    if not np.array_equal(place, _places(k, rows_k)) or len(np.unique(place)) != len(place):
        raise NotProved("rows of a query and of a key do not stand on frequencies of their own.")
    slow = turning.frequencies[place] * turning.reach
    if (slow > 1).any():
        raise NotProved("a code stands on a frequency that turns too far.")
    seen, one = errors.normalised(scale.slip), np.r_[scale.top, np.full(len(place) - 1, scale.bit)]
    asked, kept = q[place, rows_q] * one, k[place, rows_k] * scale.bit
    A = asked * kept / np.sqrt(turning.size)

    def vector(nominal: Array, slip: Array, which: Array, on: bool) -> Vector:
        """What a linear layer gives on these frequencies, each from one row."""
        wrong = nominal * (slip + sums(1) * (1 + slip)) if on else nominal * slip * (1 + sums(1))
        full, off = np.zeros(turning.size), np.zeros(turning.size)
        full[place[which]] = (nominal * on)[which]
        off[place[which]] = ((wrong + rounding.u * (nominal * on + wrong)) * SLACK)[which]
        return Vector(full, off)

    codes, sink = np.arange(1, len(place)), np.array([0])
    q_on, q_off = np.r_[scale.slip, seen.on[layer.queries]], np.r_[0.0, seen.off[layer.queries]]
    k_on, k_off = np.r_[scale.slip, seen.on[layer.keys]], np.r_[0.0, seen.off[layer.keys]]

    def error(on_q: bool, on_k: bool, which: Array) -> Array:
        one_side = vector(asked, q_on if on_q else q_off, which, on_q)
        other = vector(kept, k_on if on_k else k_off, which, on_k)
        return logit_errors(one_side, other, turning, rounding)

    c = layer.weight
    off = c * (error(True, False, codes).max() + error(False, True, codes).max()) + error(False, False, codes).sum()
    of_code = c * error(True, True, codes).max() + off
    of_first = error(True, True, sink).sum() + off
    least, most = c * (A * np.cos(slow))[codes].min() - of_code, (c - 1) * A[codes].max() + of_code
    low, high = A[0] * np.cos(slow[0]) - of_first, A[0] + of_first
    return float(min(least - most, least - high, low - most))


def _places(W: Array, rows: Array) -> Array:
    """Where each of these rows stands, one number of the head each, on a real part and positive; others nowhere."""
    read = W[:, rows]
    if np.delete(W, rows, axis=1).any() or ((read != 0).sum(axis=0) != 1).any() or (read < 0).any():
        raise NotProved("a query or a key depends on other rows than its code, or a row stands on several frequencies.")
    place = (read != 0).argmax(axis=0)
    if (place >= len(W) // 2).any():
        raise NotProved("a row stands on the imaginary part of a frequency.")
    return place
