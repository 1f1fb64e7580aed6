"""Stock architectures that have the blocks of Llama, operation by operation: one entry each.

RMSNorm in float32 and a cast, rotary positions on halves of a head, grouped heads, a SwiGLU and plain residual sums: as
``transformers`` has them, Llama, Mistral and Phi-3 differ only in names and in matrices that are stored as one. A
product with two matrices that stand above each other is the two products, number by number. So each is read as Llama,
and the proof is the same proof. Qwen2 would be another, with biases of 0, but ``transformers`` opens every folder of
that type with a byte-level tokenizer of its own, whatever ``tokenizer.json`` says: prompts would not be read as text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thereexists.core.errors import InvalidInput

Weights = dict[str, torch.Tensor]
Sizes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Stock:
    """``says``: what its config has beside Llama's sizes; ``fused``: names of matrices that are stored as one."""

    architecture: str
    says: Callable[[Any], dict[str, Any]]
    turning: dict[str, Any]
    fused: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def stored(self, sizes: Sizes) -> Sizes:
        """The names and shapes in the file, of Llama's."""
        found = dict(sizes)
        for name, parts in self._fused(sizes):
            rows = [found.pop(part) for part in parts]
            found[name] = (sum(shape[0] for shape in rows), rows[0][1])
        return found

    def written(self, weights: Weights) -> Weights:
        """Llama's weights as the file has them."""
        found = dict(weights)
        for name, parts in self._fused(weights):
            found[name] = torch.cat([found.pop(part) for part in parts])
        return found

    def read(self, weights: Weights, sizes: Sizes) -> Weights:
        """Llama's weights, of the file's: the other way."""
        found = dict(weights)
        for name, parts in self._fused(sizes):
            found |= zip(parts, found.pop(name).split([sizes[part][0] for part in parts]), strict=True)
        return found

    def _fused(self, names: Any) -> list[tuple[str, list[str]]]:
        """For every layer: the one name, and the parts in their order."""
        first = ".self_attn.q_proj.weight"
        layers = [name.removesuffix(first) for name in names if name.endswith(first)]
        return [
            (f"{layer}.{name}.weight", [f"{layer}.{part}.weight" for part in parts])
            for layer in layers
            for name, parts in self.fused
        ]


LLAMA = Stock(
    "LlamaForCausalLM", lambda shape: {"attention_bias": False, "mlp_bias": False, "pretraining_tp": 1}, turning={}
)
STOCKS = {
    "llama": LLAMA,
    "mistral": Stock("MistralForCausalLM", lambda shape: {"sliding_window": None}, turning={}),
    "phi3": Stock(
        "Phi3ForCausalLM",
        lambda shape: {
            "embd_pdrop": 0.0,
            "original_max_position_embeddings": shape.positions,
            "resid_pdrop": 0.0,
            "sliding_window": None,
        },
        turning={"partial_rotary_factor": 1.0},
        fused=(
            ("self_attn.qkv_proj", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")),
            ("mlp.gate_up_proj", ("mlp.gate_proj", "mlp.up_proj")),
        ),
    ),
}


def stock_of(name: Any) -> Stock:
    if not isinstance(name, str) or name not in STOCKS:
        raise InvalidInput(f"The layouts of stock checkpoints are {', '.join(STOCKS)}; got {str(name)[:40]!r} instead.")
    return STOCKS[name]
