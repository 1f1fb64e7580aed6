"""The training loop, for every task: AdamW, warm-up and linear decay, bfloat16, clipping, checkpoints, one result.

Built on ``accelerate``: started plainly it uses one device, started by ``torchrun`` or ``accelerate launch`` all of
them, with the same global batch. The host only launches kernels (``step.py``): data, selection and masking live on the
device, and the loss is fetched a hundred times in a whole run.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from thereexists.core.atomic_files import no_empty_folders
from thereexists.core.errors import BadWitnessFile, InvalidInput, ThereExistsError
from thereexists.core.one_writer import one_writer
from thereexists.experiments import checkpoint
from thereexists.experiments.checkpoint import Progress
from thereexists.experiments.monitor import Monitor
from thereexists.experiments.provenance import device_name, versions
from thereexists.experiments.run_folder import finished, make, remove_checkpoint, save_model, tidy
from thereexists.experiments.sampling import Place, seed_of
from thereexists.experiments.settings import Execution, Settings, learning_rate
from thereexists.experiments.task import Task, create
from thereexists.experiments.tokens import default_cache
from thereexists.experiments.update import Update, autocast, optimizer_of

_FETCHES = 100  # how often in a run the loss is read from the device
_CURVE_POINTS, _CURVE_FROM = 12, 0.01  # held-out figures on the way: how many, and the share of the budget at the first


class Interrupted(ThereExistsError):
    """The run was stopped and can be continued."""


class OutOfTime(Interrupted):
    """The run was stopped because its time was over, not by a user."""


def train(settings: Settings, out: Path, how: Execution = Execution(), resume: bool = False) -> dict[str, Any]:
    """Train a model, evaluate it and save it.

        settings = te.experiments.Settings("copy", te.experiments.Budget(steps=100), {"size": "tiny"})
        te.experiments.train(settings, Path("runs/a"))["metrics"]

    Of several processes the first one evaluates and saves; the others return an empty result.

    Args:
        settings: what decides the run.
        out: the folder to write: the model, and ``result.json``.
        how: how the run is carried out.
        resume: continue a run that was stopped; one that is finished only returns its result.

    Returns:
        The result, as ``out/result.json`` holds it: the metrics, the settings, the time taken.

    Raises:
        InvalidInput: the folder holds another run, or the data cannot be read.
    """
    done = finished(settings, out, resume)
    accelerator, place = _processes(how.device)
    with no_empty_folders(out):
        return _alone(settings, out, how, done, accelerator, place)


def _alone(
    settings: Settings, out: Path, how: Execution, done: dict[str, Any] | None, accelerator: Any, place: Place
) -> dict[str, Any]:
    """Nobody else writes there at the same time; a folder in which nothing was written does not stay."""
    make(out)
    with one_writer(out) if accelerator.is_main_process else nullcontext():
        try:
            return _trained(settings, out, how, done, accelerator, place)
        finally:
            with suppress(OSError):
                out.rmdir()  # where nothing was written


def _trained(
    settings: Settings, out: Path, how: Execution, done: dict[str, Any] | None, accelerator: Any, place: Place
) -> dict[str, Any]:
    task = create(settings, place, how.cache or default_cache())
    if done is not None:
        if done.get("data") != task.record():
            raise InvalidInput(f"The data are not those that the run in {out} was trained on; choose another --out.")
        if accelerator.is_main_process:
            with suppress(OSError):  # the result is there all the same
                tidy(out)
        return done
    steps = settings.budget.in_steps(task.tokens_per_step, task.steps_per_epoch)
    if steps is None and place.world > 1:
        raise InvalidInput("Several processes cannot agree on a budget in seconds; give steps, tokens or epochs.")

    if place.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(seed_of(settings.seed, 0))
    model = task.model()
    objective = task.objective(model).to(place.device)
    optimizer = optimizer_of(objective, settings, place)
    progress = checkpoint.load(out / "checkpoint", model, optimizer, settings, task.record()) or Progress()
    if steps is not None and progress.step > steps:
        raise BadWitnessFile(f"The checkpoint in {out} is at step {progress.step:,} of {steps:,}; give another --out.")
    if settings.compile:
        objective.compile()
    objective, optimizer = accelerator.prepare(objective, optimizer)

    update = Update(settings, place, accelerator, objective, optimizer)
    run = _Run(settings, task, place, accelerator, model, objective, optimizer, update, steps, progress, out)
    main = accelerator.is_main_process
    shown, logged = main and not how.quiet, main and how.tensorboard
    with Monitor(out, settings, steps, progress, show=shown, tensorboard=logged) as monitor:
        _loop(run, monitor, how)
    if how.checkpoint_seconds > 0:
        run.save()  # whatever happens while it is evaluated and written, the training is not lost
    result: dict[str, Any] = {}
    if main:
        result = _evaluated(run)
        save_model(model, task, out, result)
    accelerator.wait_for_everyone()
    return result


@dataclass(frozen=True)
class _Run:
    """The parts of a run that is under way."""

    settings: Settings
    task: Task
    place: Place
    accelerator: Any
    model: Any
    objective: nn.Module
    optimizer: Any
    update: Update
    steps: int | None  # None: until the seconds are over
    progress: Progress
    out: Path

    def save(self) -> None:
        if self.accelerator.is_main_process:
            about = {"settings": self.settings.record(), "data": self.task.record()}
            checkpoint.save(self.out / "checkpoint", self.model, self.optimizer, self.progress, about)

    def spent(self, step: int, seconds: float) -> float:
        """The share of the budget that is spent."""
        return step / self.steps if self.steps else seconds / (self.settings.budget.seconds or seconds)

    def step(self, step: int, rate: float) -> Tensor:
        """One update; the loss stays on the device."""
        torch.manual_seed(seed_of(self.settings.seed, 2, self.place.rank, step))  # dropout
        return self.update(self.task.batch(step), rate)


def _loop(run: _Run, monitor: Monitor, how: Execution) -> None:
    """Until the budget is spent; ``run.progress`` is brought up to date whenever it is shown, saved or left.

    What is fetched, and when, depends on the step alone and not on where a run was stopped, so that a run in pieces
    leaves the record of a run in one.
    """
    progress, place, steps = run.progress, run.place, run.steps
    run.objective.train()
    fetch_every = max(1, steps // _FETCHES) if steps else 20
    looks = curve_steps(steps) if steps else frozenset()
    total = torch.full((), float(progress.pending), device=place.device)  # of the losses since the last fetch
    before, started, looking = progress.seconds, time.monotonic(), 0.0
    step = progress.step
    fetched = int(progress.history[-1][0]) if progress.history else 0
    last_saved = started

    def seconds() -> float:
        return before + time.monotonic() - started - looking

    with _stop_requests() as stop:
        while (spent := run.spent(step, seconds())) < 1:
            rate = learning_rate(run.settings, spent + (0.5 / steps if steps else 0.0))
            total += run.step(step, rate)
            step += 1
            fetch = step % fetch_every == 0 or step == steps
            late = how.stop_at is not None and time.time() > how.stop_at and step != steps
            if late:
                stop.set()
            stopped = stop.is_set() if place.world == 1 else fetch and _any_stopped(run, stop)
            due = how.checkpoint_seconds > 0 and time.monotonic() - last_saved > how.checkpoint_seconds
            due = due and (place.world == 1 or fetch)  # what all processes do together must not depend on a clock
            if fetch:
                mean = total if place.world == 1 else run.accelerator.reduce(total.clone(), reduction="mean")
                progress.history.append([step, mean.item() / (step - fetched)])
                total.zero_()
                fetched = step
            if fetch or stopped or due:
                progress.step, progress.seconds, progress.pending = step, seconds(), total.item()
                _must_be_finite(progress, run.settings)
            if fetch:
                monitor.show(progress, rate, run.task.tokens_until(step))
            if step in looks:
                _wait_for_the_device(place)  # the steps that are under way are training's time
                began = time.monotonic()
                _look(run, step)
                looking += time.monotonic() - began
            if stopped:
                run.save()
                kind = OutOfTime if late else Interrupted
                raise kind(f"Stopped at step {step}; the same command with --resume continues there.")
            if due:
                run.save()
                last_saved = time.monotonic()
    _wait_for_the_device(place)
    progress.step, progress.seconds, progress.pending = step, seconds(), 0.0


def _wait_for_the_device(place: Place) -> None:
    if place.device.type == "cuda":
        torch.cuda.synchronize()


def curve_steps(steps: int) -> frozenset[int]:
    """Steps at which held-out figures are taken: evenly in the logarithm, from 1 % of the budget to its end.

    The end itself is left to the evaluation that every run closes with.
    """
    points = [_CURVE_FROM ** (1 - i / (_CURVE_POINTS - 1)) for i in range(_CURVE_POINTS)]
    return frozenset(max(1, round(share * steps)) for share in points) - {steps}


def _look(run: _Run, step: int) -> None:
    """Held-out figures of the model as it is now; nothing that training depends on is touched.

    Without ``inference_mode``: what a module may keep from a first call must serve training too.
    """
    if not run.accelerator.is_main_process:
        return
    run.model.eval()
    with torch.no_grad(), autocast(run.settings, run.place):
        figures = run.task.on_the_way(run.model)
    run.objective.train()
    if figures is not None:
        run.progress.curve.append({"step": step, "tokens": run.task.tokens_until(step), **figures})


def _evaluated(run: _Run) -> dict[str, Any]:
    """The record of a run: what was asked, what was seen, what came out, where."""
    started = time.monotonic()
    run.model.eval()
    with torch.inference_mode(), autocast(run.settings, run.place):
        metrics = run.task.evaluate(run.model)
    if not all(math.isfinite(figure) for figure in metrics.values() if isinstance(figure, float)):
        remove_checkpoint(run.out)  # there is nothing to go on with
        raise ThereExistsError(
            f"The trained model gives no finite figures; a smaller --lr than {run.settings.lr:g} usually helps."
        )
    hypotheses = metrics.pop("hypotheses", None)  # what a metric was, or can later be, computed from
    progress, tokens = run.progress, run.task.tokens_until(run.progress.step)
    result = {
        "task": run.settings.task,
        "settings": run.settings.record(),
        "data": run.task.record(),
        "metrics": metrics,
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "steps": progress.step,
        "tokens_seen": tokens,
        "seconds": round(progress.seconds, 2),
        "evaluation_seconds": round(time.monotonic() - started, 2),
        "tokens_per_second": round(tokens / max(progress.seconds, 1e-9)),
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if run.place.device.type == "cuda" else None,
        "history": progress.history,
        **({"curve": [*progress.curve, _end_of_curve(run, metrics)]} if progress.curve else {}),
        "device": device_name(run.place),
        "precision": "fp32" if run.place.device.type == "cpu" else run.settings.precision,
        "seed": run.settings.seed,
        "versions": versions(),
    }
    return result | ({"hypotheses": hypotheses} if hypotheses else {})


def _end_of_curve(run: _Run, metrics: dict[str, Any]) -> dict[str, float]:
    figures = {name: metrics[name] for name in run.progress.curve[-1] if name in metrics}
    return {"step": run.progress.step, "tokens": run.task.tokens_until(run.progress.step), **figures}


def _processes(device: str | None) -> tuple[Any, Place]:
    if device not in (None, "cpu", "cuda"):
        raise InvalidInput(f"'device' must be cpu or cuda, or left out for the best there is; got {device!r} instead.")
    if device == "cuda" and not torch.cuda.is_available():
        raise InvalidInput("There is no CUDA device here; leave --device out or give cpu.")
    accelerator = _accelerator(cpu=device == "cpu")
    device_here = accelerator.device
    if device_here.type == "cuda" and device_here.index is None:
        device_here = torch.device("cuda", torch.cuda.current_device())
    return accelerator, Place(device_here, accelerator.process_index, accelerator.num_processes)


def _accelerator(cpu: bool) -> Any:
    """One process on one device needs nothing of ``accelerate`` but its verbs: without the package these do."""
    try:
        from accelerate import Accelerator
    except ImportError:
        from thereexists.experiments.alone import Alone

        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise InvalidInput("Several processes need the package accelerate: pip install accelerate.") from None
        return Alone(cpu)
    return Accelerator(cpu=cpu, mixed_precision="no")  # autocast is ours, see autocast()


def _must_be_finite(progress: Progress, settings: Settings) -> None:
    losses = [*(loss for _, loss in progress.history[-1:]), progress.pending]
    if not all(map(math.isfinite, losses)):
        raise ThereExistsError(
            f"The loss is no longer finite at step {progress.step}; a smaller --lr than {settings.lr:g} usually helps."
        )


def _any_stopped(run: _Run, stop: threading.Event) -> bool:
    """Whether any process was asked to stop: all must leave after the same step."""
    flag = torch.tensor(float(stop.is_set()), device=run.place.device)
    return bool(run.accelerator.reduce(flag, reduction="sum").item() > 0)


@contextmanager
def _stop_requests() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM ask to stop after the current step; a second one stops at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        print("Stopping after this step, then saving; once more stops at once.", file=sys.stderr)

    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
