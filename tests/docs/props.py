"""The small files that the docs' commands speak of: a function, a table, pairs, a mask, a model config, corpora."""

from __future__ import annotations

import json
import lzma
import random
import shutil
from pathlib import Path

import numpy as np

from tests.docs.blocks import ROOT
from tests.experiments.small_data import article, nli_lines


def make_props(folder: Path) -> None:
    """Write all of them; the docs' own data is copied, so that a command that writes there writes into the copy."""
    rng = random.Random(0)
    (folder / "my.py").write_text("def f(X):\n    return X[:, ::-1]\n")
    (folder / "prog.py").write_text(
        "from thereexists import program as P\n\nx = P.tokens(n=4)\nsmooth = 0.5 * x + 0.5 * P.mean(x)\n"
    )
    (folder / "sym.py").write_text(
        'from thereexists import program as P\n\ninduction = P.previous(P.symbols("abcdr", n=11), default="?")\n'
    )
    (folder / "table.csv").write_text("x1,x2,y1,y2\n0,0,0,0\n0,1,0,1\n1,0,0,1\n1,1,1,1\n")
    pairs = [{"input": ["a", word], "output": [word, "a"]} for word in ("dog", "cat", "bird")]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)) + "\n")
    np.savez(folder / "mask.npz", mask=np.tri(8, k=1, dtype=bool) & np.tri(8, k=1, dtype=bool).T)
    mistral = {"model_type": "mistral", "sliding_window": 4, "max_position_embeddings": 32, "num_hidden_layers": 4}
    (folder / "config.json").write_text(json.dumps(mistral))
    with lzma.open(folder / "wiki.txt.xz", "wt") as corpus:
        corpus.write("\n\n".join(article(rng) for _ in range(900)))
    (folder / "mnli").mkdir()
    (folder / "mnli/train.jsonl").write_text(nli_lines(rng, 128))
    (folder / "mnli/dev_matched.jsonl").write_text(nli_lines(rng, 32))
    for name in ("multi30k_en_cs", "wmt_en_cs"):
        (folder / name).mkdir()
        for part, count in (("train", 64), ("test", 4)):
            text = [article(rng, rng.randrange(2, 6)) for _ in range(count)]
            (folder / name / f"{part}.en").write_text("\n".join(text) + "\n")
            (folder / name / f"{part}.cs").write_text("\n".join(line.upper() for line in text) + "\n")
    shutil.copytree(ROOT / "docs" / "data", folder / "docs" / "data")
    (folder / "docs" / "img").mkdir()
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks")
    (folder / "data" / "wikipedia").mkdir(parents=True)
    for part in ("train_1", "valid"):
        text = "\n\n".join(article(rng) for _ in range(300))
        (folder / "data" / "wikipedia" / f"wiki_{part}.txt").write_text(text)
    shutil.copytree(folder / "mnli", folder / "data" / "mnli")
