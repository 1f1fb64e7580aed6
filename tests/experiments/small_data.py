"""Data the tests make: a small language in which the next word follows from the last, labels from a word, and so on."""

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thereexists.cli import app

WORDS = [a + b + c for a in "bdfgk" for b in "aeiou" for c in "lmn"]  # 75 of them
LABELS = ("entailment", "neutral", "contradiction")


def article(rng: random.Random, length: int = 30) -> str:
    """Word i + 1 is a fixed function of word i, up to a little noise."""
    word = rng.randrange(len(WORDS))
    words = []
    for _ in range(length):
        words.append(WORDS[word])
        word = (7 * word + 3) % len(WORDS) if rng.random() < 0.9 else rng.randrange(len(WORDS))
    return " ".join(words)


def nli_lines(rng: random.Random, count: int) -> str:
    """The hypothesis' first word gives the label away."""
    rows = []
    for _ in range(count):
        label = rng.randrange(3)
        hypothesis = f"{WORDS[label]} {article(rng, 2)}"
        rows.append(
            {"premise": article(rng, rng.choice((3, 5, 8, 8, 40))), "hypothesis": hypothesis, "label": LABELS[label]}
        )
    return "\n".join(map(json.dumps, rows))


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """A data folder with the layout the experiments expect."""
    root, rng = tmp_path_factory.mktemp("data"), random.Random(0)
    for name in ("wikipedia", "mnli", "multi30k_en_cs", "wmt_en_cs", "sst2"):
        (root / name).mkdir()
    (root / "wikipedia/wiki_train_1.txt").write_text("\n\n".join(article(rng) for _ in range(250)))
    (root / "wikipedia/wiki_train_2.txt").write_text("\n\n".join(article(random.Random(1)) for _ in range(50)))
    (root / "wikipedia/wiki_valid.txt").write_text("\n\n".join(article(rng) for _ in range(30)))
    (root / "mnli/train.jsonl").write_text(nli_lines(rng, 200))
    (root / "mnli/dev_matched.jsonl").write_text(nli_lines(rng, 64))
    for name in ("train", "dev"):
        rows = [(article(rng, 4), rng.randrange(2)) for _ in range(80)]
        (root / f"sst2/{name}.tsv").write_text("\n".join(["sentence\tlabel", *(f"{s}\t{l}" for s, l in rows)]))
    for folder, test in (("multi30k_en_cs", "test_2016_flickr"), ("wmt_en_cs", "newstest2015")):
        for name, count in (("train", 100), (test, 12)):
            lines = [article(rng, rng.randrange(2, 6)) for _ in range(count)]
            (root / folder / f"{name}.en").write_text("\n".join(lines) + "\n")
            (root / folder / f"{name}.cs").write_text("\n".join(line.upper() for line in lines) + "\n")
    return root


@pytest.fixture(scope="session")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


SMALL = {
    "size": "tiny",
    "num_hidden_layers": 1,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "norm_first": True,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.0,
}


@pytest.fixture
def small() -> dict:
    return dict(SMALL)


@pytest.fixture
def call(tmp_path, monkeypatch, cache):
    """The command, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THEREEXISTS_CACHE", str(cache))

    def call(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call
