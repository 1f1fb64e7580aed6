"""Decoding under a window on the CPU: one query over a cache, against torch's attention on the keys that it sees.

python benchmarks/decoding.py                  # one thread; the least of many, interleaved, in processor time

Each row is one call of one token over a whole cache; the last column compares it with torch's attention on the keys of
the window alone, measured beside it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

import thereexists as te
from thereexists.patterns import Step
from thereexists.patterns.parts import Band

WINDOW, HEADS, SIZE = 128, 8, 64


def least(calls: dict[str, Callable[[], object]], repetitions: int, burst: int = 10) -> dict[str, float]:
    """Microseconds of each call: the least over interleaved bursts, in this thread's processor time."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(repetitions):
        for name, call in calls.items():
            start = time.thread_time()
            for _ in range(burst):
                call()
            best[name] = min(best[name], (time.thread_time() - start) / burst * 1e6)
    return best


def cached(n: int, kv_heads: int) -> dict[str, Callable[[], object]]:
    q, k, v = torch.randn(1, HEADS, 1, SIZE), torch.randn(1, kv_heads, n, SIZE), torch.randn(1, kv_heads, n, SIZE)
    pattern = te.patterns.window(n, WINDOW).as_causal()
    last = slice(-WINDOW - 1, None)
    stock = partial(F.scaled_dot_product_attention, enable_gqa=kv_heads != HEADS)
    return {
        "torch, the keys of the window": lambda: stock(q, k[:, :, last], v[:, :, last]),
        "ours": lambda: te.attention.sparse_attention(q, k, v, pattern),
        "ours, a new pattern for each token": lambda: te.attention.sparse_attention(
            q, k, v, Step(n, (Band(-WINDOW, 0),), True)
        ),
        "ours, with a sink": lambda: te.attention.sparse_attention(q, k, v, pattern, sinks=_SINKS),
        "torch, all keys": lambda: stock(q, k, v),
    }


_SINKS = torch.zeros(HEADS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=150)
    parser.add_argument("--lengths", type=int, nargs="+", default=[4096, 32_768, 262_144])
    settings = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"one query, window {WINDOW}, {HEADS} heads of {SIZE}, float32, one thread, microseconds")
    print("| n | key heads | call | µs | times torch on the window |")
    print("|---|---|---|---|---|")
    with torch.no_grad():
        for n in settings.lengths:
            for kv_heads in (HEADS, 2):
                calls = cached(n, kv_heads)
                if n > 1 << 16:
                    del calls["torch, all keys"]
                found = least(calls, settings.repetitions if n < 1 << 16 else settings.repetitions // 2)
                for name, us in found.items():
                    ratio = us / found["torch, the keys of the window"]
                    print(f"| {n:,} | {kv_heads} | {name} | {us:.1f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
