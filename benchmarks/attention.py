"""Sparse attention beside dense SDPA and FlexAttention: python benchmarks/attention.py --device cpu --out table.json.

Writes one JSON object with the setting and the rows, and prints the rows as a Markdown table. The same measurement as
``thereexists attention bench``, for machines without the command's own dependencies. One CPU thread.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch

from thereexists.attention.bench import Setting, cases, measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=16384)
    parser.add_argument("--patterns", default="all")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--no-flex", action="store_true")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path)
    a = parser.parse_args()
    torch.set_num_threads(1)
    cuda = a.device == "cuda"
    setting = Setting(
        a.n, a.device, "bfloat16" if cuda else "float32", 12 if cuda else 4, 64, 1, a.causal, a.backward,
        a.repetitions, not a.no_flex,
    )  # fmt: skip
    print(
        "| pattern | way | ours, ms | dense, ms | × | FlexAttention, ms | × |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    rows = []
    for name, step in cases(a.n, a.patterns, a.causal).items():
        row = measure(name, step, setting)
        rows.append(row.to_json())
        cells = [row.ours_ms, row.dense_ms, row.over_dense, row.flex_ms, row.over_flex]
        print(
            f"| {name} | {row.way} | " + " | ".join("–" if x is None else f"{x:.3g}" for x in cells) + " |", flush=True
        )
    if a.out is not None:
        hardware = torch.cuda.get_device_name() if cuda else "cpu, one thread"
        beside = a.out.with_suffix(".tmp")
        beside.write_text(json.dumps({"setting": vars(setting), "hardware": hardware, "rows": rows}, indent=1))
        os.replace(beside, a.out)


if __name__ == "__main__":
    main()
