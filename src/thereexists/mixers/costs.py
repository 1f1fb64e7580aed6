"""What a whole model costs, from its configuration alone: parameters, and FLOPs of a forward pass per token."""

from __future__ import annotations

from dataclasses import dataclass

from thereexists.core.errors import InvalidInput
from thereexists.mixers.config import MixerConfig, mixer_config
from thereexists.mixers.registry import MIXERS, dense_parameters, mixer_kind

TABLE_PATTERN, TABLE_HYBRID_BLOCKS = "strided", 3  # what the table of mixers shows for sparse and for hybrid


@dataclass(frozen=True)
class MixerRow:
    """One row of ``te.mixers.mixer_table``, the table of mixers at base size.

        te.mixers.mixer_table(n=128)[0].parameters_base

    Attributes:
        name: of the mixer.
        formula: of a block, with the residual.
        parameters_base: of ``MixerModel`` at base size, pooler included.
        flops_per_token: of all mixers, forward, at length ``n``.
        model_flops_per_token: of the whole ``MixerModel``.
        n: how many tokens a sequence has.
        cost: the leading terms of the FLOPs per token and block.
        permutation_equivariant: whether it is, whatever the weights.
        fixed_length: whether longer sequences are refused.
    """

    name: str
    formula: str
    parameters_base: int
    flops_per_token: float
    model_flops_per_token: float
    n: int
    cost: str
    permutation_equivariant: bool
    fixed_length: bool


def model_parameters(config: MixerConfig) -> int:
    """Parameters of ``MixerModel(config)``: embeddings, blocks, pooler; as BERT-base's 109.5M are counted.

        config = te.mixers.mixer_config("mini", "sepconv")
        te.mixers.model_parameters(config)

    Args:
        config: of a model.

    Returns:
        How many there are.
    """
    d, norm = config.hidden_size, 2 * config.hidden_size
    embeddings = (config.vocab_size + config.max_position_embeddings + config.type_vocab_size) * d + norm
    feed_forward = dense_parameters(d, config.intermediate_size) + dense_parameters(config.intermediate_size, d)
    blocks = config.num_hidden_layers * (feed_forward + 2 * norm) + mixer_kind(config.mixer).parameters(config)
    return embeddings + blocks + dense_parameters(d, d) + (norm if config.norm_first else 0)


def model_flops_per_token(config: MixerConfig, n: int) -> float:
    """FLOPs of ``MixerModel(config)`` for one token of a sequence of ``n``; see ``MixerKind.flops_per_token``.

        config = te.mixers.mixer_config("mini", "sepconv")
        te.mixers.model_flops_per_token(config, n=128)

    Args:
        config: of a model.
        n: how many tokens a sequence has.

    Returns:
        The FLOPs.

    Raises:
        InvalidInput: ``n`` is not a positive number.
    """
    if n < 1:
        raise InvalidInput(f"'n' must be a positive integer; got {n}.")
    feed_forward = 4 * config.hidden_size * config.intermediate_size * config.num_hidden_layers
    pooler = 2 * config.hidden_size**2 / n  # one token of the sequence has it
    return mixer_kind(config.mixer).flops_per_token(config, n) + feed_forward + pooler


def mixer_table(n: int = 128) -> list[MixerRow]:
    """Every registered mixer at base size; sparse with STRIDED, hybrid with three SepConv blocks.

        te.mixers.mixer_table(n=128)

    Args:
        n: how many tokens a sequence has.

    Returns:
        A row for every mixer.
    """
    rows = []
    for name, kind in MIXERS.items():
        choice = {"sparse": {"pattern": TABLE_PATTERN}, "hybrid": {"hybrid_blocks": TABLE_HYBRID_BLOCKS}}
        config = mixer_config("base", name, **choice.get(name, {}))
        rows.append(
            MixerRow(
                name=name,
                formula=kind.formula,
                parameters_base=model_parameters(config),
                flops_per_token=kind.flops_per_token(config, n),
                model_flops_per_token=model_flops_per_token(config, n),
                n=n,
                cost=kind.cost,
                permutation_equivariant=kind.permutation_equivariant,
                fixed_length=kind.fixed_length,
            )
        )
    return rows
