"""The network of ``network.py`` as a ``PreTrainedModel``.

``AutoModel.from_pretrained(folder, trust_remote_code=True)`` takes this file from the folder; with ``import
thereexists.exports.hf_format`` it is known without that.

Rows of token numbers may have any length. Padding is on either side of the tokens, never between them: where an
``attention_mask`` is 0, whatever number stands there, such as -100 or a tokenizer's own; without a mask, 0.
They are brought to ``max_position_embeddings`` positions, their tokens first, and so many positions are answered: an
answer may be longer than its question.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers.configuration_utils import PretrainedConfig
from transformers.modeling_outputs import BaseModelOutput
from transformers.modeling_utils import PreTrainedModel

from thereexists.exports.alone.network import StockNetwork


class CompactConfig(PretrainedConfig):
    """Sizes under the ecosystem's names; ``safe_dtypes`` are those in which the network is proved right.

    ``fixed_length``: a row of tokens must fill all positions.
    """

    model_type = "thereexists-compact"

    hidden_size: int = 8
    num_hidden_layers: int = 1
    num_attention_heads: int = 1
    intermediate_size: int = 8
    intermediate_sizes: list[int] | None = None
    head_sizes: list[int] | None = None
    max_position_embeddings: int = 1
    vocab_size: int = 0
    features: int = 1
    outputs: int = 1
    positional: bool = True
    hidden_act: str = "relu"
    logit_heads: list[int] | None = None
    causal: bool = False
    fixed_length: bool = False
    safe_dtypes: list[str] | None = None

    def __init__(self, **given: Any):
        for name in FIELDS:
            setattr(self, name, given.pop(name, getattr(CompactConfig, name)))
        self.intermediate_sizes = self.intermediate_sizes or [self.intermediate_size] * self.num_hidden_layers
        self.head_sizes = self.head_sizes or [0] * self.num_hidden_layers
        self.safe_dtypes = self.safe_dtypes or ["float64"]
        super().__init__(**given)


FIELDS = tuple(vars(CompactConfig)["__annotations__"])  # what is declared above; anything else is the base class's


class CompactModel(PreTrainedModel):
    """``model(input_ids, attention_mask)`` or ``model(inputs_embeds=features)``; see ``last_hidden_state``."""

    config_class = CompactConfig
    base_model_prefix = "network"
    refused: ClassVar[type[Exception]] = ValueError

    def __init__(self, config: CompactConfig):
        super().__init__(config)
        self.network = StockNetwork(config.to_dict())
        self.post_init()

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Weights are constructed, never drawn."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **_: Any,
    ) -> BaseModelOutput:
        name = str(self.dtype).removeprefix("torch.")
        if name not in self.config.safe_dtypes:
            raise self.refused(f"This network is not safe in {name}; it is in {', '.join(self.config.safe_dtypes)}.")
        given, device = self.given(input_ids, attention_mask, inputs_embeds), self.device.type
        has_autocast = torch.amp.is_autocast_available(device)  # it would compute in a dtype of its own
        with torch.autocast(device, enabled=False) if has_autocast else nullcontext():
            return BaseModelOutput(last_hidden_state=self.network(*given))

    def given(
        self, input_ids: Tensor | None, attention_mask: Tensor | None, inputs_embeds: Tensor | None
    ) -> tuple[Tensor, ...]:
        """What the network is called with, once it is what it takes."""
        n, wanted = self.config.max_position_embeddings, self.config.features
        if self.config.vocab_size and input_ids is not None:
            return self.rows(input_ids, attention_mask)
        if self.config.vocab_size:
            raise self.refused("This network takes the numbers of tokens, as input_ids of the shape (batch, length).")
        if input_ids is not None:
            raise self.refused(
                "This network takes numbers and no tokens; give them by name, as inputs_embeds= of the shape (batch, "
                f"{n}, {wanted})."
            )
        if inputs_embeds is None or inputs_embeds.ndim != 3 or tuple(inputs_embeds.shape[1:]) != (n, wanted):
            given = None if inputs_embeds is None else tuple(inputs_embeds.shape)
            raise self.refused(f"A function takes inputs_embeds of the shape (batch, {n}, {wanted}); got {given}.")
        if attention_mask is not None and not bool(attention_mask.bool().all()):
            raise self.refused("A function takes all of its tokens; this attention_mask hides some.")
        return (inputs_embeds,)

    def rows(self, ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The rows as the network takes them, tokens first, and which of their numbers are tokens."""
        n, real = self.config.max_position_embeddings, ids != 0 if attention_mask is None else attention_mask.bool()
        unknown = ids[real & ((ids < 1) | (ids >= self.config.vocab_size))]
        if len(unknown):
            raise self.refused(f"The number {int(unknown[0])} is no token: they are 1 to {self.config.vocab_size - 1}.")
        between = (~real & (real.cumsum(1) > 0) & (real.flip(1).cumsum(1).flip(1) > 0)).nonzero()
        if len(between):
            row, place = between[0].tolist()
            raise self.refused(f"Padding is on either side of the tokens; row {row} has some between them, at {place}.")
        count = real.sum(dim=1)
        least = n if self.config.fixed_length else 1
        wrong = ((count < least) | (count > n)).nonzero()
        if len(wrong):
            wanted = f"exactly {n}" if self.config.fixed_length else f"1 to {n}"
            row = int(wrong[0, 0])
            raise self.refused(f"A row must have {wanted} tokens; row {row} has {int(count[row])}.")
        first = torch.argsort((~real).to(torch.int8), dim=1, stable=True)  # the tokens, in their order, then the rest
        ids, real = (torch.nn.functional.pad(x.gather(1, first), (0, n - ids.shape[1])) for x in (ids, real))
        return ids, real
