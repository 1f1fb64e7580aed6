"""The claim of an automaton's checkpoint: the state after every prefix of every prompt of at most n symbols.

Rows: ``own``, the map of a string from states to targets, and ``fetched``, the states of such a map. Before layer t,
own at token j is the map of the last min(2^t, j) symbols (token 0, <s>, is the identity, and so is every answer); the
layer fetches the map of the 2^t symbols before, or the identity, and puts the product of the two in its place. That the
rows of a group exclude each other is what a map is: it leads a state to one target. After T layers, 2^T ≥ n, own is the
map of the whole prompt. ∎ (``automaton_maps.py`` has the rows and their products, and checks that they are closed.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.automata.automaton import Automaton, restore
from thereexists.certificates.automaton_maps import Maps, read_maps
from thereexists.certificates.automaton_origin import check_origin
from thereexists.certificates.check import Check
from thereexists.certificates.llama.circuit import Case, Circuit, paired
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.tokens import BOS, EOS, SYMBOLS, Vocabulary, vocabulary_of
from thereexists.core.errors import InvalidInput, NotProved
from thereexists.functions.target import Array

MOST_SYMBOLS = 1 << 17
MOST_PRODUCTS = 1 << 20
FIELDS = frozenset(("kind", "n", "automaton", "maps"))
_LONGEST = 128  # symbols of a random string


@dataclass(frozen=True)
class AutomatonClaim(Claim):
    maps: Maps
    n: int

    @property
    def machine(self) -> Automaton:
        return self.maps.automaton

    @property
    def vocabulary(self) -> Vocabulary:
        return vocabulary_of(self.machine)

    @property
    def new_tokens(self) -> int:
        return 2

    def circuit(self) -> Circuit:
        maps, tokens = self.maps, self.vocabulary
        own, fetched = (np.unique(group, return_inverse=True)[1].reshape(-1) for group in maps.groups())
        a, b, c = maps.products()
        row, every = np.arange(maps.own), np.arange(maps.own + maps.fetched)
        layers = tuple(
            paired(2**t, row, maps.own + maps.projection(), maps.own + a, b, c, every)
            for t in range(max(1, (self.n - 1).bit_length()))
        )
        embedding = np.zeros((len(tokens), maps.own + maps.fetched))
        embedding[:, : maps.own] = maps.bits(_identity(maps))
        letters = maps.letters()
        embedding[SYMBOLS : SYMBOLS + len(letters), : maps.own] = np.stack([maps.bits(f) for f in letters])
        groups = np.r_[own, own.max() + 1 + fetched]
        answers = (EOS, *range(tokens.outputs.start, len(tokens)))
        return Circuit(embedding, groups, layers, answers, self._cases(), self.n + 1)

    def _cases(self) -> tuple[Case, ...]:
        """Where the start is led to; to the dead state, if no row says anything of it. Behind an answer, the end."""
        targets = self.maps.start_targets()
        led: list[tuple[tuple[int, ...], Array]] = [
            ((row,), self.maps.targets[targets[row]]) for row in np.flatnonzero(targets >= 0).tolist()
        ]
        if self.machine.dead is not None:
            led.append(((), np.array([self.machine.dead, -1])))
        every, found = slice(0, len(self.vocabulary)), []
        for on, (state, said) in led:
            found.append(Case(on, False, self._right(int(state), int(said))))
            found.append(Case(on, True, ((EOS, every),)))
        return tuple(found)

    def _right(self, state: int, said: int) -> tuple[tuple[int, slice], ...]:
        tokens = self.vocabulary
        verdict = tokens.verdicts.start + (0 if self.machine.accept[state] else 1)
        groups = [(verdict, tokens.verdicts), (tokens.states.start + state, tokens.states)]
        answer = tokens.outputs.start + said if self.machine.writes else verdict
        return ((answer, slice(0, len(tokens))), *groups)

    def origin(self) -> Check:
        return check_origin(self.machine)

    def sentence(self) -> str:
        machine, n = self.machine, self.n
        what = "what the automaton writes in its last step" if machine.writes else "whether the automaton accepts"
        empty = " but the empty one" if machine.writes else ""
        return (
            f"for every prompt of at most {n:,} symbols ({len(machine.alphabet)}^{n} of that length){empty}: the token "
            f"with the largest logit says {what}, and behind it `</s>` has the largest logit. After every prefix, too, "
            "the largest logit among the tokens of states is that of the automaton's state, and the largest of "
            "accepted and rejected says whether it accepts."
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "automaton",
            "n": self.n,
            "automaton": self.machine.describe(),
            "maps": self.maps.describe(),
        }

    def drawn(self, rng: np.random.Generator, count: int) -> Array:
        ids = rng.integers(0, len(self.machine.alphabet), (count, min(self.n, _LONGEST)))
        return np.concatenate([np.full((count, 1), BOS), ids + SYMBOLS], axis=1)

    def answers_right(self, tokens: Array, logits: Array) -> bool:
        """State, acceptance and answer after every prefix, by the automaton's table alone."""
        machine, texts, ids = self.machine, self.vocabulary, tokens[:, 1:] - SYMBOLS
        states = machine.run(ids)
        verdict = np.where(machine.accept[states], 0, 1)
        right = (logits[..., texts.states].argmax(-1) == states).all()
        right &= (logits[..., texts.verdicts].argmax(-1) == verdict).all()
        if machine.writes:
            said = texts.outputs.start + machine.outputs[states[:, :-1], ids]
            return bool(right and (logits[:, 1:].argmax(-1) == said).all())
        return bool(right and (logits.argmax(-1) - texts.verdicts.start == verdict).all())


def _identity(maps: Maps) -> Array:
    """Staying: every state to the first target that has it, the dead one to none."""
    found = np.full(maps.automaton.size, -1)
    found[maps.targets[::-1, 0]] = np.arange(len(maps.targets))[::-1]
    if not maps.is_identity(found):
        raise NotProved("the rows of the maps have no identity.")
    return found


def read_automaton_claim(stored: dict[str, Any]) -> AutomatonClaim:
    if stored.keys() != FIELDS:
        raise InvalidInput("a claim of an automaton must have n, the automaton and its maps")
    n = stored["n"]
    if type(n) is not int or not 1 <= n <= MOST_SYMBOLS:
        raise InvalidInput(f"n must be a whole number from 1 to {MOST_SYMBOLS:,}")
    maps = read_maps(restore(stored["automaton"]), stored["maps"])
    if maps.product_count() > MOST_PRODUCTS:  # looked at before they are listed: a record may name many rows
        raise InvalidInput(f"the rows have {maps.product_count():,} products; at most {MOST_PRODUCTS:,} are read")
    return AutomatonClaim(maps, n)
