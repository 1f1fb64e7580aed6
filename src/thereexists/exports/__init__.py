"""Compact witnesses in stock formats. An export is read back, run and compared before it is said to be done."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from thereexists.core.atomic_files import no_empty_folders, the_error_in_words
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.storage import check_place

FORMATS = ("onnx", "hf", "torch")
MARK = "thereexists_export.json"


def export(witness: Any, to: str, folder: str | Path, dtype: str = "float32") -> dict[str, Any]:
    """Write ``witness`` to ``folder`` as onnx, hf or torch; everything is compared before the folder appears."""
    from thereexists.witness.load import loaded

    if to not in FORMATS:
        raise InvalidInput(f"An export goes to one of {', '.join(FORMATS)}; got {to!r} instead.")
    witness = loaded(witness)
    if not witness.network.wide:
        raise CannotBuild(
            f"Exports are for compact witnesses: this one has {witness.network.depth:,} narrow layers that need "
            "float64, which stock runtimes do not run well. Build it with construction='compact' and export that."
        )
    folder = Path(folder)
    with no_empty_folders(folder):
        return _written(witness, to, folder, dtype)


def _written(witness: Any, to: str, folder: Path, dtype: str) -> dict[str, Any]:
    from thereexists.exports.check import compare

    _check_free(folder)
    converted = witness.to(dtype)  # refused where it is not safe
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with the_error_in_words(folder):
            run = _writer(to)(converted, beside)
            compared, what = compare(converted, run)
            (beside / MARK).write_text(f'{{"format": "{to}", "dtype": "{dtype}", "compared": {compared}}}\n')
            os.chmod(beside, 0o755)
            if folder.exists():
                shutil.rmtree(folder)
            beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    files = sorted(file.name for file in folder.iterdir() if file.name != MARK)
    return {"folder": str(folder), "format": to, "dtype": dtype, "files": files, "compared": compared, "of": what}


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
    from thereexists.exports.torch_format import write_torch

    return write_torch


def _check_free(folder: Path) -> None:
    """Only an empty folder or an earlier export is replaced."""
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / MARK).is_file())):
        raise InvalidInput(f"{folder} exists and is not an export; it is left alone. Choose another folder with --out.")
    check_place(folder)
