"""The claim of addition as text: ``0000000123+0000000989=`` is answered by ``00000001112``, and then the text ends.

Both operands have m digits, the answer m + 1, highest first, all by the largest logit. Tokens: <s> is 0, the first
operand is 1 … m, + is m + 1, the second m + 2 … 2m + 1, = is 2m + 2, the answer 2m + 3 … 3m + 3. A digit of an answer
is a token of its own, which a reader sees as the digit.

Rows, in groups of which one at most is 1: own digit (10), fetched digit (10), sum (10), carry class (3), fetched class
(3), = itself, and end. The *class* of a place is G if it makes a carry, K if it takes one away, P if it passes one on.

*Layer 1* fetches digit and = from m + 1 back. At the second operand that is the digit of the same place, and the pair
gives the sum modulo 10 and the class: G from 10 on, P at 9, K below. Elsewhere no pair is true: + and = and answers
have no digit of their own, and the first operand fetches <s>. In the embedding + has the sum 0, and = and every answer
have the class P; no pair is true there, so these stay. ``end`` is 1 where = is m + 1 back: at the last digit of the
answer.

*Layers 2 …* fetch the class from 1, 2, 4, … back and compose: of an earlier place's class and a later one's the result
is the earlier one, unless that is P, and then the later one. So a row of classes is worth its first that is not P, and
windows may overlap: after windows of 1, 2, 4, …, 2^s ≤ m + 1 < 2^{s+1}, one more of offset m + 1 − 2^s gives that of
exactly the last m + 1 tokens. (Where some class is missing, before the second operand, the result is no class.)

*The last layer* fetches the sum from m + 1 back, and adds the carry: sum s with class G makes s + 1 modulo 10, with K
or P it makes s. At token 2m + 2 + k the window is m + 2 + k … 2m + 2 + k: the places behind m + 1 + k, then = and
answers, which are P. So it is G if and only if these places carry into place m + 1 + k. The sum m + 1 back is that of
place m + 1 + k, for k = 0 the 0 of +: what is made is digit k of the answer, k = 0 … m. At k = m + 1 the text ends. ∎

(``tests/certificates/llama/test_addition.py`` runs the circuit on all pairs of one digit, on all 3^m rows of classes
for m = 3 and 4, and on some of them for m = 2, 6, 7 and 10.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.certificates.llama.circuit import Case, Circuit, CircuitLayer, paired
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.tokens import BOS, EOS, SPECIAL, SYMBOLS, UNSEEN, Vocabulary
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array

MOST_DIGITS = 100
PLUS, EQUALS, ANSWERS = SYMBOLS + 10, SYMBOLS + 11, SYMBOLS + 12
DIGIT, FETCHED, SUM, CLASS, FETCHED_CLASS, IS_EQUALS, END, ROWS = 0, 10, 20, 30, 33, 36, 37, 38
G, P, K = 0, 1, 2
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Addition(Claim):
    """Of two numbers of ``digits`` digits each."""

    digits: int

    @property
    def vocabulary(self) -> Vocabulary:
        said = [UNSEEN + str(digit) for digit in range(10)]
        texts = (*SPECIAL, *map(str, range(10)), "+", "=", *said)
        return Vocabulary(texts, True, slice(ANSWERS, ANSWERS + 10), unseen=UNSEEN)

    @property
    def new_tokens(self) -> int:
        return self.digits + 2

    def circuit(self) -> Circuit:
        window = self.digits + 1
        doublings = window.bit_length() - 1
        offsets = [2**t for t in range(doublings)] + ([window - 2**doublings] if window != 2**doublings else [])
        embedding = np.zeros((len(self.vocabulary), ROWS))
        digit = np.arange(10)
        embedding[SYMBOLS + digit, DIGIT + digit] = 1.0
        embedding[PLUS, SUM] = 1.0
        embedding[[EQUALS, *range(ANSWERS, ANSWERS + 10)], CLASS + P] = 1.0
        embedding[EQUALS, IS_EQUALS] = 1.0
        groups = np.repeat(np.arange(7), [10, 10, 10, 3, 3, 1, 1])
        layers = (_places(window), *map(_composed, offsets), _carried(window))
        every = slice(0, len(self.vocabulary))
        cases = [Case((DIGIT + k,), False, ((ANSWERS + k, every),)) for k in range(10)]
        return Circuit(embedding, groups, layers, (), (*cases, Case((END,), False, ((EOS, every),))), self.last)

    @property
    def last(self) -> int:
        """The number of the last token of a whole text."""
        return 3 * self.digits + 3

    def sentence(self) -> str:
        m = self.digits
        return (
            f"for every prompt `a+b=`, a and b numbers of {m} digits (10^{2 * m} prompts): by the largest logits, one "
            f"after the other, the next {m + 1} tokens are the digits of a + b, highest first, and then `</s>`."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": "addition", "digits": self.digits}

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Addition:
        m = stored.get("digits")
        if stored.keys() != {"kind", "digits"} or type(m) is not int or not 1 <= m <= MOST_DIGITS:
            raise InvalidInput(f"a claim of addition must have 'digits', a whole number from 1 to {MOST_DIGITS}")
        return cls(m)

    def drawn(self, rng: np.random.Generator, count: int) -> Array:
        """Whole texts; every second one is full of nines and carries."""
        a, b = rng.integers(0, 10, (2, count, self.digits))
        b[::2] = np.where(rng.random(b[::2].shape) < 0.8, 9 - a[::2], b[::2])
        b[::2, -1] = np.minimum(9, b[::2, -1] + rng.integers(0, 2, len(b[::2])))
        return self.text(a, b)

    def text(self, a: Array, b: Array) -> Array:
        """Digits (count, m) of both operands, highest first, as whole texts of tokens."""

        def column(token: int) -> Array:
            return np.full((len(a), 1), token)

        parts = [column(BOS), SYMBOLS + a, column(PLUS), SYMBOLS + b, column(EQUALS), ANSWERS + added(a, b)]
        return np.concatenate(parts, axis=1)

    def answers_right(self, tokens: Array, logits: Array) -> bool:
        """From = on, every token that follows."""
        m = self.digits
        wanted = np.concatenate([tokens[:, 2 * m + 3 :], np.full((len(tokens), 1), EOS)], axis=1)
        return bool((logits[:, 2 * m + 2 :].argmax(-1) == wanted).all())


def added(a: Array, b: Array) -> Array:
    """The digits (count, m + 1) of the sums, by long addition."""
    made, carry = [], np.zeros(len(a), dtype=np.int64)
    for k in range(a.shape[1] - 1, -1, -1):
        total = a[:, k] + b[:, k] + carry
        made.append(total % 10)
        carry = total // 10
    return np.stack([carry, *made[::-1]], axis=1)


def _places(window: int) -> CircuitLayer:
    i, j = (grid.reshape(-1) for grid in np.indices((10, 10)))
    of_class = np.where(i + j >= 10, G, np.where(i + j == 9, P, K))
    source = np.r_[DIGIT + np.arange(10), IS_EQUALS]
    return paired(
        window,
        source,
        np.r_[FETCHED + np.arange(10), END],
        np.r_[FETCHED + i, FETCHED + i],
        np.r_[DIGIT + j, DIGIT + j],
        np.r_[SUM + (i + j) % 10, CLASS + of_class],
        np.arange(DIGIT, FETCHED + 10),
    )


def _composed(offset: int) -> CircuitLayer:
    earlier, later = (grid.reshape(-1) for grid in np.indices((3, 3)))
    made = np.where(earlier == P, later, earlier)
    three = np.arange(3)
    rows = (CLASS + three, FETCHED_CLASS + three, FETCHED_CLASS + earlier, CLASS + later, CLASS + made)
    return paired(offset, *rows, np.arange(CLASS, FETCHED_CLASS + 3))


def _carried(window: int) -> CircuitLayer:
    digit, of_class = (grid.reshape(-1) for grid in np.indices((10, 3)))
    made = (digit + (of_class == G)) % 10
    ten = np.arange(10)
    return paired(
        window,
        SUM + ten,
        FETCHED + ten,
        FETCHED + digit,
        CLASS + of_class,
        DIGIT + made,
        np.arange(FETCHED, FETCHED + 10),
    )
