"""One update of the weights: batch in, loss out, and nothing read back from the device.

A step of a small model is hundreds of kernels of a few microseconds: the host needs longer to launch them than the
device to run them. On one CUDA device a step is therefore recorded once for every shape of batch (a CUDA graph) and
then replayed by a single launch: the same kernels in the same order. Steps before the recording, and runs on several
devices, on a CPU or through ``torch.compile``, are launched kernel by kernel.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from thereexists.experiments.sampling import Place
from thereexists.experiments.settings import Settings

_WARM = 3  # steps of a shape before it is recorded: kernels are compiled, workspaces allocated, moments made
_SHAPES = 8  # graphs a run keeps; rarer shapes stay as they are

Batch = dict[str, Tensor]


def records(settings: Settings, place: Place) -> bool:
    """Whether steps are recorded and replayed."""
    return place.device.type == "cuda" and place.world == 1 and not settings.compile


def optimizer_of(objective: nn.Module, settings: Settings, place: Place) -> torch.optim.AdamW:
    """Matrices decay; biases, LayerNorms and other vectors do not."""
    matrices = [p for p in objective.parameters() if p.requires_grad and p.ndim > 1]
    vectors = [p for p in objective.parameters() if p.requires_grad and p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        groups,
        lr=settings.lr,
        betas=(0.9, 0.98),
        fused=place.device.type == "cuda",
        capturable=records(settings, place),
    )


class Update:
    """Called once a step; the loss it returns is overwritten by the next call."""

    def __init__(self, settings: Settings, place: Place, accelerator: Any, objective: nn.Module, optimizer: Any):
        self.settings, self.place = settings, place
        self.accelerator, self.objective, self.optimizer = accelerator, objective, optimizer
        self.recording = records(settings, place)
        for group in optimizer.param_groups:  # those of a checkpoint may come from another kind of device
            group["capturable"] = self.recording
        self._rate = torch.zeros((), device=place.device)
        self._seen: dict[tuple, int] = {}
        self._graphs: dict[tuple, _Recorded] = {}

    def __call__(self, batch: Batch, rate: float) -> Tensor:
        if not self.recording:
            return self._update(batch, rate)
        self._rate.fill_(rate)
        shape = tuple((name, tensor.shape) for name, tensor in sorted(batch.items()))
        if shape in self._graphs:
            return self._graphs[shape].replay(batch)
        self._seen[shape] = self._seen.get(shape, 0) + 1
        if self._seen[shape] <= _WARM or len(self._graphs) >= _SHAPES:
            return self._aside(batch)
        return self._record(shape, batch)

    def _update(self, batch: Batch, rate: float | Tensor) -> Tensor:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with autocast(self.settings, self.place, cache=not self.recording):
            loss = self.objective(**batch)
        self.accelerator.backward(loss)
        self.accelerator.clip_grad_norm_(self.objective.parameters(), self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _aside(self, batch: Batch) -> Tensor:
        """On a stream of its own: what autograd remembers of the stream it ran on must not be the main one."""
        here, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(here)
        with torch.cuda.stream(side), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*capturable=True")  # yes, it will be
            loss = self._update(batch, self._rate)
        here.wait_stream(side)
        return loss

    def _record(self, shape: tuple, batch: Batch) -> Tensor:
        """Recording runs nothing: the replay that follows is this step. Where it fails the run goes on without."""
        static = {name: tensor.clone() for name, tensor in batch.items()}
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                loss = self._update(static, self._rate)
        except RuntimeError as error:
            self.recording = False
            self.optimizer.zero_grad(set_to_none=True)
            first = str(error).partition("\n")[0]
            print(f"Steps cannot be recorded as CUDA graphs ({first}); they are launched singly.", file=sys.stderr)
            return self._update(batch, self._rate)
        self._graphs[shape] = _Recorded(graph, static, loss)
        return self._graphs[shape].replay(batch)


@dataclass(frozen=True)
class _Recorded:
    graph: Any
    static: Batch  # where the recorded kernels read
    loss: Tensor  # where they write

    def replay(self, batch: Batch) -> Tensor:
        for name, tensor in batch.items():
            self.static[name].copy_(tensor)
        self.graph.replay()
        return self.loss


def autocast(settings: Settings, place: Place, cache: bool = True):
    """bfloat16 for the matrix products, float32 for the weights and whatever needs it. A CPU computes in float32."""
    if settings.precision == "bf16" and place.device.type != "cpu":
        return torch.autocast(place.device.type, dtype=torch.bfloat16, cache_enabled=cache)
    return nullcontext()
