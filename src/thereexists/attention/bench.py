"""Ours, stock dense attention and FlexAttention on the same tensors in the same run, repetitions interleaved.

On CUDA a repetition is a burst of calls between two events, and the median counts; a forward pass is recorded as a CUDA
graph first (unless ``recorded`` is off), for all ways alike, so that the device is measured and not how fast the host
launches kernels (what a plain call of ours takes, launches included, is ``called_ms``). On the CPU a repetition is one
call in one thread, and the least counts: other work on the machine only ever adds. FlexAttention is compiled, and the
making of its block mask is not timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from thereexists import patterns as tp
from thereexists.attention.functional import sparse_attention
from thereexists.attention.planned import explained
from thereexists.core.errors import InvalidInput
from thereexists.patterns import Pattern, Step

MOST_NUMBERS = 1 << 33  # of one tensor


@dataclass(frozen=True)
class Setting:
    """Shapes and types of one benchmark."""

    n: int
    device: str = "cpu"
    dtype: str = "float32"
    heads: int = 4
    head_dim: int = 64
    batch: int = 1
    causal: bool = False
    backward: bool = False
    repetitions: int = 5
    flex: bool = True
    dense: bool = True
    seed: int = 0
    recorded: bool = True  # forward passes as CUDA graphs; else as they are called from Python

    def __post_init__(self) -> None:
        numbers = self.batch * self.heads * self.n * self.head_dim
        if numbers > MOST_NUMBERS:
            raise InvalidInput(
                f"The queries have {numbers:.3g} numbers, and at most {MOST_NUMBERS:,} are measured; choose a smaller "
                "--n."
            )

    @property
    def torch_dtype(self) -> torch.dtype:
        kind = getattr(torch, self.dtype, None)
        if kind not in (torch.float16, torch.bfloat16, torch.float32):
            raise InvalidInput(f"'dtype' must be float16, bfloat16 or float32; got '{self.dtype}'.")
        return kind


@dataclass(frozen=True)
class Row:
    """Milliseconds of one pattern; None where a contender could not run, with the reason in ``notes``."""

    pattern: str
    n: int
    causal: bool
    backward: bool
    connections: int
    way: str
    ours_ms: float | None
    dense_ms: float | None
    flex_ms: float | None
    notes: dict[str, str]
    called_ms: float | None = None  # ours on CUDA, called from Python without pause

    @property
    def over_dense(self) -> float | None:
        return self.dense_ms / self.ours_ms if self.dense_ms and self.ours_ms else None

    @property
    def over_flex(self) -> float | None:
        return self.flex_ms / self.ours_ms if self.flex_ms and self.ours_ms else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"times_faster_than_dense": self.over_dense, "times_faster_than_flex": self.over_flex}


def _cases(n: int) -> dict[str, Callable[[], Step]]:
    s = max(int(n**0.5), 1)
    return {
        "stride": lambda: tp.strided(n, s).step(1),
        "window": lambda: tp.strided(n, s).step(0),
        "window + stride": lambda: tp.strided(n, s).union().step(0),
        "fixed, summary": lambda: tp.fixed(n, s).step(1),
        "fixed, union": lambda: tp.fixed(n, s).union().step(0),
        "star": lambda: tp.star(n).step(0),
        "random-64": lambda: tp.random(n, min(63, n - 1), seed=0).step(0),
        "longformer": lambda: tp.longformer(n, s, 1).step(0),
        "bigbird": lambda: tp.build("bigbird", n).step(0),
        "block_local": lambda: tp.block_local(n, s).step(0),
        "dilated": lambda: tp.dilated(n, max(s // 4, 1), 4).step(0),
        "logsparse": lambda: tp.logsparse(n).step(0),
        "dense": lambda: tp.dense(n).step(0),
    }


def cases(n: int, names: str = "all", causal: bool = False) -> dict[str, Step]:
    """One-step patterns with sizes near √n: ``all``, or names separated by commas.

    Besides the cases above every library pattern can be named; its union is measured.
    """
    known = _cases(n)
    out = {}
    for name in list(known) if names == "all" else _split(names, known):
        if name not in known and name not in tp.REGISTRY:
            every = ", ".join([*known, *(x for x in tp.REGISTRY if x not in known)])
            raise InvalidInput(f"There is no pattern '{name}' to measure. Known: all, {every}.")
        step = known[name]() if name in known else tp.build(name, n).union().step(0)
        out[name] = step.as_causal() if causal else step
    return out


def _split(names: str, known: Iterable[str]) -> list[str]:
    """Split at commas, but not inside a case's own name."""
    for name in known:
        names = names.replace(name, name.replace(",", ";"))
    return [name.strip().replace(";", ",") for name in names.split(",")]


