"""``thereexists experiment … --dry-run``: what an experiment will take of a device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from thereexists.cli._output import console, print_json

if TYPE_CHECKING:
    from thereexists.experiments.grid import Run


def show_forecast(runs: list[Run], out: Path, on: str | None, json: bool) -> None:
    """A line for each model of the table, its seeds together, and the sum."""
    from rich.table import Table

    from thereexists.experiments.forecast import device_of, forecast, known_speeds, sentence
    from thereexists.experiments.runner import done_before

    known = known_speeds(out)
    device = device_of(known, on)
    made = forecast(runs, known, device, done_before(runs, out))
    if json:
        print_json({"device": device, "runs": [vars(one) for one in made], "summary": sentence(made, device, known)})
        return
    table = Table()
    for column in ("run", "runs to do", "tokens", "tokens/s", "device hours"):
        table.add_column(column, overflow="fold", justify="left" if column == "run" else "right")
    for name in dict.fromkeys(one.name for one in made):
        mine = [one for one in made if one.name == name]
        todo, first = [one for one in mine if not one.done], mine[0]
        seconds = [one.seconds for one in todo if one.seconds is not None]
        table.add_row(
            name,
            str(len(todo)),
            "–" if first.tokens is None else f"{first.tokens / 1e6:,.4g}M",
            "–" if first.tokens_per_second is None else f"{first.tokens_per_second / 1e3:,.0f}k",
            f"{sum(seconds) / 3600:.2f}" if len(seconds) == len(todo) else "not known",
        )
    console().print(table)
    console().print(sentence(made, device, known))
