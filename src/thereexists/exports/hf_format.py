"""A Hugging Face export: ``config.json`` and ``model.safetensors`` of a registered ``PreTrainedModel``.

Importing ``thereexists.exports.hf_format`` registers the model, so that
``AutoModel.from_pretrained(folder)`` loads it, offline, and ``save_pretrained`` writes it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils import logging

from thereexists.core.dtypes import dtype_name
from thereexists.core.errors import CannotBuild
from thereexists.exports.stock import StockNetwork, stock_config, stock_state
from thereexists.exports.torch_format import runner

MODEL_TYPE = "thereexists-compact"


class CompactConfig(PretrainedConfig):
    """Sizes under the ecosystem's names; ``safe_dtypes`` are those in which the network is proved right."""

    model_type = MODEL_TYPE

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
        name = dtype_name(self.dtype)
        if name not in self.config.safe_dtypes:
            raise CannotBuild(f"This network is not safe in {name}; it is in {', '.join(self.config.safe_dtypes)}.")
        given = input_ids if input_ids is not None else inputs_embeds
        mask = None if attention_mask is None else attention_mask.bool()
        return BaseModelOutput(last_hidden_state=self.network(given, mask))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars for files that take milliseconds."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


AutoConfig.register(MODEL_TYPE, CompactConfig, exist_ok=True)
AutoModel.register(CompactConfig, CompactModel, exist_ok=True)


def write_hf(witness: Any, folder: Path):
    """Write with ``save_pretrained``; the returned function runs what ``AutoModel.from_pretrained`` gives back."""
    network = witness.network
    n = witness.positions
    sizes = stock_config(network, n)
    sizes.pop("dtype")
    config = CompactConfig(**sizes, safe_dtypes=list(witness.safe()))
    model = CompactModel(config).to(network.dtype)
    model.network.load_state_dict(stock_state(network), assign=True)
    with _quiet():
        model.save_pretrained(folder)
        loaded = AutoModel.from_pretrained(folder, local_files_only=True, dtype=network.dtype).eval()
    (folder / "model.safetensors").chmod(0o644)
    tokens = network.embedding is not None

    class Output(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = loaded

        def forward(self, X: Tensor) -> Tensor:
            given = {"input_ids": X, "attention_mask": (X > 0).long()} if tokens else {"inputs_embeds": X}
            return self.model(**given).last_hidden_state

    return runner(Output())