def measure(name: str, step: Pattern | Step, setting: Setting) -> Row:
    """One pattern, all contenders."""
    gen = torch.Generator().manual_seed(setting.seed)
    shape = (setting.batch, setting.heads, setting.n, setting.head_dim)
    q, k, v, do = (
        torch.randn(shape, generator=gen).to(setting.device, setting.torch_dtype).requires_grad_(setting.backward)
        for _ in range(4)
    )
    do = do.detach()
    notes: dict[str, str] = {}
    step = step if isinstance(step, Step) else step.union_step()
    contenders: dict[str, Callable[[], Tensor]] = {
        "ours": lambda: sparse_attention(q, k, v, step),
    }
    if setting.dense:
        contenders["dense"] = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=step.causal)
    if setting.flex:
        try:
            contenders["flex"] = flex_contender(q, k, v, step)
        except Exception as error:
            notes["flex"] = _short(error)
    times: dict[str, list[float]] = {}
    for label, call in list(contenders.items()):
        run = _training(call, do, (q, k, v)) if setting.backward else call
        try:
            timer = _timer(setting, run)
        except Exception as error:
            notes[label] = _short(error)
            continue
        contenders[label] = timer  # type: ignore[assignment]
        times[label] = []
    for _ in range(setting.repetitions):
        for label in times:
            times[label].append(contenders[label]())  # type: ignore[arg-type]
    summary = statistics.median if setting.device == "cuda" else min
    figure = {label: 1e3 * summary(values) for label, values in times.items()}
    called = 1e3 * _cuda_seconds(lambda: sparse_attention(q, k, v, step), 50) if q.is_cuda and "ours" in times else None
    way = "+".join(explained(step, q.device).ways)
    return Row(
        name, setting.n, step.causal, setting.backward, step.connections, way,
        figure.get("ours"), figure.get("dense"), figure.get("flex"), notes, called,
    )  # fmt: skip


def flex_contender(q: Tensor, k: Tensor, v: Tensor, step: Step) -> Callable[[], Tensor]:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    from thereexists.patterns.tables import step_on_device

    if q.device.type == "cpu" and q.requires_grad:
        raise InvalidInput("FlexAttention has no backward on the CPU.")
    if q.device.type == "cpu" and step.n > 1 << 15:
        raise InvalidInput(f"FlexAttention's block mask would need {step.n**2 / 2**30:.0f} GiB on the CPU.")

    contains = step_on_device(step, q.device)  # its tables are made before anything is traced

    def mask_mod(b, h, i, j):
        return contains(i, j)

    on_gpu = q.device.type == "cuda"
    blocks = create_block_mask(mask_mod, None, None, step.n, step.n, device=q.device.type, _compile=on_gpu)
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: compiled(q, k, v, block_mask=blocks)  # type: ignore[return-value]


def _training(call: Callable[[], Tensor], do: Tensor, leaves: tuple[Tensor, ...]) -> Callable[[], Any]:
    return lambda: torch.autograd.grad(call(), leaves, do)


def _timer(setting: Setting, run: Callable[[], Any]) -> Callable[[], float]:
    """Warm up, then a function that takes one measurement, in seconds."""
    if setting.device == "cuda":
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        run = _recorded(run) if setting.recorded and not setting.backward else run
        once = _cuda_seconds(run, 2)
        burst = max(2, min(50, int(0.02 / max(once, 1e-6))))
        return lambda: _cuda_seconds(run, burst)
    run()

    def cpu() -> float:
        began = time.perf_counter()
        run()
        return time.perf_counter() - began

    return cpu


def _recorded(run: Callable[[], Any]) -> Callable[[], Any]:
    """The same kernels, launched at once; the call itself where it cannot be recorded."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            run()
    except RuntimeError:
        torch.cuda.synchronize()
        return run
    return graph.replay


def _cuda_seconds(run: Callable[[], Any], burst: int) -> float:
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(burst):
        run()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / 1e3 / burst


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
