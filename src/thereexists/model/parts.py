"""What a network consists of, part by part, counted on its weights: nothing is left out, so the parts add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from thereexists.model.transformer import Transformer

ENDS = {"E": "positions", "W_in": "embedding", "embedding": "embedding", "W_out": "read-out"}  # outside all stages


@dataclass(frozen=True)
class Part:
    """A stage, or what stands before or after all stages; ``smallest`` is of the weights that are not zero."""

    name: str
    layers: int
    parameters: int
    smallest: float
    largest: float


def parts_of(network: Transformer) -> list[Part]:
    """The stages in order, with the network's two ends around them; parameters add up to the network's own count."""
    own = [_part(ENDS.get(name, name), 0, [weight]) for name, weight in network.named_parameters(recurse=False)]
    before = [part for part in own if part.name != "read-out"]
    stages = [_part(name, stage.depth, list(stage.parameters())) for name, stage in network.stages.items()]
    return [*before, *stages, *(part for part in own if part.name == "read-out")]


def _part(name: str, layers: int, weights: list[Any]) -> Part:
    sizes = torch.cat([weight.detach().abs().double().ravel() for weight in weights] or [torch.zeros(0)])
    finite = sizes[sizes.isfinite()]
    small = finite[finite > 0]
    low, high = (float(small.min()) if len(small) else 0.0, float(finite.max()) if len(finite) else 0.0)
    return Part(name, layers, len(sizes), low, high)
