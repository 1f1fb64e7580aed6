"""Running an experiment: every run of the grid, several at once on one device, each leaving one small JSON record.

A run that is done is not run again; a stopped one continues from its checkpoint. Small models do not fill a large
accelerator, so ``parallel`` processes take runs from one queue; the data are prepared once, before they start.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.core.plain_text import visible
from thereexists.core.safe_path import nothing_from_here
from thereexists.experiments.files import read_json, write_json
from thereexists.experiments.grid import Run
from thereexists.experiments.record import checked
from thereexists.experiments.run_folder import remove_run
from thereexists.experiments.settings import Settings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from thereexists.experiments.settings import Execution

RECORD = "run.json"
_HISTORY = 25  # points of a training curve that a record keeps


@dataclass(frozen=True)
class How:
    """How the runs of a table are carried out; none of it changes a figure, except by the machine's rounding.

        from pathlib import Path

        te.experiments.How(out=Path("runs"), cache=Path("cache"), parallel=2)

    Args:
        out: the folder to write.
        cache: the folder for tokenised data.
        device: ``cpu`` or ``cuda``; None for the one that is there.
        resume: continue runs that were stopped.
        parallel: how many runs at a time.
        budget_seconds: no run begins later than this; None for no limit.
        checkpoint_seconds: the time between checkpoints.
        keep_models: whether the weights stay when a run is finished.
        results: a ``.jsonl`` file to which every record is appended.
        pool: ``local``, or ``ray`` for runs spread over a cluster.
        address: of a Ray cluster; without it a local one is started.
        stop_at: when runs write their checkpoints and stop, as ``time.time()`` gives it; None for never.
    """

    out: Path
    cache: Path
    device: str | None = None
    resume: bool = False
    parallel: int = 1
    budget_seconds: float | None = None
    checkpoint_seconds: float = 60.0
    keep_models: bool = False
    results: Path | None = None
    pool: str = "local"
    address: str | None = None
    stop_at: float | None = None

    def execution(self) -> Execution:
        """Of each run of the table."""
        from thereexists.experiments.settings import Execution

        quiet = self.parallel > 1
        return Execution(self.device, self.cache, self.checkpoint_seconds, self.stop_at, tensorboard=False, quiet=quiet)


@dataclass(frozen=True)
class Outcome:
    """What became of the runs, by name: what ``te.experiments.run_all`` returns.

        te.experiments.Outcome(records=[], skipped=["copying/tiny/dense-seed0"], failed={}, not_started=[])

    Attributes:
        records: of the runs that are finished.
        skipped: runs that had been finished before.
        failed: for each run that failed, why.
        not_started: runs that did not begin, because the time was over.
        stopped: runs that the time interrupted; they continue from their checkpoints.
    """

    records: list[dict[str, Any]]
    skipped: list[str]
    failed: dict[str, str]
    not_started: list[str]
    stopped: list[str] = field(default_factory=list)


def run_all(runs: list[Run], how: How, say: Callable[[str], None] | None = None) -> Outcome:
    """Carry out all runs; one that fails does not stop the others.

        te.experiments.run_all(runs, te.experiments.How(out=Path("runs"), cache=Path("cache")))

    Args:
        runs: what ``unfold`` returned.
        how: how they are carried out.
        say: called with one line about each run.

    Returns:
        What became of each.

    Raises:
        InvalidInput: the folder holds other runs.
    """
    say = say or _to_stderr
    started = time.monotonic()
    done = done_before(runs, how.out)
    todo = [run for run in runs if run.key not in done]
    _refuse_leftovers(todo, how)
    if todo:
        prepare(todo, how.cache)
        say(f"{len(todo)} runs to do, {len(done)} done before; data ready after {time.monotonic() - started:.0f} s.")
    records, failed, stopped, not_started = [], {}, [], []

    def finished(run: Run, record: dict[str, Any] | None, error: str | None) -> None:
        if record is None and error is None:
            stopped.append(run.key)
            say(f"{run.key}: the time is over; --resume continues from its checkpoint")
            return
        if record is None:
            failed[run.key] = error or "unknown"
            say(f"{run.key}: failed: {error}")
            return
        records.append(record)
        if how.results is not None:
            _append(how.results, record)
        say(f"[{time.monotonic() - started:5.0f} s] {run.key}: {summary(record)} ({record['seconds']:.0f} s)")

    def time_is_up() -> bool:
        over = how.budget_seconds is not None and time.monotonic() - started > how.budget_seconds
        return over or (how.stop_at is not None and time.time() > how.stop_at)

    if how.pool == "ray":
        from thereexists.experiments.cluster import run_on_ray

        far = dataclasses.replace(how, out=how.out.resolve(), cache=how.cache.resolve())
        not_started = run_on_ray(todo, far, _attempt, finished, time_is_up) if todo else []
    elif how.parallel <= 1:
        for run in todo:
            if time_is_up():
                not_started.append(run.key)
                continue
            finished(run, *_attempt(run, how))
    else:
        not_started = _in_parallel(todo, how, finished, time_is_up)
    return Outcome([*done.values(), *records], list(done), failed, not_started, stopped)


def done_before(runs: list[Run], out: Path) -> dict[str, dict[str, Any]]:
    """The records that ``out`` holds of these runs, by name."""
    paths = {run.key: run.folder(out) / RECORD for run in runs}
    done = {key: checked(read_json(path), str(path)) for key, path in paths.items() if path.is_file()}
    for run in runs:
        _refuse_another(run, done.get(run.key), paths[run.key])
    return done


def _in_parallel(todo: list[Run], how: How, finished: Callable[..., None], time_is_up: Callable[[], bool]) -> list[str]:
    """``how.parallel`` processes, each busy with one run; returns the names of those that were not started."""
    queue, busy = list(todo), {}
    context = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA
    about = {"mp_context": context, "initializer": _worker, "initargs": (how.parallel, os.getpid())}
    with nothing_from_here(), ProcessPoolExecutor(how.parallel, **about) as pool:
        while busy or (queue and not time_is_up()):
            while queue and len(busy) < how.parallel and not time_is_up():
                run = queue.pop(0)
                future: Future[Any] = pool.submit(_attempt, run, how)
                busy[future] = run
            if not busy:
                break
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                run = busy.pop(future)
                try:
                    finished(run, *future.result())
                except BrokenProcessPool:
                    finished(run, None, "its process died (out of memory?)")
                    return [run.key for run in queue]
    return [run.key for run in queue]


def _worker(parallel: int, parent: int) -> None:
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // parallel))
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A worker whose parent was killed has nobody to report to, and would hold device and terminal."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _attempt(run: Run, how: How) -> tuple[dict[str, Any] | None, str | None]:
    """The record of a run, or why there is none; neither: its time was over."""
    from thereexists.experiments.training import Interrupted, OutOfTime

    try:
        return run_one(run, how), None
    except OutOfTime:
        return None, None
    except Interrupted:  # whoever stops a run stops the table
        raise
    except ThereExistsError as error:
        return None, str(error)
    except Exception as error:  # one bad run must not end the table
        traceback.print_exc()
        return None, f"{type(error).__name__}: {error}"


def run_one(run: Run, how: How) -> dict[str, Any]:
    """All stages of a run, each from the weights of the one before."""
    from thereexists.experiments.training import train

    folder = run.folder(how.out)
    stages, start = [], None
    for settings in run.stages:
        out = folder / settings.task
        settings = settings if start is None else settings.with_(start=str(start))
        result = train(settings, out, how.execution(), resume=True)
        stages.append(_small(result))
        start = out
    record = {
        "experiment": run.experiment,
        "size": run.size,
        "run": run.name,
        "labels": dict(run.labels),
        "seed": run.seed,
        "seconds": round(sum(stage["seconds"] for stage in stages), 2),
        "parallel": how.parallel,
        "stages": {stage["task"]: stage for stage in stages},
    }
    write_json(folder / RECORD, record)
    _free_the_device()
    if not how.keep_models:
        for settings in run.stages:
            remove_run(folder / settings.task)
    return record


def _free_the_device() -> None:
    """Give back what the run held: other processes share the device."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def prepare(runs: list[Run], cache: Path) -> None:
    """Tokenizers and token streams of all runs, made once; everything else a run reads is small."""
    from thereexists.experiments.tokens import stream

    for files, tokenizer, _ in _corpora(runs, cache):
        stream(files, tokenizer, cache)


