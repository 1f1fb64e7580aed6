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
    """The base class of what takes the place of attention in a block, without the residual ``X +`` of the formulas.

        config = te.mixers.mixer_config("tiny", "average", vocab_size=100)
        te.mixers.mixer_kind("average").build(config, 0)(torch.rand(1, 8, 128))

    ``forward(x, real)`` takes (batch, n, d), and ``real`` (batch, n), True at the tokens that are not padding.
    """

    @abstractmethod
    def forward(self, x: Float[Tensor, "batch n d"], real: Bool[Tensor, "batch n"] | None = None) -> Tensor: ...


def no_check(config: MixerConfig) -> None:
    """Every configuration suits this mixer."""


@dataclass(frozen=True)
class MixerKind:
    """A registered mixer and its claims; those about symmetry are about the version that is not causal.

        te.mixers.mixer_kind("sepconv").cost

    ``docs/add-mixer.md`` shows how to add one.

    Args:
        name: what it is called.
        formula: of a block, with the residual.
        build: ``build(config, layer)`` makes the mixer of a block.
        layer_parameters: ``layer_parameters(config, layer)``: how many it has.
        layer_flops: ``layer_flops(config, layer, n)``: per token of a sequence of n tokens.
        permutation_equivariant: whether it is, whatever the weights. If False, some weights and some input violate it.
        fixed_length: whether the weights are made for one largest n; longer sequences are then refused.
        cost: the leading terms of the FLOPs per token and block.
        check: refuses a configuration that it cannot have.
    """

    name: str
    formula: str
    build: Callable[[MixerConfig, int], Mixer]
    layer_parameters: Callable[[MixerConfig, int], int]
    layer_flops: Callable[[MixerConfig, int, int], float]
    permutation_equivariant: bool
    fixed_length: bool
    cost: str
    check: Callable[[MixerConfig], None] = no_check

    def parameters(self, config: MixerConfig) -> int:
        """Parameters of all mixers of the encoder, biases included."""
        return sum(self.layer_parameters(config, layer) for layer in range(config.num_hidden_layers))

    def flops_per_token(self, config: MixerConfig, n: int) -> float:
        """FLOPs of all mixers of the encoder for one token of a sequence of ``n``, forward.

        A multiplication and an addition count as two. Counted are matrix products (as a dense attention computes them,
        the masked half of a causal one included), the convolution and the sums of averages; pointwise functions,
        biases, softmax and LayerNorm are not.
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
