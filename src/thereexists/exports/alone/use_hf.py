"""Ask this export: ``python use.py a dog`` prints the answer in JSON, null where nothing is stored for the question.

Needs torch, transformers and NumPy; the model's code is that of this folder, ``modeling_compact.py`` and
``network.py``. From Python: ``answer([["a", "dog"], ["cat"]])``, sequences of any lengths up to n.
"""

from pathlib import Path

import torch
from transformers.models.auto.modeling_auto import AutoModel
from words import Words  # pyright: ignore[reportMissingImports]

HERE = Path(__file__).resolve().parent
words = Words(HERE)
model = AutoModel.from_pretrained(HERE, dtype="auto", local_files_only=True, trust_remote_code=True)


@torch.no_grad()
def run(numbers):
    """Numbers (batch, length), 0 for padding, to digits (batch, n, digits)."""
    return model(input_ids=torch.from_numpy(numbers)).last_hidden_state.double().numpy()


def answer(sequences):
    return words.answers(run, sequences)


if __name__ == "__main__":
    words.command(answer)
