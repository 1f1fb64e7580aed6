"""Programs over the reals on the command line; what builds one over symbols is here, too."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

from thereexists.cli._output import bold, console, print_facts, print_json
from thereexists.cli.kinds import Commands, RunRequest, print_numbers, print_stated, save_array
from thereexists.core.authors_word import as_its_author_says
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import counted, in_full
from thereexists.core.rounded_figures import rounded_up


class ProgramCommands(Commands):
    stated: tuple[str, ...] = (
        "name", "operation", "box", "safe", "bound", "bound_dtype", "bounds", "parts", "reasons", "assumptions",
        "places",
    )  # by the author of a folder  # fmt: skip
    takes: ClassVar = {
        "run": ("input", "out", "dtype", "force"),
        "certify": ("function", "dry_run"),
        "verify": ("function", "dry_run"),
    }
    because = "the network of a program is run in one way, and proved in one go, in the sup norm"

    def run(self, witness: Any, asked: RunRequest, as_json: bool) -> None:
        from thereexists.cli._input import read_sequences

        X, _ = witness.checked_input(read_sequences(asked.text, _length(witness, asked.text), witness.d))
        Y = witness.run(X)
        if asked.out is not None:
            save_array(asked.out, Y)
        if as_json:
            from thereexists.core.dtypes import dtype_name

            dtype = dtype_name(witness.network.dtype)
            bound = witness.describe()["bounds"].get(dtype)
            print_json({"output": Y, "dtype": dtype, "bound": bound, "as_its_author_says": ["bound"]})
        else:
            print_numbers(Y)

    def summarise(self, summary: dict[str, Any]) -> None:
        """What was built, or is in a folder, for people."""
        print_summary(summary)

    def show(self, folder: Path, witness: Any, record: dict[str, Any], as_json: bool) -> None:
        """Sizes, bounds, and which operation lives in which block, head and row."""
        summary = {"witness": str(folder), **witness.describe(), "places": list(witness.places)}
        summary["as_its_author_says"] = list(self.stated)
        if as_json:
            print_json(summary)
            return
        self.summarise(summary)
        print_places(witness.places)

    def trace(self, witness: Any, text: str, as_json: bool) -> None:
        from thereexists.cli._input import read_sequences

        X = read_sequences(text, _length(witness, text), witness.d)
        if len(X) != 1:
            raise InvalidInput(f"trace takes one sequence; this input holds {len(X)}.")
        traced = witness.trace(X[0])
        print_trace(traced, as_json)

    def certified(self, certificate: Any, as_json: bool) -> None:
        if as_json:
            print_json(certificate.describe())
            return
        proved = [
            bold(f"sup norm ≤ {rounded_up(bound['bound'], 6)} in {name}") for name, bound in certificate.bounds.items()
        ]
        print_facts({"proved": proved, "assuming": list(certificate.assumptions)})


PROGRAM = ProgramCommands()


def print_places(places: Any) -> None:
    from rich.table import Table

    table = Table("block", "half", as_its_author_says("operation → row"), box=None)
    for place in places:
        heads: dict[str, list[str]] = {}
        for name, row in place["made"]:
            heads.setdefault(name, []).append(str(row))
        made = ", ".join(
            f"{name} → {'row' if len(rows) == 1 else 'rows'} {' '.join(rows)}" for name, rows in heads.items()
        )
        table.add_row(str(place["block"] or "—"), place["half"], made)
    console().print(table)


def print_trace(traced: Any, as_json: bool) -> None:
    """The values are the network's; what the rows are called is what the record calls them."""
    from rich.table import Table

    if as_json:
        print_json({**traced.describe(), "as_its_author_says": ["steps.operation"]})
        return
    table = Table("where", "row", as_its_author_says("operation"), "values", box=None)
    for step in traced.steps:
        shown = " ".join(f"{value:.4g}" for value in step.values[:16]) + (" …" if len(step.values) > 16 else "")
        table.add_row(step.where, str(step.row), step.operation, shown)
    console().print(table)


def is_program(target: str, n: int | None) -> bool:
    """A program states its own length; a function needs --n."""
    return n is None and ".py:" in target


def plan(reference: str, epsilon: float | None, dtype: str | None, as_json: bool) -> None:
    """Sizes and bounds, before anything is written."""
    from thereexists.constructions.build import build
    from thereexists.constructions.program.files import from_file

    witness = build(from_file(reference), **_said(epsilon=epsilon, dtype=dtype))
    summary = {"program": reference, **witness.describe()}
    print_json(summary) if as_json else witness.kind.find("commands").summarise(summary)


def _said(**options: Any) -> dict[str, Any]:
    """What was said: a program over symbols has no epsilon."""
    return {name: value for name, value in options.items() if value is not None}


@dataclasses.dataclass(frozen=True)
class ProgramRequest:
    """``build file.py:name``."""

    reference: str
    epsilon: float | None
    dtype: str | None
    out: Path | None


def build(asked: ProgramRequest, as_json: bool) -> None:
    from thereexists.constructions.build import build as construct
    from thereexists.constructions.program.files import from_file
    from thereexists.core import storage

    out = asked.out or Path(f"{asked.reference.rpartition(':')[2]}-witness")
    program = from_file(asked.reference)
    with storage.reserved(out):
        witness = construct(program, **_said(epsilon=asked.epsilon, dtype=asked.dtype))
        witness = dataclasses.replace(witness, name=asked.reference.rpartition(":")[2])
        witness.save(out)
    summary = {"witness": str(out), "program": asked.reference, **witness.describe()}
    print_json(summary) if as_json else witness.kind.find("commands").summarise(summary)


def _length(witness: Any, text: str) -> int:
    """How many tokens were written, where a program allows fewer than n; files hold sequences of n."""
    numbers = len(text.replace(",", " ").replace(";", " ").split())
    shorter = witness.shorter and Path(text).suffix not in (".npy", ".csv") and numbers % witness.d == 0
    return min(witness.n, max(1, numbers // witness.d)) if shorter else witness.n


def named(summary: dict[str, Any]) -> str | None:
    """The program as its builder asked for it, or by the name in a folder."""
    return summary.get("program") or summary["name"]


def print_summary(summary: dict[str, Any]) -> None:
    bounds, stated = summary["bounds"], "as_its_author_says" in summary  # of a file: `verify` checks it
    parts = ", ".join(f"{name} {rounded_up(value, 4)}" for name, value in summary["parts"].items())
    proved = "nothing: there is no certificate of this program"
    if summary["bound"] is not None:
        proved = f"sup norm ≤ {rounded_up(summary['bound'], 6)} in {summary['bound_dtype']}, rounding included"
    lines = {
        "witness": summary.get("witness"),
        "program": f"{named(summary) or summary['operation']}, n = {summary['n']}, "
        f"d = {summary['d']}, inputs from {in_full(summary['box'][0])} to {in_full(summary['box'][1])}",
        "network": f"{counted(summary['blocks'], 'block')}, d_model {summary['d_model']}, "
        f"at most {counted(summary['heads'], 'head')} of size {summary['head_size']}, width {summary['width']}, "
        f"{summary['parameters']:,} parameters",
        "certified" if stated else "proved": proved,
        "parts": parts,
        **{name: f"≤ {rounded_up(bound, 6)}" for name, bound in bounds.items()},
        **{name: f"not certified: {reason}" for name, reason in summary["reasons"].items()},
    }
    print_stated(lines, stated, {"program", "certified", "parts", *bounds, *summary["reasons"]}, summary["assumptions"])
