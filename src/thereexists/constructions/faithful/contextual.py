"""Is a table of ids a contextual mapping? A verdict, with the colliding pair as evidence.

Definition (Yun et al. 2020, Definition 3.1). q is a contextual mapping on a finite set of sequences if (1) the n ids
of a sequence are distinct, and (2) no id of a sequence is an id of another one. For an equivariant q, sequences that
are permutations of each other count as the same sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
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
        InvalidInput: the shapes do not fit.
    """
    ids, sequences = np.asarray(ids), np.asarray(sequences)
    if ids.ndim != 2 or ids.size == 0:
        raise InvalidInput(f"'ids' must be a non-empty array (count, n); got the shape {ids.shape} instead.")
    if sequences.shape[:2] != ids.shape:
        raise InvalidInput(
            f"'sequences' must be an array (count, n, d) with (count, n) = {ids.shape}; got {sequences.shape} instead."
        )
    if not np.isfinite(ids.astype(np.float64)).all():
        raise InvalidInput("'ids' must be finite; got NaN or infinity.")
    count, n = ids.shape
    same = _equal_sequences(sequences.reshape(count, n, -1), equivariant)

    order = np.argsort(ids, axis=None, kind="stable")
    flat, row, token = ids.ravel()[order], order // n, order % n
    # Runs of equal ids; any two different owners in a run are a collision, and then its first entry collides too.
    start = np.r_[True, flat[1:] != flat[:-1]]
    first = np.flatnonzero(start)[np.cumsum(start) - 1]
    within = (row == row[first]) & (token != token[first])
    across = same[row] != same[row[first]]
    for bad, reason in ((within, "two tokens of one sequence share the id"), (across, "two sequences share the id")):
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            pair = ((int(row[first[at]]), int(token[first[at]])), (int(row[at]), int(token[at])))
            return Verdict(False, (f"{reason} {flat[at]}: (sequence, token) {pair[0]} and {pair[1]}",), pair)
    return Verdict(True, (f"all {len(np.unique(flat)):,} ids of {count:,} sequences are distinct where they must be",))


def _equal_sequences(sequences: np.ndarray, equivariant: bool) -> np.ndarray:
    """A label per sequence, equal for equal sequences (up to the order of tokens, if equivariant): (count,)."""
    count, n, d = sequences.shape
    if equivariant:
        column = np.unique(sequences.reshape(-1, d), axis=0, return_inverse=True)[1].reshape(count, n)
        sequences = np.sort(column, axis=1)[:, :, None]
    return np.unique(sequences.reshape(count, -1), axis=0, return_inverse=True)[1].reshape(count)
