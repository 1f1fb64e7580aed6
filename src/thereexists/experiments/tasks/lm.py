"""Causal language modelling: predict every token from those before it; perplexity per token on held-out text.

A sequence is ``n`` consecutive tokens of the corpus; its first token is context only. A sparse pattern applies in its
causal version. Perplexities are comparable between runs with the same tokenizer only.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from thereexists.experiments.models import build_config
from thereexists.experiments.sampling import Place
from thereexists.experiments.settings import Settings
from thereexists.experiments.task import rows
from thereexists.experiments.tasks._text import TextTask


class CausalLM(TextTask):
    def __init__(self, settings: Settings, place: Place, cache: Path):
        super().__init__(settings, place, cache, window=settings.length)

    def model(self):
        from thereexists.mixers import MixerForCausalLM

        return MixerForCausalLM(build_config(self.settings, vocab_size=self.vocabulary, is_decoder=True))

    def batch(self, step: int) -> dict[str, Tensor]:
        tokens = rows(self.pieces, self.shuffle.indices(step))
        return {"input_ids": tokens, "labels": tokens}

    def evaluate(self, model: Any) -> dict[str, Any]:
        nll, count = torch.zeros((), device=self.place.device, dtype=torch.float64), 0
        for piece in self.held_out.split(64):
            tokens = piece.to(self.place.device).long()
            logits = model(input_ids=tokens).logits[:, :-1].float()
            nll += cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum")
            count += tokens[:, 1:].numel()
        loss = float(nll) / count
        return {"perplexity": math.exp(loss), "loss": loss, "predictions": count}


TASK = CausalLM
