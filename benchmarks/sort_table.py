"""Sort over five values at n = 5 and n = 10: always right? Prints one line of JSON for each length.

python benchmarks/sort_table.py
"""

from __future__ import annotations

import itertools
import json
import math
import time

import numpy as np

import thereexists as te


def main() -> None:
    te.build(te.Table([[0]], [[0]]), construction="compact")  # imports
    for n in (5, 10):
        start = time.perf_counter()
        witness = te.build(te.Table.of(sorted, range(5), n, symmetric=True), construction="compact")
        seconds = time.perf_counter() - start
        if n == 5:
            inputs = np.array(list(itertools.product(range(1, 6), repeat=n)))
        else:  # every multiset, each in 20 random orders
            rng = np.random.default_rng(0)
            inputs = np.concatenate([rng.permuted(witness.inputs, axis=1) for _ in range(20)])
        answers = witness.run(inputs, "dense")
        right = int((answers == np.sort(inputs, axis=1) + 1).all(axis=1).sum())
        row = {
            "n": n,
            "build_seconds": round(seconds, 2),
            "blocks": witness.network.depth,
            "d_model": witness.network.shape()["d"],
            "parameters": witness.network.parameter_count,
            "multisets": math.comb(n + 4, n),
            "inputs": len(inputs),
            "right": right,
            "safe": list(witness.network.safe),
        }
        print(json.dumps(row))


if __name__ == "__main__":
    main()
