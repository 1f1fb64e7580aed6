"""A data set or a table as the claim of a checkpoint: its tokens as texts, and the places that are looked at.

All places from 0 to the start of the longest text, if as many can be read at once: then the end follows whatever is not
of the set. Else as few as tell the texts of the set apart, found one by one: the place that leaves the fewest texts in
doubt is added until none is.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from thereexists.certificates.llama.circuit import BITS
from thereexists.certificates.llama.completions import Completions, looked_at
from thereexists.certificates.llama.lookup import MOST_READ, MOST_WORDS
from thereexists.core.errors import CannotBuild, InvalidInput

WIDEST = 1024  # rows of a network that compares whole texts, if fewer places do


def completions(prompts: Any, answers: Any) -> Completions:
    """Sequences of tokens, strings or integers, as ``memorise`` takes them."""
    sides = []
    for sequences in (prompts, answers):
        texts = sorted({str(token) for sequence in sequences for token in sequence})
        number = {text: k for k, text in enumerate(texts)}
        sides.append((tuple(texts), [tuple(number[str(token)] for token in sequence) for sequence in sequences]))
    (symbols, asked), (said, told) = sides
    pairs = tuple(zip(asked, told, strict=True))
    if len(set(asked)) != len(asked):
        raise InvalidInput(
            "Two prompts would be written the same way, as are the number 1 and the text '1'. Rename one of them."
        )
    if not any(told):
        raise CannotBuild("No prompt of the set has an answer; there is nothing to complete.")
    return placed(symbols, said, pairs)


def in_all_orders(inputs: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each input (rows, n) in all its orders, with the same output: what a symmetric table says."""
    count = len(inputs) * math.factorial(inputs.shape[1])
    if count > MOST_WORDS:
        raise CannotBuild(
            f"The table has up to {count:,} rows in all their orders; at most {MOST_WORDS:,} can be stored."
        )
    orders = np.array(list(itertools.permutations(range(inputs.shape[1]))))
    asked = inputs[:, orders].reshape(-1, inputs.shape[1])
    told = np.repeat(outputs, len(orders), axis=0)
    asked, first = np.unique(asked, axis=0, return_index=True)
    return asked, told[first]


def placed(symbols: tuple[str, ...], said: tuple[str, ...], pairs: Any) -> Completions:
    """With all places if that is not too wide, else with some."""
    longest = max(len(prompt) + len(answer) - 1 for prompt, answer in pairs if answer)
    every = Completions(symbols, said, pairs, tuple(range(longest + 1)))
    if longest + 1 <= MOST_READ:
        try:
            if BITS + every.circuit().rows <= WIDEST:
                return every
        except InvalidInput:
            pass  # more than can be read at once
    return Completions(symbols, said, pairs, _some_places(every))


def _some_places(claim: Completions) -> tuple[int, ...]:
    far = tuple(range(claim.longest + 1))
    back, follows = looked_at(claim.texts, [len(prompt) for prompt, _ in claim.pairs], far)
    places, number = [0], np.unique(back[:, 0], return_inverse=True)[1]
    while _doubtful(number, follows):
        if len(places) == MOST_READ:
            raise CannotBuild(f"No {MOST_READ} places tell the texts of the set apart; shorter prompts help.")
        tried = {place: _refined(number, back[:, place]) for place in far if place not in places}
        place = min(tried, key=lambda place: _doubtful(tried[place], follows))
        number = tried[place]
        places.append(place)
    if len(places) == 1:
        places.append(1)
    return tuple(sorted(places))


def _refined(number: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    return np.unique(number * (int(tokens.max()) + 1) + tokens, return_inverse=True)[1]


def _doubtful(number: np.ndarray, follows: np.ndarray) -> int:
    """How many texts look like one that another token follows."""
    lowest = np.full(int(number.max()) + 1, follows.max() + 1)
    highest = np.full(int(number.max()) + 1, -1)
    np.minimum.at(lowest, number, follows)
    np.maximum.at(highest, number, follows)
    return int((lowest < highest)[number].sum())
