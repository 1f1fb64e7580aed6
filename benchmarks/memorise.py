"""Memorise a parallel corpus, exactly, and beside it train a small Transformer for the same wall time.

    python benchmarks/memorise.py train.en train.cs [--n 16] [--on-conflict drop]

Both files hold one sentence a line (plain text or .xz), words between blanks, cut to n words. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import copy
import json
import lzma
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import thereexists as te
from thereexists.functions.vocabulary import Digits


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--n", type=int, default=16)
    parser.add_argument("--on-conflict", default="drop")
    parser.add_argument("--device", default="cpu", help="where the plain network runs")
    parser.add_argument("--train-seconds", type=float, help="the build's own time unless said")
    arguments = parser.parse_args()
    source, target = (read(path, arguments.n) for path in (arguments.source, arguments.target))
    print(json.dumps(measure(source, target, arguments), indent=1))


def read(path: Path, n: int) -> list[list[str]]:
    data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    return [line.split()[:n] for line in data.decode("utf-8").splitlines()]


def measure(source: list[list[str]], target: list[list[str]], arguments: argparse.Namespace) -> dict:
    start = time.perf_counter()
    witness = te.memorise(source, target, n=arguments.n, on_conflict=arguments.on_conflict)
    seconds = time.perf_counter() - start
    result = {
        "sentences": len(source),
        "distinct": len({tuple(s) for s in source}),
        "contradictions": len(witness.info["conflicts"]),
        "stored": len(witness.inputs),
        "vocabularies": [len(witness.vocabulary), len(witness.output_vocabulary)],
        "blocks": witness.network.depth,
        "d_model": witness.network.shape()["d"],
        "signs": witness.info["signs"],
        "parameters": witness.network.parameter_count,
        "parameters_per_token": round(witness.info["parameters_per_token"], 1),
        "lower_bound_up_to_logs": round(witness.info["lower_bound_up_to_logs"]),
        "build_seconds": round(seconds, 1),
        "recall": {dtype: recall(witness.to(dtype), arguments.device) for dtype in ("float32", "bfloat16")},
    }
    result["strangers"] = strangers(witness)
    trained = train(witness, arguments.train_seconds or seconds)
    return {**result, "trained": trained}


def recall(witness, device: str) -> dict:
    """All stored pairs, by key; and a sample (on a GPU: all) through the plain network."""
    witness.run(witness.inputs[:64])  # makes the index
    start = time.perf_counter()
    exact = witness.exact()
    seconds = time.perf_counter() - start
    rows = np.arange(0, len(exact), max(1, len(exact) // 100) if device == "cpu" else 1)
    dense, plain = plain_network(witness, rows, device)
    return {
        "exact": int(exact.sum()),
        "of": len(exact),
        "sentences_per_second": round(len(exact) / seconds),
        "plain_network_exact": int((dense == witness.outputs[rows]).all(axis=1).sum()),
        "plain_network_of": len(rows),
        "plain_network_sentences_per_second": round(len(rows) / plain, 1),
    }


def strangers(witness) -> dict:
    """One word of every stored sentence replaced at random: how often does a stored answer come back all the same?"""
    rng = np.random.default_rng(0)
    X, rows = witness.inputs.copy(), np.arange(len(witness.inputs))
    X[rows, (rng.random(len(X)) * (X > 0).sum(axis=1)).astype(int)] = rng.integers(
        1, len(witness.vocabulary) + 1, len(X)
    )
    stored = {tuple(row) for row in witness.inputs.tolist()}
    new = np.array([tuple(row) not in stored for row in X.tolist()])
    return {"asked": int(new.sum()), "answered": int((witness.run(X[new])[:, 0] != 0).sum())}


def plain_network(witness, rows: np.ndarray, device: str) -> tuple[np.ndarray, float]:
    """Every weight of the network, on a device: the output numbers and the seconds."""
    network = copy.deepcopy(witness.network).to(device)
    X = torch.from_numpy(witness.inputs[rows]).to(device)
    size = 8 if device == "cpu" else 512
    with torch.no_grad():
        network(X[:2], X[:2] > 0)
        start = time.perf_counter()
        digits = torch.cat([network(part, part > 0) for part in X.split(size)]).double().cpu().numpy()
    return witness.digits.join(digits), time.perf_counter() - start


class Small(nn.Module):
    """Two encoder layers of width 256, learned positions; every output position classifies its token's digits."""

    def __init__(self, V: int, digits: Digits, n: int, d: int = 256):
        super().__init__()
        self.token, self.position = nn.Embedding(V + 1, d), nn.Parameter(0.02 * torch.randn(n, d))
        layer = nn.TransformerEncoderLayer(d, 4, 4 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(d, digits.count * digits.base)
        self.digits = digits

    def forward(self, X):
        Z = self.layers(self.token(X) + self.position, src_key_padding_mask=X == 0)
        return self.head(Z).unflatten(-1, (self.digits.count, self.digits.base))


def train(witness, seconds: float) -> dict:
    """AdamW for so many seconds; recall of whole sentences and of tokens on (up to 4,096 of) the training pairs."""
    torch.manual_seed(0)
    X, Y = torch.from_numpy(witness.inputs), torch.from_numpy(witness.outputs)
    D = torch.from_numpy(witness.digits.split(witness.outputs))  # (pairs, n, digits)
    model = Small(len(witness.vocabulary), witness.digits, witness.n)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        rows = torch.randint(0, len(X), (64,))
        loss = nn.functional.cross_entropy(model(X[rows]).flatten(0, 2), D[rows].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        steps += 1
    trained = time.perf_counter() - start
    model.eval()
    rows = torch.randperm(len(X))[:4096]
    with torch.no_grad():
        guess = torch.cat([model(part).argmax(-1) for part in X[rows].split(128)])
    right, real = (guess == D[rows]).all(dim=-1), Y[rows] > 1
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(trained, 1),
        "steps": steps,
        "sentences_exact": int(right.all(dim=1).sum()),
        "of": len(rows),
        "tokens_right": round(float(right[real].float().mean()), 4),
    }


if __name__ == "__main__":
    main()
