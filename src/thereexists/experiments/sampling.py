"""Which examples a step uses and what is masked in them: functions of (seed, step) alone, computed on the device.

Nothing here has a state, so a run that continues from step k sees exactly what an uninterrupted run sees, on one
device or on several: every rank takes its own slice of the same global batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from thereexists.core.errors import InvalidInput
from thereexists.core.shapes import Int
from thereexists.experiments.tokenizer import MASK, SPECIAL

IGNORED = -100  # the label that losses of this ecosystem skip


@dataclass(frozen=True)
class Place:
    """Where a process computes: its device, its number, and how many there are."""

    device: torch.device
    rank: int = 0
    world: int = 1

    def share(self, batch: int) -> int:
        if batch % self.world:
            raise InvalidInput(f"The batch must be a multiple of the {self.world} processes; got {batch}.")
        return batch // self.world


def seed_of(*numbers: int) -> int:
    """One 63-bit seed from several small numbers (splitmix64 steps): neighbours give unrelated streams."""
    state = 0
    for number in numbers:
        state = (state ^ (number + 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 31
    return state >> 1


class Shuffle:
    """Epoch after epoch through ``count`` examples, each epoch in its own order."""

    def __init__(self, count: int, batch: int, seed: int, place: Place):
        if count < batch:
            raise InvalidInput(f"There are {count} examples, fewer than a batch of {batch}; make 'batch' smaller.")
        self.count, self.batch, self.seed, self.place = count, batch, seed, place
        self.steps_per_epoch = count // batch
        self._epoch, self._order = -1, torch.empty(0)

    def indices(self, step: int) -> Tensor:
        """This rank's examples of step ``step``, on its device."""
        epoch, within = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(seed_of(self.seed, 1, epoch))
            self._order = torch.randperm(self.count, generator=generator).to(self.place.device)
            self._epoch = epoch
        share = self.place.share(self.batch)
        first = within * self.batch + self.place.rank * share
        return self._order[first : first + share]


def mask_tokens(
    tokens: Int[Tensor, "batch n"],
    labelled: int,
    vocabulary: int,
    generator: torch.Generator,
    place: Place | None = None,
) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch labelled"], Int[Tensor, "batch labelled"]]:
    """BERT's masking: inputs, positions and labels.

    In every sequence ``labelled`` positions are drawn uniformly among the ordinary tokens (a fixed number, so that
    shapes do not depend on the draw); 80 % of them become [MASK], 10 % a random token, 10 % stay. Of several processes
    (``place``) each draws for the whole batch and takes its rows: the masks do not depend on how many there are.
    """
    device, count = tokens.device, len(tokens)
    rank, world = (0, 1) if place is None else (place.rank, place.world)
    mine, every = slice(rank * count, (rank + 1) * count), world * count
    scores = torch.rand((every, tokens.shape[1]), generator=generator, device=device)[mine]
    scores = scores.masked_fill(tokens < len(SPECIAL), -1.0)
    positions = scores.topk(labelled, dim=1, sorted=False).indices  # the largest of n random keys: a uniform subset
    originals = tokens.gather(1, positions)
    dice = torch.rand((every, labelled), generator=generator, device=device)[mine]
    other = torch.randint(len(SPECIAL), vocabulary, (every, labelled), generator=generator, device=device)[mine]
    changed = torch.where(dice < 0.8, MASK, torch.where(dice < 0.9, other, originals))
    # Too few ordinary tokens: a special one was drawn, which is left alone and not predicted.
    special = originals < len(SPECIAL)
    inputs = tokens.scatter(1, positions, torch.where(special, originals, changed))
    return inputs, positions, torch.where(special, IGNORED, originals)
