"""The kinds of witnesses: one entry each, and every verb is one look-up here.

A kind's name stands in the record of a saved witness, as ``construction``. What an entry names is written as
``module:name`` and imported when it is needed: so this file names every kind and depends on none, and verifying a
witness never imports what builds one. To add a kind: one folder in ``constructions/`` and one entry here, see
docs/add-construction.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from thereexists.core.errors import BadWitnessFile


@dataclass(frozen=True)
class Kind:
    """``what`` it is, in words; ``fields``: exactly what its record holds beside what every record does, and what it
    ``may`` hold; ``certificates``: the kinds of certificate that it may have.

    method    how it is built: a class with ``plan(target)`` and ``build(target)``
    load      (folder, record, weights) → witness, as it is saved
    verify    (``certificates.check.Asked``) → checks, one after the other
    certify   (witness, ``certificates.check.Wanted``) → certificate
    page      (``reports.artefact.Found``, record) → page
    viewer    (witness, target) → what ``explore`` shows
    commands  what the command line does with it: a ``cli.kinds.Commands``
    """

    name: str
    what: str
    fields: frozenset[str]
    certificates: tuple[str, ...]
    method: str
    load: str
    verify: str
    certify: str
    page: str
    viewer: str
    commands: str
    may: frozenset[str] = frozenset()

    def find(self, verb: str) -> Any:
        """What the entry names for a verb."""
        return named(getattr(self, verb))


def named(place: str) -> Any:
    """What ``module:name`` means, imported now."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


_OF_A_FUNCTION = frozenset({"target", "grid", "plan", "distance"})
_OF_TOKENS = frozenset({"vocabulary", "output_vocabulary", "tokens", "info"})
_OF_A_PROGRAM = frozenset({"program", "places"})
_NAMED = frozenset({"name"})  # what its author calls it: shown, and nothing else
_OF_SYMBOLS = frozenset({"program", "places", "symbols"})
_OF_AN_AUTOMATON = frozenset({"automaton", "maps", "doubling"})
_OF_A_GROUP = frozenset({"automaton", "counting"})
# What every record holds; one of the two hashes stands for the weights.
EVERY = frozenset(
    {"format_version", "kind", "construction", "package_version", "dtype", "class", "structure", "digest"}
)

