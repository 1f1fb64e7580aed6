"""Is a table of ids a contextual mapping? A verdict, with the colliding pair as evidence.

Definition (Yun et al. 2020, Definition 3.1). q is a contextual mapping on a finite set of sequences if (1) the n ids
of a sequence are distinct, and (2) no id of a sequence is an id of another one. For an equivariant q, sequences that
are permutations of each other count as the same sequence.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import shown
from thereexists.core.verdict import Verdict


def is_contextual_mapping(ids: Any, sequences: Any, equivariant: bool = False) -> Verdict:
    """``ids`` (count, n) of ``sequences`` (count, n, d) or (count, n).

        te.is_contextual_mapping([[1, 2], [3, 4]], [[0, 1], [1, 0]])

    A failing verdict's evidence is ``((i, j), (i', j'))``: token j of sequence i and token j' of sequence i' share
    their id although they must not.

    Args:
        ids: (count, n).
        sequences: (count, n, d) or (count, n).
        equivariant: whether permuted sequences may share their ids.

    Returns:
        The verdict, and two tokens as evidence if it fails.

    Raises:
        InvalidInput: the shapes do not fit, or what is given is not finite real numbers.
    """
    ids, sequences = _numbers("ids", ids), _numbers("sequences", sequences)
    if ids.ndim != 2 or ids.size == 0:
        raise InvalidInput(f"'ids' must be a non-empty array (count, n); got the shape {ids.shape} instead.")
    if sequences.shape[:2] != ids.shape:
        raise InvalidInput(
            f"'sequences' must be an array (count, n, d) with (count, n) = {ids.shape}; got {sequences.shape} instead."
        )
    count, n = ids.shape
    same = _equal_sequences(_ranks(sequences).reshape(count, n, -1), equivariant)

    rank = _ranks(ids).ravel()
    order = np.argsort(rank, kind="stable")
    flat, row, token = rank[order], order // n, order % n
    # Runs of equal ids, in each of which the rows ascend, as the sort is stable. So two tokens of one sequence stand
    # side by side; and if any two sequences of a run differ, then one of them differs from the first.
    start = np.r_[True, flat[1:] != flat[:-1]]
    first = np.flatnonzero(start)[np.cumsum(start) - 1]
    before = np.maximum(np.arange(len(flat)) - 1, first)
    within = ~start & (row == row[before])
    across = same[row] != same[row[first]]
    for bad, other, reason in (
        (within, before, "two tokens of one sequence share the id"),
        (across, first, "two sequences share the id"),
    ):
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            pair = ((int(row[other[at]]), int(token[other[at]])), (int(row[at]), int(token[at])))
            return Verdict(False, (f"{reason} {ids[pair[1]]}: (sequence, token) {pair[0]} and {pair[1]}",), pair)
    return Verdict(
        True, (f"all {np.count_nonzero(start):,} ids of {count:,} sequences are distinct where they must be",)
    )


def _numbers(name: str, given: Any) -> np.ndarray:
    """An array of finite real numbers, each as it was given: NumPy rounds lists of large whole numbers to float64."""
    try:
        array = np.asarray(given)
        if array.dtype.kind == "O" or (array.dtype.kind == "f" and not hasattr(given, "dtype")):
            array = np.asarray(np.frompyfunc(_plain, 1, 1)(np.asarray(given, dtype=object)), dtype=object)
    except (TypeError, ValueError, RuntimeError):  # the last of tensors with gradients
        array = np.array("not numbers")
    real = array.dtype.kind in "biuf" or (
        array.dtype.kind == "O" and all(isinstance(x, Real) and abs(x) < math.inf for x in array.flat)  # pyright: ignore[reportOperatorIssue]
    )
    if not real or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise InvalidInput(f"'{name}' must be finite real numbers, in rows of one length; got {shown(given)} instead.")
    return array


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, np.generic) else number


def _ranks(numbers: np.ndarray) -> np.ndarray:
    """Whole numbers that are equal and ordered as these are."""
    return np.unique(numbers, return_inverse=True)[1].reshape(numbers.shape)


def _equal_sequences(sequences: np.ndarray, equivariant: bool) -> np.ndarray:
    """A label per sequence, equal for equal sequences (up to the order of tokens, if equivariant): (count,)."""
    count, n, d = sequences.shape
    if equivariant:
        column = np.unique(sequences.reshape(-1, d), axis=0, return_inverse=True)[1].reshape(count, n)
        sequences = np.sort(column, axis=1)[:, :, None]
    return np.unique(sequences.reshape(count, -1), axis=0, return_inverse=True)[1].reshape(count)
