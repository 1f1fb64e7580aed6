"""Automata on the command line: ``regex:PATTERN``, ``machine.fst``, ``machine.py:name``."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from thereexists.cli._output import console, print_facts, print_json, say
from thereexists.cli.kinds import Commands, RunRequest, print_claim
from thereexists.core.authors_word import as_its_author_says
from thereexists.core.errors import InvalidInput

REGEX = "regex:"
FILES = (".fst", ".att")
MOST_SHOWN = 32  # positions of a trace on a terminal


class AutomatonCommands(Commands):
    takes: ClassVar = {
        "run": ("input", "out", "dtype", "force"),
        "certify": ("function", "dry_run"),
        "verify": ("function", "dry_run"),
    }
    because = "the network of an automaton is proved in one go, right on every string or not"

    def run(self, witness: Any, asked: RunRequest, as_json: bool) -> None:
        """One string, or a .txt file with one a line."""
        if asked.out is not None:
            raise InvalidInput("--out writes arrays of numbers; a witness of an automaton prints its answers.")
        words = _words(witness, asked.text)
        answers = witness(words)
        if as_json:
            states = [[int(q) for q in row] for row in witness.states(words)]
            output = answers if witness.automaton.writes else answers.tolist()
            print_json({"output": output, "states": states, "dtype": witness.describe()["dtype"]})
            return
        for told in [_told(witness, answer) for answer in answers]:
            say(told)

    def show(self, folder: Path, witness: Any, record: dict[str, Any], as_json: bool) -> None:
        summary = {"witness": str(folder), **witness.describe()}
        summary["as_its_author_says"] = ["origin", "certified", "gap", "assumptions", "states_before", "safe"]
        summary["table"] = witness.automaton.table.tolist()
        print_json(summary) if as_json else print_summary(summary)

    def trace(self, witness: Any, text: str, as_json: bool) -> None:
        words = _words(witness, text)
        if len(words) != 1:
            raise InvalidInput(f"trace takes one string; {text} holds {len(words)}.")
        traced = witness.trace(words)
        if as_json:
            print_json(traced.describe())
            return
        console().print(self.traced(traced))
        if len(traced.word) > MOST_SHOWN:
            say(f"(the first {MOST_SHOWN} of {len(traced.word)} positions; --json has all)")
        say(_told(witness, traced.answer))

    def traced(self, traced: Any) -> Any:
        """The table of a trace: a column for each position."""
        from rich.table import Table

        shown = traced.blocks[0][1 : MOST_SHOWN + 1]
        table = Table("", *(f"{held.position}" for held in shown), box=None)
        table.add_row("symbol", *(str(symbol) for symbol in traced.word[:MOST_SHOWN]))
        for t, block in enumerate(traced.blocks):
            name = "embedding" if t == 0 else f"block {t}"
            held = block[1 : MOST_SHOWN + 1]
            table.add_row(f"{name}: symbols", *(f"{h.first}–{h.last}" for h in held))
            table.add_row("  map", *(" ".join("·" if r is None else str(r) for r in h.map) for h in held))
        table.add_row("state", *(str(q) for q in traced.states[1 : MOST_SHOWN + 1]))
        return table

    def certified(self, certificate: Any, as_json: bool) -> None:
        print_claim(certificate, as_json)


AUTOMATON = AutomatonCommands()


@dataclass(frozen=True)
class AutomatonRequest:
    """``build regex:…``: what is named, its alphabet if it was said, n, the dtype, the construction, where to write."""

    reference: str
    alphabet: str | None
    n: int | None
    dtype: str | None
    construction: str | None = None
    out: Path | None = None

    def options(self) -> dict[str, Any]:
        """Of ``te.build`` and ``te.plan``."""
        chosen = {} if self.construction is None else {"construction": self.construction}
        return {"n": _length(self), "dtype": self.dtype, **chosen}


def is_automaton(reference: str, alphabet: str | None, n: int | None) -> bool:
    """A pattern, a file of transitions, or a name of a Python file that says what its alphabet is. Nothing is run.

    A program over symbols may name its alphabet too; it states its own length, so it comes without ``n``.
    """
    if reference.startswith(REGEX) or Path(reference).suffix in FILES:
        return True
    if ".py:" not in reference:
        if alphabet is not None:
            raise InvalidInput("--alphabet is for automata: regex:PATTERN, a .fst file or file.py:name.")
        return False
    return alphabet is not None or _says_alphabet(reference, n)


def refuse_others(**given: Any) -> None:
    """Options of functions that were given for an automaton."""
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(
                f"--{name.replace('_', '-')} is for functions; an automaton takes --n, --alphabet, --dtype, "
                "--construction and --out."
            )


def plan(asked: AutomatonRequest, as_json: bool) -> None:
    from thereexists.constructions.build import plan as planned

    automaton = the_automaton(asked)
    described = planned(automaton, **asked.options()).describe()
    summary = {"automaton": asked.reference, "blocks": described["layers"]["total"], **described}
    print_json(summary) if as_json else print_summary(summary)


def stock_claim(asked: AutomatonRequest) -> Any:
    """What a stock checkpoint of the automaton claims: its maps, and nothing of the network that ``build`` makes."""
    from thereexists.constructions.automata.build import Doubling

    return Doubling(n=_length(asked)).lowerable(the_automaton(asked))


def build(asked: AutomatonRequest, as_json: bool) -> None:
    """Build, prove and save."""
    from thereexists.constructions.build import build as construct
    from thereexists.core import storage

    out = asked.out or Path("automaton-witness")
    with storage.reserved(out):
        witness = construct(the_automaton(asked), **asked.options())
        witness.save(out)
    summary = {"witness": str(out), **witness.describe()}
    if as_json:
        print_json(summary)
        return
    print_summary(summary)
    AUTOMATON.certified(witness.certificate, as_json)


def the_automaton(asked: AutomatonRequest) -> Any:
    """The automaton that is named."""
    from thereexists import automata

    reference, symbols = asked.reference, asked.alphabet
    if reference.startswith(REGEX):
        pattern = reference.removeprefix(REGEX)
        return automata.regex(pattern) if symbols is None else automata.regex(pattern, _symbols(symbols))
    if Path(reference).suffix in FILES:
        if symbols is not None:
            raise InvalidInput("A file of transitions names its symbols itself: leave --alphabet out.")
        return automata.from_att(reference)
    return _from_python(reference, symbols)


def _from_python(reference: str, symbols: str | None) -> Any:
    """An automaton by name, or a step function whose file says ``alphabet`` and ``start``."""
    from thereexists import automata
    from thereexists.core.user_file import read_user_file

    file, name = read_user_file(reference, "automaton")
    module = file.run()
    found = getattr(module, name, None)
    if isinstance(found, automata.Automaton):
        return found
    path = reference.rpartition(":")[0]
    if not callable(found):
        raise InvalidInput(f"{path} has no automaton and no step function {name!r}.")
    if not hasattr(module, "start"):
        raise InvalidInput(f"{path} must define the start state of {name!r}: start = …, beside it.")
    alphabet = _symbols(symbols) if symbols is not None else module.alphabet
    accept, writes = getattr(module, "accept", None), bool(getattr(module, "writes", False))
    return automata.from_function(found, module.start, alphabet, accept, writes)


def _says_alphabet(reference: str, n: int | None) -> bool:
    """Whether a file has ``alphabet = …``, or makes the name from ``automata``: read, not run."""
    from thereexists.core.user_file import read_user_file

    file, name = read_user_file(reference, "function")
    try:
        tree = ast.parse(file.source)
    except (SyntaxError, ValueError):
        return False  # whoever runs it will say so
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        parts = (part for target in targets for part in ast.walk(target))  # a, b = … names two
        names = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        value = getattr(node, "value", None)
        if ("alphabet" in names and n is not None) or (
            name in names and value is not None and "automata" in ast.unparse(value)
        ):
            return True
    return False


def _symbols(text: str) -> list[str]:
    """Characters, or words between spaces."""
    return text.split() if " " in text.strip() else list(text)


def _length(asked: AutomatonRequest) -> int:
    if asked.n is None:
        raise InvalidInput("How many symbols may a string have? Say it with --n.")
    return asked.n


def _words(witness: Any, text: str) -> list[Any]:
    from thereexists.cli._input import read_strings

    return read_strings(text, witness.automaton.alphabet)


def _told(witness: Any, answer: Any) -> str:
    from thereexists.cli._input import written_alike

    if witness.automaton.writes:
        alike = written_alike(witness.automaton.output_alphabet)
        unclear = next((str(symbol) for symbol in answer if str(symbol) in alike), None)
        if unclear is not None:
            raise InvalidInput(f"A number and a text are both written {unclear!r} in this answer; --json shows which.")
        plain = all(len(str(symbol)) <= 1 for symbol in witness.automaton.output_alphabet)
        return ("" if plain else " ").join(str(symbol) for symbol in answer)
    return "accepted" if answer else "rejected"


def print_summary(summary: dict[str, Any]) -> None:
    from thereexists.automata.automaton import expression_of

    stated = set(summary.get("as_its_author_says", ()))
    before = f"{summary['states_before']} before minimising"
    pattern = expression_of(summary.get("origin") or {}) or summary.get("automaton")
    heads = "one head" if summary["heads"] == 1 else f"{summary['heads']} heads"
    dtypes = ", ".join(summary.get("dtypes") or summary["safe"])
    lines = {
        "witness": summary.get("witness"),
        "automaton": pattern and (as_its_author_says(pattern) if "origin" in stated else pattern),
        "states": f"{summary['states']} ({as_its_author_says(before) if 'states_before' in stated else before}), "
        f"{summary['symbols']} symbols",
        "strings": f"at most {summary['n']:,} symbols",
        **_method_in_words(summary),
        "network": f"{summary['blocks']} blocks, d_model {summary['d_model']}, {heads} of size "
        f"{summary['head_size']}, width {summary['width']:,}, {summary['parameters']:,} parameters",
        "dtypes": as_its_author_says(dtypes) if "safe" in stated else dtypes,
    }
    if stated:
        lines["certified"] = as_its_author_says(summary["certified"]) if summary["certified"] else "no"
    print_facts(lines)


def _method_in_words(summary: dict[str, Any]) -> dict[str, str]:
    """How it works, by what the summary holds."""
    if "counters" in summary:
        counted = "one counter" if summary["counters"] == 1 else f"{summary['counters']} counters"
        return {"counting": f"a commutative group: {counted}, two blocks at every length"}
    rows = "one for each pair of states" if summary["maps"] == "states" else "one for each map of a string"
    return {"maps": f"{summary['map_rows']} rows, {rows}"}
