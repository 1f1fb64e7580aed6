"""Automata: sizes, times of build with certificate and of verification; depth against length; forward against by hand.

OMP_NUM_THREADS=1 PYTHONPATH=src python benchmarks/automata.py [table|depth|groups|forward]
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import thereexists as te
from thereexists.evaluate.prefixes import prefixes

EVERYDAY = Path(__file__).parent.parent / "tests" / "constructions" / "automata" / "everyday.json"
ROUNDS = 3


def alternating_group() -> te.automata.Automaton:
    """A5: 60 letters, five states."""
    pairs = list(itertools.combinations(range(5), 2))
    even = [p for p in itertools.permutations(range(5)) if sum(p[i] > p[j] for i, j in pairs) % 2 == 0]
    return te.automata.dfa(np.array(even).T, 0, [0], ["".join(map(str, p)) for p in even])


def adder() -> te.automata.Automaton:
    """Decimal digit pairs, lowest first."""
    digits = [f"{i}{j}" for i in range(10) for j in range(10)]
    return te.automata.mealy(lambda carry, ab: divmod(int(ab[0]) + int(ab[1]) + carry, 10), [0, 1], digits)


def random_machine() -> te.automata.Automaton:
    letters = [chr(ord("a") + k) for k in range(26)]
    return te.automata.dfa(np.random.default_rng(6).integers(0, 16, (16, 26)), 0, [0, 3, 5], letters)


def table() -> None:
    """Every case that the tests go through."""
    cases = [
        ("word problem of A5", alternating_group(), 16_384),
        ("addition of two numbers, decimal", adder(), 64),
        ("random, 26 letters", random_machine(), 64),
    ]
    for row in json.loads(EVERYDAY.read_text(encoding="utf-8"))["patterns"]:
        cases.append((row["name"], te.automata.regex(row["pattern"], row["alphabet"]), 32))
    print("| automaton | states (before) | n | blocks | rows | width | parameters | build and proof, s | verify, s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, machine, n in cases:
        start = time.perf_counter()
        witness = te.build(machine, n=n, construction="doubling")
        built = time.perf_counter() - start
        with tempfile.TemporaryDirectory() as folder:
            witness.save(Path(folder) / "w")
            start = time.perf_counter()
            verdict = te.verify(Path(folder) / "w")
            checked = time.perf_counter() - start
        assert verdict.holds, verdict.reasons
        plan = witness.plan
        print(
            f"| {name} | {machine.size} ({machine.before}) | {n:,} | {plan.layers['total']} | {plan.map_rows} "
            f"({plan.maps}) | {plan.width:,} | {plan.parameters:,} | {built:.2f} | {checked:.2f} |",
            flush=True,
        )


def depth() -> None:
    """Blocks and parameters against the length, for A5."""
    print("| n | blocks | d_model | parameters |")
    print("|---|---|---|---|")
    for power in range(2, 21, 2):
        plan = te.plan(alternating_group(), n=2**power)
        print(f"| {2**power:,} | {plan.layers['total']} | {plan.d_model} | {plan.parameters:,} |")


def groups() -> None:
    """Counting beside doubling, for parity and modulo 7: blocks, parameters, files, dtypes, build, forward."""
    heads = "automaton | n | network | blocks | d_model | parameters | folder, kB | proved in | build and proof, s"
    print(f"| {heads} | forward, s |\n|---|---|---|---|---|---|---|---|---|---|")
    te.build(alternating_group(), n=4)  # what is imported first is not timed
    for m in (2, 7):
        machine = te.automata.from_function(lambda q, a, m=m: (q + int(a)) % m, 0, "01", accept=[0])
        for n in (256, 1024, 4096):
            for construction in ("counting", "doubling"):
                _compared(machine, m, n, construction)


def _compared(machine: te.automata.Automaton, m: int, n: int, construction: str) -> None:
    dtype = "float64" if construction == "counting" and n > 1024 else "float32"
    start = time.perf_counter()
    witness = te.build(machine, n=n, dtype=dtype, construction=construction)
    built = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        witness.save(Path(folder) / "w")
        size = sum(file.stat().st_size for file in (Path(folder) / "w").iterdir())
    word = ["01"[a] for a in np.random.default_rng(0).integers(0, 2, n)]
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        states = witness.states([word])[0]
        times.append(time.perf_counter() - start)
    assert np.array_equal(states, machine.states(word))
    print(
        f"| modulo {m} | {n:,} | {construction} | {witness.network.depth} | {witness.network.shape()['d']} | "
        f"{witness.network.parameter_count:,} | {size / 1000:,.0f} | {', '.join(witness.network.safe)} | {built:.2f} | "
        f"{min(times):.3f} |",
        flush=True,
    )


class ByHand(nn.Module):
    """The same blocks as anybody would write them."""

    def __init__(self, network: te.Transformer):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(network.embedding.detach())  # pyright: ignore
        self.position = network.E.detach()  # pyright: ignore
        self.blocks: list[Any] = list(network.blocks())
        self.readout = network.W_out.detach()  # pyright: ignore

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        Z = self.embedding(ids) + self.position
        for block in self.blocks:
            Q = Z @ block.W_Q[0].T + block.b_Q[0]
            P = torch.softmax(Q @ (Z @ block.W_K[0].T).transpose(1, 2), dim=-1)
            Z = Z + P @ (Z @ block.W_V[0].T) @ block.W_O[0].T
            Z = Z + torch.relu(Z @ block.W_1.T + block.b_1) @ block.W_2.T + block.b_2
        return Z @ self.readout.T


def forward() -> None:
    """A5 at n = 4,096: the best of three, taken in turns."""
    witness = te.build(alternating_group(), n=4096)
    ids = torch.from_numpy(np.concatenate([[1], np.random.default_rng(0).integers(2, 62, 4096)])[None])
    by_hand = ByHand(witness.network)
    times: dict[str, list[float]] = {"ours": [], "by hand": []}
    outputs: dict[str, torch.Tensor] = {}
    with torch.no_grad():
        for _ in range(ROUNDS):
            for name, run in (("ours", lambda x: prefixes(witness.network, x)), ("by hand", by_hand)):
                start = time.perf_counter()
                found = run(ids)
                times[name].append(time.perf_counter() - start)
                outputs[name] = found
    assert torch.equal(outputs["ours"], outputs["by hand"])
    ours, hand = min(times["ours"]), min(times["by hand"])
    print(f"n = 4,096, 12 blocks: ours {ours:.2f} s, by hand {hand:.2f} s, ratio {ours / hand:.2f}")


if __name__ == "__main__":
    for part in sys.argv[1:] or ("table", "depth", "groups", "forward"):
        {"table": table, "depth": depth, "groups": groups, "forward": forward}[part]()
