"""The folder of a run: whose it is, the result that it may hold, and the model that is written into it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from thereexists.core.atomic_files import remove_empty, remove_parts
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.core.modes import as_the_umask_says
from thereexists.core.replaced_folders import fresh_beside, remove_left
from thereexists.experiments import checkpoint
from thereexists.experiments.files import RESULT, read_json, write_json
from thereexists.experiments.models import no_progress_bars
from thereexists.experiments.monitor import LOGS
from thereexists.experiments.settings import Settings
from thereexists.experiments.task import Task

SHOWN = ("parameters", "tokens_seen", "tokens_per_second", "seconds", "device", "seed")  # of a result, to people
CHECKPOINT, MODEL, UNFINISHED = "checkpoint", "model", ".unfinished"
_WRITTEN = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", RESULT, UNFINISHED)


def finished(settings: Settings, out: Path, resume: bool) -> dict[str, Any] | None:
    """The result of a run that is done; refuses to write over anything without being told to continue."""
    if out.is_file():
        raise InvalidInput(f"{out} is a file; --out must name a folder.")
    if not out.is_dir() or {file.name for file in out.iterdir()} <= {LOGS}:  # curves alone: a run that failed
        return None
    if not is_of_a_run(out):
        raise InvalidInput(f"{out} is not empty, and holds no run that could be continued; choose another --out.")
    if not resume:
        raise InvalidInput(f"{out} is not empty; continue it with --resume or choose another --out.")
    if not (out / RESULT).is_file():
        return None
    result = read_json(out / RESULT)
    named = all(name in result for name in SHOWN)
    if not named or not all(isinstance(result.get(name), dict) for name in ("settings", "metrics")):
        raise InvalidInput(f"{out / RESULT} is not the result of a run; choose another --out.")
    differing = settings.differing(result["settings"])
    if differing:
        raise InvalidInput(f"{out} holds a finished run with another {differing!r}; choose another --out.")
    return result


def is_of_a_run(out: Path) -> bool:
    """Whether a run was finished or stopped there, or nothing is there but what a killed one leaves.

    Anything else is somebody's: a model of his, say, which ours would take the place of.
    """
    if (out / RESULT).is_file() or (out / UNFINISHED).is_file() or checkpoint.is_there(out / CHECKPOINT):
        return True
    left = (f".{CHECKPOINT}.", f".{MODEL}.")
    return all(file.name == LOGS or file.name.startswith(left) for file in out.iterdir())


def make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"The folder {out} cannot be made: {error.strerror or error}.") from error


def save_model(model: Any, task: Task, out: Path, result: dict[str, Any]) -> None:
    """Config, weights, tokenizer and at last the result, each renamed once it is whole.

    A folder that is left between two of them is marked as a run's; the checkpoint stays if this fails.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / UNFINISHED).touch()
        with fresh_beside(out / MODEL) as beside, no_progress_bars():
            model.save_pretrained(beside)
            task.save_beside(beside)
            for file in beside.iterdir():
                as_the_umask_says(file)
                os.replace(file, out / file.name)
        write_json(out / RESULT, result)
        tidy(out)
    except (OSError, RuntimeError, SafetensorError) as error:
        raise ThereExistsError(f"The trained model could not be written to {out}: {error}.") from error


def tidy(out: Path) -> None:
    """Take away what a run that has its result no longer needs, the mark at last: one that is killed here leaves it."""
    if (out / UNFINISHED).is_file() and (out / RESULT).is_file():
        remove_checkpoint(out)
        remove_parts(out / RESULT)
        (out / UNFINISHED).unlink()


def remove_checkpoint(out: Path) -> None:
    place = out / CHECKPOINT
    if place.is_symlink():
        place.unlink()
    shutil.rmtree(place, ignore_errors=True)
    remove_left(place)


def remove_run(out: Path) -> None:
    """What a run has written; whatever else is there stays, and the folder with it."""
    remove_checkpoint(out)
    for name in _WRITTEN:
        (out / name).unlink(missing_ok=True)
    if not (out / LOGS).is_symlink():
        shutil.rmtree(out / LOGS, ignore_errors=True)
    remove_left(out / MODEL)
    remove_empty([out])
