"""The claim of recall: ``a1b2c3b`` is answered by ``2``, and then the text ends. An induction head, two layers.

A prompt is up to n pairs of a key and a value, no key twice, and then one key more. Rows: codes of keys, two rows each
out of R, here (R) and of the token before (R); the value here, and the value that is found.

*Layer 1* fetches the code from 1 back: a value's token learns its key. *Layer 2* looks, at a key, for the token behind
the same key, and fetches its value. Such a token is a value with this key before it, and keys of pairs differ, so there
is one at the most; the first token has no key before it. At the last key that is its value, if it stands in a pair, and
else nothing is fetched. Behind the answer stands no key, so nothing is fetched either: where no value is found the text
ends. ∎
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.certificates.llama.circuit import ByContent, Case, Circuit, CircuitLayer
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.lookup import code_of
from thereexists.certificates.llama.tokens import (
    BOS,
    EOS,
    PAD,
    SYMBOLS,
    Vocabulary,
    check_texts,
    completion_vocabulary,
)
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array

MOST_VALUES = 1000
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Recall(Claim):
    """Of up to n pairs of one of ``keys`` and one of ``values``."""

    keys: tuple[str, ...]
    values: tuple[str, ...]
    n: int

    @property
    def vocabulary(self) -> Vocabulary:
        return completion_vocabulary((*self.keys, *self.values), self.values)

    @property
    def new_tokens(self) -> int:
        return 2

    @property
    def first_answer(self) -> int:
        return SYMBOLS + len(self.keys) + len(self.values)

    def circuit(self) -> Circuit:
        K, V, tokens = len(self.keys), len(self.values), len(self.vocabulary)
        code = code_of(K, 2)
        R = int(code.max()) + 1
        here, before, value, out = (np.arange(size) + at for size, at in ((R, 0), (R, R), (V, 2 * R), (V, 2 * R + V)))
        embedding = np.zeros((tokens, 2 * (R + V)))
        embedding[SYMBOLS + np.arange(K)[:, None], code] = 1.0
        embedding[SYMBOLS + K + np.arange(V), value] = 1.0
        nothing = np.zeros((0, 2), dtype=np.int64)
        layers = (
            CircuitLayer(np.ones(R, dtype=np.int64), here, before, nothing, _NONE, _NONE),
            ByContent(np.zeros(V, dtype=np.int64), value, out, nothing, _NONE, _NONE, here, before, 2),
        )
        groups = np.r_[np.arange(2 * R), np.full(V, 2 * R), np.full(V, 2 * R + 1)]
        every = slice(0, tokens)
        cases = [Case((int(row),), False, ((self.first_answer + v, every),)) for v, row in enumerate(out)]
        return Circuit(embedding, groups, layers, (), (*cases, Case((), False, ((EOS, every),))), 2 * self.n + 2)

    def sentence(self) -> str:
        return (
            f"for every prompt of up to {self.n} pairs of one of {len(self.keys)} keys and one of {len(self.values)} "
            "values, no key twice, and then one key: the token with the largest logit is the value of this key, and "
            "behind it `</s>` has the largest logit. Where the key stands in no pair `</s>` follows at once."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": "recall", "keys": list(self.keys), "values": list(self.values), "n": self.n}

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Recall:
        n = stored.get("n")
        if stored.keys() != {"kind", "keys", "values", "n"}:
            raise InvalidInput("a claim of recall must have keys, values and n")
        keys, values = check_texts(stored["keys"]), check_texts(stored["values"])
        if not 2 <= len(keys) <= MOST_VALUES or not 1 <= len(values) <= MOST_VALUES:
            raise InvalidInput(f"there must be 2 to {MOST_VALUES} keys, and 1 to {MOST_VALUES} values")
        if type(n) is not int or not 1 <= n <= len(keys):
            raise InvalidInput(f"n must be from 1 to {len(keys)}, the number of keys")
        return cls(keys, values, n)

    def drawn(self, rng: np.random.Generator, count: int) -> Array:
        """Whole texts of all lengths, one in eight with a key that is not there, filled up on the right."""
        found, K = np.full((count, 2 * self.n + 3), PAD), len(self.keys)
        for row, m in enumerate(rng.integers(1, self.n + 1, count).tolist()):
            keys, values = rng.permutation(K), rng.integers(0, len(self.values), m)
            pairs = np.column_stack([SYMBOLS + keys[:m], SYMBOLS + K + values]).reshape(-1)
            which = m if m < K and rng.random() < 0.125 else int(rng.integers(m))
            answer = [self.first_answer + values[which]] if which < m else []
            text = [BOS, *pairs, SYMBOLS + keys[which], *answer]
            found[row, : len(text)] = text
        return found

    def answers_right(self, tokens: Array, logits: Array) -> bool:
        """At the last key and behind the answer, by the pairs of the text itself."""
        said, K = logits.argmax(-1), len(self.keys)
        for row, text in enumerate(tokens.tolist()):
            prompt = [token for token in text[1:] if SYMBOLS <= token < self.first_answer]
            value = dict(zip(prompt[:-1:2], prompt[1::2], strict=True)).get(prompt[-1])
            wanted = [EOS] if value is None else [value - SYMBOLS - K + self.first_answer, EOS]
            if said[row, len(prompt) : len(prompt) + len(wanted)].tolist() != wanted:
                return False
        return True
