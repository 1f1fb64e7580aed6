"""``thereexists mixers``: what can take the place of attention, and what it costs."""

from __future__ import annotations

from typing import Annotated

import typer

from thereexists.cli._output import AsJson, console, print_json

app = typer.Typer()

Length = Annotated[int, typer.Option("--n", min=1, help="Length of the sequence that the cost per token is for.")]


@app.command()
def mixers(n: Length = 128, as_json: AsJson = False) -> None:
    """Attention and its alternatives: formula, parameters at BERT-base size, cost per token.

    Example: thereexists mixers --n 512
    """
    rows = _rows(n)
    if as_json:
        from dataclasses import asdict

        print_json({"n": n, "size": "base", "mixers": [asdict(row) for row in rows]})
        return
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for heading in ("mixer", "parameters", "MFLOPs", "equivariant", "fixed length", "FLOPs per block"):
        right = heading in ("parameters", "MFLOPs", "FLOPs per block")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        table.add_row(
            row.name,
            f"{row.parameters_base / 1e6:.1f}M",
            f"{row.flops_per_token / 1e6:.1f}",
            "yes" if row.permutation_equivariant else "no",
            "yes" if row.fixed_length else "no",
            row.cost,
        )
    out = console()
    out.print(table)
    out.print()
    for row in rows:
        out.print(f" {row.name:<10} {row.formula}", markup=False)
    rest = (rows[0].model_flops_per_token - rows[0].flops_per_token) / 1e6
    out.print()
    out.print(
        f"At BERT-base size, pooler included. MFLOPs: of the twelve mixers, forward, per token at length {n}; "
        f"the rest of the model adds {rest:.1f} to each. Hybrid: c = 3."
    )


def _rows(n: int):
    from thereexists.core.errors import InvalidInput

    try:
        from thereexists.mixers import mixer_table
    except ImportError as error:
        raise InvalidInput(
            f"The mixers need the package '{error.name}', which is not installed; "
            "install them with: pip install 'thereexists[train]'."
        ) from None
    return mixer_table(n)
