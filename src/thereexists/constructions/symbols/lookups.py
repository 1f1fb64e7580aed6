"""Look-ups by equality, by one softmax head and a step; and the symbol with the largest score.

**find.** The bits of the number of a symbol, as ±1, are its code. The logit of token j for the query at i is

    S·(n/2·⟨code of the query at i, code of the key at j⟩ + p_j),        p_j = j for the last, n − 1 − j for the first.

⟨code, code⟩ is B for equal symbols of B bits and B minus an even number for others: so the first part is a multiple of
S·n away from any other one of the row, while S·p_j runs from 0 to S·(n − 1). *Claim.* The largest logit is at the last
(first) token whose key is the query, if there is one, and leads by S at least. *Proof.* A token with an equal key is
S·n above every other kind, more than all p_j make up; among equal keys p_j decides. Two logits differ by a multiple of
S·n plus S times a whole number between −(n − 1) and n − 1 other than 0, so by S at least. ∎ All other tokens together
weigh at most (n − 1)·exp(−S) ≤ 1/8: what the head fetches, the bits of the key and of the value there, is off by no
more. A *step* that is flat below 1/4 and above 3/4 makes them exact. If the key that came is not the query, there was
none, and the answer is ``default``. (Bits, and not numbers: a head in float32 is off by a share of what it fetches.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thereexists.constructions.program.compositions import attend, greater_equal
from thereexists.constructions.program.elementwise import abs as absolute
from thereexists.constructions.program.elementwise import maximum, minimum, relu
from thereexists.constructions.program.given import positive
from thereexists.constructions.program.graph import Value, only_value, same_shape
from thereexists.constructions.program.operations import constant, interp, mix, rank
from thereexists.constructions.symbols.language import (
    Symbols,
    as_symbols,
    checked_alphabet,
    chosen,
    joined,
    one_symbol,
    only_symbols,
    table,
)
from thereexists.core.errors import InvalidInput


def find(
    query: Symbols, keys: Symbols, values: Symbols, *, default: str, which: str = "last", causal: bool = False
) -> Symbols:
    """The value at the last (or first) token whose key is the query here; ``default`` if there is none.

        s = P.symbols("abc", n=5)
        P.find(s, s, s, default="?")

    ``causal``: among the tokens up to here, in a causal network. The default may be a symbol that was not there.

    Args:
        query: what is looked for.
        keys: where; of the same alphabet.
        values: what is fetched.
        default: the value where there is no such key.
        which: ``"last"`` or ``"first"``.
        causal: whether only the tokens up to here count.

    Returns:
        Symbols of the values' alphabet, and the default.

    Raises:
        InvalidInput: one of them is not a value of symbols, or the alphabets differ.
    """
    query, keys, values = (only_symbols("find", part) for part in (query, keys, values))
    same_shape("find", query.number, keys.number, values.number)
    if which not in ("last", "first"):
        raise InvalidInput(f"'find' takes which='last' or which='first'; got {which!r} instead.")
    alphabet = joined(values.alphabet, [one_symbol("find", "a default", default)])
    none = len(query.alphabet)  # the number of every key that no query is
    known = {symbol: k for k, symbol in enumerate(query.alphabet)}
    offered = [known.get(symbol, none) for symbol in keys.alphabet]
    n, last, B = query.n, len(values.alphabet) - 1, none.bit_length()
    S, places = sharpness(n), np.arange(n) if which == "last" else np.arange(n)[::-1]
    asked, held = _bits(query, list(range(none)), B), _bits(keys, offered, B)
    Q = mix(2.0 * asked - 1.0, S * n / 2 * np.eye(B + 1, B)) + _last_feature(np.full(n, S), B)
    K = mix(2.0 * held - 1.0, np.eye(B + 1, B)) + _last_feature(places, B)
    bits = max(last, 1).bit_length()
    V = _side_by_side([held, _bits(values, list(range(last + 1)), bits)])
    found = step(attend(Q, K, V, causal=causal, called="find"))
    differing = absolute(mix(found, np.eye(B, B + bits)) - asked)  # bits of the key and of the query
    there = relu(1.0 - mix(differing, np.ones((1, B))))
    value = mix(found, [[*[0.0] * B, *(2.0**b for b in range(bits))]])
    value = value if last == 2**bits - 1 else minimum(value, float(last))  # so that the proof sees it, bit by bit
    return chosen(alphabet, there, value, alphabet.index(default))


def previous(s: Symbols, *, default: str) -> Symbols:
    """What followed this symbol the last time that it was there (an induction head); ``default`` if it was not.

        P.previous(P.symbols("abc", n=5), default="?")

    Args:
        s: a value that is a symbol at every token.
        default: the value where the symbol is new.

    Returns:
        Symbols of its alphabet, and the default.

    Raises:
        InvalidInput: s is not a value of symbols, or the default is not a symbol.
    """
    s = only_symbols("previous", s)
    nothing = "nothing"
    while nothing in s.alphabet:
        nothing += "!"
    return find(s, s.delay(1, fill=nothing), s, default=default, causal=True)


def sort_by(s: Symbols, by: Symbols) -> Symbols:
    """The symbols of s in the order of those of ``by`` at the same tokens; among equal ones in their own order.

        s = P.symbols("abc", n=5)
        P.sort_by(s, by=s)

    Token k looks for the one whose rank is k: there is exactly one. Ranks take a block of n − 1 heads.

    Args:
        s: a value that is a symbol at every token.
        by: the symbols whose order counts.

    Returns:
        Symbols of its alphabet.

    Raises:
        InvalidInput: one of them is not a value of symbols.
    """
    s, by = only_symbols("sort_by", s), only_symbols("sort_by", by)
    places = tuple(str(k) for k in range(s.n))
    ranks = as_symbols(rank(by.number, margin=1.0), list(places))
    here = Symbols(places, constant(np.arange(float(s.n)), s.number))
    return find(here, ranks, s, default=s.alphabet[0])


def argmax(scores: Value, alphabet: Any, *, gap: float = 1.0) -> Symbols:
    """The symbol with the largest score, the first of them if there are several; a feature of ``scores`` for each.

        P.argmax(P.counts(P.symbols("abc", n=5)), "abc")

    Two scores are equal or at least ``gap`` apart (counts: 1). That they are for every string is for the proof to find;
    te.build refuses what it does not find it for.

    Args:
        scores: a value with a feature for every symbol.
        alphabet: the symbols.
        gap: how far apart two scores are that are not equal.

    Returns:
        Symbols of that alphabet.

    Raises:
        InvalidInput: there are not as many scores as symbols, or ``gap`` is not above 0.
    """
    scores, symbols = only_value("argmax", scores), checked_alphabet("argmax", alphabet)
    m, gap = len(symbols), positive("argmax", "gap", gap)
    if scores.d != m:
        raise InvalidInput(f"'argmax' takes a score for each of the {m} symbols; got {scores.d} features.")
    top = mix(_tournament(maximum, scores), np.ones((m, 1)))
    largest = greater_equal(scores, top, margin=gap)  # 1 at every largest one, 0 from a gap below
    numbers = (m - 1.0) - mix(largest, np.diag(m - 1.0 - np.arange(m)))  # its own number there, the last one elsewhere
    return Symbols(symbols, _tournament(minimum, numbers))


def sharpness(n: int) -> int:
    """The least even S with (n − 1)·exp(−S) ≤ 1/8."""
    return 2 * max(1, math.ceil(math.log(max(1, 8 * (n - 1))) / 2 + 2.0**-20))


def step(bits: Value) -> Value:
    """0 up to 1/4, 1 from 3/4 on, a straight line between."""
    return interp(bits, [0.25, 0.75], [0.0, 1.0])


def _bits(s: Symbols, numbers: list[int], bits: int) -> Value:
    """A feature for each bit, the lowest first, of the number that is given for each symbol."""
    return _side_by_side([table(s, [float(k >> b & 1) for k in numbers]) for b in range(bits)])


def _side_by_side(values: list[Value]) -> Value:
    """All features of several values, as those of one."""
    eye, first, parts = np.eye(sum(value.d for value in values)), 0, []
    for value in values:
        parts.append(mix(value, eye[:, first : first + value.d]))
        first += value.d
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _last_feature(numbers: Any, before: int) -> np.ndarray:
    """Numbers by position behind so many features that are 0: (n, before + 1)."""
    column = np.asarray(numbers, dtype=np.float64)[:, None]
    return np.concatenate([np.zeros((len(column), before)), column], axis=1)


def _tournament(better: Any, x: Value) -> Value:
    """The best feature, in ⌈log2 m⌉ rounds."""
    while x.d > 1:
        half = (x.d + 1) // 2
        first, second = np.eye(x.d)[:half], np.eye(x.d)[np.minimum(np.arange(half) + half, x.d - 1)]
        x = better(mix(x, first), mix(x, second))
    return x
