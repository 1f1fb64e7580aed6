"""One process on one device: the verbs of ``accelerate.Accelerator`` that training uses, where it is not installed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Alone:
    is_main_process, process_index, num_processes = True, 0, 1

    def __init__(self, cpu: bool):
        self.device = torch.device("cuda" if torch.cuda.is_available() and not cpu else "cpu")

    def prepare(self, objective: nn.Module, optimizer: Any) -> tuple[nn.Module, Any]:
        return objective, optimizer

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def clip_grad_norm_(self, parameters: Any, largest: float) -> Tensor:
        return nn.utils.clip_grad_norm_(parameters, largest)

    def reduce(self, tensor: Tensor, reduction: str) -> Tensor:
        return tensor

    def wait_for_everyone(self) -> None:
        return None
