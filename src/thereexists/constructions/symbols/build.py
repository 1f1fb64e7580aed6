"""The main path of a program over symbols: compile the program over numbers that it is, and prove both halves.

s = P.symbols("abc", n=8)
witness = te.build(s.sort())
witness(["abcabcab"])  # right on every string, in every dtype of the certificate
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, final

from thereexists.certificates.symbol_certificate import Alphabets, certify_symbols
from thereexists.constructions.program.building import dtypes_to_try, not_tried, places
from thereexists.constructions.program.compiler import compile as compile_program
from thereexists.constructions.program.graph import nodes
from thereexists.constructions.program.plan import ProgramPlan
from thereexists.constructions.program.saving import to_record
from thereexists.constructions.symbols.language import Symbols, source_of
from thereexists.constructions.symbols.witness import SymbolWitness
from thereexists.core.dtypes import as_dtype, dtype_name
from thereexists.witness.method import Method


@final
@dataclass(frozen=True, kw_only=True)
class CompilingSymbols(Method):
    """How a program over symbols is built: proved in ``dtype`` (default float64), and in ``dtypes`` if it can be.

    ``causal``: by default as the program needs it; ``heads`` and ``width`` are those of ``compile``.
    """

    dtype: Any = None
    dtypes: tuple[str, ...] | None = None
    causal: bool | None = None
    heads: int | None = None
    width: int | None = None

    def plan(self, target: Symbols) -> ProgramPlan:
        return self.build(target).plan

    def build(self, target: Symbols) -> SymbolWitness:
        name = dtype_name(as_dtype(self.dtype or "float64"))
        source, alphabet = source_of(target)
        alphabets = Alphabets(alphabet, target.alphabet)
        masked = any(node.settings.get("causal", False) for node in nodes(target.number))
        causal = masked if self.causal is None else self.causal
        compiled = compile_program(target.number, causal=causal, heads=self.heads, width=self.width)
        asked = dtypes_to_try(compiled, name, self.dtypes)
        written = to_record(target.number)
        certificate = certify_symbols(written, alphabets, compiled.network, name, asked)
        certificate = dataclasses.replace(certificate, reasons=certificate.reasons | not_tried(asked))
        return SymbolWitness(
            compiled.network, target.number, source, places(compiled), certificate, written, alphabets=alphabets
        )
