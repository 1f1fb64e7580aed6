"""The claim of a causal program over symbols: behind every prompt the symbol that the program has at its last token.

``finite_operations.py`` reads the saved program as tables, ``wiring.py`` and ``cells.py`` make a circuit of them, and
prove there that its rows are what the tables say, at every token of every string. The last table is the output, a row
(or a row of each digit) for each of its symbols. An answer is marked, and behind it the text ends, whatever its rows
are: no two rows of a digit are 1 there either, and all that may be is compared. What the program does at the token i
does not depend on later ones: they are nowhere in its tables. ∎
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from thereexists.certificates.llama.circuit import Case, Circuit
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.finite import Table
from thereexists.certificates.llama.finite_operations import tables_of
from thereexists.certificates.llama.signals import Signal
from thereexists.certificates.llama.tokens import BOS, EOS, SYMBOLS, Vocabulary, completion_vocabulary
from thereexists.certificates.llama.wiring import Wiring
from thereexists.certificates.program_limits import check_program
from thereexists.certificates.program_numpy import check_features, run
from thereexists.certificates.symbol_certificate import Alphabets, prove_symbols
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array

FIELDS = frozenset(("kind", "program", "symbols"))
MOST_SYMBOLS, MOST_OPERATIONS = 1 << 10, 1 << 12


class Wired(NamedTuple):
    """``features``: of every operation the tables of its features; ``out``: what is read at the end."""

    wiring: Wiring
    features: list[list[Table]]
    out: Signal


@dataclass(frozen=True)
class ProgramClaim(Claim):
    """``program`` as it is saved, with the alphabets of what goes in and of what comes out."""

    program: dict[str, Any]
    alphabets: Alphabets

    @property
    def n(self) -> int:
        return self.program["n"]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return completion_vocabulary(self.alphabets.alphabet, self.alphabets.output_alphabet)

    @property
    def new_tokens(self) -> int:
        return 2

    @property
    def first_answer(self) -> int:
        return SYMBOLS + len(self.alphabets.alphabet)

    def circuit(self) -> Circuit:
        return self._circuit

    @cached_property
    def wired(self) -> Wired:
        """The program's operations as tables, and the rows and layers that they become."""
        prove_symbols(self.program, self.alphabets)
        space, features = tables_of(self.program, len(self.alphabets.alphabet))
        wiring = Wiring(space)
        return Wired(wiring, features, wiring.made(features[-1][0]))

    @cached_property
    def _circuit(self) -> Circuit:
        wiring, features, out = self.wired
        table = features[-1][0]
        S, tokens = len(self.alphabets.alphabet), len(self.vocabulary)
        embedding = np.zeros((tokens, len(wiring.groups)))
        embedding[BOS, [wiring.start, *wiring.nothing]] = 1.0
        embedding[SYMBOLS : SYMBOLS + S, wiring.here] = 1.0
        for row, of in wiring.symbols.items():
            embedding[SYMBOLS : SYMBOLS + S, row] = of
        layers, every = tuple(draft.layer() for draft in wiring.layers), slice(0, tokens)
        said = []
        for digits, symbol in zip(out.code.tolist(), table.values, strict=True):
            on = tuple(rows[k] for rows, k in zip(out.digits, digits, strict=True))
            said.append(Case(on, False, ((self.first_answer + int(symbol), every),)))
        anything = itertools.product(*([(), *((row,) for row in rows)] for rows in out.digits))
        ends = [Case(sum(on, ()), True, ((EOS, every),)) for on in anything]
        answers = tuple(range(self.first_answer, tokens))
        return Circuit(embedding, np.array(wiring.groups), layers, answers, (*said, *ends), self.n + 1)

    def sentence(self) -> str:
        S, n = len(self.alphabets.alphabet), self.n
        return (
            f"for every prompt of 1 to {n:,} symbols ({S}^{n} of that length): the token with the largest logit is the "
            "symbol that the program in `thereexists_export.json` gives at the prompt's last token, whatever follows "
            "it, and behind it `</s>` has the largest logit. After every prefix, too."
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": "program", "program": self.program, "symbols": self.alphabets.describe()}

    @classmethod
    def read(cls, stored: dict[str, Any]) -> ProgramClaim:
        if stored.keys() != FIELDS:
            raise InvalidInput(f"a claim of a program must have {', '.join(sorted(FIELDS))}")
        return cls.of(stored["program"], Alphabets.read(stored["symbols"]))

    @classmethod
    def of(cls, program: dict[str, Any], alphabets: Alphabets) -> ProgramClaim:
        """A program from a file, checked: whoever reads it further believes its sizes."""
        check_program(program)
        if program.keys() != {"n", "nodes"} or program["n"] > MOST_SYMBOLS or len(program["nodes"]) > MOST_OPERATIONS:
            raise InvalidInput(
                f"a program must have n, up to {MOST_SYMBOLS:,}, and up to {MOST_OPERATIONS:,} operations"
            )
        if sum(node["operation"] == "tokens" for node in program["nodes"]) != 1:
            raise InvalidInput("a program over symbols must have one input")
        check_features(program)
        return cls(program, alphabets)

    def drawn(self, rng: np.random.Generator, count: int) -> Array:
        ids = rng.integers(0, len(self.alphabets.alphabet), (count, self.n))
        return np.concatenate([np.full((count, 1), BOS), ids + SYMBOLS], axis=1)

    def answers_right(self, tokens: Array, logits: Array) -> bool:
        """After every prefix, by the program's own operations in NumPy."""
        said = run(self.program, tokens[:, 1:] - SYMBOLS)
        return bool((logits[:, 1:].argmax(-1) == self.first_answer + said).all())
