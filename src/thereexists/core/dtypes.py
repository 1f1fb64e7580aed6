"""The floating-point formats of networks: their names, and which numbers they have."""

from __future__ import annotations

import numpy as np
import torch

from thereexists.core.errors import InvalidInput

SIGNIFICAND = {"float64": 53, "float32": 24, "bfloat16": 8, "float16": 11}  # bits, the leading one counted
DTYPES = tuple(SIGNIFICAND)


def dtype_name(dtype: torch.dtype | str) -> str:
    """``float32`` for ``torch.float32`` and for itself."""
    return str(dtype).removeprefix("torch.")


def as_dtype(dtype: torch.dtype | str) -> torch.dtype:
    """The dtype of a name; refuses all but the four formats that a network is run in."""
    name = dtype_name(dtype)
    if name not in SIGNIFICAND:
        raise InvalidInput(f"'dtype' must be one of {', '.join(DTYPES)}; got {name!r} instead.")
    return getattr(torch, name)


def represents(values: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """Which float64 numbers are numbers of the dtype."""
    tensor = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))
    return (tensor.to(dtype).to(torch.float64) == tensor).numpy()
