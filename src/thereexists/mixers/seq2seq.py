"""Encoder–decoder: the encoder mixes both ways, the decoder causally, and looks at the encoder by dense attention.

One word table for source, target and output; token type 0 is source, the last type target.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers.generation.utils import GenerationMixin
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.utils.generic import can_return_tuple

from thereexists.core.errors import InvalidInput
from thereexists.core.shapes import Int
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.model import MixerLMHead, MixerModel, MixerPreTrainedModel, MixerStack, real_tokens
from thereexists.mixers.tasks import IGNORED, token_loss


class MixerForSeq2SeqLM(MixerPreTrainedModel, GenerationMixin):
    """An encoder–decoder, for translation; ``generate`` does greedy and beam search, and the source is encoded once.

        config = te.mixers.mixer_config(
            "tiny", "sepconv", vocab_size=100, is_encoder_decoder=True, decoder_start_token_id=1
        )
        te.mixers.MixerForSeq2SeqLM(config)(torch.randint(1, 100, (1, 8)), labels=torch.randint(1, 100, (1, 8))).loss

    Args:
        config: of the model, with ``is_encoder_decoder``.
    """

    base_model_prefix = ""
    _tied_weights_keys = {"head.decoder.weight": "encoder.embeddings.word_embeddings.weight"}  # noqa: RUF012

    def __init__(self, config: MixerConfig):
        if not config.is_encoder_decoder:
            raise InvalidInput("An encoder–decoder needs a configuration with 'is_encoder_decoder' set to True.")
        super().__init__(config)
        layers = config.num_decoder_layers or config.num_hidden_layers
        self.encoder = MixerModel(_part(config, causal=False), add_pooling_layer=False)
        self.decoder = MixerStack(_part(config, causal=True, layers=layers), layers, cross_attention=True)
        self.head = MixerLMHead(config)
        self.post_init()

    def get_encoder(self, *_: Any, **__: Any) -> MixerModel:
        return self.encoder

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.set_input_embeddings(value)

    def get_output_embeddings(self) -> nn.Module:
        return self.head.decoder

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        self.head.decoder = new_embeddings  # pyright: ignore[reportAttributeAccessIssue]

    @can_return_tuple
    def forward(
        self,
        input_ids: Int[Tensor, "batch s"] | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Int[Tensor, "batch n"] | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        labels: Int[Tensor, "batch n"] | None = None,
        logits_to_keep: int = 0,
    ) -> Seq2SeqLMOutput:
        if decoder_input_ids is None:
            if labels is None:
                raise InvalidInput("An encoder–decoder needs 'labels' or 'decoder_input_ids'; got neither.")
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask)
        source = encoder_outputs[0]
        x = self.encoder.embeddings(decoder_input_ids, self.config.type_vocab_size - 1)
        x, _ = self.decoder(x, real_tokens(decoder_attention_mask), source, real_tokens(attention_mask))
        logits = self.head(x[:, -logits_to_keep:])
        loss = None if labels is None else token_loss(logits, labels)
        return Seq2SeqLMOutput(loss=loss, logits=logits, encoder_last_hidden_state=source)  # pyright: ignore[reportArgumentType]

    def prepare_decoder_input_ids_from_labels(self, labels: Int[Tensor, "batch n"]) -> Int[Tensor, "batch n"]:
        """The labels, one place to the right, after the start token; ignored labels become padding."""
        start, padding = self.config.decoder_start_token_id, self.config.pad_token_id
        if start is None or padding is None:
            raise InvalidInput("An encoder–decoder needs 'decoder_start_token_id' and 'pad_token_id'; one is None.")
        first = torch.full_like(labels[:, :1], start)
        return torch.cat([first, labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, padding)], dim=1)

    def prepare_inputs_for_generation(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, encoder_outputs: Any = None, **_: Any
    ) -> dict:
        return {
            "decoder_input_ids": input_ids,
            "attention_mask": attention_mask,
            "encoder_outputs": BaseModelOutput(last_hidden_state=encoder_outputs[0]),
            "logits_to_keep": 1,
        }


def _part(config: MixerConfig, causal: bool, layers: int | None = None) -> MixerConfig:
    """The configuration of one half."""
    part = copy.deepcopy(config)
    part.is_encoder_decoder, part.is_decoder = False, causal
    part.num_hidden_layers = layers or config.num_hidden_layers
    part.hybrid_blocks = min(config.hybrid_blocks, part.num_hidden_layers)
    return part
