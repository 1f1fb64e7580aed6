"""Compiled programs: size, build time and right answers at several lengths; long sorts; forward against plain PyTorch.

OMP_NUM_THREADS=1 PYTHONPATH=src python benchmarks/programs.py [table|sort|forward|long]

The four programs of the table are those that Tracr's own examples have. There a token is one of five values; here it is
one of the reals 0, 1/4, …, 1, and reverse and sort are right for all reals too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from thereexists import program as P
from thereexists.model import EmbeddedTransformer

VALUES, MARGIN, INPUTS = 5, 0.25, 60


def reverse(n: int) -> P.Value:
    return P.flip(P.tokens(n))


def sort(n: int) -> P.Value:
    return P.sort(P.tokens(n))


def histogram(n: int) -> P.Value:
    """How many tokens have my value: the counts of all values, and the flag of mine chooses."""
    x = P.tokens(n)
    flags = P.equal(P.mix(x, np.ones((VALUES, 1))), np.tile(np.arange(VALUES) * MARGIN, (n, 1)), margin=MARGIN)
    return P.mix(P.where(flags, P.sum(flags), 0.0), np.ones((1, VALUES)))


def fraction_of_previous(n: int) -> P.Value:
    """Which fraction of the tokens so far is 1/2."""
    return P.prefix_mean(P.equal(P.tokens(n), 0.5, margin=MARGIN))


PROGRAMS = {
    "reverse": (reverse, lambda X: X[:, ::-1]),
    "sort": (sort, lambda X: np.sort(X, axis=1)),
    "histogram": (histogram, lambda X: (X == np.swapaxes(X, 1, 2)).sum(axis=2, keepdims=True)),
    "fraction of previous": (
        fraction_of_previous,
        lambda X: np.cumsum(X == 0.5, axis=1) / np.arange(1, X.shape[1] + 1)[:, None],
    ),
}


def table() -> None:
    print("| program | n | blocks | d_model | heads | parameters | build, s | bound float32 | largest error | right |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, (make, reference) in PROGRAMS.items():
        for n in (5, 10, 20, 64):
            start = time.process_time()
            compiled = P.compile(make(n), causal=name == "fraction of previous")
            seconds = time.process_time() - start
            X = np.random.default_rng(n).integers(0, VALUES, (INPUTS, n, 1)) / (VALUES - 1)
            error = np.abs(compiled(X, "float32") - reference(X)).max(axis=(1, 2))
            bound, shape = compiled.bound("float32").total, compiled.network.shape()
            right = int((error <= min(bound, resolution(name, n))).sum())
            size = f"{compiled.blocks} | {shape['d']} | {shape['h']} | {compiled.network.parameter_count:,}"
            found = f"{seconds:.2f} | {bound:.1e} | {error.max():.1e} | {right} of {INPUTS}"
            print(f"| {name} | {n} | {size} | {found} |")


def resolution(name: str, n: int) -> float:
    """Half the distance of two different answers: an error below it cannot be mistaken for another answer."""
    return {"histogram": 0.5, "fraction of previous": 0.5 / (n * (n - 1))}.get(name, 0.5 * MARGIN)


def sorting() -> None:
    for n in (64, 1024):
        start = time.process_time()
        compiled = P.compile(sort(n))
        built = time.process_time() - start
        start = time.process_time()
        bound = compiled.bound("float32").total
        print(
            f"sort, n = {n}: {compiled.blocks} blocks, d_model {compiled.layout.d_model}, built in {built:.2f} s, "
            f"bound {bound:.2g} in {time.process_time() - start:.2f} s"
        )


def by_hand(blocks: list[dict[str, torch.Tensor]], Z: torch.Tensor) -> torch.Tensor:
    """The blocks as one would write them: one head after the other, no masks, no options."""
    for w in blocks:
        out = Z
        if "W_Q" in w:
            for W_Q, b_Q, W_K, W_V, W_O in zip(w["W_Q"], w["b_Q"], w["W_K"], w["W_V"], w["W_O"], strict=True):
                weights = torch.softmax((Z @ W_Q.T + b_Q) @ (Z @ W_K.T).transpose(1, 2), dim=-1)
                out = out + weights @ (Z @ W_V.T) @ W_O.T
        Z = out
        if "W_1" in w:
            Z = Z + torch.relu(Z @ w["W_1"].T + w["b_1"]) @ w["W_2"].T + w["b_2"]
    return Z


def forward(*lengths: int, batch: int = 64) -> None:
    for n in lengths:
        network = P.compile(sort(n)).to("float32")
        X = torch.from_numpy(np.random.default_rng(0).random((batch, n, 1), dtype=np.float32))
        ours, plain, same = race(network, X)
        print(
            f"forward, sort, n = {n}, batch {batch}: {ours:.3f} s of the processor, by hand {plain:.3f} s "
            f"({ours / plain:.2f} times); equal: {same}"
        )


def race(network: EmbeddedTransformer, X: torch.Tensor) -> tuple[float, float, bool]:
    blocks: list[dict[str, torch.Tensor]] = []
    for stage in network.stages.values():
        parts = [part for part in (stage.attention, stage.feed_forward) if part is not None]
        blocks.append({name: w.detach()[0] for part in parts for name, w in part.named_parameters()})
    with torch.no_grad():
        ours, ours_s = timed(lambda: network(X))
        plain, plain_s = timed(lambda: by_hand(blocks, network.embed(X)) @ network.W_out.T)
    return ours_s, plain_s, bool(torch.equal(ours, plain))


def timed(run: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, float]:
    result, seconds = run(), []  # once to warm up
    for _ in range(2):
        start = time.process_time()
        result = run()
        seconds.append(time.process_time() - start)
    return result, min(seconds)


PARTS = {
    "table": table,
    "sort": sorting,
    "forward": lambda: forward(64, 256),
    "long": lambda: forward(1024),  # 55 blocks with 64 · 1,024² weights each: minutes on one core
}

if __name__ == "__main__":
    for part in sys.argv[1:] or ["table", "sort", "forward"]:
        PARTS[part]()
