"""Classification of sentence pairs (MNLI) or sentences (SST-2), from a pre-trained run; accuracy on the dev set.

The input is ``[CLS] premise [SEP] hypothesis [SEP]``, cut to the length from the longer side, padded. A batch holds
sentences of similar length and is padded to 32, 64, … only, which saves half the computation; models with a sparse
pattern see the full length always, because their pattern is made for a length.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from thereexists.core.errors import InvalidInput
from thereexists.experiments import tokenizer as tokenizers
from thereexists.experiments.corpus import NLI_LABELS, Source, find, read_nli, read_sst2, text_sample
from thereexists.experiments.models import build_config, no_progress_bars, saved_config
from thereexists.experiments.sampling import Place, seed_of
from thereexists.experiments.settings import Settings
from thereexists.experiments.task import Task, path_of
from thereexists.experiments.tokenizer import CLS, SEP

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BUCKETS = (32, 64, 96)  # and the full length
DROPOUT = 0.1


class Classification(Task):
    def __init__(self, settings: Settings, place: Place, cache: Path):
        super().__init__(settings, place, cache)
        folder = path_of(settings, "data", "a folder with train and dev files")
        read, train, dev, self.labels = _files(folder)
        sentences, labels = read(train)
        dev_sentences, dev_labels = read(dev)
        self.sources = {"train": Source.of(train).record() | {"examples": len(labels)},
                        "dev": Source.of(dev).record() | {"examples": len(dev_labels)}}  # fmt: skip
        self.start = None if settings.start is None else Path(settings.start)
        self.config = None if self.start is None else saved_config(self.start, settings)
        self._check_length()
        self.tokenizer = self._tokenizer([sentence for pair in sentences for sentence in pair])
        self.train = Table(sentences, labels, self.tokenizer, settings.length, place.device)
        self.dev = Table(dev_sentences, dev_labels, self.tokenizer, settings.length, place.device)
        mixer = (self.config or settings.model).get("mixer", "attention")
        self.buckets = [settings.length]
        if mixer != "sparse":
            self.buckets = [size for size in _BUCKETS if size < settings.length] + self.buckets
        self.place.share(settings.batch)
        self._plans: dict[int, list[tuple[int, np.ndarray]]] = {}
        self._orders: dict[int, Tensor] = {}
        self.steps_per_epoch: int = len(self._plan(0))
        self.tokens_per_step = round(settings.batch * np.mean([size for size, _ in self._plan(0)]))

    def model(self):
        from thereexists.mixers import MixerForSequenceClassification, load_model

        names = dict(enumerate(self.labels))
        fields = {"num_labels": len(names), "id2label": names, "label2id": {v: k for k, v in names.items()}}
        dropout = float(self.settings.options.get("dropout", DROPOUT))
        fields |= {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
        if self.start is None:
            return MixerForSequenceClassification(
                build_config(self.settings, vocab_size=self.tokenizer.get_vocab_size(), **fields)
            )
        with no_progress_bars():  # nor the hint that pooler and classifier are new
            return load_model(self.start, MixerForSequenceClassification, **fields)

    def batch(self, step: int) -> dict[str, Tensor]:
        epoch, within = divmod(step, self.steps_per_epoch)
        size, _ = self._plan(epoch)[within]
        share = self.place.share(self.settings.batch)
        first = within * self.settings.batch + self.place.rank * share
        return self.train.batch(self._orders[epoch][first : first + share], size)

    def tokens_until(self, steps: int) -> int:
        epochs, rest = divmod(steps, self.steps_per_epoch)
        whole = sum(size for epoch in range(epochs) for size, _ in self._plan(epoch))
        part = sum(size for size, _ in self._plan(epochs)[:rest]) if rest else 0
        return (whole + part) * self.settings.batch

    def evaluate(self, model: Any) -> dict[str, Any]:
        order = np.argsort(self.dev.lengths_on_host, kind="stable")
        right = torch.zeros((), device=self.place.device, dtype=torch.int64)
        for first in range(0, len(order), 256):
            chunk = order[first : first + 256]
            size = self._bucket(int(self.dev.lengths_on_host[chunk[-1]]))
            batch = self.dev.batch(torch.from_numpy(chunk).to(self.place.device), size)
            labels = batch.pop("labels")
            right += (model(**batch).logits.argmax(-1) == labels).sum()
        return {"accuracy": int(right) / len(order), "examples": len(order), "chance": 1 / len(self.labels)}

    def record(self) -> dict[str, Any]:
        return self.sources | {"labels": list(self.labels), "cut": {"train": self.train.cut, "dev": self.dev.cut}}

    def save_beside(self, out: Path) -> None:
        tokenizers.save(self.tokenizer, out / "tokenizer.json")

    def _bucket(self, length: int) -> int:
        return next(size for size in self.buckets if size >= length)

    def _plan(self, epoch: int) -> list[tuple[int, np.ndarray]]:
        """The batches of an epoch, as (padded length, examples): shuffled within each length, then among each other.

        What does not fill a batch of its length moves up to the next one; only the last rest is left out.
        """
        if epoch not in self._plans:
            rng = np.random.default_rng(seed_of(self.settings.seed, 1, epoch))
            lengths, batch = self.train.lengths_on_host, self.settings.batch
            plan, rest, low = [], np.empty(0, np.int64), 0
            for size in self.buckets:
                members = np.flatnonzero((lengths > low) & (lengths <= size))
                members = np.concatenate([rest, rng.permutation(members)])
                whole = len(members) // batch * batch
                plan += [(size, part) for part in members[:whole].reshape(-1, batch)]
                rest, low = members[whole:], size
            if not plan:
                raise InvalidInput(f"There are {len(lengths)} examples, fewer than a batch of {batch}.")
            self._plans[epoch] = [plan[i] for i in rng.permutation(len(plan))]
            order = np.concatenate([examples for _, examples in self._plans[epoch]])
            self._orders[epoch] = torch.from_numpy(order).to(self.place.device)  # once an epoch, not once a step
        return self._plans[epoch]

    def _tokenizer(self, sentences: list[str]) -> Tokenizer:
        """That of the run we start from, or a file given, or one trained on the sentences."""
        if self.start is not None:
            return tokenizers.load(self.start / "tokenizer.json")
        if self.settings.data.get("tokenizer"):
            return tokenizers.load(Path(self.settings.data["tokenizer"]))
        size = int(self.settings.options.get("vocabulary", tokenizers.DEFAULT_SIZE))
        return tokenizers.train_wordpiece(text_sample(sentences, tokenizers.SAMPLE), size)

    def _check_length(self) -> None:
        allowed = self.settings.length if self.config is None else int(self.config["max_position_embeddings"])
        if self.settings.length > allowed:
            raise InvalidInput(
                f"{self.start} was trained for at most {allowed} tokens; got --length {self.settings.length}."
            )
        if self.settings.length < 8:
            raise InvalidInput(f"Sentence pairs need a length of at least 8; got {self.settings.length}.")


class Table:
    """Encoded examples on the device; all have the same number of columns, and a batch takes the ones it needs."""

    def __init__(
        self,
        sentences: list[tuple[str, ...]],
        labels: list[int],
        tokenizer: Tokenizer,
        length: int,
        device: torch.device,
    ):
        sides = [_encode(tokenizer, [row[side] for row in sentences]) for side in range(len(sentences[0]))]
        ids = np.zeros((len(sentences), length), np.int32)
        self.lengths_on_host, firsts = np.zeros(len(sentences), np.int64), np.zeros(len(sentences), np.int64)
        self.cut = 0  # how many examples did not fit
        for i, row in enumerate(zip(*sides, strict=True)):
            kept = cut_longest([len(side) for side in row], length - 1 - len(row))
            self.cut += sum(kept) < sum(map(len, row))
            tokens = [CLS]
            for side, count in zip(row, kept, strict=True):
                tokens += [*side[:count], SEP]
                firsts[i] = firsts[i] or len(tokens)
            ids[i, : len(tokens)] = tokens
            self.lengths_on_host[i] = len(tokens)
        self.ids = torch.from_numpy(ids).to(device)
        self.lengths, self.firsts = (torch.from_numpy(a).to(device) for a in (self.lengths_on_host, firsts))
        self.labels = torch.tensor(labels, device=device)

    def batch(self, examples: Tensor, size: int) -> dict[str, Tensor]:
        places = torch.arange(size, device=examples.device)
        real = places < self.lengths[examples, None]
        return {
            "input_ids": self.ids[examples, :size].long(),
            "attention_mask": real.long(),
            "token_type_ids": ((places >= self.firsts[examples, None]) & real).long(),
            "labels": self.labels[examples],
        }


def cut_longest(lengths: list[int], room: int) -> list[int]:
    """How many tokens of each part to keep: always the longest part gives way until all fit."""
    kept = list(lengths)
    excess = sum(kept) - room
    while excess > 0:
        longest = max(range(len(kept)), key=lambda i: kept[i])
        others = max((kept[i] for i in range(len(kept)) if i != longest), default=0)
        step = min(excess, max(1, kept[longest] - others))
        kept[longest] -= step
        excess -= step
    return kept


def _encode(tokenizer: Tokenizer, sentences: list[str]) -> list[list[int]]:
    return [encoding.ids for encoding in tokenizer.encode_batch_fast(sentences, add_special_tokens=False)]


def _files(folder: Path):
    """The reader, the two files and the labels of a folder that holds MNLI or SST-2."""
    if folder.is_dir() and any(folder.glob("train.tsv*")):
        return read_sst2, find(folder, "train", ".tsv"), find(folder, "dev", ".tsv"), ("negative", "positive")
    return read_nli, find(folder, "train", ".jsonl"), find(folder, "dev", "_matched.jsonl", ".jsonl"), NLI_LABELS


TASK = Classification
