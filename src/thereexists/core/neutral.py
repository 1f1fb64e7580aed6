"""Work done in a state of our own: what a caller has set for the whole process or thread must not change its result.

NumPy may be told to raise where a number underflows; torch to compute in bfloat16, on another device or with another
kind of number by default, or to make tensors that do not count their changes; a core to take subnormal numbers for 0.
Proofs, checks and runs here allow for none of that. The doors of the package (``te.build``, ``te.verify``, a witness
that is called, …) do their work in ``neutral()``, and the caller finds everything as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch

_LEAST = np.float64(2.0**-1074)  # the smallest positive number


@contextmanager
def neutral() -> Iterator[None]:
    """What NumPy and torch have at the start of a process; also a decorator. What is so already is not touched."""
    with ExitStack() as state:
        state.enter_context(np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                state.enter_context(torch.autocast(kind, enabled=False))
        if torch.is_inference_mode_enabled():
            state.enter_context(torch.inference_mode(False))
        if torch.get_default_device().type != "cpu":
            state.enter_context(torch.device("cpu"))
        if torch.get_default_dtype() != torch.float32:
            state.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(torch.float32)
        if torch.get_float32_matmul_precision() != "highest":
            state.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
            torch.set_float32_matmul_precision("highest")
        if _LEAST * 1.0 == 0:
            state.callback(torch.set_flush_denormal, True)
            torch.set_flush_denormal(False)
        yield