# The kinds of certificate, by the name that stands in the file: the final class of each.
CERTIFICATES = {
    "rigorous": "thereexists.certificates.function_certificate:RigorousCertificate",
    "statistical": "thereexists.certificates.function_certificate:StatisticalCertificate",
    "program": "thereexists.certificates.program_certificate:ProgramCertificate",
    "symbols": "thereexists.certificates.symbol_certificate:SymbolCertificate",
    "automaton": "thereexists.certificates.automaton_certificate:AutomatonCertificate",
}

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            name="faithful",
            what="a function of numbers, built as the proof does",
            fields=_OF_A_FUNCTION,
            certificates=("rigorous", "statistical"),
            method="thereexists.constructions.faithful.build:Faithful",
            load="thereexists.constructions.faithful.witness:load_faithful",
            verify="thereexists.certificates.verify_function:faithful_checks",
            certify="thereexists.certificates.certify_function:certify_function",
            page="thereexists.reports.witness.function:page",
            viewer="thereexists.reports.explore.columns:columns_viewer",
            commands="thereexists.cli.kinds.functions:FUNCTION",
        ),
        Kind(
            name="compact",
            what="a function of numbers in a few blocks",
            fields=_OF_A_FUNCTION,
            certificates=("rigorous", "statistical"),
            method="thereexists.constructions.compact.build:Compact",
            load="thereexists.constructions.compact.witness:load_compact",
            verify="thereexists.certificates.verify_function:compact_checks",
            certify="thereexists.certificates.certify_function:certify_function",
            page="thereexists.reports.witness.function:page",
            viewer="thereexists.reports.explore.blocks:features_viewer",
            commands="thereexists.cli.kinds.functions:FUNCTION",
        ),
        Kind(
            name="tokens",
            what="a table or a memorised data set",
            fields=_OF_TOKENS,
            certificates=(),  # recalled exactly or not at all
            method="thereexists.constructions.tokens.table:Stored",
            load="thereexists.constructions.tokens.witness:load_tokens",
            verify="thereexists.certificates.verify_tokens:token_checks",
            certify="thereexists.certificates.verify_tokens:nothing_to_certify",
            page="thereexists.reports.witness.tokens:page",
            viewer="thereexists.reports.explore.blocks:tokens_viewer",
            commands="thereexists.cli.kinds.tokens:TOKENS",
        ),
        Kind(
            name="program",
            what="a program over the reals",
            fields=_OF_A_PROGRAM,
            certificates=("program",),
            method="thereexists.constructions.program.building:Compiling",
            load="thereexists.constructions.program.witness:load_program",
            verify="thereexists.certificates.verify_program:program_checks",
            certify="thereexists.certificates.program_certificate:certify_again",
            page="thereexists.reports.witness.program:page",
            viewer="thereexists.reports.explore.blocks:program_viewer",
            commands="thereexists.cli.kinds.programs:PROGRAM",
            may=_NAMED,
        ),
        Kind(
            name="symbols",
            what="a program over symbols",
            fields=_OF_SYMBOLS,
            certificates=("symbols",),
            method="thereexists.constructions.symbols.build:CompilingSymbols",
            load="thereexists.constructions.symbols.witness:load_symbols",
            verify="thereexists.certificates.verify_symbols:symbol_checks",
            certify="thereexists.certificates.symbol_certificate:certify_again",
            page="thereexists.reports.witness.symbols:page",
            viewer="thereexists.reports.explore.symbols:symbol_viewer",
            commands="thereexists.cli.kinds.symbols:SYMBOLS",
            may=_NAMED,
        ),
        Kind(
            name="automaton",
            what="a finite automaton in logarithmic depth",
            fields=_OF_AN_AUTOMATON,
            certificates=("automaton",),
            method="thereexists.constructions.automata.build:Doubling",
            load="thereexists.constructions.automata.witness:load_automaton",
            verify="thereexists.certificates.verify_automaton:automaton_checks",
            certify="thereexists.certificates.automaton_certificate:certify_again",
            page="thereexists.reports.witness.automaton:page",
            viewer="thereexists.reports.explore.automata:automaton_viewer",
            commands="thereexists.cli.kinds.automata:AUTOMATON",
        ),
        Kind(
            name="counting",
            what="a commutative group in two blocks",
            fields=_OF_A_GROUP,
            certificates=("automaton",),
            method="thereexists.constructions.counting.build:Counting",
            load="thereexists.constructions.counting.witness:load_counting",
            verify="thereexists.certificates.verify_automaton:counting_checks",
            certify="thereexists.certificates.automaton_certificate:certify_again",
            page="thereexists.reports.witness.counting:page",
            viewer="thereexists.reports.explore.counting:counting_viewer",
            commands="thereexists.cli.kinds.counting:COUNTING",
        ),
    )
}


def kind_of(record: dict[str, Any], place: object) -> Kind:
    """The kind that a record names, if it holds what a record of that kind holds, and nothing else."""
    name = record.get("construction")
    if not isinstance(name, str) or name not in KINDS:
        raise BadWitnessFile(f"{place} is of the construction {name!r}; known are {', '.join(KINDS)}.")
    kind, found = KINDS[name], frozenset(record)
    hashes = found & {"weights_sha256", "shards_sha256"}
    missing, more = (EVERY | kind.fields) - found, found - EVERY - kind.fields - kind.may - hashes
    if more:
        raise BadWitnessFile(f"{place}: a record of {kind.what} must not hold {min(more)!r}.")
    if missing or len(hashes) != 1:
        what = min(missing, default="weights_sha256")
        raise BadWitnessFile(f"{place} is not a complete witness: a record of {kind.what} must hold {what!r}.")
    return kind
