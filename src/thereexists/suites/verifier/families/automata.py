"""Finite automata over a and b, by doubling: is some string of a pattern such as a?bb?a accepted?

A letter is a number u: a is 0, b is 1, and the embedding is the straight line between theirs. The boxes are u ≤ r and
u ≥ 1 − r with r ≤ 1/8, one box for each string of the pattern; position 0 is the beginning, with u = 0.

**Extremes.** The maps of the letters at position j are (1 − u)f_a + u f_b: bits that are off by at most 1/8, none
below 0. The saturating units of the first block, clip(2x + 2y − 5/2, 0, 1), give x AND y exactly for such bits, and
ReLU(x) = x removes the old ones exactly. So after the first block the network is in the very state it has for the
string itself, for which it is right by its certificate; the output is constant on each box. ∎ (Positions are addressed
by logits that lead by 1024; exp(−1024) is taken as 0.)
"""

from __future__ import annotations

import itertools
import re
from typing import final

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Array
from thereexists.suites.net import Net, blocks_of
from thereexists.suites.plain import is_number, is_whole
from thereexists.suites.verifier.families.base import Built, Family, Params, Question
from thereexists.suites.verifier.families.hypotheses import Hypotheses, has_just

PATTERNS = ("(ab|ba)*", "(a|b)*abb", "(aa|b)*", "(a(a|b))*", "a*b*a*")
LENGTHS = (3, 4, 8, 8, 16)
RADII = (1 / 64, 1 / 32, 1 / 16, 3 / 32, 1 / 8)
MOST_FREE = 8


@final
class Automata(Family):
    name = "automata"
    margins = (2**-1, 2**-2, 2**-4)

    def draw(self, rng: np.random.Generator, level: int) -> Params:
        n = LENGTHS[level - 1]
        free = sorted(rng.choice(n, min(level, 3), replace=False).tolist())
        letters = ["?" if j in free else str(rng.choice(["a", "b"])) for j in range(n)]
        return {
            "regex": str(rng.choice(PATTERNS)),
            "n": n,
            "radius": RADII[level - 1],
            "string": "".join(letters),
        }

    def hypotheses(self, params: Params) -> Hypotheses:
        yield has_just(params, "regex", "n", "radius", "string")
        yield f"regex is one of {', '.join(PATTERNS)}", params["regex"] in PATTERNS
        yield f"n is one of 1 … {max(LENGTHS)}", is_whole(params["n"], 1, max(LENGTHS))
        yield "0 ≤ radius ≤ 1/8", is_number(params["radius"], 0, 1 / 8)
        string = params["string"]
        yield (
            "string has n letters a, b and ?",
            isinstance(string, str) and re.fullmatch(f"[ab?]{{{params['n']}}}", string) is not None,
        )
        yield f"string has at most {MOST_FREE} letters ?", string.count("?") <= MOST_FREE

    def build(self, params: Params) -> Built:
        from thereexists.certificates.automaton_proof import FIRST, SYMBOLS
        from thereexists.constructions.build import build

        witness = build(_automaton(params["regex"]), n=params["n"], construction="doubling", saturating=True)
        network = witness.network
        table = network.embedding.detach().double().numpy()
        a, b = table[SYMBOLS], table[SYMBOLS + 1]
        E = network.E.detach().double().numpy() + np.concatenate(
            [table[FIRST][None], np.repeat(a[None], params["n"], 0)]
        )
        net = Net((b - a)[None], E, blocks_of(network), network.W_out.detach().double().numpy().T)
        return Built(net, 0.0, "certificate of an automaton: right on every string; letters are off by 1/8 at most")

    def reference(self, params: Params, X: Array) -> Array:
        """On the strings that the letters are next to: the state, one-hot, and whether it accepts."""
        machine = _automaton(params["regex"])
        ids = (X[:, 1:, 0] > 0.5).astype(np.int64)
        states = np.empty((len(X), params["n"] + 1), dtype=np.int64)
        states[:, 0] = machine.start
        for j in range(params["n"]):
            states[:, j + 1] = machine.table[states[:, j], ids[:, j]]
        shown = np.eye(machine.size)
        shown[[] if machine.dead is None else machine.dead] = 0.0  # a state from which nothing is accepted has no row
        return np.concatenate([shown[states], machine.accept[states][..., None]], axis=2)

    def ask(self, params: Params, rng: np.random.Generator) -> Question:
        """The acceptance of the whole string, or of a part of it."""
        strings = itertools.product(*("ab" if letter == "?" else letter for letter in params["string"]))
        r, boxes = params["radius"], []
        for string in strings:
            u = np.array([0.0, *(1.0 * (letter == "b") for letter in string)])[:, None]
            low, high = np.maximum(u - r, 0.0), np.minimum(u + r, 1.0)
            low[0] = high[0] = 0.0
            boxes.append((low, high))
        place = params["n"] - int(rng.integers(0, 3)) * int(rng.integers(0, 2))
        outputs = _automaton(params["regex"]).size
        return Question(tuple(boxes), (place, outputs), int(rng.choice([-1, 1])))

    def extreme(self, params: Params, question: Question) -> tuple[float, float, Array]:
        sides = np.stack([np.stack(box) for box in question.boxes])  # (boxes, 2, n + 1, 1)
        points = np.rint(sides.mean(axis=1))
        if (np.abs(sides - points[:, None]) > 1 / 8).any() or points[:, 0].any() or sides[:, :, 0].any():
            raise CannotBuild("Nothing is proved about this box: a letter is further than 1/8 from 0 and from 1.")
        values = self.reference(params, points)[(slice(None), *question.output)]
        best = int(np.argmax(question.sense * values))
        return float(values[best]), 0.0, points[best]


def _automaton(regex: str):
    from thereexists.automata.regex import regex as automaton

    return automaton(regex, alphabet="ab")
