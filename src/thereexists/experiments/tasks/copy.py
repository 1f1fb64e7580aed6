"""Synthetic copying, the first experiment of paper B: does a sparse pattern carry a symbol to where it is needed?

A sequence of ``n = 2m + 2`` tokens ``0 s 0 s``, with ``s`` of ``m`` symbols drawn uniformly from ``1..V``. The model
sees ``0 s 0`` and ``m`` masks, and predicts the symbol at every mask; the figure of merit is the share it gets right on
fresh sequences. All positions are predicted at once, by an encoder: the papers' patterns look both ways.

**What the pattern allows.** The symbols are independent, so a mask whose receptive field after L layers lacks
its source can only be guessed: with ``r`` the share of masks that do reach their source, no model with that pattern and
depth, trained or built, has an expected accuracy above ``r + (1 − r)/V``. The task computes ``r`` from the pattern and
records it beside the accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thereexists.core.errors import InvalidInput
from thereexists.experiments.models import build_config
from thereexists.experiments.sampling import IGNORED, Place, seed_of
from thereexists.experiments.settings import Settings
from thereexists.experiments.task import Task

_TEST_BATCHES, _TEST_SEED = 8, 999


class Copying(Task):
    def __init__(self, settings: Settings, place: Place, cache: Path):
        super().__init__(settings, place, cache)
        self.symbols = int(settings.options.get("symbols", 127))
        if settings.length < 4 or settings.length % 2:
            raise InvalidInput(f"Copying needs an even length of at least 4, for '0 s 0 s'; got {settings.length}.")
        if self.symbols < 2:
            raise InvalidInput(f"Copying needs at least two symbols; got {self.symbols}.")
        self.source = settings.length // 2 - 1  # m
        self.tokens_per_step = settings.batch * settings.length
        self.generator = torch.Generator(place.device)

    def model(self):
        from thereexists.mixers import MixerForMaskedLM

        vocabulary = self.symbols + 2  # 0 is the separator, the last token is the mask
        return MixerForMaskedLM(
            build_config(self.settings, vocab_size=vocabulary, pad_token_id=None, type_vocab_size=1)
        )

    def batch(self, step: int) -> dict[str, Tensor]:
        # Every rank draws the whole batch and takes its part, so that the data do not depend on how many there are.
        inputs, labels = self._draw(seed_of(self.settings.seed, 3, step), self.settings.batch)
        share = self.place.share(self.settings.batch)
        mine = slice(self.place.rank * share, (self.place.rank + 1) * share)
        return {"input_ids": inputs[mine], "labels": labels[mine]}

    def _draw(self, seed: int, count: int) -> tuple[Tensor, Tensor]:
        self.generator.manual_seed(seed)
        device, m = self.place.device, self.source
        symbols = torch.randint(1, self.symbols + 1, (count, m), generator=self.generator, device=device)
        separator = symbols.new_zeros(count, 1)
        masks = torch.full_like(symbols, self.symbols + 1)
        nothing = symbols.new_full((count, m + 2), IGNORED)
        return torch.cat([separator, symbols, separator, masks], 1), torch.cat([nothing, symbols], 1)

    def evaluate(self, model: Any) -> dict[str, Any]:
        right = torch.zeros((), device=self.place.device)
        count = 0
        for i in range(_TEST_BATCHES):
            inputs, labels = self._draw(seed_of(_TEST_SEED, 3, i), self.settings.batch)
            predicted = model(input_ids=inputs).logits.argmax(-1)
            right += (predicted == labels)[:, -self.source :].sum()
            count += labels[:, -self.source :].numel()
        reached = self.reachable()
        bound = None if reached is None else reached + (1 - reached) / self.symbols
        return {
            "accuracy": right.item() / count,
            "predictions": count,
            "reachable": reached,
            "accuracy_bound": bound,
            "chance": 1 / self.symbols,
        }

    def reachable(self) -> float | None:
        """The share of masks whose source is in their receptive field; None for a mixer without a pattern."""
        model = self.settings.model
        layers = model.get("num_hidden_layers")
        if model.get("mixer") != "sparse" or layers is None:
            return 1.0 if model.get("mixer", "attention") == "attention" else None
        field = receptive_field(layer_masks(model, self.settings.length, layers))
        masks = np.arange(self.source + 2, self.settings.length)
        return float(field[masks, masks - self.source - 1].mean())

    def record(self) -> dict[str, Any]:
        return {"made": "0 s 0 s", "length": self.settings.length, "symbols": self.symbols}


def layer_masks(model: Mapping[str, Any], n: int, layers: int) -> Sequence[np.ndarray]:
    """What each layer's heads can see together: boolean (n, n) for every layer."""
    from thereexists import patterns
    from thereexists.mixers.sparse import is_mirrored

    given = model.get("pattern_options", {})
    options = {name: value for name, value in given.items() if name != "mirror"}
    steps = patterns.build(model["pattern"], n, **options).mask()  # (p, n, n)
    if is_mirrored(model["pattern"], tuple(given.items())):
        steps = steps[:, ::-1, ::-1]
    if model.get("pattern_config", "union") == "sequential":
        return [steps[t % len(steps)] for t in range(layers)]
    union = np.asarray(steps.any(axis=0))  # multihead too: the outputs of all heads are added in every layer
    return [union] * layers


def receptive_field(masks: Sequence[np.ndarray]) -> np.ndarray:
    """``field[k, j]``: whether what stands at j can influence what the last layer gives at k."""
    field = np.eye(len(masks[0]), dtype=bool)
    for mask in masks:  # residual connections keep what was there
        field = field | (mask.astype(np.float32) @ field.astype(np.float32) > 0)
    return field


TASK = Copying
