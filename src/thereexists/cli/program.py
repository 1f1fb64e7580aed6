"""What plan, build, run, show, trace and certify do with programs over the reals (file.py:name, no --n)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thereexists.authors_word import as_its_author_says
from thereexists.cli._output import console, print_facts, print_json
from thereexists.errors import InvalidInput


def is_program(target: str, n: int | None) -> bool:
    """A program states its own length; a function needs --n."""
    return n is None and ".py:" in target


def load_program(reference: str) -> Any:
    """The module-level program ``name`` of ``file.py:name``."""
    from thereexists.program.files import from_file

    return from_file(reference)


def plan(reference: str, epsilon: float | None, dtype: str | None, as_json: bool) -> None:
    """Sizes and bounds, before anything is written."""
    from thereexists.build import build

    described = build(load_program(reference), epsilon=epsilon, dtype=dtype).describe()
    summary = {"program": reference, **described}
    print_json(summary) if as_json else print_summary(summary)


def build(
    reference: str, epsilon: float | None, dtype: str | None, certify: bool, out: Path | None, as_json: bool
) -> None:
    from thereexists import storage
    from thereexists.build import build as construct

    if not certify:
        raise InvalidInput(
            "A program is always certified: that is what says what the network does. Leave --no-certify out."
        )
    out = out or Path(f"{reference.rpartition(':')[2]}-witness")
    program = load_program(reference)
    storage.check_writable(out)
    witness = construct(program, epsilon=epsilon, dtype=dtype)
    witness.save(out)
    summary = {"witness": str(out), "program": reference, **witness.describe()}
    print_json(summary) if as_json else print_summary(summary)


def run(witness: Any, text: str, out: Path | None, as_json: bool) -> None:
    import numpy as np

    from thereexists.cli._input import read_sequences
    from thereexists.cli.witness import save_array

    X, _ = witness.checked_input(read_sequences(text, _length(witness, text), witness.d))
    Y = witness.run(X)
    if out is not None:
        save_array(out, Y)
    if as_json:
        dtype = str(witness.network.dtype).removeprefix("torch.")
        bound = witness.certificate and witness.certificate.bounds[dtype]["bound"]
        print_json({"output": Y, "dtype": dtype, "bound": bound, "as_its_author_says": ["bound"]})
        return
    for sequence in Y:
        print("; ".join(" ".join(f"{value:.6g}" for value in np.atleast_1d(token)) for token in sequence))


def _length(witness: Any, text: str) -> int:
    """How many tokens were written, where a program allows fewer than n; files hold sequences of n."""
    numbers = len(text.replace(",", " ").replace(";", " ").split())
    shorter = witness.shorter and Path(text).suffix not in (".npy", ".csv") and numbers % witness.d == 0
    return min(witness.n, max(1, numbers // witness.d)) if shorter else witness.n


def show(folder: Path, witness: Any, as_json: bool) -> None:
    """Sizes, bounds, and which operation lives in which block, head and row."""
    stated = ["bound", "bounds", "parts", "reasons", "assumptions", "places"]
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


def trace(witness: Any, text: str, as_json: bool) -> None:
    """Every value that some operation leaves in a row, after the half block that makes it."""
    from thereexists.cli._input import read_sequences
    from thereexists.program.tracing import trace as make

    X, _ = witness.checked_input(read_sequences(text, _length(witness, text), witness.d))
    if len(X) != 1:
        raise InvalidInput(f"trace takes one sequence; this input holds {len(X)}.")
    steps = make(witness, X[0])
    if as_json:
        print_json({"input": X[0], "steps": [vars(step) for step in steps]})
        return
    from rich.table import Table

    table = Table("where", "row", as_its_author_says("operation"), "values", box=None)
    for step in steps:
        shown = " ".join(f"{value:.4g}" for value in step.values[:16]) + (" …" if len(step.values) > 16 else "")
        table.add_row(step.where, str(step.row), step.operation, shown)
    console().print(table)


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
