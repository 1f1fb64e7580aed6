"""Heads and targets on disk: safetensors and JSON, sparse .npz; no pickle; renamed when they are whole."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists._version import __version__
from thereexists.core import storage
from thereexists.core.atomic_files import write_beside
from thereexists.core.errors import BadWitnessFile, InvalidInput
from thereexists.core.plain_arrays import read_npy, read_npz
from thereexists.core.sparse_arrays import from_arrays
from thereexists.heads.bound import theorem_hidden_size
from thereexists.heads.figures import number
from thereexists.heads.head import Head
from thereexists.heads.matrix import AttentionMatrix, as_matrix, from_csr
from thereexists.heads.stated import StatedHead, StatedVerdict, StatedVerification

_TENSORS = {"X", "W_Q", "W_K", "indptr", "indices", "log_values", "words"}


def save_head(head: Head, path: str | Path) -> None:
    """A directory with ``head.safetensors`` (X, weights, target) and ``head.json`` (everything said about it)."""
    tensors = {
        "X": head.X.contiguous(),
        "W_Q": head.W_Q.contiguous(),
        "W_K": head.W_K.contiguous(),
        "indptr": torch.tensor(head.target.indptr),
        "indices": torch.tensor(head.target.indices),
        "log_values": torch.tensor(head.target.log_values),
    }
    if head.words is not None:
        tensors["words"] = head.words.contiguous()
    v = asdict(head.verification) | {"verdict": asdict(head.verdict)}
    record = {
        "package_version": __version__,
        "report": Head.report(head),  # the figures alone: a loaded head's own report adds whose word they are
        "method": head.method,
        "eps1": head.eps1,
        "eps2": head.eps2,
        "seed": head.seed,
        "theorem_hidden_size": head.theorem_hidden_size,
        "dtype_needed": head.dtype_needed,
        "seconds": head.seconds,
        "settings": head.settings,
        "verification": v,
    }
    storage.write(Path(path), _plain(record), tensors, storage.HEAD)


def load(path: str | Path) -> StatedHead:
    """Read a saved head. What it says about itself is its author's word; ``verify`` checks again.

        te.heads.fit(te.heads.random_matrix(16, 2)).save("h")
        te.heads.load("h")

    Args:
        path: the folder.

    Returns:
        The head, whose figures are its author's word.

    Raises:
        InvalidInput: there is no head.
        BadWitnessFile: it is malformed or was changed.
    """
    return load_with_record(path)[0]


def load_with_record(path: str | Path) -> tuple[StatedHead, dict[str, Any]]:
    """The same, with the record as it stands in the file."""
    path = Path(path)
    record, tensors = storage.read(path, storage.HEAD)
    if unknown := sorted(tensors.keys() - _TENSORS):
        raise BadWitnessFile(
            f"The saved head in {path} has arrays that no head has: {', '.join(unknown)[:80]}; the file was altered, "
            "make it again."
        )
    try:
        target = _target(tensors)
        X, W_Q, W_K = tensors["X"], tensors["W_Q"], tensors["W_K"]
        _check_arrays(path, X, W_Q, W_K, tensors.get("words"), target)
        eps1, eps2 = _float(record["eps1"], "eps1"), _float(record["eps2"], "eps2")
        return StatedHead(
            X,
            W_Q,
            W_K,
            target,
            _word(record["method"], "method"),
            eps1,
            eps2,
            _count(record["seed"], "seed"),
            _verification(record["verification"]),
            theorem_hidden_size(target.length, target.k, target.gamma, eps1, eps2),  # never the stored one
            _short(_word(record["dtype_needed"], "dtype_needed"), "dtype_needed"),
            _float(record["seconds"], "seconds"),
            dict(record["settings"]),
            tensors.get("words"),
        ), record
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, InvalidInput) as broken:
        said = f"no {broken}" if isinstance(broken, KeyError) else str(broken)
        raise BadWitnessFile(f"The saved head in {path} is incomplete or altered ({said}); make it again.") from None


def _target(tensors: dict[str, torch.Tensor]) -> AttentionMatrix:
    indptr, indices, log_values = (tensors[n].numpy() for n in ("indptr", "indices", "log_values"))
    kinds = (indptr.dtype, indices.dtype, log_values.dtype) == (np.int64, np.int64, np.float64)
    if not (kinds and indptr.ndim == indices.ndim == log_values.ndim == 1 and np.isfinite(log_values).all()):
        raise InvalidInput("the target must be three lists of numbers, the logarithms finite")
    made = from_csr(indptr, indices, np.exp(log_values - log_values.max(initial=-np.inf)).clip(1e-300))
    if not np.array_equal(made.indices, indices):
        raise InvalidInput("the columns of every row of the target must be in increasing order")
    return AttentionMatrix(len(indptr) - 1, indptr, indices, log_values)


def _check_arrays(
    path: Path,
    X: torch.Tensor,
    W_Q: torch.Tensor,
    W_K: torch.Tensor,
    words: torch.Tensor | None,
    target: AttentionMatrix,
) -> None:
    """Shapes and kinds; and ``X`` is the leading word of the sum, the number that float64 would keep of it."""
    fits = X.ndim == W_Q.ndim == 2 and X.shape == (target.length, W_Q.shape[0]) and W_Q.shape == W_K.shape
    fits = fits and all(side >= 1 for side in W_Q.shape)
    fits = fits and (words is None or (words.ndim == 3 and len(words) >= 1 and words.shape[1:] == X.shape))
    if not fits:
        raise BadWitnessFile(
            f"The arrays in {path} do not fit: X {tuple(X.shape)}, W_Q {tuple(W_Q.shape)}, W_K {tuple(W_K.shape)}, "
            f"words {None if words is None else tuple(words.shape)}, target length {target.length}. The file was "
            "altered; make it again."
        )
    given = [X, W_Q, W_K] if words is None else [X, W_Q, W_K, words]
    if any(array.dtype != torch.float64 for array in given):
        raise InvalidInput("every array of a head must be in float64")
    if words is None:
        return
    w = words.numpy()
    if not np.isfinite(w).all() or not torch.equal(X, words[0]):
        raise InvalidInput("X must be the first of the words, and every word finite")
    if (np.abs(w[1:]) > np.spacing(np.abs(w[:-1])) / 2).any():
        raise InvalidInput("a word must be at most half a unit in the last place of the word before it")


def _verification(stated: dict[str, Any]) -> StatedVerification:
    """What was stated of the verification, every entry of its kind; see ``stated.py`` for what it is worth."""
    verdict, reasons = stated["verdict"], stated["verdict"]["reasons"]
    told = verdict["holds"]
    if not (told is None or isinstance(told, bool)) or not isinstance(reasons, list):
        raise InvalidInput("a verdict must be true, false or null, with a list of reasons")
    numbers = {n: _float(stated[n], n) for n in ("leakage", "ratio_error", "max_logit", "rounding", "seconds")}
    counts = {n: _count(stated[n], n) for n in ("worst_row", "rows")}
    words = {n: _word(stated[n], n) for n in ("dtype", "device")}
    kept = StatedVerdict(told, tuple(_word(line, "a reason") for line in reasons), verdict["evidence"])
    return StatedVerification(verdict=kept, **numbers, **counts, **words)  # pyright: ignore[reportArgumentType]


def _float(value: Any, name: str) -> float:
    found = number(value)
    if found is None:
        raise InvalidInput(f"{name} must be a number, and is {str(value)[:40]!r}")
    return found


def _count(value: Any, name: str) -> int:
    """A whole number as JSON writes one: 2.9 is none, nor are 2.0 and true."""
    if type(value) is not int:
        raise InvalidInput(f"{name} must be a whole number, and is {str(value)[:40]!r}")
    return value


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a word, and is {str(value)[:40]!r}")
    return value


def _short(word: str, name: str) -> str:
    """The name of a dtype, or a number of bits: Python reads no number of thousands of digits."""
    if len(word) > 40:
        raise InvalidInput(f"{name} must be a dtype or a number of bits, and is a text of {len(word):,} characters")
    return word


def save_matrix(target: AttentionMatrix, path: str | Path) -> None:
    """``scipy.sparse.save_npz`` of the row-normalised matrix.

        te.heads.save_matrix(te.heads.random_matrix(16, 2), "target.npz")

    Args:
        target: the matrix.
        path: of the file.

    Raises:
        InvalidInput: nothing can be written there.
    """
    from scipy.sparse import save_npz

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_beside(path, lambda stream: save_npz(stream, target.to_scipy()))


def load_matrix(path: str | Path) -> AttentionMatrix:
    """A sparse matrix saved by ``scipy.sparse.save_npz``.

        te.heads.save_matrix(te.heads.random_matrix(16, 2), "target.npz")
        te.heads.load_matrix("target.npz")

    Args:
        path: of the file.

    Returns:
        The target, checked.

    Raises:
        InvalidInput: there is no such file, or it holds no sparse matrix.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}. Give a sparse matrix saved by scipy.sparse.save_npz.")
    try:
        arrays = read_npz(path)
    except InvalidInput as error:
        raise InvalidInput(_not_sparse_file(path, _alone(path)) + f" ({error})") from None
    if "format" not in arrays:
        raise InvalidInput(_not_sparse_file(path, list(arrays.values())))
    return as_matrix(from_arrays(arrays, path))


def _alone(path: Path) -> list[np.ndarray]:
    """The array of an .npy file that was given for a sparse matrix."""
    try:
        return [read_npy(path)]
    except InvalidInput:
        return []


def _not_sparse_file(path: Path, arrays: list[np.ndarray]) -> str:
    square = [a for a in arrays if a.ndim == 2]
    if square:
        cells = square[0].shape[0] * square[0].shape[1]
        return (
            f"{path} holds a dense {square[0].shape[0]}×{square[0].shape[1]} array "
            f"({cells * 8 / 1e6:,.1f} MB in float64; "
            "8·L² bytes at any L). The target has to be sparse: save it with "
            "scipy.sparse.save_npz(path, scipy.sparse.csr_array(A)) if most entries are zero."
        )
    return f"{path} is not a sparse matrix. Save it with scipy.sparse.save_npz(path, scipy.sparse.csr_array(A))."


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value
