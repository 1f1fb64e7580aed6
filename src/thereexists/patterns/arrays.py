"""Patterns from arrays: dense masks, scipy CSR arrays, and ``.npz`` files with one of either per step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_arrays import read_npz
from thereexists.core.sparse_arrays import check_compressed, from_arrays, with_plain_data
from thereexists.patterns.numbers import vector, whole
from thereexists.patterns.parts import Explicit, Rect
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step

MOST_LISTED = 1 << 26  # connections of a dense mask: numpy writes two numbers of 8 bytes for each


def from_csr(steps: Any, name: str = "csr") -> Pattern:
    """One step per scipy sparse array; row ``k`` = what token ``k`` attends to. Stored zeros are not connections.

        from scipy.sparse import eye_array

        te.patterns.from_csr([eye_array(4, format="csr")])

    Args:
        steps: scipy sparse arrays (n, n), one for each step.
        name: what the pattern is called.

    Returns:
        A pattern.

    Raises:
        InvalidInput: one of them is not a square sparse array.
    """
    arrays = steps if isinstance(steps, Sequence) else [steps]
    return Pattern(name, tuple(_from_sparse(array, l) for l, array in enumerate(arrays)))


def from_mask(mask: np.ndarray, name: str = "mask") -> Pattern:
    """A Boolean ``(n, n)`` or ``(p, n, n)`` array; row ``k`` = what token ``k`` attends to.

        te.patterns.from_mask(np.tri(4, dtype=bool))

    Args:
        mask: (n, n) or (p, n, n) Booleans.
        name: what the pattern is called.

    Returns:
        A pattern.

    Raises:
        InvalidInput: it is not such an array.
    """
    try:
        mask = np.asarray(mask)
    except ValueError:
        raise InvalidInput("A mask must have shape (n, n) or (p, n, n); these rows have different lengths.") from None
    if mask.ndim == 2:
        mask = mask[None]
    if mask.ndim != 3 or mask.shape[1] != mask.shape[2] or 0 in mask.shape:
        raise InvalidInput(f"A mask must have shape (n, n) or (p, n, n) with n, p ≥ 1; got {mask.shape}.")
    if mask.dtype != bool:
        if not np.isin(mask, (0, 1)).all():
            raise InvalidInput(f"A mask must hold Booleans, or zeros and ones; got {mask.dtype} with other values.")
        mask = mask.astype(bool)
    if (count := np.count_nonzero(mask)) > MOST_LISTED:
        raise InvalidInput(
            f"A mask lists its connections one by one, at most {MOST_LISTED:,}; this one has {count:,}. Describe it by "
            "windows, strides and blocks instead (te.patterns)."
        )
    return Pattern(name, tuple(_explicit(m.shape[0], *np.nonzero(m)) for m in mask))


def from_block_mask(mask: np.ndarray, block: int, n: int | None = None, name: str = "blocks") -> Pattern:
    """Block-sparse: a mask of blocks, ``(b, b)`` or ``(p, b, b)``, each ``block`` tokens wide, the last cut at n.

        te.patterns.from_block_mask(np.eye(4, dtype=bool), block=4)

    Stored as rectangles, and counted as such: no pair of tokens is listed.

    Args:
        mask: which blocks are connected.
        block: tokens in a block.
        n: how many tokens, if the last block is cut.
        name: what the pattern is called.

    Returns:
        A pattern.

    Raises:
        InvalidInput: the mask is not square and Boolean, or the sizes do not fit.
    """
    blocks = from_mask(mask, name)
    size, count = whole(block, "'block'", 1), blocks.n
    n = whole(size * count if n is None else n, "The number of tokens", 1)
    if not (count - 1) * size < n <= count * size:
        raise InvalidInput(f"{count} blocks of {size} tokens hold {(count - 1) * size + 1}..{count * size}; got {n}.")

    def rectangle(b: int, columns: np.ndarray) -> Rect:
        tokens = (columns[:, None] * size + np.arange(size)).ravel()
        return Rect(range(b * size, min((b + 1) * size, n)), tokens[tokens < n])

    steps = [Step(n, tuple(rectangle(b, step.rows(b)) for b in range(count))) for step in blocks.steps]
    return Pattern(name, tuple(steps), {"block": size})


def from_rows(rows: Sequence[Sequence[int] | np.ndarray], name: str = "rows") -> Pattern:
    """A one-step pattern from lists: ``rows[k]`` = the tokens that token ``k`` attends to.

        te.patterns.from_rows([[0, 1], [1], [1, 2]])

    Args:
        rows: for each token those that it attends to.
        name: what the pattern is called.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a row is empty, or names a token that does not exist.
    """
    n = len(rows)
    if n == 0:
        raise InvalidInput("A pattern needs at least one token; got no rows.")
    tokens = [vector(row, f"Row {k}") for k, row in enumerate(rows)]
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in tokens])))
    return Pattern(name, (_checked(n, indptr, np.concatenate(tokens), 0),))


def load_npz(path: str | Path) -> Pattern:
    """An ``.npz`` file: a scipy sparse array (``save_npz``), or dense masks, or CSR steps, in the order of their names.

        np.savez("mask.npz", mask=np.tri(4, dtype=bool))
        te.patterns.load_npz("mask.npz")

    Dense: each array is a ``(n, n)`` or ``(p, n, n)`` mask. CSR: ``indptr`` and ``indices`` for one step, or
    ``indptr_0``, ``indices_0``, ``indptr_1``, … for several.

    Args:
        path: of the file.

    Returns:
        A pattern.

    Raises:
        InvalidInput: there is no such file, or it holds no pattern.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    arrays = read_npz(path)
    if not arrays:
        raise InvalidInput(f"{path} holds no arrays; it needs one mask or one CSR pair per step.")
    name = path.stem
    if "format" in arrays:  # scipy.sparse.save_npz
        return from_csr([from_arrays(arrays, path)], name)
    if any(key.startswith("indptr") for key in arrays):
        return _from_pairs(arrays, name, path)
    named = sorted(arrays, key=_counted)
    masks = [m for key in named for m in (arrays[key] if arrays[key].ndim == 3 else [arrays[key]])]
    return Pattern(name, tuple(step for m in masks for step in from_mask(m).steps))


