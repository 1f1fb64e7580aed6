"""Compact witnesses in stock formats. An export is read back, run and compared before it is said to be done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from thereexists.core.dtypes import as_dtype, dtype_name
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.named_folder import folder_named
from thereexists.core.neutral import neutral
from thereexists.core.regular_files import file_sha256
from thereexists.core.whole_folders import appears

FORMATS = ("onnx", "hf", "torch", "llama")
MARK = "thereexists_export.json"


@neutral()
def export(witness: Any, to: str, folder: str | Path, dtype: str = "float32", layout: str = "llama") -> dict[str, Any]:
    """Write a witness in a stock format; everything is compared before the folder appears.

        te.export(witness, "onnx", "o")

    Args:
        witness: what ``te.build``, ``te.memorise`` or ``te.load`` gave.
        to: onnx, hf, torch or llama.
        folder: where to write; an unchanged export there is replaced, anything else is left alone.
        dtype: of the exported weights; one that is not safe is refused.
        layout: of a stock checkpoint: llama, mistral or phi3.

    Returns:
        What was written: ``folder``, ``files``, and how many cells were ``compared``.

    Raises:
        InvalidInput: there is no such format, or the folder cannot be written.
        CannotBuild: this kind of witness has no such form, or is not safe in the dtype.
    """
    from thereexists.exports.check import compare
    from thereexists.witness.verbs import witness_of

    if to not in FORMATS:
        raise InvalidInput(f"An export goes to one of {', '.join(FORMATS)}; got {to!r} instead.")
    if layout != "llama" and to != "llama":
        raise InvalidInput(f"'layout' is for stock checkpoints, which go to llama; got {layout!r} with {to!r}.")
    witness = witness_of(witness, "export")
    if not witness.network.wide:
        raise CannotBuild(
            f"Exports are for compact witnesses: this one has {witness.network.depth:,} narrow layers that need "
            "float64, which stock runtimes do not run well. Build it with construction='compact' and export that."
        )

    def write(beside: Path) -> dict[str, Any]:
        if to == "llama":  # which claims something that ``verify`` checks, of weights of its own
            name = dtype_name(as_dtype(dtype))
            return _claimed(witness.lowerable(), name, beside, witness, layout=layout)
        converted = witness.to(dtype)  # refused where it is not safe
        compared, what = compare(converted, _writer(to)(converted, beside))
        return {"format": to, "dtype": dtype_name(dtype), "compared": compared, "of": what}

    return _appears(folder_named(folder), write)


def export_claim(
    claim: Any, folder: str | Path, dtype: str = "float32", beside: str = "", layout: str = "llama"
) -> dict[str, Any]:
    """A stock Llama folder for what has no witness of its own, such as addition.

        from thereexists.certificates.llama.addition import Addition
        from thereexists.exports import export_claim

        claim = Addition.read({"kind": "addition", "digits": 2})
        te.verify(export_claim(claim, "adder")["folder"]).holds

    Args:
        claim: what the checkpoint should compute (``certificates/llama``).
        folder: where to write; an unchanged export there is replaced, anything else is left alone.
        dtype: of the weights.
        beside: text that is added to the model card.
        layout: llama, mistral or phi3.

    Returns:
        What was written: ``folder``, ``files``, and how many inputs were ``compared``.

    Raises:
        InvalidInput: the folder cannot be written, or there is no such layout.
        CannotBuild: the claim does not hold in the dtype.
    """
    name = dtype_name(as_dtype(dtype))
    return _appears(folder_named(folder), lambda place: _claimed(claim, name, place, None, beside, layout))


def export_addition(digits: int, folder: str | Path, dtype: str = "float32") -> dict[str, Any]:
    """The addition of two numbers, as text, as a stock Llama folder: ``0123+0989=`` → ``01112``.

        from thereexists.exports import export_addition

        te.verify(export_addition(2, "adder")["folder"]).holds

    Args:
        digits: how many each number has.
        folder: where to write; an unchanged export there is replaced, anything else is left alone.
        dtype: of the weights.

    Returns:
        What was written: ``folder``, ``files``, and how many sums were ``compared``.

    Raises:
        InvalidInput: the folder cannot be written, or there are too many digits.
    """
    from thereexists.certificates.llama.addition import Addition

    return export_claim(Addition.read({"kind": "addition", "digits": digits}), folder, dtype)


def _claimed(
    claim: Any, dtype: str, folder: Path, witness: Any, beside: str = "", layout: str = "llama"
) -> dict[str, Any]:
    """Written, run, and its record."""
    written = _llama().write_llama(claim, dtype, folder, beside, layout)
    compared, what = written.compared(witness)
    return written.record({"format": "llama", "dtype": dtype, "compared": compared, "of": what})


def plan_llama(made_of: Any) -> dict[str, Any]:
    """Layers, sizes and parameters of the stock checkpoint of a witness, or of a claim, before it is written.

        from thereexists.exports import plan_llama

        plan_llama(te.build(te.automata.regex("(ab|ba)*", "ab"), n=8))

    Args:
        made_of: a witness, or a claim.

    Returns:
        Layers, sizes and parameters.

    Raises:
        InvalidInput: it has no form as a stock checkpoint.
    """
    return _llama().plan_llama(made_of)


def _llama() -> Any:
    """What writes stock Llama folders."""
    try:
        from transformers.utils import logging  # noqa: F401

        from thereexists.exports import llama
    except ImportError as missing:
        raise CannotBuild(f"The llama export needs {missing.name}: pip install 'thereexists[export]'.") from None
    return llama


def _appears(folder: Path, write: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """Whole or not at all: written under a temporary name, and renamed when everything was compared."""

    def fill(beside: Path) -> dict[str, Any]:
        mark = write(beside)
        mark.setdefault("files", {file.name: file_sha256(file) for file in sorted(beside.iterdir())})
        (beside / MARK).write_text(json.dumps(mark, ensure_ascii=False) + "\n", encoding="utf-8")
        return mark

    mark = appears(folder, MARK, "an export", fill)
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
    from thereexists.exports.torch_format import write_torch

    return write_torch
