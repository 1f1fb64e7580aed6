"""Compiled models use the same steps in the same layers, and one that shares a module among layers is refused.

python -m tests.attention.compiled_layers
"""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

import thereexists.attention  # noqa: F401  (registers the implementation)
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
    packed()
    patterned()
    in_parts()


def packed():
    """Documents in one sequence, which ``position_ids`` tell: the compiled model leaves its graph for them."""
    config = MistralConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, intermediate_size=16,
        vocab_size=60, sliding_window=4, attn_implementation="thereexists",
    )  # fmt: skip
    model, places = MistralForCausalLM(config).double().eval(), torch.arange(N)[None] % 7
    given = {"position_ids": places, "use_cache": False}
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        got = compiled(TOKENS, **given).logits  # before the model has run as it is
        assert torch.equal(got, model(TOKENS, **given).logits)
    print("packed")


def patterned():
    """A compiled model without a cache is handed documents even where there is one; that is no mask of its own."""
    config = LlamaConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, intermediate_size=16,
        vocab_size=60, attn_implementation="thereexists",
    )  # fmt: skip
    config.thereexists_pattern = {"name": "window", "window": 3}
    model = LlamaForCausalLM(config).double().eval()
    with torch.no_grad():
        want = model(TOKENS, use_cache=False).logits
        torch.compiler.reset()
        got = torch.compile(model, backend="eager")(TOKENS, use_cache=False).logits
        assert (got - want).abs().max() < 1e-12
    print("patterned")


def in_parts():
    """Compiled code calls us unseen, now and whenever it runs again; the model around it must not miss that."""

    def layers(model):
        for layer in model.model.layers:
            layer.compile(backend="eager")

    def forward(model):
        model.forward = torch.compile(model.forward, backend="eager")

    def inner(model):
        model.model = torch.compile(model.model, backend="eager")

    config = LlamaConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, intermediate_size=16,
        vocab_size=60,
    )  # fmt: skip
    for part in (layers, forward, inner):
        torch.compiler.reset()
        model = LlamaForCausalLM._from_config(config, attn_implementation="thereexists").double().eval()
        with torch.no_grad():
            want = model(TOKENS).logits
            part(model)
            assert all(torch.equal(model(TOKENS).logits, want) for _ in range(2))
            assert torch.dist(model(TOKENS[:, :5]).logits, want[:, :5]) < 1e-12
    print("parts")


if __name__ == "__main__":
    main()