def _counted(name: str) -> tuple[str, int]:
    """arr_2 comes before arr_10."""
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    return (stem, int(digits)) if 0 < len(digits) < 10 else (name, -1)


def _from_pairs(arrays: dict[str, np.ndarray], name: str, path: Path) -> Pattern:
    tails = sorted(
        (key.removeprefix("indptr") for key in arrays if key.startswith("indptr")), key=lambda t: (len(t), t)
    )
    steps = []
    for l, tail in enumerate(tails):
        if "indices" + tail not in arrays:
            raise InvalidInput(f"{path} has 'indptr{tail}' but no 'indices{tail}'; a CSR step needs both.")
        indptr, indices = arrays["indptr" + tail], arrays["indices" + tail]
        whole = indptr.dtype.kind in "iu" and (indices.dtype.kind in "iu" or not indices.size)
        if not whole or indptr.ndim != 1 or indices.ndim != 1 or len(indptr) < 2:
            raise InvalidInput(
                f"'indptr{tail}' and 'indices{tail}' must be vectors of whole numbers; "
                f"got {indptr.dtype} {indptr.shape}, {indices.dtype} {indices.shape}."
            )
        steps.append(_checked(len(indptr) - 1, indptr.astype(np.int64), indices.astype(np.int64), l))
    return Pattern(name, tuple(steps))


def _from_sparse(array: Any, l: int) -> Step:
    from scipy.sparse import csr_array, issparse

    if not issparse(array):
        raise InvalidInput(
            f"from_csr takes scipy.sparse arrays; step {l} is a {type(array).__name__}. Use from_mask for dense masks."
        )
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] == 0:
        raise InvalidInput(f"Step {l} must be a square array with n ≥ 1 rows; got shape {array.shape}.")
    if array.format in ("csc", "bsr"):
        check_compressed(array)
    if array.format == "coo":  # which converting would add up
        order = np.lexsort((array.col, array.row))
        row, col = array.row[order].astype(np.int64), array.col[order].astype(np.int64)
        twice = np.flatnonzero((np.diff(row) == 0) & (np.diff(col) == 0))
        if len(twice):
            k, j = int(row[twice[0]]), int(col[twice[0]])
            raise InvalidInput(f"Token {k} of step {l} lists token {j} twice; list every connection once.")
    if array.format == "csr":
        step = _checked(array.shape[0], array.indptr.astype(np.int64), array.indices.astype(np.int64), l)
        if bool(np.all(array.data)):
            return step
    csr: Any = csr_array(with_plain_data(array)).astype(bool)
    csr.eliminate_zeros()
    csr.sort_indices()
    return _checked(csr.shape[0], csr.indptr.astype(np.int64), csr.indices.astype(np.int64), l)


def _explicit(n: int, row: np.ndarray, column: np.ndarray) -> Step:
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=n))))
    return Step(n, (Explicit(indptr, column),))


def _checked(n: int, indptr: np.ndarray, indices: np.ndarray, l: int) -> Step:
    """A step from CSR arrays after every check that makes later code safe."""
    counts = np.diff(indptr)
    if indptr[0] != 0 or (counts < 0).any() or indptr[-1] != len(indices):
        raise InvalidInput(
            f"'indptr' of step {l} must rise from 0 to the number of indices ({len(indices)}); "
            f"it runs from {int(indptr[0])} to {int(indptr[-1])}{', falling in between' if (counts < 0).any() else ''}."
        )
    row = np.repeat(np.arange(n), counts)
    outside = np.flatnonzero((indices < 0) | (indices >= n))
    if len(outside):
        e = outside[0]
        raise InvalidInput(f"Token {row[e]} of step {l} attends to {indices[e]}; tokens are numbered 0..{n - 1}.")
    key = row * n + indices
    if (np.diff(key) <= 0).any():
        key = np.sort(key)
        twice = np.flatnonzero(np.diff(key) == 0)
        if len(twice):
            k, j = divmod(int(key[twice[0]]), n)
            raise InvalidInput(f"Token {k} of step {l} lists token {j} twice; list every connection once.")
        indices = key % n
    return Step(n, (Explicit(indptr, indices),))
