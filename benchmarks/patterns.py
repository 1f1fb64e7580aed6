"""How long verdicts on patterns take, each case in a process of its own: python benchmarks/patterns.py [--json].

A case builds the pattern, decides it, and has the independent checker walk the witnesses. ``memory`` is the peak
resident size of that process, imports included; ``seconds`` is the verdict alone, the checker's time is given apart.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

MILLION = 1_000_000


def relabelled_window(n: int, window: int, seed: int):
    from scipy.sparse import csr_array

    from thereexists import patterns

    name = np.random.default_rng(seed).permutation(n)
    edges = patterns.window(n, window).step(0).to_csr().tocoo()
    array = csr_array((np.ones(edges.nnz, bool), (name[edges.row], name[edges.col])), shape=(n, n))
    array.sort_indices()
    return patterns.from_csr([array], name=f"window ±{window}, relabelled")


def cases():
    from thereexists import patterns as te

    return {
        "window, n = 1,000,000": lambda: te.window(MILLION, 1000),
        "window ±1, n = 1,000,000": lambda: te.window(MILLION, 1),
        "strided, n = 1,000,000": lambda: te.strided(MILLION, 1000),
        "fixed, n = 1,000,000": lambda: te.fixed(MILLION, 1000),
        "star, n = 1,000,000": lambda: te.star(MILLION),
        "longformer, n = 1,000,000": lambda: te.longformer(MILLION, 1000, 1),
        "bigbird without random, n = 1,000,000": lambda: te.bigbird(MILLION, 64, 0),
        "axial, n = 1,000,000": lambda: te.axial(MILLION, 1000),
        "butterfly, n = 1,048,576": lambda: te.butterfly(1 << 20),
        "block_local (impossible), n = 1,000,000": lambda: te.block_local(MILLION, 1000),
        "random-16, n = 65,536": lambda: te.random(65_536, 16, seed=0),
        "random 12-out, n = 5,000": lambda: te.random(5_000, 12, seed=0),
        "window ±3 relabelled, n = 10,000": lambda: relabelled_window(10_000, 3, 0),
        "random 12-out, n = 20,000": lambda: te.random(20_000, 12, seed=0),
    }


def measure(name: str) -> dict:
    from thereexists import patterns as te
    from thereexists.patterns.depth import receptive_depth
    from thereexists.patterns.paths import find_path

    te.check(te.random(64, 4))  # compile, or load what was compiled
    began = time.perf_counter()
    pattern = cases()[name]()
    built = time.perf_counter()
    if pattern.name.startswith(("random", "window ±")) and pattern.n < MILLION:  # time the two halves apart
        route = find_path(pattern)
        routed = time.perf_counter()
        depth = receptive_depth(pattern)
        split = {"path_seconds": routed - built, "depth_seconds": time.perf_counter() - routed}
        out = {"path": route.status, "how": route.effort, "depth": depth.depth, "depth_method": depth.method, **split}
        path, steps, pair, s = route.path, None, depth.pair, depth.depth
        seconds = time.perf_counter() - built
    else:
        v = te.check(pattern)
        out = {"path": v.path_result.status, "how": v.path_result.rule or v.path_result.effort, "depth": v.depth}
        out |= {"depth_method": v.depth_result.method, "universal": v.universal}
        path, steps, pair, s = v.path, v.edge_steps, v.depth_result.pair, v.depth
        seconds = v.seconds
    checked = time.perf_counter()
    out["path_rechecked"] = None if path is None else te.recheck_path(pattern, path, steps).holds
    some = None if s is None or s > 8 else te.recheck_depth(pattern, s, pair, sources=2)
    out["depth_not_refuted"] = None if some is None else some.holds is not False
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    times = {"build_seconds": built - began, "seconds": seconds, "recheck_seconds": time.perf_counter() - checked}
    return {"case": name, **out, **times, "memory_mb": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--case", help="run one case in this process and print it")
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measure(arguments.case)))
        return
    rows = []
    for name in cases():
        done = subprocess.run([sys.executable, __file__, "--case", name], capture_output=True, text=True, check=True)
        row = json.loads(done.stdout)
        rows.append(row)
        if not arguments.json:
            parts = f"path {row['path_seconds']:.2f}, depth {row['depth_seconds']:.2f}" if "path_seconds" in row else ""
            witness = f"path {row['path']} ({row['how']}), depth {row['depth']} ({row['depth_method']})"
            print(f"{name}: {row['seconds']:.2f} s {parts}; {row['memory_mb']:.0f} MB; {witness}", flush=True)
    if arguments.json:
        print(json.dumps({"cases": rows}))


if __name__ == "__main__":
    main()
