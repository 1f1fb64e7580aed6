"""Hybrid (paper A): the first c blocks, nearest the input, are SepConv, the rest attention; ``c = hybrid_blocks``."""

from __future__ import annotations

from thereexists.mixers.attention import ATTENTION
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.registry import MixerKind
from thereexists.mixers.sepconv import SEPCONV


def _kind(config: MixerConfig, layer: int) -> MixerKind:
    return SEPCONV if layer < config.hybrid_blocks else ATTENTION


HYBRID = MixerKind(
    name="hybrid",
    formula="SepConv in the first c blocks, attention in the rest",
    build=lambda config, layer: _kind(config, layer).build(config, layer),
    layer_parameters=lambda config, layer: _kind(config, layer).layer_parameters(config, layer),
    layer_flops=lambda config, layer, n: _kind(config, layer).layer_flops(config, layer, n),
    permutation_equivariant=False,
    fixed_length=False,
    cost="of either",
)
