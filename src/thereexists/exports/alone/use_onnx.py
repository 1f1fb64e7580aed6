"""Ask this export: ``python use.py a dog`` prints the answer in JSON, null where nothing is stored for the question.

Needs onnxruntime and NumPy. From Python: ``answer([["a", "dog"], ["cat"]])``, sequences of any lengths up to n.
"""

from pathlib import Path

import onnxruntime
from words import Words  # pyright: ignore[reportMissingImports]

HERE = Path(__file__).resolve().parent
words = Words(HERE)
session = onnxruntime.InferenceSession(str(HERE / "model.onnx"), providers=["CPUExecutionProvider"])


def run(numbers):
    """Numbers (batch, n) to digits (batch, n, digits)."""
    return session.run(None, {"input_ids": numbers})[0]


def answer(sequences):
    return words.answers(run, sequences)


if __name__ == "__main__":
    words.command(answer)
