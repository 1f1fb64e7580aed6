"""Stock architectures that have the blocks of Llama, operation by operation: one entry each.

RMSNorm in float32 and a cast, rotary positions on halves of a head, grouped heads, a SwiGLU and plain residual sums: as
``transformers`` has them, Llama, Mistral, Qwen2 and Phi-3 differ only in names, in biases (0 here) and in matrices that
are stored as one. A product with two matrices that stand above each other is the two products, number by number, and a
bias of 0 adds nothing. So each is read as Llama, and the proof is the same proof.
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
    biased: tuple[str, ...] = ()

    def stored(self, sizes: Sizes) -> Sizes:
        """The names and shapes in the file, of Llama's."""
        found = dict(sizes)
        for name, parts in self._fused(sizes):
            rows = [found.pop(part) for part in parts]
            found[name] = (sum(shape[0] for shape in rows), rows[0][1])
        return found | {bias: (sizes[weight][0],) for bias, weight in self._biases(sizes)}

    def written(self, weights: Weights) -> Weights:
        """Llama's weights as the file has them."""
        found = dict(weights)
        for name, parts in self._fused(weights):
            found[name] = torch.cat([found.pop(part) for part in parts])
        biases = {bias: torch.zeros_like(weights[weight][:, 0]) for bias, weight in self._biases(weights)}
        return found | biases

    def read(self, weights: Weights, sizes: Sizes) -> Weights:
        """Llama's weights, of the file's: the other way. A bias that is not 0 is refused."""
        found = dict(weights)
        for bias, _ in self._biases(sizes):
            if bool(found.pop(bias).any()):
                raise InvalidInput(f"{bias} is not 0, and Llama has no biases")
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

    def _biases(self, names: Any) -> list[tuple[str, str]]:
        ends = tuple(f".{part}.weight" for part in self.biased)
        return [(name.removesuffix("weight") + "bias", name) for name in names if ends and name.endswith(ends)]


LLAMA = Stock(
    "LlamaForCausalLM", lambda shape: {"attention_bias": False, "mlp_bias": False, "pretraining_tp": 1}, turning={}
)
STOCKS = {
    "llama": LLAMA,
    "mistral": Stock("MistralForCausalLM", lambda shape: {"sliding_window": None}, turning={}),
    "qwen2": Stock(
        "Qwen2ForCausalLM",
        lambda shape: {
            "layer_types": ["full_attention"] * shape.layers,
            "max_window_layers": shape.layers,
            "sliding_window": None,
            "use_sliding_window": False,
        },
        turning={},
        biased=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    ),
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
