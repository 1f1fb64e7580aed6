"""Sparse matrices of a stranger: scipy's compiled code follows index arrays blindly, so they are checked first."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput

_FORMATS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "bsr": ("indices", "indptr"),
            "coo": ("row", "col"), "dia": ("offsets",)}  # fmt: skip
_EMPTY_ROWS = 1 << 20  # rows without an entry take memory too, and no room in the file


def from_arrays(arrays: dict[str, np.ndarray], path: str | Path) -> Any:
    """The matrix that ``scipy.sparse.save_npz`` wrote as these arrays."""
    from scipy import sparse

    word = arrays["format"]
    kind = word.item() if word.ndim == 0 and word.dtype.kind in "SU" else None
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if kind not in _FORMATS:
        raise InvalidInput(f"{path} is not a sparse matrix: its 'format' is not one of {', '.join(_FORMATS)}.")
    missing = [name for name in ("shape", "data", *_FORMATS[kind]) if name not in arrays]
    if missing:
        raise InvalidInput(f"{path} is not a sparse matrix: it has no '{missing[0]}'.")
    shape, data = arrays["shape"], arrays["data"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or data.dtype.kind not in "biuf":
        raise InvalidInput(f"{path} is not a sparse matrix: 'shape' must be two whole numbers, 'data' real numbers.")
    data = data_for_scipy(data)
    sides: tuple[int, int] = (int(shape[0]), int(shape[1]))
    if min(sides) < 0 or max(sides) > _EMPTY_ROWS + sum(array.size for array in arrays.values()):
        raise InvalidInput(f"{path} states a matrix of {sides[0]:,} × {sides[1]:,}, almost all of it empty rows.")
    index = [arrays[name] for name in _FORMATS[kind]]
    if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in index):
        raise InvalidInput(f"{path} is not a sparse matrix: {' and '.join(_FORMATS[kind])} must be whole numbers.")
    index = [array.astype(np.int64) for array in index]
    if kind in ("csr", "csc", "bsr"):
        check_compressed(SimpleNamespace(format=kind, shape=sides, data=data, indices=index[0], indptr=index[1]))
        make = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}[kind]
        return make((data, index[0], index[1]), shape=sides)
    if kind == "coo":
        row, column = index
        if data.ndim != 1 or not len(row) == len(column) == len(data) or _outside(row, sides[0]):
            raise InvalidInput(f"{path}: 'row', 'col' and 'data' must be equally long, and rows in 0..{sides[0] - 1}.")
        if _outside(column, sides[1]):
            raise InvalidInput(f"A column index lies outside 0..{sides[1] - 1}. Got {column.min()}..{column.max()}.")
        return sparse.coo_array((data, (row, column)), shape=sides)
    if data.ndim != 2 or len(data) != len(index[0]) or len(np.unique(index[0])) != len(index[0]):
        raise InvalidInput(f"{path} is not a sparse matrix: 'data' must have one row for each of distinct 'offsets'.")
    if _outside(index[0] + sides[0], sides[0] + sides[1]):
        raise InvalidInput(f"{path} is not a sparse matrix: a diagonal of 'offsets' lies outside of it.")
    return sparse.dia_array((data, index[0]), shape=sides)


def data_for_scipy(data: np.ndarray) -> np.ndarray:
    """The same numbers in a type that scipy's compiled code has: no half precision, no foreign order of bytes."""
    if data.dtype.kind == "f" and data.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # a long double may become infinite, which every caller refuses or counts
            return data.astype(np.float64)
    return data.astype(data.dtype.newbyteorder("="), copy=False)


def with_plain_data(A: Any) -> Any:
    """A scipy array with such data; one that has it already is returned as it is."""
    from scipy import sparse

    if A.dtype.kind not in "biuf" or not hasattr(A, "data") or not hasattr(A.data, "dtype"):
        return A
    data = data_for_scipy(A.data)
    if data is A.data:
        return A
    if A.format in ("csr", "csc", "bsr"):
        make = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}[A.format]
        return make((data, A.indices, A.indptr), shape=A.shape)
    if A.format == "coo":
        return sparse.coo_array((data, A.coords), shape=A.shape)
    if A.format == "dia":
        return sparse.dia_array((data, A.offsets), shape=A.shape)
    return A.astype(np.float64)


def check_compressed(A: Any) -> None:
    """Refuse a CSR, CSC or BSR array whose index arrays do not describe a matrix of its shape."""
    indptr, indices = np.asarray(A.indptr), np.asarray(A.indices)
    blocks = (1, 1) if A.format != "bsr" else A.data.shape[1:]
    right = indptr.dtype.kind == indices.dtype.kind == "i" and indptr.ndim == indices.ndim == 1
    right = right and A.data.ndim == (3 if A.format == "bsr" else 1) and len(A.data) == len(indices)
    right = right and min(blocks) > 0 and all(side % block == 0 for side, block in zip(A.shape, blocks, strict=True))
    sides = [side // block for side, block in zip(A.shape, blocks, strict=True)] if right else [0, 0]
    rows, columns = reversed(sides) if A.format == "csc" else sides
    right = right and len(indptr) == rows + 1
    if not right or indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
        raise InvalidInput("The CSR arrays do not fit together: indptr must rise from 0 to len(indices) == len(data).")
    if _outside(indices, columns):
        raise InvalidInput(f"A column index lies outside 0..{columns - 1}. Got {indices.min()}..{indices.max()}.")


def _outside(index: np.ndarray, side: int) -> bool:
    return len(index) > 0 and not (0 <= index.min() and index.max() < side)
