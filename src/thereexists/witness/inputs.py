"""The numbers that a witness is given, as float64: nothing is dropped on the way.

NumPy and torch drop imaginary parts and masks when they convert. What is left would be another input than was meant,
and would get an answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array


def real_inputs(x: Any, n: int, d: int) -> Array:
    """An array of float64 of its own, of an array, a tensor or nested lists; of any shape as yet."""
    return real_numbers(x, f"The input must be real numbers in an array (batch, {n}, {d})")


def real_numbers(x: Any, wanted: str) -> Array:
    """The same of any numbers; ``wanted`` says in an error what they must be."""
    try:
        plain = x.detach().cpu().resolve_conj().resolve_neg() if isinstance(x, torch.Tensor) else x
        if isinstance(plain, torch.Tensor) and not plain.is_complex():
            plain = plain.to(torch.float64).numpy()  # of dtypes that NumPy lacks, too
        masked = np.ma.is_masked(plain)
        array = np.asarray(plain)
        if not masked and not np.iscomplexobj(array):
            return np.array(array, dtype=np.float64)
    except (ValueError, TypeError, OverflowError, RuntimeError):  # torch has no array of what is sparse
        raise InvalidInput(f"{wanted}; these cannot be made into one (are all sequences of one length?).") from None
    raise InvalidInput(f"{wanted}; {'some of these are masked' if masked else 'these are complex'}.")
