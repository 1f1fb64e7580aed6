"""Compact witnesses in stock formats. An export is read back, run and compared before it is said to be done."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from thereexists.core.atomic_files import no_empty_folders, the_error_in_words
from thereexists.core.dtypes import as_dtype, dtype_name
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.storage import check_place

FORMATS = ("onnx", "hf", "torch", "llama")
MARK = "thereexists_export.json"


def export(witness: Any, to: str, folder: str | Path, dtype: str = "float32") -> dict[str, Any]:
    """Write ``witness`` to ``folder`` as onnx, hf, torch or llama; everything is compared before the folder appears."""
    from thereexists.exports.check import compare
    from thereexists.witness.load import loaded

    if to not in FORMATS:
        raise InvalidInput(f"An export goes to one of {', '.join(FORMATS)}; got {to!r} instead.")
    witness = loaded(witness)
    if not witness.network.wide:
        raise CannotBuild(
            f"Exports are for compact witnesses: this one has {witness.network.depth:,} narrow layers that need "
            "float64, which stock runtimes do not run well. Build it with construction='compact' and export that."
        )
    with no_empty_folders(Path(folder)):
        _check_free(Path(folder))
        converted = witness.to(dtype)  # refused where it is not safe

        def write(beside: Path) -> dict[str, Any]:
            run = _writer(to)(converted, beside)
            compared, what = compare(converted, run)
            said = {"format": to, "dtype": dtype_name(dtype), "compared": compared, "of": what}
            return run.record(said) if to == "llama" else said  # which claims something that ``verify`` checks

        return _appears(Path(folder), write)


def export_addition(digits: int, folder: str | Path, dtype: str = "float32") -> dict[str, Any]:
    """Addition of two numbers of so many digits, as text, as a stock Llama folder: ``0123+0989=`` → ``01112``."""
    name = dtype_name(as_dtype(dtype))
    with no_empty_folders(Path(folder)):
        _check_free(Path(folder))

        def write(beside: Path) -> dict[str, Any]:
            written, compared = _needing("write_addition")(digits, name, beside)
            return written.record({"format": "llama", "dtype": name, "compared": compared, "of": "texts"})

        return _appears(Path(folder), write)


def _appears(folder: Path, write: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """Whole or not at all: written beside, and renamed when everything was compared."""
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with the_error_in_words(folder):
            mark = write(beside)
            (beside / MARK).write_text(json.dumps(mark, ensure_ascii=False) + "\n", encoding="utf-8")
            os.chmod(beside, 0o755)
            if folder.exists():
                shutil.rmtree(folder)
            beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    files = sorted(file.name for file in folder.iterdir() if file.name != MARK)
    return {
        "folder": str(folder),
        "files": files,
        **{name: mark[name] for name in ("format", "dtype", "compared", "of")},
    }


def _writer(to: str):
    if to == "onnx":
        from thereexists.exports.onnx_format import write_onnx

        return write_onnx
    if to == "hf":
        try:
            from thereexists.exports.hf_format import write_hf
        except ImportError as missing:
            raise CannotBuild(f"The hf export needs {missing.name}: pip install 'thereexists[export]'.") from None
        return write_hf
    if to == "llama":
        return _needing("write_llama")
    from thereexists.exports.torch_format import write_torch

    return write_torch


def _needing(name: str) -> Any:
    """A writer of stock Llama folders."""
    try:
        import transformers  # noqa: F401

        from thereexists.exports import llama
    except ImportError as missing:
        raise CannotBuild(f"The llama export needs {missing.name}: pip install 'thereexists[export]'.") from None
    return getattr(llama, name)


def _check_free(folder: Path) -> None:
    """Only an empty folder or an earlier export is replaced."""
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / MARK).is_file())):
        raise InvalidInput(f"{folder} exists and is not an export; it is left alone. Choose another folder with --out.")
    check_place(folder)
