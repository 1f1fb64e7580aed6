"""What the two language-modelling tasks share: a corpus and held-out text as token windows on the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thereexists.experiments import tokenizer as tokenizers
from thereexists.experiments.sampling import Place, Shuffle
from thereexists.experiments.settings import Settings
from thereexists.experiments.task import Task, on_device, paths_of
from thereexists.experiments.tokens import corpus_tokenizer, stream, windows

_EVALUATED = 4096  # held-out windows at most


class TextTask(Task):
    """``pieces`` and ``held_out``: (count, window) tokens. Without held-out text the last 1 % of the corpus is it."""

    def __init__(self, settings: Settings, place: Place, cache: Path, window: int):
        super().__init__(settings, place, cache)
        corpus = paths_of(settings, "corpus", "a text of articles separated by blank lines")
        size = int(settings.options.get("vocabulary", tokenizers.DEFAULT_SIZE))
        given = settings.data.get("tokenizer")
        self.tokenizer, self.tokenizer_sha = corpus_tokenizer(corpus, size, cache, Path(given) if given else None)
        self.vocabulary = self.tokenizer.get_vocab_size()
        self.train_stream = stream(corpus, self.tokenizer, cache)
        pieces = windows(self.train_stream, window)
        if settings.data.get("valid"):
            valid = stream(paths_of(settings, "valid", "held-out text"), self.tokenizer, cache)
            held_out, self.valid_record = windows(valid, window), valid.record()
        else:
            held = max(1, len(pieces) // 100)
            pieces, held_out = pieces[:-held], pieces[-held:]
            self.valid_record = {"name": "the last 1 % of the corpus", "tokens": held_out.size}
        self.pieces = on_device(pieces, place)
        self.held_out = on_device(held_out[: int(settings.options.get("evaluate", _EVALUATED))], place)
        self.shuffle = Shuffle(len(pieces), settings.batch, settings.seed, place)
        self.tokens_per_step, self.steps_per_epoch = settings.batch * settings.length, self.shuffle.steps_per_epoch

    def on_the_way(self, model: Any) -> dict[str, float]:
        """All of the held-out text: a third of a second at base size on a large GPU, twelve times in minutes."""
        return {name: value for name, value in self.evaluate(model).items() if name in ("loss", "accuracy")}

    def record(self) -> dict[str, Any]:
        return {
            "corpus": self.train_stream.record(),
            "valid": self.valid_record,
            "tokenizer": {"vocabulary": self.vocabulary, "sha256": self.tokenizer_sha},
        }

    def save_beside(self, out: Path) -> None:
        tokenizers.save(self.tokenizer, out / "tokenizer.json")
