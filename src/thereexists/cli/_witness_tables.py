"""How the command shows a witness: its summary, its stages, a trace."""

from __future__ import annotations

from typing import Any

from thereexists.authors_word import as_its_author_says
from thereexists.cli._output import bold, console, print_facts

# Lines of the summary, by the entry that they are made of.
_LINES = {"target": "target", "pattern": "pattern", "id bits": "id_bits", "memory": "memory_bytes"}
_LINES |= {"predicted": "error", "measured": "distance"}


def stage_row(name: str, stage: Any) -> dict[str, Any]:
    sizes = [p.detach().abs() for p in stage.parameters()]
    nonzero = [float(s[(s > 0) & s.isfinite()].min()) for s in sizes if bool(((s > 0) & s.isfinite()).any())]
    largest = max((float(s[s.isfinite()].max()) for s in sizes if bool(s.isfinite().any())), default=0.0)
    return {
        "stage": name,
        "layers": stage.depth,
        "parameters": sum(p.numel() for p in stage.parameters()),
        "range": [min(nonzero, default=0.0), largest],
    }


def print_stages(stages: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("stage", "layers", "parameters", "smallest non-zero |weight|", "largest |weight|", box=None)
    for row in stages:
        table.add_row(row["stage"], f"{row['layers']:,}", f"{row['parameters']:,}", *map(_short, row["range"]))
    console().print(table)


def print_witness(summary: dict[str, Any]) -> None:
    stated = set(summary.get("as_its_author_says", ()))  # of a file: what nobody counted again
    layers, error, distance = summary["layers"], summary["error"], summary.get("distance")
    compact = summary["sizes"] if summary["construction"] == "compact" else None
    prefix = {1: "T", 2: "T_P"}.get(summary["theorem"], "ST")
    h, m, r = (summary.get("class", {"h": 2, "m": 1, "r": 4})[size] for size in "hmr")  # of a plan: what it will be
    pattern = summary["pattern"]
    lines = {
        "witness": summary.get("witness"),
        "target": f"{summary['target']}, n = {summary['n']}, d = {summary['d']}, "
        f"delta = 1/{round(1 / summary['delta'])}",
        "network": f"Theorem {summary['theorem']}, class {prefix}^{{{h},{m},{r}}}, "
        f"{summary['parameters']:,} parameters",
    }
    lines |= (
        _compact_lines(summary, compact)
        if compact
        else {
            "layers": f"{layers['total']:,} = {layers.get('quantise', 0):,} quantise + "
            f"{layers.get('context', 0):,} context "
            f"+ {layers['total'] - layers.get('quantise', 0) - layers.get('context', 0):,} value"
            f"{' (two sweeps)' if summary['sweeps'] == 2 else ''}",
            "pattern": pattern
            and f"{pattern['name']}, cycle {pattern['cycle']}, path {pattern['path']}, "
            f"receptive depth {pattern['depth']}",
            "id bits": f"{summary['id_bits']:.1f} of 50",
        }
    )
    lines |= {
        "memory": f"{summary['memory_bytes'] / 2**20:.1f} MiB to build",
    }
    if error is not None:
        lines["predicted"] = (
            f"d_{error['p']:g} ≤ {error['total']:.4g}: grid {error['grid']:.4g}, "
            f"equal columns {error['equal_columns']:.4g}, ramps {error['ramps']:.2g}"
        )
    if distance is not None:
        lines["measured"] = (
            f"d_{distance['p']:g} = {distance['estimate']:.4g}, between {distance['low']:.4g} and "
            f"{distance['high']:.4g} at {distance['confidence']:.0%} ({distance['samples']:,} points)"
        )
    print_facts(
        {
            key: as_its_author_says(value) if value is not None and _LINES.get(key) in stated else value
            for key, value in lines.items()
        }
    )


def _compact_lines(summary: dict[str, Any], sizes: dict[str, Any]) -> dict[str, Any]:
    lines = {
        "network": f"Theorem {summary['theorem']}, compact, {summary['layers']['total']} standard blocks, "
        f"d_model {sizes['d_model']}, {summary['parameters']:,} parameters",
        "widths": ", ".join(f"{name} {width:,}" for name, width in sizes["widths"].items()),
        "memory units": f"{sizes['units']:,}" + (f" for {sizes['contexts']:,} contexts" if "contexts" in sizes else ""),
    }
    for name, reason in sizes.get("dtypes", {}).items():
        lines[name] = "safe" if name in sizes["safe"] else f"not safe: {reason}"
    return lines


def print_trace(traced: Any) -> None:
    from rich.table import Table

    table = Table("", *(f"token {j}" for j in range(len(traced.input))), box=None)
    table.add_row(bold("input"), *map(_column, traced.input))
    for name, state in traced.states.items():
        for move in (m for m in traced.moves if m.stage == name):
            cells = [""] * len(traced.input)
            changed = f"{_short(move.before)} → {_short(move.after)}"
            cells[move.token] = changed if name.startswith("recall") else f"id {changed}"
            what = "unit" if name.startswith("recall") else "layer"
            table.add_row(f"  {name} {what} {move.layer}", *cells, style="dim")
        table.add_row(bold(name), *map(_column, state))
        if name in ("quantise", "context"):
            table.add_row("  ids", *map(_short, traced.ids[name]))
    console().print(table)


def _column(column: Any) -> str:
    return " ".join(_short(value) for value in column)


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1e5 and value == round(value) else f"{value:.6g}"
