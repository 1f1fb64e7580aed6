"""Heads and targets on disk: safetensors and JSON, sparse .npz; no pickle; written beside, then renamed."""

from __future__ import annotations

import os
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists import storage
from thereexists._version import __version__
from thereexists.errors import BadWitnessFile, InvalidInput
from thereexists.heads.head import Head
from thereexists.heads.target import SparseTarget, as_target, from_csr
from thereexists.heads.verify import Verification
from thereexists.json_files import malformed
from thereexists.verdict import Verdict


def save_head(head: Head, path: str | Path) -> None:
    """A directory with ``head.safetensors`` (X, weights, target) and ``head.json`` (everything said about it)."""
    tensors = {
        "X": head.X.contiguous(),
        "W_Q": head.W_Q.contiguous(),
        "W_K": head.W_K.contiguous(),
        "indptr": torch.from_numpy(head.target.indptr),
        "indices": torch.from_numpy(head.target.indices),
        "log_values": torch.from_numpy(head.target.log_values),
    }
    if head.words is not None:
        tensors["words"] = head.words.contiguous()
    v = asdict(head.verification) | {"verdict": asdict(head.verdict)}
    record = {
        "package_version": __version__,
        "report": head.report(),
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


def check_destination(path: Path) -> None:
    """Refuse to overwrite anything but a saved head or an empty directory."""
    storage.check_writable(path, storage.HEAD)


def load(path: str | Path) -> Head:
    """Read a saved head. What it says about itself was found when it was made; call ``verify`` to check again."""
    path = Path(path)
    record, tensors = storage.read(path, storage.HEAD)
    with malformed(path, "is not a complete head, it was altered"):
        v = record["verification"]
        verdict = Verdict(v["verdict"]["holds"], tuple(v["verdict"]["reasons"]), v["verdict"]["witness"])
        verification = Verification(**{**{n: _number(x) for n, x in v.items()}, "verdict": verdict})
        target = SparseTarget(
            len(tensors["indptr"]) - 1, *(tensors[n].numpy() for n in ("indptr", "indices", "log_values"))
        )
        from_csr(target.indptr, target.indices, np.exp(target.log_values - target.log_values.max()).clip(1e-300))
        X, W_Q, W_K = tensors["X"], tensors["W_Q"], tensors["W_K"]
        numbers = (record["eps1"], record["eps2"], record["seconds"], record["theorem_hidden_size"])
        if not all(type(x) in (int, float) for x in numbers) or not isinstance(record["settings"], dict):
            raise InvalidInput("eps1, eps2, seconds and theorem_hidden_size are numbers, settings an object")
        if any(not t.is_floating_point() or t.ndim != 2 or 0 in t.shape for t in (X, W_Q, W_K)):
            raise InvalidInput("X, W_Q and W_K are matrices of real numbers")
        if X.shape != (target.length, W_Q.shape[0]) or W_Q.shape != W_K.shape:
            raise BadWitnessFile(
                f"The arrays in {path} do not fit: X {tuple(X.shape)}, W_Q {tuple(W_Q.shape)}, W_K {tuple(W_K.shape)}, "
                f"target length {target.length}. The file was altered; make it again."
            )
        return Head(
            X,
            W_Q,
            W_K,
            target,
            record["method"],
            record["eps1"],
            record["eps2"],
            record["seed"],
            verification,
            record["theorem_hidden_size"],
            record["dtype_needed"],
            record["seconds"],
            record["settings"],
            tensors.get("words"),
        )


def save_target(target: SparseTarget, path: str | Path) -> None:
    """``scipy.sparse.save_npz`` of the row-normalised matrix."""
    from scipy.sparse import save_npz

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}-{os.getpid()}.npz")
    try:
        save_npz(beside, target.to_scipy())
        beside.rename(path)
    finally:
        beside.unlink(missing_ok=True)


def load_target(path: str | Path) -> SparseTarget:
    """A sparse matrix saved by ``scipy.sparse.save_npz``."""
    from scipy.sparse import load_npz

    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}. Give a sparse matrix saved by scipy.sparse.save_npz.")
    try:
        return as_target(load_npz(path))
    except InvalidInput:
        raise
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, AttributeError, TypeError):
        raise InvalidInput(_not_sparse_file(path)) from None


def _not_sparse_file(path: Path) -> str:
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = [loaded] if isinstance(loaded, np.ndarray) else [loaded[n] for n in loaded.files]
        square = [a for a in arrays if a.ndim == 2]
        if square:
            cells = square[0].shape[0] * square[0].shape[1]
            return (
                f"{path} holds a dense {square[0].shape[0]}×{square[0].shape[1]} array "
                f"({cells * 8 / 1e6:,.1f} MB in float64; "
                "8·L² bytes at any L). The target has to be sparse: save it with "
                "scipy.sparse.save_npz(path, scipy.sparse.csr_array(A)) if most entries are zero."
            )
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        pass
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


def _number(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf", "nan") else value
