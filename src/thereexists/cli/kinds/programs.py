"""Programs over the reals on the command line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

from thereexists.cli._output import console, print_facts, print_json, styled
from thereexists.cli.kinds import Commands, RunRequest, print_numbers, save_array
from thereexists.core.authors_word import as_its_author_says
from thereexists.core.errors import InvalidInput


class ProgramCommands(Commands):
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

    def show(self, folder: Path, witness: Any, record: dict[str, Any], as_json: bool) -> None:
        """Sizes, bounds, and which operation lives in which block, head and row."""
        stated = ["safe", "bound", "bound_dtype", "bounds", "parts", "reasons", "assumptions", "places"]
        summary = {"witness": str(folder), **witness.describe(), "places": list(witness.places)}
        summary["as_its_author_says"] = stated
        if as_json:
            print_json(summary)
            return
        print_summary(summary)
        from rich.table import Table

        table = Table("block", "half", as_its_author_says("operation → row"), box=None)
        for place in witness.places:
            heads: dict[str, list[str]] = {}
            for name, row in place["made"]:
                heads.setdefault(name, []).append(str(row))
            made = ", ".join(
                f"{name} → {'row' if len(rows) == 1 else 'rows'} {' '.join(rows)}" for name, rows in heads.items()
            )
            table.add_row(str(place["block"] or "—"), place["half"], made)
        console().print(table)

    def trace(self, witness: Any, text: str, as_json: bool) -> None:
        from thereexists.cli._input import read_sequences

        X = read_sequences(text, _length(witness, text), witness.d)
        if len(X) != 1:
            raise InvalidInput(f"trace takes one sequence; this input holds {len(X)}.")
        traced = witness.trace(X[0])
        if as_json:
            print_json(traced.describe())
            return
        from rich.table import Table

        table = Table("where", "row", as_its_author_says("operation"), "values", box=None)
        for step in traced.steps:
            shown = " ".join(f"{value:.4g}" for value in step.values[:16]) + (" …" if len(step.values) > 16 else "")
            table.add_row(step.where, str(step.row), step.operation, shown)
        console().print(table)

    def certified(self, certificate: Any, as_json: bool) -> None:
        if as_json:
            print_json(certificate.describe())
            return
        for name, bound in certificate.bounds.items():
            console().print(styled(("rigorous", "bold"), f"  sup norm ≤ {bound['bound']:.6g} in {name}"))
        for assumption in certificate.assumptions:
            console().print(f"assuming that {assumption}", markup=False)


PROGRAM = ProgramCommands()


def is_program(target: str, n: int | None) -> bool:
    """A program states its own length; a function needs --n."""
    return n is None and ".py:" in target


def plan(reference: str, epsilon: float | None, dtype: str | None, as_json: bool) -> None:
    """Sizes and bounds, before anything is written."""
    from thereexists.constructions.build import build
    from thereexists.constructions.program.files import from_file

    described = build(from_file(reference), epsilon=epsilon, dtype=dtype).describe()
    summary = {"program": reference, **described}
    print_json(summary) if as_json else print_summary(summary)


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
        witness = construct(program, epsilon=asked.epsilon, dtype=asked.dtype)
        witness.save(out)
    summary = {"witness": str(out), "program": asked.reference, **witness.describe()}
    print_json(summary) if as_json else print_summary(summary)


def _length(witness: Any, text: str) -> int:
    """How many tokens were written, where a program allows fewer than n; files hold sequences of n."""
    numbers = len(text.replace(",", " ").replace(";", " ").split())
    shorter = witness.shorter and Path(text).suffix not in (".npy", ".csv") and numbers % witness.d == 0
    return min(witness.n, max(1, numbers // witness.d)) if shorter else witness.n


def print_summary(summary: dict[str, Any]) -> None:
    bounds, stated = summary["bounds"], "as_its_author_says" in summary  # of a file: `verify` checks it
    parts = ", ".join(f"{name} {value:.3g}" for name, value in summary["parts"].items())
    proved = "nothing: there is no certificate"
    if summary["bound"] is not None:
        proved = f"sup norm ≤ {summary['bound']:.6g} in {summary['bound_dtype']}, rounding included ({parts})"
    lines = {
        "witness": summary.get("witness"),
        "program": f"{summary.get('program') or summary['operation']}, n = {summary['n']}, d = {summary['d']}, "
        f"inputs from {summary['box'][0]:g} to {summary['box'][1]:g}",
        "network": f"{summary['blocks']} blocks, d_model {summary['d_model']}, at most {summary['heads']} heads "
        f"of size {summary['head_size']}, width {summary['width']}, {summary['parameters']:,} parameters",
        "certified" if stated else "proved": proved,
        **{name: f"≤ {bound:.6g}" for name, bound in bounds.items()},
        **{name: f"not certified: {reason}" for name, reason in summary["reasons"].items()},
    }
    certified = {"certified", *bounds, *summary["reasons"]}
    print_facts(
        {
            key: as_its_author_says(value) if stated and key in certified else value
            for key, value in lines.items()
            if value
        }
    )
    for assumption in summary["assumptions"]:
        words = as_its_author_says(assumption) if stated else assumption
        console().print(f"assuming that {words}", markup=False)
