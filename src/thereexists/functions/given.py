"""What callers give, checked before it is believed: numbers, and what their functions answer.

NaN is the answer to fear: it is neither above nor below anything, so a comparison with it takes one side in silence. No
NaN leaves this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput, InvalidTarget, ThereExistsError
from thereexists.core.memory import unless_memory
from thereexists.core.printed import printed_to_stderr

Array = np.ndarray


def size_or_none(name: str, given: Any) -> float | None:
    """A finite number of at least 0, of whatever type, as Python's own float; or None."""
    if given is None:
        return None
    try:
        if isinstance(given, bool | np.bool_ | str | complex | np.complexfloating):
            raise TypeError
        number = float(given)
    except (TypeError, ValueError, OverflowError, AttributeError):
        number = float("nan")
    if not (np.isfinite(number) and number >= 0):
        raise InvalidInput(f"'{name}' must be a finite number of at least 0; got {given!r} instead.")
    return number


def ends_of_box(given: Any, d: int) -> tuple[float | tuple[float, ...], float | tuple[float, ...]]:
    """(low, high), each one number or d of them, in Python's own numbers."""
    try:
        low, high = (np.asarray(given[side], dtype=np.float64) for side in (0, 1))
        np.broadcast_to(low, (d,)), np.broadcast_to(high, (d,))
    except (ValueError, TypeError, LookupError, OverflowError):
        raise InvalidInput(
            f"'domain' must be (low, high), each a number or {d} numbers; got {given!r} instead."
        ) from None
    return _plain(low), _plain(high)


def _plain(end: Array) -> float | tuple[float, ...]:
    return tuple(end.tolist()) if end.ndim else float(end)


def real(Y: Any) -> Array:
    """An array of float64, of an answer that is one of real numbers (NaN and infinity are for the caller to refuse)."""
    if isinstance(Y, np.ma.MaskedArray) and np.ma.is_masked(Y):
        raise TypeError("it returns an array with masked entries, and all of them are wanted")
    Y = np.asarray(Y)
    if np.iscomplexobj(Y):
        raise TypeError("it returns complex numbers, and real ones are wanted")
    return Y.astype(np.float64)


def enclosed(name: str, extension: Callable[..., Any], low: Array, high: Array, shape: tuple[int, ...]) -> Any:
    """What an interval extension answers about boxes (boxes, …), one for each: two arrays of this shape (or numbers),
    low ≤ high."""
    wanted = f"The interval extension of {name} must return (low, high), arrays of shape {shape}"
    try:
        with printed_to_stderr():
            bottom, top = extension(low.copy(), high.copy())
        bottom, top = real(bottom), real(top)
    except ThereExistsError:
        raise
    except (Exception, SystemExit) as error:
        reason = unless_memory(error)
        raise InvalidTarget(f"{wanted}; it failed: {reason}") from error
    if any(side.shape not in ((), shape) for side in (bottom, top)):
        raise InvalidTarget(f"{wanted}, or two numbers; it returned {bottom.shape} and {top.shape} instead.")
    ordered = np.broadcast_to(bottom <= top, shape)  # False for NaN
    if not ordered.all():
        box = int(np.argmin(ordered.reshape(len(low), -1).all(axis=1)))
        raise InvalidTarget(
            f"{wanted} with low ≤ high; it returned NaN or low > high for the box from {low[box].tolist()} to "
            f"{high[box].tolist()}."
        )
    return np.broadcast_to(bottom, shape), np.broadcast_to(top, shape)
