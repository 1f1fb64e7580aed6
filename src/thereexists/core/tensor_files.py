"""Tensors in a file of safetensors: a disk that is full is an ``OSError`` here as everywhere, and a truth value is one.

A byte of a Boolean array is 0 or 1. Of another one, torch negates the bits (2 and not 2 are both true), while NumPy and
others take it for true: what was proved of one reading would not hold of the other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from thereexists.core.errors import BadWitnessFile
from thereexists.core.modes import as_the_umask_says


def save_tensors(weights: dict[str, Tensor], file: Path, metadata: dict[str, str] | None = None) -> None:
    try:
        save_file(weights, file, metadata)
        as_the_umask_says(file)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        code = int(number.group(1))
        raise OSError(code, os.strerror(code), str(file)) from error


def check_booleans(weights: Mapping[str, Tensor], where: Path) -> None:
    """Refuse truth values that are neither 0 nor 1, in tensors as they were read."""
    for name, tensor in weights.items():
        if tensor.dtype == torch.bool and bool((tensor.view(torch.uint8) > 1).any()):
            raise BadWitnessFile(f"{where} holds truth values that are neither 0 nor 1, in the array {name}.")
