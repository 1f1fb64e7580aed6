"""The certificate of a program over symbols: right on every string, in which dtypes.

|network in dtype − program| ≤ bound < 1/2 at every string (``program_bound.py``, over inputs of whole numbers), and the
program is a whole number there, one of 0 … |Σ'| − 1 (``symbol_values.py``). So what the network gives, rounded to the
nearest whole number, is the number of the right symbol, at every token of every string.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from thereexists.certificates.certificate import is_count, is_list_of
from thereexists.certificates.check import Wanted
from thereexists.certificates.program_certificate import Choice, CompiledCertificate, certified, saved_choice
from thereexists.certificates.symbol_values import values_at_strings
from thereexists.core.dtypes import DTYPES, as_dtype, represents
from thereexists.core.errors import BadWitnessFile, CannotBuild, NotProved
from thereexists.core.plain_text import in_full, is_text
from thereexists.core.rounded_figures import rounded_up
from thereexists.model import EmbeddedTransformer
from thereexists.model.digest import weights_sha256

MOST_SYMBOLS = 1 << 12


@dataclass(frozen=True)
class Alphabets:
    """Of the strings that go in, and of those that come out."""

    alphabet: tuple[str, ...]
    output_alphabet: tuple[str, ...]

    @classmethod
    def read(cls, stored: Any) -> Alphabets:
        """What a record holds, if it is that."""
        if not isinstance(stored, dict) or stored.keys() != {"alphabet", "output_alphabet"}:
            raise BadWitnessFile("The symbols of a program must be an alphabet and an output alphabet; these are not.")
        for name, symbols in stored.items():
            if not is_alphabet(symbols):
                raise BadWitnessFile(f"The {name} of a program must be a list of 1 to {MOST_SYMBOLS:,} distinct words.")
        return cls(tuple(stored["alphabet"]), tuple(stored["output_alphabet"]))

    def describe(self) -> dict[str, Any]:
        return {"alphabet": list(self.alphabet), "output_alphabet": list(self.output_alphabet)}


@final
@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class SymbolCertificate(CompiledCertificate):
    """In every dtype of ``bounds`` the network gives the right symbol at every token of every string.

    ``lengths``: how many symbols a string has, at least and at most.
    """

    kind: ClassVar[str] = "symbols"
    whole: ClassVar[bool] = True

    alphabet: list[str]
    output_alphabet: list[str]
    lengths: list[int]

    def claim(self) -> str:
        return f"right on every string of {self._lengths()} symbols, in {', '.join(self.bounds)}"

    def statement(self) -> str:
        return (
            f"the network in {self.dtype} is within {rounded_up(self.bound, 6)} < 1/2 of the number of the right "
            f"symbol, at every token of every string of {self._lengths()} of its {len(self.alphabet)} symbols"
        )

    def subject(self) -> dict[str, str]:
        return {
            "program": f"SHA-256 {self.program_sha256}",
            "strings": f"{self._lengths()} of {len(self.alphabet)} symbols",
            "written": f"{len(self.output_alphabet)} symbols",
        }

    def _lengths(self) -> str:
        least, most = self.lengths
        return f"{most:,}" if least == most else f"{least:,} to {most:,}"

    def asked_for(self) -> list[float]:
        return [0.5]  # from there on the nearest symbol might be another one

    def as_small_as_asked(self, bound: float) -> bool:
        return bound < 0.5

    @classmethod
    def right(cls) -> dict[str, Callable[[Any], bool]]:
        alphabets = dict.fromkeys(("alphabet", "output_alphabet"), is_alphabet)
        return super().right() | alphabets | {"lengths": lambda part: is_list_of(is_count)(part) and len(part) == 2}


def is_alphabet(part: Any) -> bool:
    """Distinct words, one at least."""
    words = isinstance(part, list) and all(isinstance(word, str) and word and is_text(word) for word in part)
    return words and 1 <= len(part) <= MOST_SYMBOLS and len(set(part)) == len(part)


def certify_symbols(
    program: dict[str, Any], alphabets: Alphabets, network: EmbeddedTransformer, dtype: str = "float64",
    dtypes: Sequence[str] = DTYPES,
) -> SymbolCertificate:  # fmt: skip
    """Both halves of the proof; sets ``network.safe`` to the dtypes in which the symbols are right."""
    fields = certified(program, network, Choice(dtype, None, dtypes, whole=True))
    prove_symbols(program, alphabets)
    for name, part in list(fields["bounds"].items()):
        reason = why_not(name, part["bound"], alphabets)
        if reason:
            del fields["bounds"][name]
            fields["reasons"][name] = reason
    if dtype not in fields["bounds"]:
        raise CannotBuild(f"This program over symbols is not proved in {dtype}: {fields['reasons'][dtype]}")
    network.safe = tuple(fields["bounds"])
    sha, lengths = weights_sha256(network), lengths_of(program)
    return SymbolCertificate(**fields, **alphabets.describe(), lengths=lengths, weights_sha256=sha)


def certify_again(witness: Any, wanted: Wanted) -> SymbolCertificate:
    """The certificate of a loaded witness, for the dtypes that it was saved with."""
    dtype, safe = saved_choice(witness, wanted)
    found = certify_symbols(witness.record(), witness.alphabets, witness.network, dtype, safe)
    if witness.network.safe != safe:
        raise CannotBuild(
            f"The witness says that it runs in {', '.join(safe)}, but only {', '.join(found.bounds)} is proved."
        )
    others = [name for name in DTYPES if name not in safe]
    return dataclasses.replace(
        found, reasons={name: f"the witness was not saved for it; build with dtype='{name}'." for name in others}
    )


def prove_symbols(program: dict[str, Any], alphabets: Alphabets) -> None:
    """At every string the program is a whole number that is one of the output symbols; ``NotProved`` if that is not
    found."""
    held = values_at_strings(program, len(alphabets.alphabet))
    if held.off:
        raise NotProved(
            f"On strings the output is only known up to {rounded_up(float(held.off), 3)}: a look-up without a step."
        )
    strange = [x for x in held.values if not isinstance(x, int) or not 0 <= x < len(alphabets.output_alphabet)]
    if strange:
        raise NotProved(
            f"On strings the output may be {in_full(float(strange[0]))}, as far as is known, which is not the number "
            f"of one of the {len(alphabets.output_alphabet)} output symbols."
        )


def why_not(dtype: str, bound: float, alphabets: Alphabets) -> str:
    """Why symbols are not right in a dtype with this bound; nothing if they are."""
    if not bound < 0.5:
        return f"its bound is {rounded_up(bound, 3)}, and less than 1/2 tells one symbol from the next."
    if not represents(np.arange(float(len(alphabets.alphabet))), as_dtype(dtype)).all():
        return f"it does not have all the numbers of {len(alphabets.alphabet):,} symbols."
    return ""


def lengths_of(program: dict[str, Any]) -> list[int]:
    shorter = any(node["operation"] == "tokens" and node["settings"]["shorter"] for node in program["nodes"])
    return [1 if shorter else program["n"], program["n"]]
