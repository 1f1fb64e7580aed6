"""Compiled models use the same steps in the same layers, and one that shares a module among layers is refused.

python -m tests.attention.compiled_layers
"""

import pytest
import torch

from tests.attention.layered import CONFIGS, CYCLE, N, albert, tiny

TOKENS = torch.arange(10, 10 + N)[None]


def main():
    model = tiny(CONFIGS["distilbert"]())
    with torch.no_grad():
        want = model(TOKENS).last_hidden_state
        got = torch.compile(model, backend="eager")(TOKENS).last_hidden_state
    assert (got - want).abs().max() < 1e-12
    torch.compile(tiny(albert(), CYCLE.union()), backend="eager")(TOKENS)
    with pytest.raises(Exception, match="several layers"):  # dynamo may wrap it
        torch.compile(tiny(albert()), backend="eager")(TOKENS)
    print("refused")


if __name__ == "__main__":
    main()
