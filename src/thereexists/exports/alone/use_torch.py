"""Ask this export: ``python use.py a dog`` prints the answer in JSON, null where nothing is stored for the question.

Needs torch, safetensors and NumPy. From Python: ``answer([["a", "dog"], ["cat"]])``, sequences of any lengths up to n.
"""

import json
from pathlib import Path

import torch
from network import StockNetwork  # pyright: ignore[reportMissingImports]
from safetensors.torch import load_file
from words import Words  # pyright: ignore[reportMissingImports]

HERE = Path(__file__).resolve().parent
words = Words(HERE)
with torch.device("meta"):
    network = StockNetwork(json.loads((HERE / "config.json").read_text(encoding="utf-8")))
network.load_state_dict(load_file(HERE / "model.safetensors"), assign=True)


@torch.no_grad()
def run(numbers):
    """Numbers (batch, n) to digits (batch, n, digits)."""
    return network(torch.from_numpy(numbers)).double().numpy()


def answer(sequences):
    return words.answers(run, sequences)


if __name__ == "__main__":
    words.command(answer)
