"""What a task gives the training loop: a model, batches on the device, and a figure of merit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from thereexists.core.errors import InvalidInput
from thereexists.experiments.sampling import Place
from thereexists.experiments.settings import Settings

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel


class Task(ABC):
    """One task on one process. ``batch(step)`` is a function of the settings and the step alone."""

    tokens_per_step: int  # of the global batch, padding included: what the model computes on
    steps_per_epoch: int | None = None  # None: fresh data at every step

    def __init__(self, settings: Settings, place: Place, cache: Path):
        self.settings, self.place, self.cache = settings, place, cache

    @abstractmethod
    def model(self) -> PreTrainedModel:
        """A fresh model, or the one the settings start from."""

    @abstractmethod
    def batch(self, step: int) -> dict[str, Tensor]:
        """This rank's part of the batch, on its device."""

    @abstractmethod
    def evaluate(self, model: PreTrainedModel) -> dict[str, Any]:
        """The figures of merit on held-out data; called in evaluation mode without gradients."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """What the data were."""

    def on_the_way(self, model: PreTrainedModel) -> dict[str, float] | None:
        """Held-out figures cheap enough to be taken a dozen times during training; None: there are none."""
        return None

    def objective(self, model: PreTrainedModel) -> nn.Module:
        """The module whose output is the loss: by default the model's own."""
        return ModelLoss(model)

    def tokens_until(self, steps: int) -> int:
        """Tokens the model has computed on after ``steps`` steps."""
        return steps * self.tokens_per_step

    def save_beside(self, out: Path) -> None:  # noqa: B027  (nothing is the right default)
        """Whatever else the saved model needs to be used: a tokenizer, mostly."""


class ModelLoss(nn.Module):
    """``model(**batch).loss``"""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, **batch: Tensor) -> Tensor:
        return self.model(**batch).loss


def on_device(array: Any, place: Place, dtype: torch.dtype = torch.int32) -> Tensor:
    """The whole array on the device if half of what is free there holds it, otherwise in the host's memory."""
    tensor = torch.from_numpy(array.astype("int32")).to(dtype)
    if place.device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(place.device)
        if tensor.numel() * tensor.element_size() > free // 2:
            return tensor.pin_memory()
    return tensor.to(place.device)


def rows(table: Tensor, indices: Tensor) -> Tensor:
    """Rows of a table that may lie on the device or on the host, as int64 on the device of ``indices``."""
    if table.device == indices.device:
        return table[indices].long()
    return table[indices.cpu()].to(indices.device, non_blocking=True).long()


def path_of(settings: Settings, name: str, what: str) -> Path:
    """A path the settings must name."""
    value = settings.data.get(name)
    if not value:
        raise InvalidInput(f"The task '{settings.task}' needs {what}; give --{name}.")
    return Path(value)


def paths_of(settings: Settings, name: str, what: str) -> list[Path]:
    """One path or several that the settings must name."""
    value = settings.data.get(name)
    if not value:
        raise InvalidInput(f"The task '{settings.task}' needs {what}; give --{name}.")
    return [Path(one) for one in (value if isinstance(value, list) else [value])]


def create(settings: Settings, place: Place, cache: Path) -> Task:
    """The task the settings name."""
    from importlib import import_module

    module = import_module(f"thereexists.experiments.tasks.{settings.task}")
    return module.TASK(settings, place, cache)
