"""A Hugging Face export: ``config.json`` and ``model.safetensors`` of a ``PreTrainedModel``, and its code.

Importing ``thereexists.exports.hf_format`` registers the model, so that ``AutoModel.from_pretrained(folder)`` loads it,
offline, and ``save_pretrained`` writes it again. Without this package the folder's own code does, if it is trusted:
``AutoModel.from_pretrained(folder, trust_remote_code=True)``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.models.auto.configuration_auto import AutoConfig
from transformers.models.auto.modeling_auto import AutoModel
from transformers.utils import logging

from thereexists.core.errors import CannotBuild
from thereexists.core.modes import as_the_umask_says
from thereexists.exports import alone
from thereexists.exports.alone import modeling_compact
from thereexists.exports.alone.modeling_compact import CompactConfig
from thereexists.exports.check import same_weights
from thereexists.exports.stock import stock_config, stock_state
from thereexists.exports.torch_format import runner, write_words

CODE = "modeling_compact"


class CompactModel(modeling_compact.CompactModel):
    """The model with our errors; its code is written beside its weights."""

    refused = CannotBuild

    def save_pretrained(self, save_directory: Any, *given: Any, **more: Any) -> None:
        super().save_pretrained(save_directory, *given, **more)
        alone.put(Path(save_directory), network="network", **{CODE: CODE})


AutoConfig.register(CompactConfig.model_type, CompactConfig, exist_ok=True)
AutoModel.register(CompactConfig, CompactModel, exist_ok=True)


def write_hf(witness: Any, folder: Path):
    """Write with ``save_pretrained``; the returned function runs what ``AutoModel.from_pretrained`` gives back."""
    network = witness.network
    tokens = network.embedding is not None
    sizes = stock_config(network, witness.positions)
    sizes.pop("dtype")
    told = witness.vocabularies()
    config = CompactConfig(
        **sizes,
        safe_dtypes=list(witness.safe()),
        fixed_length=bool(told and told["fixed"]),
        auto_map={"AutoConfig": f"{CODE}.CompactConfig", "AutoModel": f"{CODE}.CompactModel"},
        **({"pad_token_id": 0} if tokens else {}),
    )
    with torch.device("meta"):
        model = CompactModel(config)
    model.network.load_state_dict(stock_state(network), assign=True)
    with _quiet():
        model.save_pretrained(folder)
        found = AutoModel.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, dtype=network.dtype
        ).eval()
    as_the_umask_says(folder / "model.safetensors")
    write_words(witness, folder, "use_hf")
    same_weights(found.network.state_dict(), network)

    class Output(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = found

        def forward(self, X: Tensor) -> Tensor:
            return self.model(**({"input_ids": X} if tokens else {"inputs_embeds": X})).last_hidden_state

    return runner(Output())


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
