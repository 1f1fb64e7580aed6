"""Masked language modelling (BERT's): predict 15 % of the tokens of a text from the others; accuracy on held-out text.

A sequence is [CLS], ``n − 2`` consecutive tokens of the corpus, [SEP]. The masks of the held-out text are the same for
every run, whatever its seed, so that all are asked the same questions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from thereexists.experiments.models import build_config
from thereexists.experiments.sampling import IGNORED, Place, mask_tokens, seed_of
from thereexists.experiments.settings import Settings
from thereexists.experiments.task import rows
from thereexists.experiments.tasks._text import TextTask
from thereexists.experiments.tokenizer import CLS, SEP

MASKED = 0.15
_TEST_SEED = 999


class MaskedLM(TextTask):
    def __init__(self, settings: Settings, place: Place, cache: Path):
        super().__init__(settings, place, cache, window=settings.length - 2)
        self.labelled = max(1, round(MASKED * (settings.length - 2)))
        self.generator = torch.Generator(place.device)

    def model(self):
        from thereexists.mixers import MixerForMaskedLM

        return MixerForMaskedLM(build_config(self.settings, vocab_size=self.vocabulary))

    def objective(self, model: Any) -> nn.Module:
        return LossAtPositions(model)

    def batch(self, step: int) -> dict[str, Tensor]:
        tokens = framed(rows(self.pieces, self.shuffle.indices(step)))
        self.generator.manual_seed(seed_of(self.settings.seed, 3, step, 0))
        inputs, positions, labels = mask_tokens(tokens, self.labelled, self.vocabulary, self.generator, self.place)
        return {"input_ids": inputs, "positions": positions, "labels": labels}

    def evaluate(self, model: Any) -> dict[str, Any]:
        right = torch.zeros((), device=self.place.device, dtype=torch.int64)
        count, nll = torch.zeros_like(right), torch.zeros((), device=self.place.device)
        self.generator.manual_seed(_TEST_SEED)
        for piece in self.held_out.split(256):
            tokens = framed(piece.to(self.place.device).long())
            inputs, positions, labels = mask_tokens(tokens, self.labelled, self.vocabulary, self.generator)
            logits = logits_at(model, inputs, positions)
            right += (logits.argmax(-1) == labels).sum()
            count += (labels != IGNORED).sum()
            nll += cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="sum")
        total = int(count)
        return {"accuracy": int(right) / total, "loss": float(nll) / total, "predictions": total}


class LossAtPositions(nn.Module):
    """The masked-LM loss with the prediction head applied at the labelled positions only; shapes do not vary."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, positions: Tensor, labels: Tensor) -> Tensor:
        logits = logits_at(self.model, input_ids, positions)
        return cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED)


def logits_at(model: Any, input_ids: Tensor, positions: Tensor) -> Tensor:
    """``(batch, labelled, vocabulary)``"""
    states = model.model(input_ids).last_hidden_state  # (batch, n, d)
    return model.head(states.gather(1, positions[..., None].expand(-1, -1, states.shape[-1])))


def framed(tokens: Tensor) -> Tensor:
    """[CLS] before, [SEP] after."""
    return pad(pad(tokens, (1, 0), value=CLS), (0, 1), value=SEP)


TASK = MaskedLM
