"""Files that are written into exports as they stand: they need NumPy, torch, transformers or onnxruntime, and not us.

The package runs the same files, so what is compared before an export appears is what its user will run.
"""

from pathlib import Path

HERE = Path(__file__).parent


def put(folder: Path, **files: str) -> None:
    """``put(folder, use="use_onnx")`` writes ``use_onnx.py`` as ``use.py``; what it imports of us stands beside it."""
    for name, ours in files.items():
        text = (HERE / f"{ours}.py").read_text(encoding="utf-8").replace(f"from {__name__}.", "from .")
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
