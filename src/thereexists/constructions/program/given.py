"""Numbers that a user gives: real ones as float64, or a sentence. Nothing is dropped, and no text is read as a number.

NumPy turns "1" and dates into numbers, and drops masks and imaginary parts. A program with such a constant would
be another one than was meant, and would be proved all the same.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.functions.target import Array

LARGEST = 2.0**100  # constants beyond it would overflow in float32 sooner or later
SMALLEST = 2.0**-900  # of margins, errors and divisors: LARGEST divided by it is a number, with room


def real_array(name: str, what: str, given: Any) -> Array:
    """The numbers of an array or of nested lists, as float64; they may still be infinite or no numbers."""
    array = None
    if not isinstance(given, np.ma.MaskedArray):
        try:
            array = np.asarray(given)
            if array.dtype.kind == "O" and all(isinstance(number, numbers.Real) for number in array.flat):
                array = array.astype(np.float64)  # fractions, and whole numbers beyond int64
        except Exception:  # ragged lists, whole numbers beyond float64, tensors elsewhere, arrays of other libraries
            array = None
    if array is None or array.dtype.kind not in "biuf":
        raise InvalidInput(f"'{name}' takes {what} of real numbers; got {describe(given)} instead.")
    return array.astype(np.float64)


def any_array(name: str, what: str, given: Any) -> np.ndarray:
    """NumPy's array of it, whatever it holds; of ragged lists there is none."""
    try:
        return np.asarray(given)
    except Exception:
        raise InvalidInput(f"'{name}' takes {what}; got {describe(given)} instead.") from None


def finite_array(name: str, what: str, given: Any) -> Array:
    array = real_array(name, what, given)
    if not np.isfinite(array).all():
        raise InvalidInput(f"'{name}' takes {what} of finite numbers; got {array[~np.isfinite(array)][0]} in it.")
    if (np.abs(array) > LARGEST).any():
        raise InvalidInput(
            f"'{name}' takes {what} of at most 2^100, to stay within float32; got {np.abs(array).max()}."
        )
    return array


@contextmanager
def within_float64() -> Iterator[None]:
    """Of what is made of given numbers, one by one: it may become larger than any float64."""
    try:
        yield
    except OverflowError:
        raise CannotBuild(
            "A value or a weight of this program exceeds the largest float64, 1.8e308; scale the inputs or the "
            "weights down."
        ) from None


def finite_number(name: str, what: str, given: Any) -> float:
    """One real number, or an array without dimensions that holds one, of at most ``LARGEST``."""
    number = _number(given)
    if not math.isfinite(number):
        raise InvalidInput(f"'{name}' takes a finite number as {what}; got {describe(given)} instead.")
    if abs(number) > LARGEST:
        raise InvalidInput(
            f"'{name}' takes at most 2^100 as {what} (to stay within float32); got {describe(given)} instead."
        )
    return number


def positive(name: str, what: str, given: Any) -> float:
    """A margin, an error, a temperature: from 2^-900 to 2^100; no Boolean, which would be 1."""
    number = math.nan if _is_boolean(given) else _number(given)
    if not SMALLEST <= number <= LARGEST:
        raise InvalidInput(f"'{name}' takes a positive {what}, from 2^-900 to 2^100; got {describe(given)} instead.")
    return number


def not_negative(name: str, what: str, given: Any) -> float:
    """A size: from 0 to 2^100."""
    number = math.nan if _is_boolean(given) else _number(given)
    if not 0 <= number <= LARGEST:
        raise InvalidInput(f"'{name}' takes a {what} from 0 to 2^100; got {describe(given)} instead.")
    return number


def _is_boolean(given: Any) -> bool:
    return isinstance(given, bool) or getattr(given, "dtype", None) == np.bool_


def _number(given: Any) -> float:
    """NaN for what is none."""
    try:
        array = real_array("", "", given)
    except InvalidInput:
        return math.nan
    return math.nan if array.ndim else float(array)


def whole_number(name: str, what: str, given: Any) -> int:
    if isinstance(given, bool | np.bool_) or not isinstance(given, int | np.integer):
        raise InvalidInput(f"'{name}' takes {what}; got {describe(given)} instead.")
    return int(given)


def has_dimensions(given: Any) -> bool:
    """Whether this is a list or an array, well-formed or not, and no single number."""
    return isinstance(given, list | tuple) or (not isinstance(given, type) and getattr(given, "ndim", 0) != 0)


def describe(given: Any) -> str:
    shape = None if isinstance(given, type) else getattr(given, "shape", None)
    if isinstance(given, np.ma.MaskedArray):
        return "an array with a mask"
    if shape:
        return f"an array of the shape {tuple(shape)} and the kind {getattr(given, 'dtype', type(given).__name__)}"
    if isinstance(given, int) and abs(given) > 10**40:
        return f"a whole number of {given.bit_length():,} bits"  # Python writes no more than 4,300 digits
    text = repr(given)
    return text if len(text) <= 80 else f"{text[:77]}…"
