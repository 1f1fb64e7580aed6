"""Look-ups in one layer: which token follows is read in a table, by what stands at fixed distances back.

A *word* says which token stands at the distances ``places`` = 0, …, back from here, up to the first of them where the
first token stands: farther back there is nothing. The circuit fetches the codes of all places at once, one head for
each distance, and has one AND for each word of the table, which makes the code of the token that follows. Where no word
of the table stands, no row is made, and the text ends.

*Codes.* Tokens get sets of c rows out of R, all different. So no code is part of another, and a place, which holds the
code of one token or nothing, has all rows of a code only if that code stands there. A word is there, then, if and only
if the AND of its rows is 1.

*One at a time.* Two words of the table differ in a place that both have, for only <s> ends a word early, and <s> stands
in no other place of a word. So of all words of a table at most one is there (``LookUp.exclusive`` looks). ∎
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from thereexists.certificates.llama.circuit import BITS, Case, Circuit, LookUp
from thereexists.certificates.llama.tokens import BOS, EOS
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array

MOST_READ = 32  # rows of one AND: in bfloat16 each may err by 2^-7, all of them by 5/16, and 4·32 − 5/2 has eight bits
MOST_WORDS = 1 << 18
MOST_ROWS = 4096
_WEIGHTS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Table:
    """``words`` (count, places) of token numbers, −1 behind <s>, all different, and what ``follows`` (count,)."""

    places: tuple[int, ...]
    words: Array
    follows: Array

    def circuit(self, tokens: int, reach: int) -> Circuit:
        """For a vocabulary of so many tokens and texts that end with the token ``reach``."""
        known, answers = np.unique(self.words[self.words >= 0]), np.unique(self.follows)
        code, said = _codes(len(known), len(answers), len(self.places))
        K, R, out = len(self.places), code.max() + 1, len(self.places) * (code.max() + 1)
        embedding = np.zeros((tokens, out + said.max() + 1), dtype=bool)  # no larger than it must be: see MOST_ROWS
        embedding[known[:, None], code] = True
        at = np.where(self.words >= 0, np.searchsorted(known, self.words), -1)  # (count, K), numbers of codes
        rows = np.where(at[..., None] >= 0, code[at] + R * np.arange(K)[:, None], -1).reshape(len(at), -1)
        made = out + said[np.searchsorted(answers, self.follows)]  # (count, rows of a code)
        each = np.repeat(np.arange(len(at)), made.shape[1])
        layer = LookUp(
            offset=np.repeat(self.places[1:], R),
            source=np.tile(np.arange(R), K - 1),
            target=np.arange(R, out),
            reads=rows[each],
            z=made.reshape(-1),
            cleared=np.zeros(0, dtype=np.int64),
            words=at[each],
        )
        every = slice(0, tokens)
        cases = [
            Case(tuple((out + on).tolist()), False, ((token, every),))
            for on, token in zip(said, answers.tolist(), strict=True)
        ]
        ends = Case((), False, ((EOS, every),))
        return Circuit(embedding, np.arange(embedding.shape[1]), (layer,), (), (*cases, ends), reach)


def table_of(places: tuple[int, ...], back: Array, follows: Array) -> Table:
    """Of what stands ``back`` (count, places) in some texts, and what follows each; </s> follows where nothing does."""
    ended = np.cumsum(back == BOS, axis=1) - (back == BOS) > 0
    words, first, number = np.unique(np.where(ended, -1, back), axis=0, return_index=True, return_inverse=True)
    if (follows[first][number.reshape(-1)] != follows).any():
        raise InvalidInput("two texts that different tokens follow look the same at these places")
    said = follows[first] != EOS
    if not said.any():
        raise InvalidInput("no token follows any text of the table")
    return Table(places, words[said], follows[first][said])


def check_places(places: object, longest: int) -> tuple[int, ...]:
    """Distances as a record has them: 0 first, rising."""
    if not isinstance(places, list) or not 2 <= len(places) <= MOST_READ or places[0] != 0:
        raise InvalidInput(f"the places must be 0 and at most {MOST_READ - 1} distances more")
    whole = all(type(place) is int and place <= longest for place in places)
    if not whole or any(a >= b for a, b in itertools.pairwise(places)):
        raise InvalidInput(f"the places must be increasing whole numbers, up to {longest}")
    return tuple(places)


def _codes(known: int, answers: int, places: int) -> tuple[Array, Array]:
    """Codes of the tokens that are read and of those that follow: as few rows as give the narrowest network."""
    ways = []
    for c, s in itertools.product(_WEIGHTS, _WEIGHTS[:3]):
        rows = BITS + places * _rows(known, c) + _rows(answers, s)
        if c * places <= MOST_READ and rows <= MOST_ROWS:
            ways.append((math.ceil(math.log(rows, 4) - 1e-9), c, s))
    if not ways:
        raise InvalidInput(
            f"{places} places with {known:,} tokens are too many: they take more than {MOST_READ} bits of a text, or "
            f"more than {MOST_ROWS:,} rows"
        )
    _, c, s = min(ways)
    return code_of(known, c), code_of(answers, s)


def _rows(count: int, weight: int) -> int:
    """The least R with ``count`` sets of ``weight`` out of R rows."""
    return next(R for R in itertools.count(weight) if math.comb(R, weight) >= count)


def code_of(count: int, weight: int) -> Array:
    """Sets (count, weight) of rows, all different, out of as few as there can be."""
    return np.array(list(itertools.islice(itertools.combinations(range(_rows(count, weight)), weight), count)))
