"""What a mixer is: the one sublayer of a block through which tokens see each other, and what each kind claims.

A mixer maps ``(batch, n, d)`` to ``(batch, n, d)``; the residual connection, LayerNorm and dropout around it belong to
the block. ``real`` marks the tokens that are not padding: what stands at the others never changes the output at real
ones. The claims (parameters, FLOPs, equivariance, length) are checked for every registered kind by the same tests.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from thereexists.core.errors import InvalidInput
from thereexists.core.shapes import Bool, Float
from thereexists.mixers.config import MixerConfig


class Mixer(nn.Module):
    """``forward(x, real)``: the mixing term of a block, without the residual ``X +`` of the formulas."""

    @abstractmethod
    def forward(self, x: Float[Tensor, "batch n d"], real: Bool[Tensor, "batch n"] | None = None) -> Tensor: ...


def no_check(config: MixerConfig) -> None:
    """Every configuration suits this mixer."""


@dataclass(frozen=True)
class MixerKind:
    """A registered mixer and its claims. The claims about symmetry are about the version that is not causal."""

    name: str
    formula: str
    build: Callable[[MixerConfig, int], Mixer]  # the mixer of block number ``layer``
    layer_parameters: Callable[[MixerConfig, int], int]
    layer_flops: Callable[[MixerConfig, int, int], float]  # (config, layer, n): per token of a sequence of n
    permutation_equivariant: bool  # whatever the weights; False: some weights and some input violate it
    fixed_length: bool  # True: the weights are made for one largest n, longer sequences are refused
    cost: str  # the leading terms of the FLOPs per token and block
    check: Callable[[MixerConfig], None] = no_check

    def parameters(self, config: MixerConfig) -> int:
        """Parameters of all mixers of the encoder, biases included."""
        return sum(self.layer_parameters(config, layer) for layer in range(config.num_hidden_layers))

    def flops_per_token(self, config: MixerConfig, n: int) -> float:
        """FLOPs of all mixers of the encoder for one token of a sequence of ``n``, forward.

        A multiplication and an addition count two. Counted are matrix products (as a dense attention computes them, the
        masked half of a causal one included), the convolution and the sums of averages; pointwise functions, biases,
        softmax and LayerNorm are not.
        """
        return sum(self.layer_flops(config, layer, n) for layer in range(config.num_hidden_layers))


MIXERS: dict[str, MixerKind] = {}


def register_mixer(kind: MixerKind) -> MixerKind:
    """Enter ``kind`` under its name; a second one of the same name is refused.

        te.mixers.register_mixer(kind)  # see docs/add-mixer.md

    Args:
        kind: its name, formula, module and claims.

    Returns:
        The same.

    Raises:
        InvalidInput: there is one of that name.
    """
    if kind.name in MIXERS:
        raise InvalidInput(f"A mixer named '{kind.name}' is registered already; choose another name.")
    MIXERS[kind.name] = kind
    return kind


def mixer_kind(name: str) -> MixerKind:
    """The registered mixer of that name.

        te.mixers.mixer_kind("sepconv").formula

    Args:
        name: one of ``te.mixers.MIXERS``.

    Returns:
        The mixer and its claims.

    Raises:
        InvalidInput: there is no such mixer.
    """
    from thereexists.mixers import kinds  # noqa: F401  (importing registers them)

    if name not in MIXERS:
        raise InvalidInput(f"There is no mixer named {name!r}. Known: {', '.join(MIXERS)}.")
    return MIXERS[name]


def dense_parameters(width: int, outputs: int) -> int:
    """A linear layer with bias."""
    return width * outputs + outputs
