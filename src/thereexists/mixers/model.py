"""A BERT-shaped encoder with any mixer in place of attention: embeddings, blocks, pooler.

    post-LayerNorm (BERT)   x = LN(x + mixer(x));   x = LN(x + W_2 act(W_1 x))
    pre-LayerNorm           x = x + mixer(LN(x));   x = x + W_2 act(W_1 LN(x));   LN once more at the end

With the attention mixer, post-LayerNorm and BERT's weights this is BERT (``from_bert``).
"""

from __future__ import annotations

from typing import Any

import torch
import transformers.initialization as init
from torch import Tensor, nn
from transformers.activations import ACT2FN
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.modeling_utils import PreTrainedModel
from transformers.utils.generic import can_return_tuple

from thereexists.core.errors import InvalidInput
from thereexists.core.shapes import Float, Int
from thereexists.mixers.attention import CrossAttention
from thereexists.mixers.bproj import BProj
from thereexists.mixers.config import MixerConfig
from thereexists.mixers.registry import mixer_kind
from thereexists.mixers.sepconv import SepConv


class MixerEmbeddings(nn.Module):
    """Word + position + token type, LayerNorm, dropout."""

    def __init__(self, config: MixerConfig):
        super().__init__()
        d = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, d, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, d)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, d)
        self.LayerNorm = nn.LayerNorm(d, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        input_ids: Int[Tensor, "batch n"] | None = None,
        token_types: Int[Tensor, "batch n"] | int = 0,
        position_ids: Int[Tensor, "#batch n"] | None = None,
        inputs_embeds: Float[Tensor, "batch n d"] | None = None,
    ) -> Float[Tensor, "batch n d"]:
        if (input_ids is None) == (inputs_embeds is None):
            raise InvalidInput("A model needs either 'input_ids' or 'inputs_embeds'; got both or neither.")
        x = self.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        n, positions = x.shape[1], self.position_embeddings.num_embeddings
        if n > positions:
            raise InvalidInput(
                f"This model has {positions} positions; got a sequence of {n} tokens. Shorten it, or train a model "
                f"with max_position_embeddings of {n} or more."
            )
        # One type for all, and positions 0..n−1, are rows of the tables: adding them needs no gather, and their
        # gradient is a sum over the batch instead of a scatter.
        same_type = isinstance(token_types, int)
        types = self.token_type_embeddings.weight[token_types] if same_type else self.token_type_embeddings(token_types)
        table = self.position_embeddings
        places = table.weight[:n] if position_ids is None else table(position_ids)
        return self.dropout(self.LayerNorm(x + types + places))


class MixerBlock(GradientCheckpointingLayer):
    """Mixing, then (in the decoder of an encoder–decoder) a look at the source, then the token-wise feed-forward."""

    def __init__(self, config: MixerConfig, layer: int, cross_attention: bool = False):
        super().__init__()
        d, eps = config.hidden_size, config.layer_norm_eps
        self.norm_first = config.norm_first
        self.mixer = mixer_kind(config.mixer).build(config, layer)
        self.mixer_norm = nn.LayerNorm(d, eps=eps)
        self.cross = CrossAttention(config) if cross_attention else None
        self.cross_norm = nn.LayerNorm(d, eps=eps) if cross_attention else None
        self.up = nn.Linear(d, config.intermediate_size)
        self.activation = ACT2FN[config.hidden_act]
        self.down = nn.Linear(config.intermediate_size, d)
        self.feed_forward_norm = nn.LayerNorm(d, eps=eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self, x: Tensor, real: Tensor | None = None, source: Tensor | None = None, source_real: Tensor | None = None
    ) -> Tensor:
        if self.norm_first:
            x = x + self.dropout(self.mixer(self.mixer_norm(x), real))
            if self.cross is not None and self.cross_norm is not None:
                x = x + self.dropout(self.cross(self.cross_norm(x), source, source_real))
            return x + self.dropout(self._feed_forward(self.feed_forward_norm(x)))
        x = self.mixer_norm(x + self.dropout(self.mixer(x, real)))
        if self.cross is not None and self.cross_norm is not None:
            x = self.cross_norm(x + self.dropout(self.cross(x, source, source_real)))
        return self.feed_forward_norm(x + self.dropout(self._feed_forward(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class MixerStack(nn.Module):
    """Blocks in a row, and the closing LayerNorm of the pre-LayerNorm kind."""

    def __init__(self, config: MixerConfig, layers: int, cross_attention: bool = False):
        super().__init__()
        self.layer = nn.ModuleList(MixerBlock(config, t, cross_attention) for t in range(layers))
        self.last_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps) if config.norm_first else None
        self.gradient_checkpointing = False

    def forward(
        self, x: Tensor, real: Tensor | None, *source: Tensor | None, every: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...] | None]:
        """The last state, and all of them if ``every``: the embeddings' first, the normalised last one last."""
        states = [x]
        for block in self.layer:
            x = block(x, real, *source)
            states.append(x)
        if self.last_norm is not None:
            x = states[-1] = self.last_norm(x)
        return x, tuple(states) if every else None


class MixerPreTrainedModel(PreTrainedModel):
    """Initial weights, saving and loading; a checkpoint of another mixer is refused."""

    config_class = MixerConfig
    config: MixerConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    accepts_loss_kwargs = False  # every loss is a mean: gradient accumulation divides by its number of steps
    _no_split_modules = ["MixerBlock"]  # noqa: RUF012  (the base class wants a list)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, BProj | SepConv):
            init.normal_(module.weight, mean=0.0, std=module.initial_std)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        """As everywhere in transformers; a mixer other than the checkpoint's is refused before anything is loaded."""
        from thereexists.mixers.load import refuse_another_mixer

        refuse_another_mixer(pretrained_model_name_or_path, kwargs.get("config"), kwargs.get("mixer"))
        return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)


