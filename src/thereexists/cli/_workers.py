"""Options of every command that can be spread over processes or machines, and the progress of a whole job."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thereexists.cli._output import Lines, console, drawn, print_facts, print_json
from thereexists.core.plain_text import visible

if TYPE_CHECKING:
    from thereexists.parallel import Workers


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Who computes, which never changes what comes out."""

    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; default: one per core.")] = None
    pool: Annotated[str, typer.Option("--pool", help="loky (processes of this machine) or ray (a cluster).")] = "loky"
    address: Annotated[
        str | None,
        typer.Option(
            "--address", help="The address of a running Ray cluster, or auto; by default a local one is started."
        ),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would cost: chunks, memory, hours.")] = (
        False
    )

    @contextmanager
    def hired(self, label: str, quiet: bool) -> Iterator[Workers]:
        """The workers; unless ``quiet``, their progress on stderr: a bar, or a line now and then in a log."""
        from thereexists.parallel import Workers

        bare = Workers(self.workers, self.pool, self.address)
        if quiet:
            yield bare
            return
        with _shown(label) as report:
            yield dataclasses.replace(bare, report=report)


@contextmanager
def _shown(label: str) -> Iterator[Callable[[Any], object]]:
    from thereexists.functions.asking import listening

    errors = console(stderr=True)
    if not errors.is_terminal:
        lines = Lines(label)
        with listening(lines.answered):
            yield lambda state: lines.tell(lambda: f"{state.cells_done / max(state.cells, 1):.1%}, {describe(state)}")
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    plain = [TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[state]}")]
    columns = (plain[0], BarColumn(), TaskProgressColumn(), plain[1])
    bar = Bar(*columns, console=errors, transient=True)
    task = bar.add_task(visible(label), total=None, state="")

    def report(state: Any) -> None:
        bar.update(
            task,
            description=visible(label),
            completed=state.cells_done,
            total=state.cells,
            state=describe(state),
        )

    def answered(what: str, done: int, total: int) -> None:
        told = f"{done:,}/{total:,} sequences"
        bar.update(task, description=visible(f"{label}: {what}"), completed=done, total=total, state=told)

    with drawn(bar), listening(answered):
        yield report


def describe(state: Any) -> str:
    """``12/80 chunks, 1,180 cells/s, 0:04:10 left``"""
    left = "" if state.seconds_left is None else f", {_clock(state.seconds_left)} left"
    return f"{state.chunks_done:,}/{state.chunks:,} chunks, {state.cells_per_second:,.0f} cells/s{left}"


def print_estimate(estimate: Any, as_json: bool) -> None:
    if as_json:
        print_json(estimate.record())
        return
    rows = {
        "cells": f"{estimate.cells:,} in {estimate.blocks:,} blocks",
        "chunks": f"{estimate.chunks:,} of up to {estimate.chunk_cells:,} cells",
        "memory": f"{estimate.worker_bytes / 2**20:,.0f} MiB per worker",
        "cost": f"{estimate.seconds_per_cell * 1e3:.3g} ms per cell (one block measured), "
        f"{estimate.core_hours:.3g} core-hours",
        "time": f"{_clock(3600 * estimate.hours)} with {estimate.workers} workers",
    }
    print_facts(rows)


def _clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
