"""What the encoder is used for: masked language modelling, classification, causal language modelling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from transformers.generation.utils import GenerationMixin
from transformers.modeling_outputs import CausalLMOutput, MaskedLMOutput, SequenceClassifierOutput
from transformers.utils.generic import can_return_tuple

from thereexists.core.errors import InvalidInput
from thereexists.core.shapes import Int
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.model import MixerLMHead, MixerModel, MixerPreTrainedModel

IGNORED = -100  # the label of positions that do not count


class _LanguageModel(MixerPreTrainedModel):
    """An encoder or decoder without pooler and a prediction head tied to its word embeddings."""

    _tied_weights_keys = {"head.decoder.weight": "model.embeddings.word_embeddings.weight"}  # noqa: RUF012

    def __init__(self, config: MixerConfig):
        super().__init__(config)
        self.model = MixerModel(config, add_pooling_layer=False)
        self.head = MixerLMHead(config)
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        return self.head.decoder

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        self.head.decoder = new_embeddings  # pyright: ignore[reportAttributeAccessIssue]


class MixerForMaskedLM(_LanguageModel):
    """Predicts the tokens at labelled positions (labels are −100 elsewhere).

        config = te.mixers.mixer_config("tiny", "sepconv", vocab_size=100)
        te.mixers.MixerForMaskedLM(config)(torch.randint(1, 100, (1, 8))).logits.shape

    With ``sparse_prediction`` (of the configuration, or of the call) and labels, logits are computed at the labelled
    positions only, ``(labelled, vocabulary)`` in the order of ``labels[labels != -100]``: the same loss, for 15 % of
    the cost of a large vocabulary.

    Args:
        config: of the model, without ``is_decoder``.
    """

    def __init__(self, config: MixerConfig):
        if config.is_decoder:
            raise InvalidInput("Masked language modelling looks both ways; set 'is_decoder' to False.")
        super().__init__(config)

    @can_return_tuple
    def forward(
        self,
        input_ids: Int[Tensor, "batch n"] | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Int[Tensor, "batch n"] | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Int[Tensor, "batch n"] | None = None,
        output_hidden_states: bool | None = None,
        sparse_prediction: bool | None = None,
    ) -> MaskedLMOutput:
        sparse = self.config.sparse_prediction if sparse_prediction is None else sparse_prediction
        places = None
        if labels is not None and sparse:  # found before the encoder is queued, so that this wait is a short one
            places = torch.nonzero(labels.flatten() != IGNORED).flatten()
        given = (input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, output_hidden_states)
        out = self.model(*given, return_dict=True)
        x = out.last_hidden_state
        if places is not None and labels is not None:
            x, labels = x.flatten(0, 1)[places], labels.flatten()[places]
        logits = self.head(x)
        loss = None if labels is None else token_loss(logits, labels)
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)  # pyright: ignore[reportArgumentType]


class MixerForCausalLM(_LanguageModel, GenerationMixin):
    """Predicts the next token; generation runs the whole prefix for every new token.

        config = te.mixers.mixer_config("tiny", "sepconv", vocab_size=100, is_decoder=True)
        te.mixers.MixerForCausalLM(config)(torch.randint(1, 100, (1, 8))).logits.shape

    Args:
        config: of the model, with ``is_decoder``.
    """

    def __init__(self, config: MixerConfig):
        if not config.is_decoder:
            raise InvalidInput("A causal language model must not look ahead; set 'is_decoder' to True.")
        super().__init__(config)

    @can_return_tuple
    def forward(
        self,
        input_ids: Int[Tensor, "batch n"] | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Int[Tensor, "batch n"] | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Int[Tensor, "batch n"] | None = None,
        output_hidden_states: bool | None = None,
        logits_to_keep: int = 0,
    ) -> CausalLMOutput:
        given = (input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, output_hidden_states)
        out = self.model(*given, return_dict=True)
        logits = self.head(out.last_hidden_state[:, -logits_to_keep:])
        if labels is not None and logits_to_keep:
            raise InvalidInput("A loss needs the logits of all positions; leave out 'logits_to_keep' or 'labels'.")
        loss = None if labels is None else token_loss(logits[:, :-1], labels[:, 1:])
        return CausalLMOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)  # pyright: ignore[reportArgumentType]

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **_: Any,
    ) -> dict:
        """Positions are those given, which ``generate`` continues, or count from the first token that is no padding."""
        if position_ids is None and attention_mask is not None:
            position_ids = (attention_mask.long().cumsum(1) - 1).clamp(min=0)
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "position_ids": position_ids}
        return given | {"token_type_ids": token_type_ids, "logits_to_keep": 1}


class MixerForSequenceClassification(MixerPreTrainedModel):
    """A linear layer on the pooled state: classes, several labels at once, or regression (one label).

        config = te.mixers.mixer_config("tiny", "sepconv", vocab_size=100, num_labels=3)
        te.mixers.MixerForSequenceClassification(config)(torch.randint(1, 100, (1, 8))).logits.shape

    Args:
        config: of the model. A causal one must have ``pooling="mean"``: its first token attends to itself only.
    """

    def __init__(self, config: MixerConfig):
        if config.is_decoder and config.pooling == "first":
            raise InvalidInput(
                "The first token of a causal model sees nothing but itself: a classifier on it would ignore the text; "
                "start from an encoder (train mlm), or set 'pooling' to mean."
            )
        super().__init__(config)
        self.num_labels = int(config.num_labels or 2)
        self.model = MixerModel(config)
        dropout = config.hidden_dropout_prob if config.classifier_dropout is None else config.classifier_dropout
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(config.hidden_size, self.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Int[Tensor, "batch n"] | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Int[Tensor, "batch n"] | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> SequenceClassifierOutput:
        given = (input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, output_hidden_states)
        out = self.model(*given, return_dict=True)
        logits = self.classifier(self.dropout(out.pooler_output))
        loss = None if labels is None else self._loss(_wide(logits), labels)
        return SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)  # pyright: ignore[reportArgumentType]

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        problem = self.config.problem_type
        if problem == "regression" or (problem is None and self.num_labels == 1):
            return mse_loss(logits.view_as(labels), labels.to(logits.dtype))
        if problem == "multi_label_classification" or (problem is None and labels.is_floating_point()):
            return binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
        return cross_entropy(logits, labels.view(-1))


def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy over the labelled positions, in float32 or better."""
    return cross_entropy(_wide(logits.flatten(0, -2)), labels.flatten(), ignore_index=IGNORED)


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))
