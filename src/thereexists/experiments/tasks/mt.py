"""Translation with an encoder–decoder; BLEU by ``sacrebleu`` on every test set, greedy decoding.

A sparse pattern applies to the encoder's self-attention, its causal version to the decoder's; cross-attention is dense.
Sentences are padded to one length, the length of the pattern; longer training pairs are left out, longer test sources
are cut. Where sacrebleu is not installed the hypotheses are kept in the result and scored later (``scoring``).
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from thereexists.core.errors import InvalidInput
from thereexists.experiments import tokenizer as tokenizers
from thereexists.experiments.corpus import Source, find, read_lines, read_parallel
from thereexists.experiments.models import build_config
from thereexists.experiments.sampling import IGNORED, Place, Shuffle
from thereexists.experiments.scoring import bleu, sacrebleu_is_here
from thereexists.experiments.settings import Settings
from thereexists.experiments.task import Task
from thereexists.experiments.tokenizer import CLS, PAD, SEP

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TRAINING = ("train", "val")


class Translation(Task):
    def __init__(self, settings: Settings, place: Place, cache: Path):
        super().__init__(settings, place, cache)
        self.source, self.target = settings.options.get("source", "en"), settings.options.get("target", "cs")
        self.folders = [Path(folder) for folder in _as_list(settings.data.get("data"))]
        if not self.folders:
            raise InvalidInput(f"Translation needs folders with train.{self.source} and train.{self.target}: --data.")
        files = [(find(f, "train", f".{self.source}"), find(f, "train", f".{self.target}")) for f in self.folders]
        pairs = [pair for left, right in files for pair in read_parallel(left, right)]
        self.sources = [Source.of(file).record() for both in files for file in both]
        self.tests = find_tests(self.folders, self.source, self.target, settings.options.get("tests"))
        self.tokenizer = self._tokenizer([sentence for pair in pairs for sentence in pair])
        self._encode(pairs)
        self.tokens_per_step, self.steps_per_epoch = 2 * settings.batch * settings.length, self.shuffle.steps_per_epoch

    def _encode(self, pairs: list[tuple[str, str]]) -> None:
        n, device = self.settings.length, self.place.device
        left, right = (_ids(self.tokenizer, [pair[side] for pair in pairs]) for side in (0, 1))
        fits = [i for i in range(len(pairs)) if len(left[i]) < n and len(right[i]) < n]
        self.used, self.left_out = len(fits), len(pairs) - len(fits)
        self.left = torch.from_numpy(_padded([left[i] for i in fits], n)).to(device)
        self.right = torch.from_numpy(_padded([right[i] for i in fits], n)).to(device)
        self.shuffle = Shuffle(len(fits), self.settings.batch, self.settings.seed, self.place)

    def model(self):
        from thereexists.mixers import MixerForSeq2SeqLM

        fields = {"is_encoder_decoder": True, "decoder_start_token_id": CLS, "pad_token_id": PAD, "eos_token_id": SEP}
        return MixerForSeq2SeqLM(
            build_config(self.settings, vocab_size=self.tokenizer.get_vocab_size(), type_vocab_size=2, **fields)
        )

    def batch(self, step: int) -> dict[str, Tensor]:
        examples = self.shuffle.indices(step)
        source, target = self.left[examples].long(), self.right[examples].long()
        return {
            "input_ids": source,
            "attention_mask": (source != PAD).long(),
            "labels": target.masked_fill(target == PAD, IGNORED),
        }

    def evaluate(self, model: Any) -> dict[str, Any]:
        hypotheses, scores = {}, {}
        for name, (left, right) in self.tests.items():
            hypotheses[name] = self.translate(model, read_lines(left))
            if sacrebleu_is_here():
                scores[name] = bleu(hypotheses[name], read_lines(right))
        return {"bleu": scores, "hypotheses": hypotheses}

    def translate(self, model: Any, sentences: list[str]) -> list[str]:
        """Greedy, all positions of a padded output computed at every step: any pattern is used as it was trained."""
        n, device = self.settings.length, self.place.device
        encoded = [ids[: n - 1] for ids in _ids(self.tokenizer, sentences)]
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]))
        out = [""] * len(encoded)
        for first in range(0, len(order), 512):
            chunk = order[first : first + 512]
            source = torch.from_numpy(_padded([encoded[i] for i in chunk], n)).to(device).long()
            written = greedy(model, source, n).tolist()
            for i, ids in zip(chunk, written, strict=True):
                ids = ids[: ids.index(SEP)] if SEP in ids else ids
                out[i] = self.tokenizer.decode(ids, skip_special_tokens=True).strip()
        return out

    def record(self) -> dict[str, Any]:
        tests = {name: Source.of(right).record() for name, (_, right) in self.tests.items()}
        return {
            "train": self.sources,
            "pairs": self.used,
            "pairs_left_out": self.left_out,
            "tests": tests,
            "tokenizer": {"vocabulary": self.tokenizer.get_vocab_size(), "kind": "bpe"},
        }

    def save_beside(self, out: Path) -> None:
        tokenizers.save(self.tokenizer, out / "tokenizer.json")

    def _tokenizer(self, sentences: list[str]) -> Tokenizer:
        if self.settings.data.get("tokenizer"):
            return tokenizers.load(Path(self.settings.data["tokenizer"]))
        size = int(self.settings.options.get("vocabulary", 8192))
        name = sha256(json.dumps(self.sources).encode()).hexdigest()[:16]
        path = self.cache / f"bpe-{size}-{name}.json"
        if not path.is_file():
            tokenizers.save(tokenizers.train_bpe(sentences, size), path)
        return tokenizers.load(path)


def greedy(model: Any, source: Tensor, n: int) -> Tensor:
    """``(batch, n)`` tokens, the start token left out."""
    real = (source != PAD).long()
    states = model.get_encoder()(source, real)
    written = torch.full((len(source), n + 1), PAD, device=source.device)
    written[:, 0] = CLS
    ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    for t in range(n):
        logits = model(attention_mask=real, decoder_input_ids=written[:, :n], encoder_outputs=states).logits[:, t]
        token = logits.argmax(-1).masked_fill(ended, PAD)
        written[:, t + 1] = token
        ended |= token == SEP
        if bool(ended.all()):
            break
    return written[:, 1:]


def find_tests(
    folders: list[Path], source: str, target: str, wanted: list[str] | None = None
) -> dict[str, tuple[Path, Path]]:
    """Every file pair that is not training or validation data, as ``folder/stem``; or only the wanted ones."""
    found: dict[str, tuple[Path, Path]] = {}
    for folder in folders:
        stems = {file.name.split(f".{source}")[0] for file in folder.glob(f"*.{source}*")}
        for stem in sorted(stems - set(_TRAINING)):
            found[f"{folder.name}/{stem}"] = (find(folder, stem, f".{source}"), find(folder, stem, f".{target}"))
    if wanted is not None:
        missing = sorted(set(wanted) - set(found))
        if missing:
            raise InvalidInput(f"There is no test set {missing[0]!r}; found {', '.join(found) or 'none'}.")
        found = {name: found[name] for name in wanted}
    if not found:
        raise InvalidInput(f"There is no test set beside the training data in {', '.join(map(str, folders))}.")
    return found


def _ids(tokenizer: Tokenizer, sentences: list[str]) -> list[list[int]]:
    return [encoding.ids for encoding in tokenizer.encode_batch_fast(sentences, add_special_tokens=False)]


def _padded(sentences: list[list[int]], n: int) -> np.ndarray:
    """``(count, n)``, each sentence closed by [SEP]."""
    out = np.full((len(sentences), n), PAD, np.int32)
    for i, ids in enumerate(sentences):
        out[i, : len(ids) + 1] = [*ids, SEP]
    return out


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


TASK = Translation