class MixerModel(MixerPreTrainedModel):
    """The encoder, or with ``is_decoder`` the causal stack, and a pooler.

        config = te.mixers.mixer_config("tiny", "sepconv", vocab_size=100)
        te.mixers.MixerModel(config)(torch.randint(1, 100, (1, 8))).last_hidden_state.shape

    The pooler is tanh of a dense layer on token 0, as in BERT, or with ``pooling="mean"`` on the mean of the real
    tokens.

    Args:
        config: of the model.
        add_pooling_layer: whether there is a pooler.
    """

    def __init__(self, config: MixerConfig, add_pooling_layer: bool = True):
        super().__init__(config)
        self.embeddings = MixerEmbeddings(config)
        self.encoder = MixerStack(config, config.num_hidden_layers)
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size) if add_pooling_layer else None
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embeddings.word_embeddings = value  # pyright: ignore[reportAttributeAccessIssue]

    @can_return_tuple
    def forward(
        self,
        input_ids: Int[Tensor, "batch n"] | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Int[Tensor, "batch n"] | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,  # generation passes it to every encoder
    ) -> BaseModelOutputWithPooling:
        if output_attentions:
            raise InvalidInput("Fused attention keeps no attention matrices; leave out 'output_attentions'.")
        types = 0 if token_type_ids is None else token_type_ids
        x = self.embeddings(input_ids, types, position_ids, inputs_embeds)
        every = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        real = real_tokens(attention_mask)
        x, states = self.encoder(x, real, every=bool(every))
        pooled = None if self.pooler is None else torch.tanh(self.pooler(self._summary(x, real)))
        return BaseModelOutputWithPooling(last_hidden_state=x, pooler_output=pooled, hidden_states=states)  # pyright: ignore[reportArgumentType]

    def _summary(self, x: Tensor, real: Tensor | None) -> Tensor:
        """What the pooler reads: ``(batch, d)``."""
        if self.config.pooling == "first":
            return x[:, 0]
        if real is None:
            return x.mean(1)
        return (x * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)


class MixerLMHead(nn.Module):
    """BERT's prediction head: dense, activation, LayerNorm, then the word embeddings' transpose and a bias."""

    def __init__(self, config: MixerConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = ACT2FN[config.hidden_act]
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)  # its weight is tied to the word embeddings

    def forward(self, x: Tensor) -> Tensor:
        """``(…, d)`` to logits ``(…, vocabulary)``."""
        return self.decoder(self.LayerNorm(self.activation(self.dense(x))))


def real_tokens(attention_mask: Tensor | None) -> Tensor | None:
    """``(batch, n)`` Booleans; None when nothing is padded, so that no mixer spends time on masks."""
    if attention_mask is None:
        return None
    if attention_mask.ndim != 2:
        raise InvalidInput(f"'attention_mask' must have the shape (batch, n); got {tuple(attention_mask.shape)}.")
    real = attention_mask != 0
    return real if _traced(real) or not bool(real.all()) else None


def _traced(x: Tensor) -> bool:
    """Whether the computation is being compiled or recorded, for this input and others: no value may be looked at."""
    return torch.compiler.is_compiling() or (x.is_cuda and torch.cuda.is_current_stream_capturing())
