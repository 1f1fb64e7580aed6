"""What a run shows while it runs: a progress bar on a terminal, nothing in a pipe, TensorBoard logs where installed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thereexists.experiments.checkpoint import Progress
from thereexists.experiments.settings import Settings

LOGS = "tensorboard"  # the folder of the curves, in that of the run


class Monitor:
    """Used as a context; ``show`` is called about a hundred times in a run."""

    def __init__(
        self, out: Path, settings: Settings, steps: int | None, progress: Progress, show: bool, tensorboard: bool
    ):
        self._budget = settings.budget.seconds
        self._bar = _bar(settings, steps, progress) if show and sys.stderr.isatty() else None
        self._logs = out / LOGS
        self._writer: Any = None
        if tensorboard:
            with self._without_curves():
                self._writer = _writer(out, quiet=not show)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._writer is not None:
            with self._without_curves():
                self._writer.close()

    @contextmanager
    def _without_curves(self) -> Iterator[None]:
        """They are an extra: a disk that is full ends them, with a sentence, and not the run."""
        try:
            with _quiet_writers():
                yield
        except OSError as error:
            self._writer = None
            print(f"No TensorBoard curves from here on: {self._logs}: {error.strerror or error}.", file=sys.stderr)

    def show(self, progress: Progress, rate: float, tokens: int) -> None:
        step, loss = progress.history[-1]
        if self._bar is not None:
            self._bar.n = min(round(progress.seconds), round(self._budget)) if self._budget else progress.step
            per_second = tokens / max(progress.seconds, 1e-9)
            self._bar.set_postfix_str(f"loss {loss:.3f}, {per_second:,.0f} tokens/s")
        if self._writer is not None:
            with self._without_curves():
                self._writer.add_scalar("loss", loss, step)
                self._writer.add_scalar("learning rate", rate, step)
                self._writer.add_scalar("tokens per second", tokens / max(progress.seconds, 1e-9), step)
                self._writer.flush()  # here, and not in a thread, the disk is found full


@contextmanager
def _quiet_writers() -> Iterator[None]:
    """TensorBoard writes in a thread of its own, whose error comes to us as well: Python need not print it."""
    before = threading.excepthook
    threading.excepthook = lambda given: None if issubclass(given.exc_type, OSError) else before(given)
    try:
        yield
    finally:
        threading.excepthook = before


def _bar(settings: Settings, steps: int | None, progress: Progress) -> Any:
    from tqdm import tqdm

    total = steps or round(settings.budget.seconds or 0)
    name = settings.model.get("mixer") or settings.model.get("pattern") or ""
    start = progress.step if steps else round(progress.seconds)
    unit = "step" if steps else "s"
    return tqdm(total=total, initial=start, desc=f"{settings.task} {name}".strip(), unit=unit, disable=None)


def _writer(out: Path, quiet: bool) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        if not quiet:
            print("No TensorBoard logs: the package tensorboard is not installed.", file=sys.stderr)
        return None
    return SummaryWriter(str(out / LOGS))
