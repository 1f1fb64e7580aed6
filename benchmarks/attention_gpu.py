"""Sparse attention on a GPU: exactness against float64, tile sizes, and the table. One JSON object a line.

    python benchmarks/attention_gpu.py --only key        # ours, FlexAttention and dense, forward and with backward,
                                                         # as called from Python; and how long a call keeps the host
    python benchmarks/attention_gpu.py --only windows    # of these, the windows of today's models
    python benchmarks/attention_gpu.py --only tune       # exactness, tile sizes, torch.compile
    python benchmarks/attention_gpu.py --only forward    # the tables; also check, backward, memory

Checks and first compilations run in parallel processes; measurements run alone afterwards. Every case is guarded: a
failure becomes a line with its error, and the rest goes on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

STARTED = time.time()
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # cpu: under TRITON_INTERPRET=1, to try the checks
CONFIGS = {  # what is tuned, on which case, with which tiles (rows, keys, warps, stages)
    ("WHOLE", "stride"): [(64, 64, 4, 3), (64, 64, 4, 2), (64, 128, 4, 2), (64, 32, 4, 4), (128, 64, 8, 3)],
    ("WINDOW", "window"): [(128, 64, 4, 3), (128, 64, 4, 2), (64, 64, 4, 3), (64, 64, 4, 2), (64, 128, 4, 2)],
    ("WINDOW", "window + stride"): [(128, 64, 4, 3), (64, 64, 4, 3), (64, 64, 4, 2)],
    ("COLUMNS", "fixed, summary"): [(64, 64, 4, 3), (128, 64, 4, 3), (128, 64, 8, 3), (64, 64, 4, 2), (64, 128, 4, 2)],
    ("WINDOW", "star"): [(128, 64, 4, 3), (64, 64, 4, 2), (64, 32, 4, 3)],
    ("DQ", "window"): [(128, 64, 4, 3), (64, 64, 4, 2), (128, 64, 8, 2), (64, 64, 4, 3)],
    ("DKDV", "window"): [(64, 128, 4, 3), (64, 64, 4, 2), (64, 128, 8, 2), (32, 128, 4, 3)],
    ("ENTRIES", "random-64"): [
        (1, 32, 1, 2),
        (1, 16, 1, 2),
        (1, 64, 1, 2),
        (1, 32, 2, 2),
        (1, 64, 2, 2),
        (1, 128, 4, 1),
    ],
}
WORKERS = 12
WINDOWS = {  # n, batch, heads, head size, keys before and behind
    "window ±256": (65536, 1, 12, 64, 256, 256),
    "causal window 4,096": (65536, 1, 8, 128, 4095, 0),
    "causal window 1,024": (16384, 4, 8, 128, 1023, 0),
    "window ±64": (4096, 8, 12, 64, 64, 64),
    "causal window 1,024, wide heads": (16384, 1, 8, 256, 1023, 0),
}


def say(**fields) -> None:
    print(json.dumps(fields | {"at_s": round(time.time() - STARTED, 1)}), flush=True)


def guarded(label: dict, work) -> None:
    try:
        work()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error}"[:600]
        say(**label, error=text, where=f"{where.filename.split('/')[-1]}:{where.lineno}")


# ---- exactness ------------------------------------------------------------------------------------------------


def check_steps(n: int):
    """One relation for every combination of kernels."""
    import numpy as np

    from thereexists import patterns as tp
    from thereexists.patterns.parts import Band, Rect, Residue
    from thereexists.patterns.step import Step

    hubs = [0, n // 2, n - 1]
    everything = range(n)
    both = (Rect(everything, np.array(hubs)), Rect(np.array(hubs), everything))
    rows = {
        "window": tp.window(n, 17).step(0),
        "stride": tp.strided(n, 16).step(1),
        "union": tp.strided(n, 16).union().step(0),
        "fixed summary": tp.fixed(n, 16).step(1),
        "fixed union": tp.fixed(n, 16).union().step(0),
        "star": tp.star(n).step(0),
        "longformer": tp.longformer(n, 9, hubs).step(0),
        "bigbird": tp.bigbird(n - n % 32, 32, 2, seed=0).step(0),
        "block_local": tp.block_local(n, 24).step(0),
        "dilated": tp.dilated(n, 9, 3).step(0),
        "random": tp.random(n, 20, seed=0).step(0),
        "logsparse": tp.logsparse(n).step(0),
        "butterfly": tp.butterfly(256).step(3),
        "everything at once": Step(n, (Band(-9, 9), Residue(16), *both, *tp.random(n, 3, seed=1).step(0).parts)),
        "dense": tp.dense(n).step(0),
    }
    return {f"{name}{tail}": s for name, x in rows.items() for tail, s in (("", x), (", causal", x.as_causal()))}


def check_jobs():
    names = list(check_steps(257))
    few = ["union", "everything at once, causal", "star", "bigbird", "random, causal"]
    jobs = [(name, "bfloat16", 64, False, 0.0) for name in names]
    jobs += [(name, kind, 64, False, 0.0) for name in few for kind in ("float16", "float32")]
    jobs += [(name, "bfloat16", 64, True, 0.0) for name in few]
    jobs += [(name, "bfloat16", 64, True, 0.25) for name in few]
    jobs += [(name, "bfloat16", 80, False, 0.0) for name in few[:2]]
    jobs += [(name, "float32", 128, False, 0.0) for name in few[:2]]
    return jobs


def check(name: str, kind: str, d: int, padded: bool, dropout: float) -> None:
    import numpy as np

    from thereexists.attention import triton_backend as tb
    from thereexists.attention.call_options import CallOptions, survivors
    from thereexists.attention.lower import lower
    from thereexists.attention.reference import exact_attention, excess

    step = check_steps(257)[name]
    n, b, h, dtype = step.n, 2, 2, getattr(torch, kind)
    torch.manual_seed(0)
    # heads last in memory, as a projection leaves them: the kernels must honour strides
    q, k, v, do = (torch.randn(b, n, h, d, device=DEVICE).to(dtype).transpose(1, 2) for _ in range(4))
    mask = torch.from_numpy(step.mask()).to(DEVICE)[None, None].expand(b, h, n, n)
    pad = None
    if padded:
        pad = torch.rand(b, n, device=DEVICE) > 0.3
        mask = mask & pad[:, None, None, :]
    options = CallOptions(d**-0.5, pad, dropout, seed=7)
    pieces = tb.TritonPieces(lower(step), torch.device(DEVICE))
    out, lse = torch.full_like(q, float("nan")), torch.full((b, h, n), float("nan"), device=DEVICE)
    tb.forward(q, k, v, out, lse, pieces, options)
    grads = tb.backward(do, q, k, v, out, lse, pieces, options)
    gain = None
    if dropout:
        row, key = np.arange(n)[:, None], np.arange(n)[None, :]
        kept = [survivors(7, options.threshold, bh, row, key) for bh in range(b * h)]
        gain = torch.from_numpy(np.stack(kept).reshape(b, h, n, n)).to(DEVICE).double() / (1 - dropout)
    want = exact_attention(q, k, v, mask, do, options.scale, pieces=5, gain=gain)
    got = {"out": excess(out, want.out, want.out_bound)}
    for label, g, w, bound in zip(("dq", "dk", "dv"), grads, want.grads, want.grad_bounds, strict=True):
        got[label] = excess(g, w, bound)
    worst = max(got.values())
    say(check=name, dtype=kind, d=d, padded=padded, dropout=dropout, ok=worst <= 1, excess=got)


# ---- measuring ------------------------------------------------------------------------------------------------


def setting(n: int, backward=False, causal=False, flex=False, dense=True, repetitions: int = 5):
    from thereexists.attention.bench import Setting

    return Setting(n, "cuda", "bfloat16", 12, 64, 1, causal, backward, repetitions, flex, dense)


def tune(n: int, warm: bool, part: int = 0, parts: int = 1) -> None:
    """Forward and backward tile sizes for the structured cases, list blocks for the random one."""
    from thereexists.attention import bench
    from thereexists.attention import triton_backend as tb

    made: dict = {}
    jobs = [(what, case, config) for (what, case), configs in CONFIGS.items() for config in configs]
    originals = {what: getattr(tb, what) for what, _ in CONFIGS}
    for what, case, config in jobs[part::parts]:

        def work(what=what, case=case, config=config):
            setattr(tb, what, tb.Blocks(*config))
            if case not in made:
                made.update(bench.cases(n, case))
            backward = what in ("DQ", "DKDV")
            if warm:
                q, k, v = (torch.randn(1, 12, n, 64, device="cuda").bfloat16() for _ in range(3))
                q.requires_grad_(backward)
                out = bench.sparse_attention(q, k, v, made[case])
                if backward:
                    out.sum().backward()
                torch.cuda.synchronize()
                return
            row = bench.measure(case, made[case], setting(n, backward, dense=False, repetitions=3))
            say(tune=what, case=case, config=config, ms=row.ours_ms, notes=row.notes)

        guarded({"tune": what, "case": case, "config": config}, work)
        for name, value in originals.items():
            setattr(tb, name, value)


def table(n: int, backward: bool, causal: bool, flex: set[str], names: list[str] | None = None) -> None:
    from thereexists.attention import bench

    for name in names or bench._cases(n):

        def work(name=name):
            step = bench.cases(n, name, causal)[name]
            row = bench.measure(name, step, setting(n, backward, causal, flex=name in flex))
            say(table="backward" if backward else "forward", device=torch.cuda.get_device_name(), **row.to_json())

        guarded({"table": name, "n": n, "backward": backward, "causal": causal}, work)
        torch.cuda.empty_cache()
        torch.compiler.reset()  # FlexAttention compiles anew for each mask, and torch gives up after eight


def permuted(n: int) -> None:
    """Stock attention on a permuted view, the figure to compare the stride with."""
    import torch.nn.functional as F

    s = int(n**0.5)
    q, k, v = (torch.randn(1, 12, n, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    a, b, c = (x.view(12, n // s, s, 64).transpose(1, 2) for x in (q, k, v))
    from thereexists.attention.bench import _timer

    timer = _timer(setting(n), lambda: F.scaled_dot_product_attention(a, b, c))
    say(permuted_sdpa=n, ms=1e3 * min(timer() for _ in range(5)))


def memory(n: int) -> None:
    """A training step of the strided union: peak memory against the n² buffer that must not be there."""
    from thereexists import patterns as tp
    from thereexists.attention import SparseAttention

    layer = SparseAttention(tp.strided(n, 256).union(), heads=12, dim=768).cuda().bfloat16()
    x = torch.randn(1, n, 768, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    layer(x).square().mean().backward()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() / 2**30
    seconds = time.perf_counter() - began
    say(memory="strided union training step", n=n, peak_gib=peak, square_gib=n * n * 2 / 2**30, seconds=seconds)


def compiled() -> None:
    """torch.compile, full graph, forward and backward."""
    from thereexists import patterns as tp
    from thereexists.attention import SparseAttention

    layer = SparseAttention(tp.strided(1024, 32).union(), heads=4, dim=256).cuda().bfloat16()
    x = torch.randn(2, 1024, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    want = layer(x)
    got = torch.compile(layer, fullgraph=True)(x)
    (gradient,) = torch.autograd.grad(got.square().mean(), x)
    say(compiled=True, largest_difference=(got - want).abs().max().item(), gradient=gradient.abs().max().item())


def workers() -> None:
    """Checks and compilations, in parallel."""
    running = [
        subprocess.Popen([sys.executable, __file__, "--worker", str(i)], stdout=subprocess.PIPE, text=True)
        for i in range(WORKERS)
    ]
    for process in running:
        try:
            text, _ = process.communicate(timeout=150)
        except subprocess.TimeoutExpired:
            process.kill()
            text, _ = process.communicate()
            say(worker_killed=True)
        print(text, end="", flush=True)


KEY = ["stride", "fixed, summary", "fixed, union", "window + stride", "star", "longformer", "random-64"]
DENSE_ROWS = {"random-64"}  # without FlexAttention, which has no mask for it


def key_rows(n: int, name: str, repetitions: int = 5) -> None:
    """One pattern of the key table, forward and with its backward, as called from Python."""
    from thereexists.attention import bench

    step = bench.cases(n, name)[name]
    for backward in (False, True):
        how = bench.Setting(
            n, "cuda", "bfloat16", backward=backward, heads=12, repetitions=repetitions, flex=name not in DENSE_ROWS,
            recorded=False,
        )  # fmt: skip
        say(key=name, **bench.measure(name, step, how).to_json())


def compiled_first(rows: list[tuple[str, str]], n: int, seconds: float) -> None:
    """Compile everything in parallel processes; the caches on disk serve the process that measures. What these measure
    beside each other means nothing and is not printed.
    """
    command = [sys.executable, __file__, "--n", str(n)]
    running = [subprocess.Popen([*command, *row], stdout=subprocess.DEVNULL) for row in rows]
    until = time.time() + seconds
    for process in running:
        try:
            process.wait(timeout=max(1.0, until - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
            say(warm_killed=True)


def key_table(n: int, windows_only: bool) -> None:
    """The figures of docs/performance.md, in one cold call: compiled side by side, then measured one by one."""
    names = [] if windows_only else KEY
    compiled_first([("--window", name) for name in WINDOWS] + [("--warm", name) for name in names], n, 200)
    guarded({"host": 1024}, host_times)
    for name in WINDOWS:
        guarded({"windows": name}, lambda name=name: window_rows(name, True))
        torch.cuda.empty_cache()
        torch.compiler.reset()  # FlexAttention compiles anew for each mask, and torch gives up after eight
    for name in names:
        guarded({"key": name}, lambda name=name: key_rows(n, name))
        torch.cuda.empty_cache()
        torch.compiler.reset()  # FlexAttention compiles anew for each mask, and torch gives up after eight


def window_rows(name: str, flex: bool, repetitions: int = 5) -> None:
    """One window, forward and with its backward, as called from Python."""
    from thereexists.attention import bench
    from thereexists.patterns.parts import Band
    from thereexists.patterns.step import Step

    n, batch, heads, size, before, behind = WINDOWS[name]
    step = Step(n, (Band(-before, behind),))
    for backward in (False, True):
        how = bench.Setting(
            n, "cuda", "bfloat16", heads, size, batch, False, backward, repetitions, flex=flex, recorded=False
        )
        row = bench.measure(name, step, how)
        say(windows=name, batch=batch, heads=heads, size=size, **row.to_json())


def host_times(n: int = 1024) -> None:
    """Microseconds that a call keeps the host busy, while the device is far behind."""
    import torch.nn.functional as F

    from thereexists import patterns as tp
    from thereexists.attention import sparse_attention

    q, k, v = (torch.randn(1, 8, n, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    steps = {
        "window": tp.window(n, 64).step(0),
        "stride": tp.strided(n, 32).step(1),
        "dilated": tp.dilated(n, 8, 4).step(0),
        "random-64": tp.random(n, 63, seed=0).step(0),
        "union": tp.strided(n, 32).union().step(0),
    }
    calls: dict[str, Callable[[], Any]] = {
        name: lambda step=step: sparse_attention(q, k, v, step) for name, step in steps.items()
    }
    calls["sdpa"] = lambda: F.scaled_dot_product_attention(q, k, v)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(8):
        for name, call in calls.items():
            began = time.perf_counter()
            for _ in range(200):
                call()
            times[name].append(1e6 * (time.perf_counter() - began) / 200)
            torch.cuda.synchronize()
            if turn == 0:  # compiled, planned, recorded
                times[name].clear()
    for name, row in times.items():
        say(host=name, n=n, microseconds=sorted(row)[len(row) // 2], least=min(row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["key", "windows", "check", "tune", "forward", "backward", "memory"])
    parser.add_argument("--n", type=int, default=65536)
    parser.add_argument("--no-tune", action="store_true")
    parser.add_argument("--worker", type=int)
    parser.add_argument("--warm", help="compile what this row of the key table needs")
    parser.add_argument("--window", help="compile what the rows of this window need")
    a = parser.parse_args()
    if not torch.cuda.is_available() and a.worker is None:  # workers may check under Triton's interpreter
        parser.error("this benchmark needs a CUDA device, and torch finds none")
    if a.warm is not None:
        guarded({"warm": a.warm}, lambda: key_rows(a.n, a.warm, repetitions=1))
        return
    if a.window is not None:
        guarded({"warm": a.window}, lambda: window_rows(a.window, True, repetitions=1))
        return
    if a.worker is not None:
        for job in check_jobs()[a.worker :: WORKERS]:
            guarded({"check": job[0], "job": job}, lambda job=job: check(*job))
        if not a.no_tune:
            tune(a.n, warm=True, part=a.worker, parts=WORKERS)
        return
    say(device=torch.cuda.get_device_name(), torch=torch.__version__, n=a.n)
    if a.only in ("key", "windows"):
        key_table(a.n, windows_only=a.only == "windows")
    if a.only in (None, "check", "tune"):
        workers()
    key = {"stride", "window", "window + stride", "fixed, summary", "star"}
    if a.only in (None, "forward"):
        guarded({"permuted_sdpa": a.n}, lambda: permuted(a.n))
        table(a.n, False, False, key)
    if a.only in (None, "memory", "tune"):
        guarded({"memory": a.n}, lambda: memory(a.n))
        guarded({"compiled": True}, compiled)
    if a.only in (None, "tune") and not a.no_tune:
        tune(a.n, warm=False)
    if a.only in (None, "backward"):
        table(a.n, True, False, {"window", "stride"}, [*key, "random-64", "longformer"])
    if a.only in (None, "forward"):
        table(a.n, False, True, set(), [*key, "longformer"])
        table(16384, False, False, set())
    say(done=True)


if __name__ == "__main__":
    main()
