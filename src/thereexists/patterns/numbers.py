"""The numbers that parts are made of, checked once, where a part is made.

Parts compute with int64: ``k + shift``, ``block · size``, ``k XOR mask``. A number beyond ``FARTHEST`` could wrap
around, a negative mask leads before the first token, and both would end as an address in a kernel. Tokens are numbered
0 … FARTHEST − 1 at most, so distances between them stay below FARTHEST; a distance or a period beyond it therefore
means the same as FARTHEST itself, and ``near`` puts that in its place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import shown as shown
from thereexists.core.plain_numbers import whole as whole

FARTHEST = (1 << 31) - 1


def near(value: Any, what: str, least: int | None = None) -> int:
    """A distance or a period, from ``least`` on, without what lies beyond every token."""
    return max(-FARTHEST, min(whole(value, what, least), FARTHEST))


def vector(values: Any, what: str, least: int = -(1 << 63), most: int = (1 << 63) - 1) -> np.ndarray:
    """``values`` as a vector of int64 in ``[least, most]``, a copy: the caller may go on with the array."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):  # lists of unequal lengths
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidInput(f"{what} must be a list of whole numbers; got {shown(values)}.")
    if array.size and not (least <= int(array.min()) and int(array.max()) <= most):
        far = int(array.min()) if int(array.min()) < least else int(array.max())
        raise InvalidInput(f"{what} must be whole numbers from {least} to {most}; one is {far}.")
    return array.astype(np.int64)


def as_tokens(given: Any) -> Any:
    """Numbers of tokens, an array of any shape or a tensor, in a type in which ``j − k`` does not wrap around.

    A tensor is looked at by its type alone, so that it can be traced.
    """
    if hasattr(given, "is_meta"):  # a tensor; nothing here imports torch
        return given if given.dtype.is_signed and given.dtype.itemsize >= 4 else given.long()
    array = np.asarray(given)
    if array.size and (array.dtype.kind not in "iu" or int(array.max()) > np.iinfo(np.int64).max):
        raise InvalidInput(f"Tokens must be whole numbers below 2^63; got {shown(given)}.")
    return array.astype(np.int64, copy=False)


def of_kind(value: Any, kind: str, what: str) -> Any:
    """The value in Python's own numbers: those of NumPy wrap around (``-window`` of an unsigned one is large).

    Refused if it is not what an annotation says, read narrowly: 2.0 and true are no int, 1 is no bool.
    """
    fits, words = _KINDS[kind]
    if not fits(value):
        raise InvalidInput(f"{what} must be {words}; got {shown(value)}.")
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [int(number) for number in value] if isinstance(value, list | tuple) else value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def _is_list(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and (value.dtype.kind in "iu" or not len(value))
    return isinstance(value, range) or (isinstance(value, list | tuple) and all(map(_is_whole, value)))


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float | np.floating) and bool(np.isfinite(value)))


_KINDS = {
    "int": (_is_whole, "a whole number"),
    "bool": (lambda value: isinstance(value, bool | np.bool_), "true or false"),
    "int | None": (lambda value: value is None or _is_whole(value), "a whole number"),
    "float | None": (lambda value: value is None or _is_number(value), "a number"),
    "int | Sequence[int]": (lambda value: _is_whole(value) or _is_list(value), "a whole number or a list of them"),
}


def inside(tokens: np.ndarray, n: int, what: str) -> None:
    """The last look before numbers become addresses: a part that is wrong in itself fails here, not in a kernel."""
    if len(tokens) and not (tokens.min() >= 0 and tokens.max() < n):
        far = int(tokens.min() if tokens.min() < 0 else tokens.max())
        raise InvalidInput(f"{what} leads to token {far}; the step has tokens 0..{n - 1}.")
