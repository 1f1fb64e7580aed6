"""The figures of docs/heads.md. Each command writes one JSON file that says how it was made.

python benchmarks/heads.py grid --out docs/data/heads-grid.json              best method against the projection
python benchmarks/heads.py long --out docs/data/heads-long.json              L = 65,536, k = 4, every row verified
python benchmarks/heads.py graphs --out docs/data/heads-graphs.json          real graphs and attention patterns
python benchmarks/heads.py factorings --out docs/data/heads-factorings.json  signs against svd
python benchmarks/heads.py orders --out docs/data/heads-orders.json          precision and the order of the tokens
python benchmarks/heads.py million --device cuda --out docs/data/heads-million.json   2^20 rows verified on a GPU
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
from pathlib import Path

import numpy as np
import torch

STORED = Path("docs/data/heads-witnesses")


def grid() -> list[dict]:
    """Best of the quick methods, and of the stored witnesses, against the projection's smallest working size."""
    import thereexists as te

    rows = []
    for L in (256, 1024, 4096):
        for k in (1, 2, 4):
            target = te.heads.random_matrix(L, k, 2.0, 0)
            paper = te.heads.fit(target, method="projection", eps1=1e-3, eps2=1e-2)
            best = te.heads.fit(target, method="auto", eps1=1e-3, eps2=1e-2)
            row = {
                "length": L,
                "k": k,
                "projection": paper.report(),
                "projection_is_trivial": paper.settings.get("factoring") == "trivial",
                "auto": best.report(),
                "best_hidden_size": best.hidden_size,
                "best_method": best.method,
            }
            stored = STORED / f"random-{L}-{k}"
            if stored.exists():
                head = te.heads.load(stored)
                same = np.array_equal(head.target.indices, target.indices) and np.allclose(
                    head.target.log_values, target.log_values, rtol=0, atol=1e-15
                )
                checked = te.heads.verify(head.X, head.W_Q, head.W_K, target, eps1=1e-3, eps2=1e-2)
                row["stored"] = {
                    "hidden_size": head.hidden_size,
                    "method": head.method,
                    "same_target": bool(same),
                    "holds": checked.verdict.holds,
                    "leakage": checked.leakage,
                    "ratio_error": checked.ratio_error,
                    "seconds": checked.seconds,
                }
                if same and checked.verdict.holds and head.hidden_size < best.hidden_size:
                    row |= {"best_hidden_size": head.hidden_size, "best_method": head.method}
            row["times_smaller"] = paper.hidden_size / row["best_hidden_size"]
            rows.append(row)
            print(
                f"L={L} k={k}: projection {paper.hidden_size}, best {row['best_hidden_size']} ({row['best_method']})",
                flush=True,
            )
    return rows


