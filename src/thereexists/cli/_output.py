"""What every command shares: the ``--json`` option, one JSON object on stdout, a console that knows pipes, a bar."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on stdout.")]


def print_json(payload: dict[str, Any]) -> None:
    """One JSON object on stdout. Infinities and NaN are not JSON: they become null."""
    print(json.dumps(_plain(payload), ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def console():
    """A rich console for people; plain text when piped."""
    from rich.console import Console

    return Console(highlight=False)


@contextmanager
def progress_bar(label: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr with rate and time left, for people; nothing when stderr is piped or JSON is asked for.

    ``progress(done, total)`` moves it; a job that never calls it shows that it is alive, and for how long.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    errors = Console(stderr=True)
    if quiet or not errors.is_terminal:
        yield lambda done, total: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(label, total=None, rate="")

        def progress(done: int, total: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, total=total, rate="" if speed is None else f"{speed:,.0f}/s")

        yield progress
