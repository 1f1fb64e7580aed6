"""Engines against stock PyTorch modules, growth with depth and batch, building at scale: each figure from one run.

python benchmarks/performance.py                        # CPU: tables; a few minutes
python benchmarks/performance.py --device cuda --check  # GPU: engines there, bits compared with the CPU; about a minute
python benchmarks/performance.py --check                # exit code 1 if a promised ratio is missed
python benchmarks/performance.py --json                 # one JSON object a figure, instead of tables
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import thereexists as te
from thereexists.evaluate import evaluate
from thereexists.functions.targets import builtin
from thereexists.model import Transformer

FAILED: list[str] = []
LARGE = ("sort", 6, 8)  # two sweeps of 6·8^6 layers


class FeedForwardModule(nn.Module):
    """One feed-forward layer as anybody would write it."""

    def __init__(self, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor):
        super().__init__()
        self.first, self.second = _linear(W_1, b_1), _linear(W_2, b_2)

    def forward(self, Z: Tensor) -> Tensor:
        return Z + self.second(torch.relu(self.first(Z)))


class AttentionModule(nn.Module):
    """One attention layer as anybody would write it: heads side by side, softmax, an output projection."""

    def __init__(self, W_Q: Tensor, b_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor):
        super().__init__()
        h, m, d = W_Q.shape
        self.h, self.m = h, m
        self.q, self.k = _linear(W_Q.reshape(h * m, d), b_Q.reshape(-1)), _linear(W_K.reshape(h * m, d))
        self.v, self.o = _linear(W_V.reshape(h * m, d)), _linear(W_O.permute(1, 0, 2).reshape(d, h * m))

    def forward(self, Z: Tensor) -> Tensor:
        q, k, v = (f(Z).unflatten(-1, (self.h, self.m)).transpose(1, 2) for f in (self.q, self.k, self.v))
        mixed = torch.softmax(q @ k.mT, dim=-1) @ v  # (batch, h, n, m)
        return Z + self.o(mixed.transpose(1, 2).flatten(-2))


def _linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    linear = nn.Linear(*weight.shape[::-1], bias=bias is not None, device="meta", dtype=weight.dtype)
    linear.weight = nn.Parameter(weight.detach().clone())
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach().clone())
    return linear


def stock_modules(network: Transformer) -> nn.Sequential:
    """One module per layer, only the half it needs, on the same weights."""
    modules: list[nn.Module] = []
    for stage in network.stages.values():
        part, make = (
            (stage.attention, AttentionModule)
            if stage.attention is not None
            else (stage.feed_forward, FeedForwardModule)
        )
        if part is None:
            raise ValueError("A stage of a built network has one half.")
        modules += [make(*layer) for layer in zip(*(w.detach().unbind(0) for w in part.parameters_list()), strict=True)]
    return nn.Sequential(*modules)


def seconds(run: Callable[[], object], repeats: int) -> float:
    """The best of several runs. On a CPU everything here runs in one thread, and its own time is counted: what others
    do on the machine is then left out. With a GPU it is the time on the wall."""
    clock = time.perf_counter if torch.cuda.is_available() else time.thread_time
    best = float("inf")
    for _ in range(repeats):
        _synchronise()
        start = clock()
        run()
        _synchronise()
        best = min(best, clock() - start)
    return best


def _synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def sequences(count: int, n: int, device: str = "cpu") -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).random((count, n, 1))).to(device)


def same_bits(a: Tensor, b: Tensor) -> bool:
    return np.array_equal(a.cpu().numpy().view(np.int64), b.cpu().numpy().view(np.int64))


def engines(report: Report) -> None:
    """sort, n = 4, δ = 1/8: 16,449 layers, 2,000 sequences, one thread."""
    network, X = te.build(builtin("sort", n=4), delta=1 / 8).network, sequences(2000, 4)
    stock = stock_modules(network)
    Z = X if network.E is None else X + network.E
    expected = stock(Z)
    base = seconds(lambda: stock(Z), 3)
    row = {"layers": network.depth, "sequences": len(X), "bits": True}
    report("engines", {"engine": "one PyTorch module per layer", **row, "seconds": base, "times faster": 1.0})
    for name, repeats, promised in (("reference", 2, 0), ("fused", 5, 8), ("skip", 20, 1000)):
        same = same_bits(evaluate(network, X, name), expected)
        taken = seconds(lambda name=name: evaluate(network, X, name), repeats)
        row = {**row, "bits": same, "seconds": taken, "times faster": base / taken}
        report("engines", {"engine": name, **row}, promised=("times faster", promised))
        report.require(same, f"{name} has other bits than the stock modules")


def depth(report: Report) -> None:
    """sort on finer grids, 1,000 sequences: microseconds a token."""
    for n, N in ((3, 4), (3, 8), (3, 16), (4, 8), (3, 32), (5, 8)):
        network, X = te.build(builtin("sort", n=n), delta=1 / N).network, sequences(1000, n)
        names = ("reference", "fused", "skip") if network.depth <= 20_000 else ("fused", "skip")
        report("depth", {"layers": network.depth, "reference": None, **{e: per_token(network, X, e) for e in names}})


def batch(report: Report) -> None:
    """sort, n = 4, δ = 1/8, growing batches: microseconds a token."""
    network = te.build(builtin("sort", n=4), delta=1 / 8).network
    for count in (1, 10, 100, 1000, 10_000, 100_000):
        X = sequences(count, 4)
        largest = {"reference": 1000, "fused": 10_000, "skip": 100_000}
        times = {e: per_token(network, X, e) if count <= most else None for e, most in largest.items()}
        report("batch", {"sequences": count, **times})


def per_token(network: Transformer, X: Tensor, engine: str) -> float:
    """Microseconds."""
    evaluate(network, X[:1], engine)
    return 1e6 * seconds(lambda: evaluate(network, X, engine), 1 if engine == "reference" else 3) / X[..., 0].numel()


def scale(report: Report) -> None:
    """A witness of millions of layers, in a process of its own: build, save, load, answer 10,000 sequences."""
    command = [sys.executable, __file__, "--build-only", *map(str, LARGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    row = json.loads(done.stdout.splitlines()[-1])
    report("scale", row)
    report.require(row["layers"] >= 2_000_000, "the large witness is not large")
    report.require(row["build seconds"] < 60, "the large witness took a minute to build")
    report.require(row["answer seconds"] < 1, "the large witness took a second to answer")
    report.require(abs(row["peak MiB"] / row["predicted MiB"] - 1) <= 0.2, "the memory prediction is off")


def build_only(name: str, n: int, N: int) -> None:
    target = builtin(name, n=n)
    tiny = te.build(builtin(name, n=2), delta=1 / 2)  # imports everything
    tiny(np.zeros((1, 2, 1)), engine="skip")  # and loads the compiled kernels
    baseline = _peak_rss()
    start = time.perf_counter()
    witness = te.build(target, delta=1 / N)
    built, peak = time.perf_counter() - start, _peak_rss() - baseline
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        witness.save(Path(folder) / "w")
        saved = time.perf_counter() - start
        size = (Path(folder) / "w" / "model.safetensors").stat().st_size
        start = time.perf_counter()
        loaded = te.load(Path(folder) / "w")
        read = time.perf_counter() - start
        X = np.random.default_rng(0).random((10_000, n, 1))
        start = time.perf_counter()
        Y = loaded(X)
        answered = time.perf_counter() - start
        start = time.perf_counter()
        loaded(X)
        again = time.perf_counter() - start
    off_ramps = ~loaded.grid.on_ramp(X)
    row = {
        "layers": witness.network.depth,
        "build seconds": built,
        "layers per second": witness.network.depth / built,
        "peak MiB": peak / 2**20,
        "predicted MiB": witness.plan.memory_bytes / 2**20,
        "file MiB": size / 2**20,
        "save seconds": saved,
        "load seconds": read,
        "answer seconds": answered,
        "answer again seconds": again,
        "largest error": float(np.abs(Y - witness.cell_values(X))[off_ramps].max()),
    }
    print(json.dumps(row))


def _peak_rss() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def cuda(report: Report) -> None:
    """sort, n = 4, δ = 1/8 on the GPU; the bits of every engine against the reference on the CPU."""
    witness = te.build(builtin("sort", n=4), delta=1 / 8)
    network = witness.network
    X = sequences(2000, 4)
    expected = network(X)
    network.to("cuda")
    there = X.to("cuda")
    row = {"layers": network.depth, "sequences": len(X)}
    network(there)
    base = seconds(lambda: network(there), 3)
    bits = same_bits(network(there), expected)
    report("cuda", {"engine": "reference", **row, "bits": bits, "seconds": base, "times faster": 1.0})
    for name, promised in (("fused", 100), ("skip", 0)):
        same = same_bits(evaluate(network, there, name), expected)
        taken = seconds(lambda name=name: evaluate(network, there, name), 10)
        figures = {"engine": name, **row, "bits": same, "seconds": taken, "times faster": base / taken}
        report("cuda", figures, promised=("times faster", promised))
        report.require(same, f"{name} on the GPU has other bits than the reference on the CPU")
    for count in (20_000, 200_000):
        many = sequences(count, 4, "cuda")
        taken = seconds(lambda many=many: evaluate(network, many, "fused"), 3)
        row = {"engine": "fused", "sequences": count, "seconds": taken, "ns a token": 1e9 * taken / many.numel()}
        report("cuda batch", row)
    for label, small in _kinds():
        _same_on_cuda(report, label, small)


def _same_on_cuda(report: Report, label: str, small: te.Witness) -> None:
    network, X = small.network, torch.from_numpy(_inside(small, 500))
    expected = network(X)
    network.to("cuda")
    same = {name: same_bits(evaluate(network, X.to("cuda"), name), expected) for name in ("fused", "skip")}
    report("cuda bits", {"network": label, "layers": network.depth, **same})
    report.require(all(same.values()), f"{label}: other bits on the GPU than on the CPU")


def _kinds() -> Iterator[tuple[str, te.Witness]]:
    """One witness of every kind of network."""
    yield "Theorem 1", te.build(builtin("nearest-neighbour", n=3), delta=1 / 4)
    yield "Theorem 2, two features", te.build(builtin("sort", n=2, d=2), delta=1 / 4)
    yield "modified class", te.build(builtin("sort", n=3), delta=1 / 4, modified=True)
    yield "Theorem B, star", te.build(builtin("sort", n=3), delta=1 / 2, pattern=te.patterns.star(3))
    sparsemax = te.build(builtin("sort", n=3), delta=1 / 2, pattern=te.patterns.star(3), rho="sparsemax")
    yield "Theorem B, star, sparsemax", sparsemax
    yield "two sweeps", te.build(te.Target(lambda X: 1e9 * (X[:, ::-1] - 0.5), n=2), delta=1 / 4)


def _inside(witness: Any, count: int) -> np.ndarray:
    """Random inputs off the ramps."""
    low, high = witness.target.low, witness.target.high
    X = low + (high - low) * np.random.default_rng(0).random((count, witness.grid.n, witness.grid.d))
    return X[~witness.grid.on_ramp(X)]


class Report:
    """Rows as Markdown tables, or as one JSON object a row."""

    def __init__(self, as_json: bool):
        self.as_json, self.table = as_json, ""

    def __call__(self, table: str, row: dict[str, object], promised: tuple[str, float] | None = None) -> None:
        if self.as_json:
            print(json.dumps({"table": table, **row}), flush=True)
        else:
            if table != self.table:
                print(f"\n### {table}\n\n| {' | '.join(row)} |\n|{'---|' * len(row)}")
                self.table = table
            print(f"| {' | '.join(map(_short, row.values()))} |", flush=True)
        if promised is not None:
            value = row[promised[0]]
            self.require(isinstance(value, float) and value >= promised[1], f"{row} misses {promised[1]} {promised[0]}")

    def require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            FAILED.append(otherwise)


def _short(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "same" if value else "DIFFERENT"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a promise is missed")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=("engines", "depth", "batch", "scale"), help="one table")
    parser.add_argument("--build-only", nargs=3, metavar=("TARGET", "N", "CELLS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        if options.build_only:
            build_only(options.build_only[0], int(options.build_only[1]), int(options.build_only[2]))
            return
        report = Report(options.json)
        if options.device == "cuda":
            cuda(report)
        else:
            if find_spec("numba") is None:
                sys.exit("The CPU tables need Numba: pip install 'thereexists[fast]'.")
            tables = {"engines": engines, "depth": depth, "batch": batch, "scale": scale}
            for name, table in tables.items():
                if options.only in (None, name):
                    table(report)
    for failure in FAILED:
        print(f"MISSED: {failure}", file=sys.stderr)
    if options.check and FAILED:
        sys.exit(1)


if __name__ == "__main__":
    main()