def write_prepared(runs: list[Run], data: Path, out: Path, cache: Path) -> list[Path]:
    """The corpora of all runs as files of tokens, under ``out`` as they lie under ``data``."""
    from thereexists.experiments import prepared
    from thereexists.experiments.tokens import source_of, stream

    written: dict[Path, str] = {}
    for files, tokenizer, size in _corpora(runs, cache):
        sha = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
        for file in files:
            path = out / prepared.prepared_name(file.relative_to(data))
            if written.setdefault(path, sha) != sha:
                raise InvalidInput(f"{file} is wanted with two tokenizers; prepare one experiment and size at a time.")
            prepared.write(path, stream(file, tokenizer, cache).tokens, source_of(file), size, tokenizer)
    return list(written)


def _corpora(runs: list[Run], cache: Path) -> Iterator[tuple[list[Path], Tokenizer, int]]:
    """The files of every corpus met (held-out text with them), its tokenizer and the vocabulary asked for, once."""
    from thereexists.experiments.tokenizer import DEFAULT_SIZE
    from thereexists.experiments.tokens import corpus_tokenizer, files_of

    seen: set[str] = set()
    for settings in (stage for run in runs for stage in run.stages):
        data = settings.data
        key = json.dumps([dict(data), settings.options.get("vocabulary")], sort_keys=True)
        if "corpus" not in data or key in seen:
            continue
        seen.add(key)
        given = Path(data["tokenizer"]) if data.get("tokenizer") else None
        size = int(settings.options.get("vocabulary", DEFAULT_SIZE))
        tokenizer, _ = corpus_tokenizer(files_of(data["corpus"]), size, cache, given)
        yield [file for name in ("corpus", "valid") for file in files_of(data.get(name) or [])], tokenizer, size


