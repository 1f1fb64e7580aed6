"""Checkpoints: weights (safetensors), optimizer, and how far the run was. The last complete one always survives.

There is no random state to store: data order and masks are functions of (seed, step), dropout of (seed, rank, step), so
seed and step are the state, and a run may go on with another number of processes.
"""

from __future__ import annotations

import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from thereexists.core.errors import BadWitnessFile, InvalidInput, ThereExistsError
from thereexists.core.json_files import malformed
from thereexists.core.regular_files import open_regular
from thereexists.experiments.files import current, read_json, replace_folder, write_json
from thereexists.experiments.settings import Settings

PROGRESS = "progress.json"
LARGEST = 1e30  # of seconds and losses
OF_THE_DEVICE = ("fused", "capturable", "foreach")  # of a group of the optimizer


@dataclass
class Progress:
    """How far a run is."""

    step: int = 0
    seconds: float = 0.0
    history: list[list[float]] = field(default_factory=list)  # [step, mean training loss since the last entry]
    pending: float = 0.0  # the sum of the losses since the last entry
    curve: list[dict[str, float]] = field(default_factory=list)  # held-out figures on the way, by step

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Progress:
        """As a file has it: every number a number, steps whole."""
        found = cls(**stored)
        before = [entry[0] for entry in found.history]
        steps = [found.step, *before, *(entry["step"] for entry in found.curve)]
        numbers = [found.pending, *(x for entry in found.history for x in entry)]
        numbers += [x for entry in found.curve for x in entry.values()]
        right = all(type(step) is int and 0 <= step <= found.step for step in steps)
        right = right and all(type(x) in (int, float) and abs(x) <= LARGEST for x in (found.seconds, *numbers))
        right = right and found.seconds >= 0 and all(len(entry) == 2 for entry in found.history)
        if not right or sorted(set(before)) != before:
            raise InvalidInput("its progress is not that of a run")
        return found


def save(folder: Path, model: nn.Module, optimizer: Any, progress: Progress, about: dict[str, Any]) -> None:
    """Write everything beside and rename; on failure the previous checkpoint is untouched and the reason is said.

    ``about``: the ``settings`` of the run and what its ``data`` are.
    """

    def fill(beside: Path) -> None:
        save_model(model, str(beside / "model.safetensors"))
        torch.save(optimizer.state_dict(), beside / "optimizer.pt")
        write_json(beside / PROGRESS, {"progress": asdict(progress), **about})

    try:
        replace_folder(folder, fill)
    except (OSError, RuntimeError, SafetensorError) as error:
        kept = current(folder, PROGRESS)
        step = None if kept is None else read_json(kept / PROGRESS)["progress"]["step"]
        last = f"the last good one, of step {step}, is kept"
        raise ThereExistsError(
            f"The checkpoint of step {progress.step} could not be written to {folder} ({error}); "
            f"{last if kept else 'there is none before it'}. Free some space and continue with --resume."
        ) from error


def is_there(folder: Path) -> bool:
    """Whether there is a checkpoint of ours to go on from, whole or not."""
    found = current(folder, PROGRESS)
    return found is not None and (found / PROGRESS).is_file()


def load(folder: Path, model: nn.Module, optimizer: Any, settings: Settings, data: Any) -> Progress | None:
    """Continue from the last complete checkpoint in ``folder``; None when there is none."""
    found = current(folder, PROGRESS)
    if found is None:
        return None
    stored = read_json(found / PROGRESS)
    with malformed(f"The checkpoint {found}", "cannot be read"):
        progress = Progress.of(stored["progress"])
        differing = settings.differing(stored["settings"])
    if differing:
        raise BadWitnessFile(
            f"The checkpoint {found} is of a run with another {differing!r} "
            f"({stored['settings'].get(differing)!r}, now {settings.record()[differing]!r}); "
            "give the same settings, or another --out."
        )
    if stored.get("data") != data:
        raise BadWitnessFile(f"The data are not those that the checkpoint {found} was trained on; give another --out.")
    try:
        for name in ("model.safetensors", "optimizer.pt"):
            open_regular(found / name).close()  # a pipe would never answer
        _check_archive(found / "optimizer.pt")
        load_model(model, str(found / "model.safetensors"))
        state = torch.load(found / "optimizer.pt", map_location="cpu", weights_only=True)
        _check_state(optimizer, state)
        optimizer.load_state_dict(state)
    except Exception as error:  # whatever a torn file, or a stranger's, makes of torch's reader; it runs no code
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadWitnessFile(
            f"The checkpoint {found} cannot be read ({reason}); remove that folder to start afresh."
        ) from error
    return progress


def _check_archive(file: Path) -> None:
    """torch.save never compresses: what unpacks to more than the file holds was made by somebody else."""
    with zipfile.ZipFile(file) as archive:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise InvalidInput("it is compressed")
        if sum(entry.file_size for entry in archive.infolist()) > file.stat().st_size:
            raise InvalidInput("its entries overlap")


def _check_state(optimizer: Any, state: dict[str, Any]) -> None:
    """The same groups but for the rate, and moments of the parameters' own shapes: what this optimizer would write.

    A run may go on on another kind of device: how its optimizer computes is that of this one.
    """
    own = optimizer.state_dict()
    for mine, its in zip(own["param_groups"], state["param_groups"], strict=True):
        its |= {name: mine[name] for name in OF_THE_DEVICE}
        differing = [name for name in mine.keys() | its.keys() if name != "lr" and mine[name] != its[name]]
        if differing or not 0 <= float(its["lr"]) <= LARGEST:
            raise InvalidInput(f"the optimizer has another {', '.join(differing) or 'rate'}")
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    memory = {value.untyped_storage().data_ptr() for moments in state["state"].values() for value in moments.values()}
    if len(memory) != sum(len(moments) for moments in state["state"].values()):
        raise InvalidInput("the optimizer's moments share their memory")
    for number, moments in state["state"].items():
        shape = parameters[number].shape
        dense = all(value.layout == torch.strided and value.dtype == torch.float32 for value in moments.values())
        dense = dense and all(value.is_contiguous() for value in moments.values())
        if not dense or not 0 <= float(moments["step"]) < LARGEST:
            raise InvalidInput(f"the optimizer's moments of parameter {number} are none")
        shapes = {name: tuple(value.shape) for name, value in moments.items()}
        if shapes != {"step": (), "exp_avg": tuple(shape), "exp_avg_sq": tuple(shape)}:
            raise InvalidInput(f"the optimizer's moments of parameter {number} have other shapes")