def long() -> list[dict]:
    import thereexists as te

    torch.set_num_threads(2)
    target = te.heads.random_matrix(65536, 4, 2.0, 0)
    started = time.perf_counter()
    head = te.heads.fit(target, method="auto", eps1=1e-3, eps2=1e-2)
    fit_seconds = time.perf_counter() - started
    started = time.perf_counter()
    again = te.heads.verify(head.X, head.W_Q, head.W_K, target, eps1=1e-3, eps2=1e-2)
    return [
        head.report()
        | {
            "fit_and_verify_seconds": fit_seconds,
            "second_verification_seconds": time.perf_counter() - started,
            "second_verification_holds": again.verdict.holds,
            "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        }
    ]


def real_targets():
    """Name and matrix of real targets: self-loops added, so that no row is empty."""
    import networkx as nx
    from scipy.sparse import csr_array, eye_array

    graphs = {
        "karate club": nx.karate_club_graph(),
        "les miserables": nx.les_miserables_graph(),
        "davis southern women": nx.davis_southern_women_graph(),
        "florentine families": nx.florentine_families_graph(),
    }
    for name, graph in graphs.items():
        A = csr_array(nx.to_scipy_sparse_array(graph, weight="weight", dtype=float)) + eye_array(len(graph))
        yield name, csr_array(A)
    # Paper B's STRIDED pattern, union of window ±s and column stride s, uniform over what a token sees.
    n, s = 256, 16
    i = np.arange(n)
    difference = i[:, None] - i[None, :]
    yield "strided pattern, n=256, s=16", csr_array(((np.abs(difference) <= s) | (difference % s == 0)).astype(float))
    yield (
        "window ±2, n=1024",
        csr_array((np.abs(np.arange(1024)[:, None] - np.arange(1024)[None, :]) <= 2).astype(float)),
    )
    circle = (i[:, None] - i[None, :]) % n
    yield (
        "ring ±1 and relay (star), n=256",
        csr_array((np.isin(circle, (0, 1, n - 1)) | (i[None, :] == 0) | (i[:, None] == 0)).astype(float)),
    )


def graphs() -> list[dict]:
    import thereexists as te
    from thereexists.heads.plot import draw_head

    rows = []
    for name, A in real_targets():
        head = te.heads.fit(A, method="auto", eps1=1e-3, eps2=1e-2)
        rows.append({"name": name, "rows_k": head.target.k_row} | head.report())
        print(name, head, flush=True)
        if name == "karate club":
            draw_head(head, "docs/img/heads-karate.png")
    return rows


def factorings() -> list[dict]:
    import thereexists as te

    rows = []
    for k in (1, 2, 4):
        for L in (256, 512, 1024):
            row: dict = {"length": L, "k": k, "eps1": 0.5, "eps2": 3.0}
            for factoring in ("signs", "svd"):
                sizes = [
                    te.heads.fit(
                        te.heads.random_matrix(L, k, 2.0, seed),
                        method="projection",
                        factoring=factoring,
                        eps1=0.5,
                        eps2=3.0,
                        seed=seed,
                    ).hidden_size
                    for seed in range(3)
                ]
                row[factoring] = float(np.median(sizes))
                row[f"{factoring}_all"] = sizes
            rows.append(row)
            print(row, flush=True)
    return rows


def orders() -> list[dict]:
    """What the order of the tokens on the circle costs in precision: the largest ||q||_1 of the moment head."""
    import thereexists as te
    from thereexists.heads.moments import _circle_head
    from thereexists.heads.places import blocks_of_rows, spread_order

    rows = []
    for L in (256, 1024, 4096, 16384):
        target = te.heads.random_matrix(L, 4, 2.0, 0)
        row: dict = {"length": L, "k": 4}
        for name, place in (("natural", np.arange(L)), ("spread", spread_order(target, 0))):
            row[name] = _circle_head(target, place, *blocks_of_rows(target, place), 1e-3).dynamic_range
        rows.append(row)
        print(row, flush=True)
    return rows


def million(device: str) -> list[dict]:
    """k = 1 on the circle in closed form (numpy only: a GPU machine may lack scipy and numba), every row verified."""
    from thereexists.heads.matrix import random_matrix
    from thereexists.heads.verify import Arithmetic, verify

    L = 2**20
    target = random_matrix(L, 1, 2.0, 0)
    angle = 2 * np.pi * np.arange(L) / L
    keys = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    # 1 - cos(2 pi / L) = 2 sin^2(pi / L) separates neighbours; lambda makes that log(1000) + 0.05.
    height = (np.log(1e3) + 0.05) / (2 * np.sin(np.pi / L) ** 2)
    X = torch.from_numpy(np.concatenate([height * keys[target.indices], keys], axis=1))
    one, nil = torch.eye(2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)
    W_Q, W_K = torch.cat([one, nil]), torch.cat([nil, one])
    good = verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2, arithmetic=Arithmetic(device=device))
    X[12345, :2] = X[54321, :2]
    bad = verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2, arithmetic=Arithmetic(device=device))
    return [
        {
            "length": L,
            "k": 1,
            "hidden_size": 4,
            "holds": good.verdict.holds,
            "leakage": good.leakage,
            "rounding": good.rounding,
            "seconds": good.seconds,
            "planted_fault_caught": bad.verdict.holds is False and bad.worst_row == 12345,
            "device": torch.cuda.get_device_name() if device.startswith("cuda") else device,
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["grid", "long", "graphs", "factorings", "orders", "million"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    started = time.perf_counter()
    table = million(chosen.device) if chosen.what == "million" else globals()[chosen.what]()
    payload = {
        "command": f"python benchmarks/heads.py {chosen.what} --out {chosen.out.as_posix()}"
        + (f" --device {chosen.device}" if chosen.device != "cpu" else ""),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "seconds": time.perf_counter() - started,
        "table": table,
    }
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    beside = chosen.out.with_suffix(".part")
    beside.write_text(json.dumps(payload, indent=1, default=str) + "\n")
    beside.rename(chosen.out)


if __name__ == "__main__":
    main()