def summary(record: dict[str, Any]) -> str:
    """The main figures of a run, in a line."""
    parts = []
    for task, stage in record["stages"].items():
        metrics = stage["metrics"]
        name = "perplexity" if "perplexity" in metrics else "accuracy"
        if name in metrics:
            parts.append(f"{task} {name} {metrics[name]:.4g}")
        elif "bleu" in metrics:
            parts += [f"BLEU {test} {score['score']:.1f}" for test, score in metrics["bleu"].items()]
    return ", ".join(parts) or "done"


def _small(result: dict[str, Any]) -> dict[str, Any]:
    """A result without machine-specific paths, and with a thinned training curve."""
    settings = Settings.portable(result["settings"])
    history = result["history"]
    kept = history[:: max(1, len(history) // _HISTORY)]
    kept = kept if not history or kept[-1] == history[-1] else [*kept, history[-1]]
    small = result | {"settings": settings, "history": [[step, round(loss, 4)] for step, loss in kept]}
    if "curve" in result:
        points = [
            {k: round(v, 5) if isinstance(v, float) else v for k, v in point.items()} for point in result["curve"]
        ]
        small["curve"] = points
    return small


def _refuse_another(run: Run, record: dict[str, Any] | None, path: Path) -> None:
    """A record of other settings is not the result of this run."""
    stored = {} if record is None else record["stages"]
    for stage in run.stages if record is not None else ():
        differing = stage.differing(stored.get(stage.task, {}).get("settings", {}))
        if differing:
            raise ThereExistsError(f"{path} holds a finished run with another {differing!r}; choose another --out.")


def _refuse_leftovers(todo: list[Run], how: How) -> None:
    if how.resume:
        return
    begun = next((run for run in todo if run.folder(how.out).is_dir() and any(run.folder(how.out).iterdir())), None)
    if begun is not None:
        raise ThereExistsError(
            f"{begun.folder(how.out)} holds a run that was begun; continue with --resume or choose another --out."
        )


def _append(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:  # one write: a killed process leaves whole lines
        file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def _to_stderr(line: str) -> None:
    print(visible(line), file=sys.stderr, flush=True)
