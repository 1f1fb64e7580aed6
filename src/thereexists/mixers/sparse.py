"""Sparse attention (paper B): token k of block t attends to ``A_k^l`` of a pattern of this library, ``l = t mod p``.

The pattern is built for the length of the sequence at hand. Under padding or causality the last token of a sequence is
of no use to the others; a pattern whose hub is the last token (STAR) is therefore read from the right end, so that its
relay is the first token, where BERT puts [CLS]. The option ``mirror`` sets this for any pattern.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thereexists.core.constant_result import constant_result
from thereexists.core.errors import InvalidInput
from thereexists.core.fused_attention import fused_attention
from thereexists.core.shapes import Bool, Float
from thereexists.mixers.attention import Attention, attention_flops, attention_parameters, join_heads, split_heads
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.registry import MixerKind
from thereexists.patterns import REGISTRY, build
from thereexists.patterns.numbers import shown
from thereexists.patterns.stated import check_stated

MIRRORED = ("star",)  # patterns whose hub is the last token


class Sparse(Attention):
    """BERT's attention, with the same weights, restricted to a pattern."""

    def __init__(self, config: MixerConfig, layer: int):
        super().__init__(config)
        self.layer = layer
        self.pattern = (str(config.pattern), _hashable(config.pattern_options), config.pattern_config)

    def forward(self, x: Float[Tensor, "batch n d"], real: Bool[Tensor, "batch n"] | None = None) -> Tensor:
        q, k, v = split_heads(self.qkv(x), 3, self.heads)
        allowed = self._allowed(x.shape[1], x.device)  # (h or 1, n, n)
        y = masked_attention(q, k, v, allowed, real, self.dropout if self.training else 0.0)
        return self.output(join_heads(y))

    def _allowed(self, n: int, device: torch.device) -> Tensor:
        return allowed_on(*self.pattern, n, self.heads, self.layer, self.causal, device)


def masked_attention(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, real: Tensor | None, dropout: float
) -> Float[Tensor, "batch h n m"]:
    """Dense attention under a mask: right for every pattern, quadratic in n. A faster way may take its place here.

    Every token may attend to itself, padding too: no row is empty, and padding never reaches a real token.
    """
    allowed = allowed[None]  # (1, h or 1, n, n)
    if real is not None:
        n = q.shape[2]
        oneself = torch.eye(n, dtype=torch.bool, device=q.device)
        allowed = allowed & (real[:, None, None, :] | oneself)  # (batch, h or 1, n, n)
    return fused_attention(q, k, v, allowed, dropout_p=dropout)


def is_mirrored(name: str, options: Any) -> bool:
    """Whether a model reads the pattern from the right end; ``options`` as in the configuration."""
    return bool(dict(options).get("mirror", name in MIRRORED))


@lru_cache(maxsize=256)
def _mask(name: str, options: tuple, spread: str, n: int, heads: int, layer: int, causal: bool) -> np.ndarray:
    """``(1 or h, n, n)``: who may look at whom in block ``layer``; mirroring comes before causality."""
    sizes = {key: value for key, value in options if key != "mirror"}
    check_stated(name, n, sizes, union=spread == "union", at_hand=True)
    pattern = build(name, n, **sizes)
    if spread == "multihead":
        pattern = pattern.multihead(heads)
        mask = np.repeat(pattern.mask(), pattern.heads or (), axis=0)
    else:
        pattern = pattern.union() if spread == "union" else pattern
        mask = pattern.step(layer % pattern.cycle).mask()[None]
    mask = mask[:, ::-1, ::-1] if is_mirrored(name, options) else mask
    mask = np.tril(mask) if causal else mask
    return np.ascontiguousarray(mask | np.eye(n, dtype=bool))


@lru_cache(maxsize=256)
def _mask_on(device: torch.device, *key: Any) -> Tensor:
    return torch.from_numpy(_mask(*key)).to(device)


@constant_result
def allowed_on(
    name: str, options: tuple, spread: str, n: int, heads: int, layer: int, causal: bool, device: torch.device
) -> Tensor:
    """``(1 or h, n, n)`` on the device, made once: a compiled model holds it as a constant."""
    return _mask_on(device, name, options, spread, n, heads, layer, causal)


def _check(config: MixerConfig) -> None:
    """A configuration may be a stranger's: what its pattern costs at its own length is bounded before it is built."""
    name, options = config.pattern, config.pattern_options
    if name is None:
        raise InvalidInput("The mixer 'sparse' needs a 'pattern'; give the name of one, for example 'strided'.")
    if not isinstance(name, str) or name not in REGISTRY:
        raise InvalidInput(f"There is no pattern named {shown(name)}. Known: {', '.join(REGISTRY)}.")
    unknown = sorted(set(options) - set(REGISTRY[name].parameters) - {"mirror"})
    if unknown:
        raise InvalidInput(
            f"'{name}' has no option '{unknown[0]}'; it takes {', '.join((*REGISTRY[name].parameters, 'mirror'))}."
        )
    if not isinstance(options.get("mirror", False), bool):
        raise InvalidInput(f"The option 'mirror' must be true or false; got {shown(options['mirror'])}.")
    sizes = {key: value for key, value in options.items() if key != "mirror"}
    check_stated(name, config.max_position_embeddings, sizes, union=config.pattern_config == "union", at_hand=True)


def _hashable(options: dict[str, Any]) -> tuple:
    """A key for a cache; lists come from JSON."""
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in sorted(options.items()))


SPARSE = MixerKind(
    name="sparse",
    formula="X_k + W_O V_{A_k} ρ[K_{A_k}ᵀQ_k/√m], token k attends to A_k",
    build=Sparse,
    layer_parameters=attention_parameters,
    layer_flops=attention_flops,
    permutation_equivariant=False,
    fixed_length=False,
    cost="8d² + 4nd",
    check=_check,
)
