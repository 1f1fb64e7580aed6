"""Tensors written to a file: a disk that is full is an ``OSError`` here as everywhere; safetensors has its own."""

from __future__ import annotations

import os
import re
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


def save_tensors(weights: dict[str, Tensor], file: Path, metadata: dict[str, str] | None = None) -> None:
    try:
        save_file(weights, file, metadata)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        code = int(number.group(1))
        raise OSError(code, os.strerror(code), str(file)) from error
