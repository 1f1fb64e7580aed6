"""What every command shares: the ``--json`` option, one JSON object on stdout, a console that knows pipes, a bar.

All text becomes output here. No console of ours reads markup: bold and colours are said by ``styled``, never inside a
string, and every string goes through ``visible``. So it does not matter which part of a line came from a file.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from contextvars import ContextVar
from typing import Annotated, Any

import typer

from thereexists.core.plain_text import visible, visible_json

PIPE = 10_000  # columns
EVERY = 30.0  # seconds between two lines where no bar can be drawn
_DRAWN: ContextVar[Any] = ContextVar("drawn", default=None)  # the bar that is on the screen
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on stdout.")]


def print_json(payload: dict[str, Any]) -> None:
    """One JSON object on stdout. Infinities and NaN are not JSON: they become null."""
    ascii_only = "utf" not in (sys.stdout.encoding or "utf-8").lower()
    print(visible_json(json.dumps(_plain(payload), ensure_ascii=ascii_only, allow_nan=False)))


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


class ClosedPipe(BaseException):
    """Whoever read our output has gone: what was found could not be said. (typer and rich would end with 1.)

    As an interrupt, it is for ``main`` alone: nobody between may take it for something that is wrong with a file.
    """

    code = 2


class _Stdout:
    """The stream, with a closed pipe as an error of ours."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> Any:
        return self._tried(self._stream.write, text)

    def flush(self) -> None:
        self._tried(self._stream.flush)

    def _tried(self, do: Callable[..., Any], *what: Any) -> Any:
        try:
            return do(*what)
        except BrokenPipeError:
            with suppress(OSError, ValueError):  # what is still in the buffer goes nowhere, and says nothing
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise ClosedPipe("the output was closed before its end.") from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def output_to_its_end() -> Iterator[None]:
    """Until the last byte is out, a closed pipe is ``ClosedPipe``, and nothing else.

    Where there is no stream at all (``>&-``), what is said goes nowhere, and the exit code says the rest. A character
    that the stream cannot hold (≤ in a pipe on Windows) is written as its number: it is no error.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (until the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with redirect_stdout(_Stdout(sys.stdout)):  # pyright: ignore[reportArgumentType]
        try:
            yield
        finally:
            sys.stdout.flush()


def say(text: Any, error: bool = False) -> None:
    """One plain line on stdout or stderr. Where stderr takes nothing (a full disk), the exit code says the rest."""
    with suppress(OSError) if error else nullcontext():
        print(visible(text), file=sys.stderr if error else sys.stdout, flush=error)


def console(stderr: bool = False):
    """A rich console for people; plain text when piped."""
    from rich.console import Console
    from rich.table import Table

    class Plain(Console):
        """Shows every string as it is: cells of tables, titles and lines all come through here."""

        def render_str(self, text: str, **how: Any):
            return super().render_str(visible(text), **{**how, "markup": False, "emoji": False})

        def print(self, *objects: Any, **how: Any) -> None:
            """In a pipe no line is broken or padded, and no table has a box: the next program reads lines."""
            tables = [each for each in objects if isinstance(each, Table)]
            if self.is_terminal:
                dropped = [heading for table in tables for heading in fit(table, self)]
                super().print(*objects, **how)
                if dropped:
                    super().print(f"Not enough room for: {', '.join(dropped)}.")
                return
            for table in tables:
                table.box = None
            with self.capture() as written:
                super().print(*objects, **how)
            self.file.write("".join(f"{line.rstrip()}\n" for line in written.get().splitlines()))

    screen = Plain(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not screen.is_terminal:
        screen.width = PIPE
    return screen


def fit(table: Any, screen: Any) -> list[str]:
    """Drop columns from the right until no word is cut; their headings. A table's first columns matter most."""
    from rich.cells import cell_len

    def least(column: Any) -> int:
        """The longest word, or the longest line where lines are not broken, and the space around it."""
        lines = [str(column.header), *map(str, column.cells)]
        words = lines if column.no_wrap else " ".join(lines).split()
        return max(map(cell_len, words), default=0) + 2 + (table.box is not None)

    dropped: list[str] = []
    while len(table.columns) > 2 and sum(map(least, table.columns)) > screen.width:
        dropped.insert(0, str(table.columns.pop().header))
    return dropped


def styled(*parts: str | tuple[str, str]) -> Any:
    """A line of plain parts and of parts with a style: ``styled(("holds", "bold"), ": all checks")``."""
    from rich.text import Text

    return Text.assemble(*(visible(p) if isinstance(p, str) else (visible(p[0]), p[1]) for p in parts))


def bold(text: Any) -> Any:
    return styled((str(text), "bold"))


def print_facts(lines: dict[str, Any]) -> None:
    """Names and what is said of them, in two columns; nothing for None, a row for each of several."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in lines.items():
        several = value if isinstance(value, list) else [] if value is None else [value]
        for place, each in enumerate(several):
            table.add_row(bold("" if place else name), each if isinstance(each, Text) else str(each))
    console().print(table)


class Lines:
    """Progress in a log, where no bar can be drawn: nothing in the first half minute, then a line every half minute."""

    def __init__(self, label: str):
        self.label, self.last = label, time.monotonic()

    def tell(self, state: Callable[[], str]) -> None:
        if time.monotonic() - self.last >= EVERY:
            self.last = time.monotonic()
            say(f"{self.label}: {state()}", error=True)

    def answered(self, what: str, done: int, total: int) -> None:
        """Of a function that is asked many questions (``functions/asking.py``)."""
        self.tell(lambda: f"{what}: {done:,}/{total:,} sequences")


@contextmanager
def drawn(bar: Any) -> Iterator[None]:
    """A bar of rich; one that is drawn already makes room for it meanwhile."""
    outer = _DRAWN.get()
    if outer is not None:
        outer.stop()
    token = _DRAWN.set(bar)
    try:
        with bar:
            yield
    finally:
        _DRAWN.reset(token)
        if outer is not None:
            outer.start()


@contextmanager
def progress_bar(label: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr with rate and time left, for people; lines now and then in a log; nothing if JSON is asked for.

    ``progress(done, total)`` moves it; a job that never calls it shows that it is alive, and for how long. The
    questions to a user's function are shown too: how many there are, and how many are answered.
    """
    from thereexists.functions.asking import listening

    if quiet:
        yield lambda done, total: None
        return
    errors = console(stderr=True)
    if not errors.is_terminal:
        lines = Lines(label)
        with listening(lines.answered):
            yield lambda done, total: lines.tell(lambda: f"{done:,}/{total:,}")
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=errors, transient=True)
    task = bar.add_task(visible(label), total=None, rate="")

    def show(said: str, done: int, total: int) -> None:
        if said != bar.tasks[0].description:
            bar.reset(task, description=said)
        speed = bar.tasks[0].speed
        bar.update(task, completed=done, total=total, rate="" if speed is None else f"{speed:,.0f}/s")

    with drawn(bar), listening(lambda what, done, total: show(visible(what), done, total)):
        yield lambda done, total: show(visible(label), done, total)
