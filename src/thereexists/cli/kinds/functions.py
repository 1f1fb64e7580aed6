"""Witnesses of functions on the command line: their summary, their stages, a trace, a certificate."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

from thereexists.cli._applies import refuse
from thereexists.cli._output import bold, console, print_facts, print_json
from thereexists.cli.kinds import CREW, Commands, RunRequest, print_numbers, save_array
from thereexists.core.authors_word import as_its_author_says
from thereexists.core.errors import InvalidInput, Obstructed
from thereexists.core.json_files import malformed
from thereexists.core.plain_text import d_of, in_full
from thereexists.core.rounded_figures import in_percent, rounded_down, rounded_up

# Lines of the summary, every one with the entry that it is made of: it is marked where that is the author's word.
_LINES = {"witness": "witness", "target": "target", "network": "layers", "domain": "region", "layers": "layers"}
_LINES |= {"pattern": "pattern", "id bits": "id_bits", "widths": "sizes", "memory units": "sizes"}
_LINES |= {"memory": "memory_bytes", "asked for": "epsilon", "predicted": "error", "measured": "distance"}
_LINES |= {"meaning": "meaning"}

IDS = ("quantise", "context")  # the stages whose columns are read as ids, in steps of the grid


class FunctionCommands(Commands):
    takes: ClassVar = {
        "run": ("input", "out", "dtype", "engine", "domain", "force"),
        "certify": ("p", "function", "domain", "bound", "confidence", "samples", "seed", "dry_run", *CREW),
        "verify": ("function", "domain", "sample", "job", "dry_run", *CREW),
    }
    because = "a witness of a function has no use for it"

    def check_certify(self, witness: Any, target: Any) -> None:
        target = witness.target if target is None else target
        if target.provable:
            refuse("this function is certified cube by cube, not from samples", "bound", "confidence", "samples")
        else:
            refuse("a statistical certificate is made in one process", *CREW)

    def run(self, witness: Any, asked: RunRequest, as_json: bool) -> None:
        from thereexists.cli._input import read_sequences

        X, _ = witness.checked_input(read_sequences(asked.text, witness.grid.n, witness.grid.d))
        Y = witness.run(X, asked.engine)
        if asked.out is not None:
            save_array(asked.out, Y)
        if as_json:
            print_json({"output": Y, "engine": dataclasses.asdict(witness.explain(X, asked.engine))})
        else:
            print_numbers(Y)

    def show(self, folder: Path, witness: Any, record: dict[str, Any], as_json: bool) -> None:
        from thereexists.model.parts import parts_of
        from thereexists.witness.recounted import STATED, counted_again

        with malformed(folder):
            stages = [stage_row(part) for part in parts_of(witness.network)]
            counted = counted_again(witness)
            summary = {
                "witness": str(folder),
                **witness.describe(),
                **counted,
                "package_version": record["package_version"],
                "domain": record["target"].get("domain", [record["target"]["low"], record["target"]["high"]]),
                "origin": record["target"]["origin"],
                "stages": stages,
            }
            summary = with_normalised(summary, witness.target, witness.grid)
            summary[STATED] = [key for key in summary if key not in (*counted, "witness", "stages")]
            if as_json:
                print_json(summary)
                return
            print_witness(summary)
            print_stages(stages)

    def trace(self, witness: Any, text: str, as_json: bool) -> None:
        from thereexists.cli._input import read_sequences

        X = read_sequences(text, witness.grid.n, witness.grid.d)
        if len(X) != 1:
            raise InvalidInput(f"trace takes one sequence; {text} holds {len(X)}.")
        traced = witness.trace(X[0])
        print_json(traced.describe()) if as_json else print_trace(traced)

    def certified(self, certificate: Any, as_json: bool) -> None:
        print_json(described(certificate)) if as_json else print_facts(certificate_lines(certificate))


FUNCTION = FunctionCommands()


def described(certificate: Any) -> dict[str, Any]:
    """A certificate as plain data, with its bound over volume^{1/p} beside it, and what it says of single inputs."""
    return {**certificate.describe(), "normalised": certificate.normalised(), "meaning": certificate.meaning()}


def with_normalised(summary: dict[str, Any], target: Any, grid: Any) -> dict[str, Any]:
    """The summary with its distances over volume^{1/p}, which do not grow with the domain, and what they mean."""
    from thereexists.certificates.ramps import d_p_in_words, off_core_share
    from thereexists.certificates.units import normalised

    def over_volume(size: float | None, p: float) -> float | None:
        if size is None or target.region is not None:  # whose volume is not computed
            return None
        return normalised(size, target.low.tolist(), target.high.tolist(), target.n, p)

    error, distance = summary["error"], summary.get("distance")
    beside = {
        "volume": target.volume,
        "predicted": None if error is None else over_volume(error["total"], error["p"]),
        "measured": None if distance is None else over_volume(distance["estimate"], distance["p"]),
    }
    p = (error or distance or {"p": 1.0})["p"]
    ramps = off_core_share(target.high - target.low, grid) if target.region is None else None
    meaning = d_p_in_words(p, ramps, target.compact_support)
    measured = "" if target.region is None else target.region.measured()
    meaning += f"; {measured}" if measured else ""
    return {**summary, "normalised": beside, "meaning": meaning, **_cubes_of(target, grid)}


def _cubes_of(target: Any, grid: Any) -> dict[str, Any]:
    """Of a domain that is not a box: what it is, and how many cubes of its box may meet it."""
    if target.region is None:
        return {}
    told = {"words": target.region.words(), "cubes": None, "of": grid.N ** (grid.n * grid.d)}
    try:
        return {"region": told | {"cubes": grid.cells}}
    except Obstructed:  # the domain is code that is not here
        return {"region": told}


def epsilon_in_words(certificate: Any, epsilon: float) -> str:
    kept = "is reached" if certificate.keeps_epsilon() else "is not reached: choose a finer grid, or a larger epsilon"
    return f"the requested epsilon = {in_full(epsilon)} {kept}"


def _beside(size: float | None, plain: float) -> str:
    """A normalised distance in words, where it is another number."""
    return "" if size is None or size == plain else f" ({rounded_up(size, 4)} normalised)"


def certificate_lines(certificate: Any) -> dict[str, Any]:
    """What a certificate says, the bound first and on a line of its own: nothing on the page matters more."""
    beside = _beside(certificate.normalised(), certificate.bound)
    bound = f"{d_of(certificate.p)} ≤ {rounded_up(certificate.bound, 6)}{beside}"
    parts = ", ".join(
        f"{name.replace('_', ' ')} {rounded_up(value, 4)}" for name, value in certificate.shares().items()
    )
    proved = certificate.label() == "proved"
    return {
        "proved" if proved else "bound": bold(bound if proved else f"{bound}, {certificate.label()}"),
        "parts": parts,
        "meaning": list(certificate.meaning()),
        "checked": f"{certificate.detail()}; {certificate.float_in_words()}; {certificate.seconds:.1f} s",
        "epsilon": [epsilon_in_words(certificate, asked) for asked in certificate.asked_for()],
        "assuming": list(certificate.assumptions),
    }


def stage_row(part: Any) -> dict[str, Any]:
    return {
        "stage": part.name,
        "layers": part.layers,
        "parameters": part.parameters,
        "range": [part.smallest, part.largest],
    }


def print_stages(stages: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("stage", "layers", "parameters", "smallest non-zero |weight|", "largest |weight|", box=None)
    for row in stages:
        table.add_row(row["stage"], f"{row['layers']:,}", f"{row['parameters']:,}", *map(_short, row["range"]))
    layers, parameters = (sum(row[key] for row in stages) for key in ("layers", "parameters"))
    table.add_row("all", f"{layers:,}", f"{parameters:,}", "", "")
    console().print(table)


def print_witness(summary: dict[str, Any], certificate: Any = None) -> None:
    """The summary, and the certificate below it where there is one: one list, one margin."""
    from thereexists.constructions.faithful.plan import MAX_ID_BITS

    stated = set(summary.get("as_its_author_says", ()))  # of a file: what nobody counted again
    layers, error, distance = summary["layers"], summary["error"], summary.get("distance")
    beside = summary["normalised"]
    sizes = summary.get("sizes")
    prefix = {1: "T", 2: "T_P"}.get(summary["theorem"], "ST")
    h, m, r = (summary.get("class", {"h": 2, "m": 1, "r": 4})[size] for size in "hmr")  # of a plan: what it will be
    pattern = summary.get("pattern")

    def told(key: str, text: str) -> str:
        return as_its_author_says(text) if key in stated else text

    sweeps = f" ({told('sweeps', 'two sweeps')})" if summary.get("sweeps") == 2 else ""
    delta = told("delta", f"delta = 1/{round(1 / summary['delta'])}")
    lines = {
        "witness": summary.get("witness"),
        "target": f"{summary['target']}, n = {summary['n']}, d = {summary['d']}, {delta}",
        "network": f"Theorem {summary['theorem']}, class {prefix}^{{{h},{m},{r}}}, "
        f"{summary['parameters']:,} parameters",
    }
    region = summary.get("region")
    if region is not None:
        met = "" if region["cubes"] is None else f": {region['cubes']:,} of {region['of']:,} cubes may meet it"
        lines["domain"] = f"{region['words']}{met}"
    lines |= (
        _block_lines(summary, sizes)
        if sizes
        else {
            "layers": f"{layers['total']:,} = {_counted(layers)} value{sweeps}",
            "pattern": pattern and _pattern_line(pattern),
            "id bits": f"{summary['id_bits']:.1f} of {MAX_ID_BITS}",
        }
    )
    lines |= {
        "memory": f"{summary['memory_bytes'] / 2**20:.1f} MiB to build",
    }
    if summary.get("epsilon") is not None:
        lines["asked for"] = f"{d_of(error['p'])} ≤ {in_full(summary['epsilon'])}"
    if error is not None:
        lines["predicted"] = (
            f"{d_of(error['p'])} ≤ {rounded_up(error['total'], 4)}{_beside(beside['predicted'], error['total'])}: "
            f"grid {rounded_up(error['grid'], 4)}, equal columns {rounded_up(error['equal_columns'], 4)}, "
            f"ramps {rounded_up(error['ramps'], 2)}"
        )
    if distance is not None:
        lines["measured"] = (
            f"{d_of(distance['p'])} = {distance['estimate']:.4g}"
            f"{_beside(beside['measured'], distance['estimate'])}, between {rounded_down(distance['low'], 4)} and "
            f"{rounded_up(distance['high'], 4)} at {in_percent(distance['confidence'])} "
            f"({distance['samples']:,} points)"
        )
    if certificate is None and (error is not None or distance is not None):
        lines["meaning"] = summary.get("meaning")
    made_of = _LINES | dict.fromkeys((sizes or {}).get("dtypes", ()), "sizes")
    said = {
        key: as_its_author_says(value) if value is not None and made_of[key] in stated else value
        for key, value in lines.items()
    }
    print_facts(said if certificate is None else said | certificate_lines(certificate))


def _pattern_line(pattern: dict[str, Any]) -> str:
    n = len(pattern["path"])
    steps = pattern["connections"]
    shown = " and ".join(f"{count:,}" for count in steps) if len(steps) < 5 else f"{min(steps):,} to {max(steps):,}"
    return (
        f"{pattern['name']}, {shown} of {n * n:,} connections, cycle {pattern['cycle']}, path {pattern['path']}, "
        f"receptive depth {pattern['depth']}"
    )


def _counted(layers: dict[str, int]) -> str:
    """The layers of every stage up to the values, and how many are left for those, however many parts they have."""
    before = {name: layers.get(name, 0) for name in ("guard", "quantise", "context", "outside")}
    said = [f"{depth:,} {name} + " for name, depth in before.items() if depth or name in ("quantise", "context")]
    return f"{''.join(said)}{layers['total'] - sum(before.values()):,}"


def _block_lines(summary: dict[str, Any], sizes: dict[str, Any]) -> dict[str, Any]:
    lines = {
        "network": f"Theorem {summary['theorem']}, compact, {summary['layers']['total']} standard blocks, "
        f"d_model {sizes['d_model']}, {summary['parameters']:,} parameters",
        "widths": ", ".join(f"{name} {width:,}" for name, width in sizes["widths"].items()),
        "memory units": f"{sizes['units']:,}" + (f" for {sizes['contexts']:,} contexts" if "contexts" in sizes else ""),
    }
    for name, reason in sizes.get("dtypes", {}).items():
        lines[name] = "safe" if name in sizes["safe"] else f"not safe: {reason}"
    return lines


def print_trace(traced: Any, words: list[str] | None = None) -> None:
    """``words``: the input, where it does not consist of numbers."""
    from rich.table import Table

    table = Table("", *(f"token {j}" for j in range(len(traced.input))), box=None)
    table.columns[0].no_wrap = True
    table.add_row(bold("input"), *(map(_column, traced.input) if words is None else words))
    for name, state in traced.states.items():
        for move in (m for m in traced.moves if m.stage == name):
            cells = [""] * len(traced.input)
            recalled = name.startswith("recall")
            # From here on a column is a value and no longer an id: shown as it stands in the row below.
            after = _column(move.column) if name not in IDS else _short(move.after)
            cells[move.token] = f"{'' if recalled else 'id '}{_short(move.before)} → {after}"
            what = "unit" if recalled else "layer"
            table.add_row(f"  {name} {what} {move.layer}", *cells, style="dim")
        table.add_row(bold(name), *map(_column, state))
        if name in IDS:
            table.add_row("  ids", *map(_short, traced.ids[name]))
    console().print(table)


def _column(column: Any) -> str:
    return " ".join(_short(value) for value in column)


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1e5 and float(value).is_integer() else f"{value:.6g}"
