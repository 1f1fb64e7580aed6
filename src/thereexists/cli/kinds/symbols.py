"""Programs over symbols on the command line: strings in, strings out."""

from __future__ import annotations

from typing import Any

from thereexists.cli._output import print_json, say
from thereexists.cli.kinds import RunRequest, print_claim, print_stated
from thereexists.cli.kinds.programs import ProgramCommands, named, print_trace
from thereexists.core.authors_word import shortened
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import counted

_SHOWN = 60  # characters of an alphabet


class SymbolCommands(ProgramCommands):
    because = "the network of a program over symbols is proved in one go, right on every string or not"
    stated = (*ProgramCommands.stated, "certified")

    def run(self, witness: Any, asked: RunRequest, as_json: bool) -> None:
        """One string, or a .txt file with one a line."""
        if asked.out is not None:
            raise InvalidInput("--out writes arrays of numbers; a program over symbols prints its strings.")
        answers = witness(_strings(witness, asked.text))
        if as_json:
            told = witness.describe()
            stated = {"certified": told["certified"], "as_its_author_says": ["certified"]}
            print_json({"output": answers, "dtype": told["dtype"], **stated})
            return
        for answer in answers:
            say(_told(answer))

    def trace(self, witness: Any, text: str, as_json: bool) -> None:
        strings = _strings(witness, text)
        if len(strings) != 1:
            raise InvalidInput(f"trace takes one string; {text} holds {len(strings)}.")
        traced = witness.trace(strings)
        print_trace(traced, as_json)
        if not as_json:
            say(_told(traced.answer))

    def summarise(self, summary: dict[str, Any]) -> None:
        stated = "as_its_author_says" in summary  # of a file: `verify` checks it
        least, most = summary["lengths"]
        certified = summary["certified"] or "nothing: there is no certificate of this program"
        why = {name: f"not certified: {reason}" for name, reason in summary["reasons"].items()}
        lines = {
            "witness": summary.get("witness"),
            "program": named(summary) or f"its last operation is {summary['operation']}",
            "strings": f"{most:,} symbols" if least == most else f"{least:,} to {most:,} symbols",
            "alphabet": _listed(summary["alphabet"]),
            "writes": _listed(summary["output_alphabet"]),
            "network": f"{counted(summary['blocks'], 'block')}, d_model {summary['d_model']}, "
            f"at most {counted(summary['heads'], 'head')} of size {summary['head_size']}, width {summary['width']}, "
            f"{summary['parameters']:,} parameters",
            "certified" if stated else "proved": certified,
            **why,
        }
        print_stated(lines, stated, {"program", "certified", *why}, summary["assumptions"])

    def certified(self, certificate: Any, as_json: bool) -> None:
        print_claim(certificate, as_json)


SYMBOLS = SymbolCommands()


def _strings(witness: Any, text: str) -> list[Any]:
    from thereexists.cli._input import read_strings

    return read_strings(text, witness.alphabets.alphabet)


def _told(answer: Any) -> str:
    return answer if isinstance(answer, str) else " ".join(answer)


def _listed(alphabet: list[str]) -> str:
    text = ("" if all(len(symbol) == 1 for symbol in alphabet) else " ").join(alphabet)
    return f"{len(alphabet)} symbols: {shortened(text, _SHOWN)}"
