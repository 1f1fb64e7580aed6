"""A witness of a program over symbols: strings in, strings out, and a certificate for all of them.

w = te.build(P.symbols("abc", n=8).sort())
w("cabacaba")            # "aaaabbcc"
w(["cabacaba", …])       # a list; of words instead of characters, lists of words
w.certificate            # right on every string, in which dtypes
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from thereexists.certificates.llama.programs import ProgramClaim
from thereexists.certificates.symbol_certificate import Alphabets, why_not
from thereexists.constructions.program.compiler import interpret as interpret_numbers
from thereexists.constructions.program.tracing import Written, trace_rows
from thereexists.constructions.program.witness import CompiledWitness, read_compiled
from thereexists.constructions.symbols.strings import Lengths, String, by_length, read_strings, write_string
from thereexists.core.errors import BadWitnessFile, CannotBuild, InvalidInput, NotProved
from thereexists.functions.target import Array
from thereexists.witness.trace import Trace


@final
@dataclasses.dataclass(frozen=True, repr=False)
class SymbolWitness(CompiledWitness):
    """``alphabets``: of the strings that go in and of those that come out."""

    construction = "symbols"

    alphabets: Alphabets = dataclasses.field(kw_only=True)

    def __call__(self, x: Any) -> Any:
        """What the program makes of a string, or of each string of a list."""
        words, one = self.words(x)
        found: list[String] = [""] * len(words)
        for rows in by_length(words).values():
            for k, y in zip(rows, self.numbers([words[k] for k in rows]), strict=True):
                found[k] = write_string(self.alphabets.output_alphabet, y)
        return found[0] if one else found

    def words(self, x: Any) -> tuple[list[Array], bool]:
        """The numbers of every string, and whether it was one; unknown symbols and other lengths are refused."""
        return read_strings(self.alphabets.alphabet, Lengths.of(self.source), x)

    def numbers(self, words: list[Array]) -> Array:
        """What the network gives for strings of one length, rounded to whole numbers: (strings, length)."""
        X = np.array(words, dtype=np.float64)[..., None]
        return np.rint(self.run(X)[..., 0])

    def meant(self, x: Any) -> Any:
        """What the program itself gives, operation by operation: the network is not asked."""
        words, one = self.words(x)
        alphabet = self.alphabets.output_alphabet
        arrays = [np.array(word, dtype=np.float64)[None, :, None] for word in words]
        found = [write_string(alphabet, np.rint(interpret_numbers(self.program, X)[0, :, 0])) for X in arrays]
        return found[0] if one else found

    def proved_rounding(self, name: str) -> float:
        """Also that what is off by so much still is nearest to the right symbol."""
        found = super().proved_rounding(name)
        bound = np.inf if self.certificate is None else self.certificate.bounds[name]["bound"]
        reason = why_not(name, bound, self.alphabets)
        if reason:
            raise CannotBuild(f"This witness is not proved safe in {name}, whatever its author says: {reason}")
        return found

    def lowerable(self) -> ProgramClaim:
        """The program as it is saved; refused, with the operation, where it is no causal circuit."""
        try:
            claim = ProgramClaim.of(self.record(), self.alphabets)
            claim.circuit()
        except (InvalidInput, NotProved) as error:
            raise CannotBuild(f"This program has no stock Llama checkpoint: {error}") from error
        return claim

    def trace(self, x: Any) -> SymbolTrace:
        """Every value that some operation leaves in a row, after the half block that makes it."""
        words, _ = self.words(x)
        if len(words) != 1:
            raise InvalidInput(f"trace takes one string; this input holds {len(words)}.")
        traced = trace_rows(self, words[0].astype(np.float64)[:, None])
        symbols = [self.alphabets.alphabet[a] for a in words[0].tolist()]
        answer = write_string(self.alphabets.output_alphabet, np.rint(traced.answer[:, 0]))
        return SymbolTrace(symbols, traced.steps, answer)

    def describe(self) -> dict[str, Any]:
        certificate = self.certificate
        claim = None if certificate is None else certificate.claim()
        lengths = dataclasses.astuple(Lengths.of(self.source))
        return super().describe() | self.alphabets.describe() | {"lengths": list(lengths), "certified": claim}

    def facts(self) -> list[str]:
        sizes = f"{len(self.alphabets.alphabet)} symbols in, {len(self.alphabets.output_alphabet)} out"
        certificate = self.certificate
        return [sizes, "not certified" if certificate is None else certificate.marked(certificate.claim())]

    def contents(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        record, arrays = super().contents()
        return record | {"symbols": self.alphabets.describe()}, arrays


@final
@dataclass(frozen=True, repr=False)
class SymbolTrace(Trace):
    """What was written, in order, and the string that comes out."""

    word: list[str]
    steps: tuple[Written, ...]
    answer: String

    @property
    def output(self) -> String:
        return self.answer

    def facts(self) -> list[str]:
        return [f"input {' '.join(self.word[:16])}", f"{len(self.steps):,} values written"]

    def describe(self) -> dict[str, Any]:
        return {"input": self.word, "steps": [vars(step) for step in self.steps], "output": self.answer}


def load_symbols(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> SymbolWitness:
    """A saved program over symbols, as the file has it; its certificate is its author's word."""
    parts, alphabets = read_compiled(path, record, weights), Alphabets.read(record["symbols"])
    source, program = parts["source"], parts["program"]
    if source.d != 1 or program.d != 1 or source.settings["high"] != max(len(alphabets.alphabet) - 1, 1):
        raise BadWitnessFile(f"{path}: the program is not one over {len(alphabets.alphabet)} symbols.")
    return SymbolWitness(**parts, read=True, alphabets=alphabets)
