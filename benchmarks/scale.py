"""How jobs scale: two workers against one, the overhead of 10,000 chunks, the cost of a cell; one JSON line a figure.

python benchmarks/scale.py speedup    # eight minutes on two idle cores: certify by one worker and by two, in turn
python benchmarks/scale.py overhead   # about a minute: 10,000 chunks of known length, in processor time
python benchmarks/scale.py cells      # about two minutes: the cost of a cell as the grids grow, and what follows
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import thereexists as te
from thereexists.certificates import predict
from thereexists.functions.targets import builtin
from thereexists.parallel import Workers, parallel_map
from thereexists.parallel import map as mapping
from thereexists.witness.verbs import certify

ROUNDS = 3
CHUNKS = 10_000
CHUNK_SECONDS = 0.002  # far shorter than a chunk ever is: what is left is the scheduler's


def say(**figures: object) -> None:
    print(json.dumps(figures), flush=True)


def speedup() -> None:
    """Running means of 15 tokens, δ = 1/2: 32,768 cubes in 57 blocks, a minute or two on one core.

    Ratios are taken within a round, then their median: neighbours on the machine come and go.
    """
    with tempfile.TemporaryDirectory() as folder:
        witness = te.build(builtin("cumulative-mean", n=15), delta=1 / 2)
        witness.save(folder + "/w")
        ratios = []
        for _ in range(ROUNDS):
            seconds = {}
            for workers in (1, 2):
                began = time.perf_counter()
                made = certify(witness, opinions=1, folder=Path(folder) / "w", workers=Workers(workers))
                seconds[workers] = time.perf_counter() - began
                say(figure="speedup", workers=workers, seconds=round(seconds[workers], 1), bound=made.bound)
            ratios.append(round(seconds[1] / seconds[2], 2))
        say(figure="speedup", times=statistics.median(ratios), rounds=ratios, wanted=1.7)


@dataclass(frozen=True)
class Busy:
    """Blocks that burn a known processor time: whatever else is spent is the scheduler's."""

    key: str = "busy"
    cells: int = CHUNKS
    block: int = 1

    def open(self) -> Callable[[int], int]:
        def burn(number: int) -> int:
            until = time.process_time() + CHUNK_SECONDS
            while time.process_time() < until:
                pass
            return number

        return burn


def overhead() -> None:
    """Processor time of driver and workers beyond that of the chunks themselves, starting of processes included."""
    mapping.CHUNK_SECONDS = 0.0  # one block a chunk
    before, began = processor_seconds(), time.perf_counter()
    assert parallel_map(Busy(), Workers(2)) == list(range(CHUNKS))
    spent, wall = processor_seconds() - before, time.perf_counter() - began
    work = CHUNKS * CHUNK_SECONDS
    say(figure="overhead", chunks=CHUNKS, work_seconds=work, processor_seconds=round(spent, 1), wall=round(wall, 1))
    per_chunk = (spent - work) / CHUNKS
    say(figure="overhead", per_chunk_ms=round(per_chunk * 1e3, 3))
    shortest = 5.0  # seconds that a chunk of a job of 10,000 chunks takes at least, see chunk_size
    say(figure="overhead", share_of_real_chunks=round(per_chunk / shortest, 6), wanted=0.05)


def processor_seconds() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cells() -> None:
    """Seconds a cell for certificates of running means, and core-hours for 10^9 and 10^12 cells at that cost."""
    for n, N in ((3, 16), (3, 32), (4, 8), (6, 4), (10, 2), (14, 2)):
        witness = te.build(builtin("cumulative-mean", n=n), delta=1 / N)
        found = predict(witness)
        hours = {f"core_hours_1e{k}": float(f"{found.seconds_per_cell * 10**k / 3600:.3g}") for k in (9, 12)}
        say(figure="cells", n=n, N=N, cells=found.cells, ms_per_cell=round(found.seconds_per_cell * 1e3, 3), **hours)


if __name__ == "__main__":
    {"speedup": speedup, "overhead": overhead, "cells": cells}[sys.argv[1] if len(sys.argv) > 1 else "speedup"]()
