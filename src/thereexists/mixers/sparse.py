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
from torch.nn.functional import scaled_dot_product_attention

from thereexists._shapes import Bool, Float
from thereexists.errors import InvalidInput
from thereexists.mixers.attention import Attention, attention_flops, attention_parameters, join_heads, split_heads
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.registry import MixerKind
from thereexists.patterns import REGISTRY, Pattern, build

MIRRORED = ("star",)  # patterns whose hub is the last token


class Sparse(Attention):
    """BERT's attention, with the same weights, restricted to a pattern."""

    def __init__(self, config: MixerConfig, layer: int):
        super().__init__(config)
        self.layer = layer
        self.pattern = (str(config.pattern), tuple(sorted(config.pattern_options.items())), config.pattern_config)

    def forward(self, x: Float[Tensor, "batch n d"], real: Bool[Tensor, "batch n"] | None = None) -> Tensor:
        q, k, v = split_heads(self.qkv(x), 3, self.heads)
        allowed = self._allowed(x.shape[1], x.device)  # (h or 1, n, n)
        y = masked_attention(q, k, v, allowed, real, self.dropout if self.training else 0.0)
        return self.output(join_heads(y))

    def _allowed(self, n: int, device: torch.device) -> Tensor:
        return _mask_on(*self.pattern, n, self.heads, self.layer, self.causal, device)


def masked_attention(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, real: Tensor | None, dropout: float
) -> Float[Tensor, "batch h n m"]:
    """Dense attention under a mask: right for every pattern, quadratic in n. A faster way may take its place here.

    Everybody may attend to itself, padding too: no row is empty, and padding never reaches a real token.
    """
    allowed = allowed[None]  # (1, h or 1, n, n)
    if real is not None:
        n = q.shape[2]
        oneself = torch.eye(n, dtype=torch.bool, device=q.device)
        allowed = allowed & (real[:, None, None, :] | oneself)  # (batch, h or 1, n, n)
    return scaled_dot_product_attention(q, k, v, allowed, dropout_p=dropout)


def layer_pattern(config: MixerConfig, n: int) -> Pattern:
    """The pattern of the model for sequences of ``n`` tokens, in its configuration; not mirrored."""
    return _pattern(
        str(config.pattern),
        tuple(sorted(config.pattern_options.items())),
        config.pattern_config,
        n,
        config.num_attention_heads,
        config.is_decoder,
    )


def _pattern(name: str, options: tuple, spread: str, n: int, heads: int, causal: bool) -> Pattern:
    pattern = build(name, n, **{key: value for key, value in options if key != "mirror"})
    if causal and not is_mirrored(name, options):
        pattern = pattern.as_causal()
    return {"union": pattern.union, "sequential": pattern.sequential}.get(spread, lambda: pattern.multihead(heads))()


def is_mirrored(name: str, options: tuple) -> bool:
    return bool(dict(options).get("mirror", name in MIRRORED))


@lru_cache(maxsize=256)
def _mask(name: str, options: tuple, spread: str, n: int, heads: int, layer: int, causal: bool) -> np.ndarray:
    """``(1 or h, n, n)``: who may look at whom in block ``layer``; mirroring comes before causality."""
    pattern = _pattern(name, options, spread, n, heads, causal)
    if pattern.heads is None:
        mask = pattern.step(layer % pattern.cycle).mask()[None]
    else:
        mask = np.repeat(pattern.mask(), pattern.heads, axis=0)
    mask = mask[:, ::-1, ::-1] if is_mirrored(name, options) else mask
    mask = np.tril(mask) if causal else mask
    return np.ascontiguousarray(mask | np.eye(n, dtype=bool))


@lru_cache(maxsize=256)
def _mask_on(
    name: str, options: tuple, spread: str, n: int, heads: int, layer: int, causal: bool, device: torch.device
) -> Tensor:
    return torch.from_numpy(_mask(name, options, spread, n, heads, layer, causal)).to(device)


def _check(config: MixerConfig) -> None:
    name, options = config.pattern, config.pattern_options
    if name is None:
        raise InvalidInput("The mixer 'sparse' needs a 'pattern'; give the name of one, for example 'strided'.")
    if name not in REGISTRY:
        raise InvalidInput(f"There is no pattern named '{name}'. Known: {', '.join(REGISTRY)}.")
    unknown = sorted(set(options) - set(REGISTRY[name].parameters) - {"mirror"})
    if unknown:
        raise InvalidInput(
            f"'{name}' has no option '{unknown[0]}'; it takes {', '.join((*REGISTRY[name].parameters, 'mirror'))}."
        )
    _freeze(options)


def _freeze(options: dict[str, Any]) -> tuple:
    """Lists come from JSON; a cache wants tuples."""
    for key, value in options.items():
        if isinstance(value, list):
            options[key] = tuple(value)
    return tuple(sorted(options.items()))


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
