"""BERT's weights in a model with the attention mixer: the same function, with three projections in one matrix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from thereexists.core.errors import InvalidInput
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.model import MixerModel
from thereexists.mixers.tasks import MixerForMaskedLM

_RENAMED = (  # BERT's name -> ours, in the order in which they are tried
    (r"^bert\.", "model."),
    (r"encoder\.layer\.(\d+)\.attention\.output\.dense\.", r"encoder.layer.\1.mixer.output."),
    (r"encoder\.layer\.(\d+)\.attention\.output\.LayerNorm\.", r"encoder.layer.\1.mixer_norm."),
    (r"encoder\.layer\.(\d+)\.intermediate\.dense\.", r"encoder.layer.\1.up."),
    (r"encoder\.layer\.(\d+)\.output\.dense\.", r"encoder.layer.\1.down."),
    (r"encoder\.layer\.(\d+)\.output\.LayerNorm\.", r"encoder.layer.\1.feed_forward_norm."),
    (r"pooler\.dense\.", "pooler."),
    (r"^cls\.predictions\.transform\.", "head."),
    (r"^cls\.predictions\.decoder\.weight", "head.decoder.weight"),
    (r"^cls\.predictions\.bias", "head.decoder.bias"),
)
_SKIPPED = (r"position_ids$", r"token_type_ids$", r"^cls\.predictions\.decoder\.bias$", r"^cls\.seq_relationship\.")
_PROJECTION = re.compile(r"(.*encoder\.layer\.\d+)\.attention\.self\.(query|key|value)\.(weight|bias)$")


def from_bert(bert: nn.Module, **overrides: Any) -> MixerModel | MixerForMaskedLM:
    """The model that computes what ``bert`` computes: a ``BertModel`` or a ``BertForMaskedLM`` of transformers.

        te.mixers.from_bert(bert)

    ``overrides`` are fields of the configuration, such as dropouts; the weights are copies.

    Args:
        bert: a ``BertModel`` or ``BertForMaskedLM`` of transformers.
        **overrides: fields of the configuration.

    Returns:
        The model, with copies of the weights.

    Raises:
        InvalidInput: it is not such a model.
    """
    from transformers.models.bert.modeling_bert import BertForMaskedLM, BertModel

    if not isinstance(bert, BertModel | BertForMaskedLM):
        raise InvalidInput(f"from_bert takes a BertModel or a BertForMaskedLM; got a {type(bert).__name__}.")
    config = config_from_bert(bert.config, **overrides)
    state = state_from_bert(bert.state_dict())
    dtype = bert.dtype
    if isinstance(bert, BertForMaskedLM):
        model: MixerModel | MixerForMaskedLM = MixerForMaskedLM(config)
    else:
        model = MixerModel(config, add_pooling_layer=bert.pooler is not None)
    nn.Module.to(model, dtype).load_state_dict(state)
    return model.train(bert.training)


def config_from_bert(config: Any, **overrides: Any) -> MixerConfig:
    """The fields that the two share, taken from a ``BertConfig``.

        te.mixers.config_from_bert(bert.config)

    Args:
        config: a ``BertConfig``.
        **overrides: fields of the configuration.

    Returns:
        The configuration.

    Raises:
        InvalidInput: it is a decoder, or has cross-attention.
    """
    if config.is_decoder or config.add_cross_attention:
        raise InvalidInput("from_bert takes an encoder; this BertConfig has is_decoder or add_cross_attention set.")
    shared = (
        "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size max_position_embeddings "
        "type_vocab_size hidden_act hidden_dropout_prob attention_probs_dropout_prob classifier_dropout layer_norm_eps "
        "initializer_range pad_token_id"
    )
    return MixerConfig(**{**{name: getattr(config, name) for name in shared.split()}, **overrides})


def state_from_bert(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state dictionary of ``BertModel`` or ``BertForMaskedLM`` with our names, for ``load_state_dict``.

        te.mixers.state_from_bert(bert.state_dict())

    Args:
        state: of a ``BertModel`` or ``BertForMaskedLM``.

    Returns:
        The same weights under our names.

    Raises:
        InvalidInput: the query, key or value weights of a layer are missing.
    """
    parts: dict[str, dict[str, Tensor]] = {}
    renamed: dict[str, Tensor] = {}
    for name, value in state.items():
        if any(re.search(skipped, name) for skipped in _SKIPPED):
            continue
        projection = _PROJECTION.match(name)
        if projection:
            block, which, kind = projection.groups()
            parts.setdefault(_rename(f"{block}.mixer.qkv.{kind}"), {})[which] = value
        else:
            renamed[_rename(name)] = value
    for name, three in parts.items():
        if len(three) < 3:
            raise InvalidInput(f"BERT's weights for {name} are incomplete: only {', '.join(three)} is there.")
        renamed[name] = torch.cat([three["query"], three["key"], three["value"]])
    return renamed


def _rename(name: str) -> str:
    for pattern, replacement in _RENAMED:
        name = re.sub(pattern, replacement, name)
    return name
