"""Causal windows by NVIDIA's cuDNN, where its Python package is installed: the fastest kernels that we measured.

    pip install 'thereexists[cuda]'

On one H200 in bfloat16 cuDNN takes about 0.7 of the time of our kernels with heads of 128, and half of it with heads of
256 (docs/performance.md). It is asked where it was measured to win and nowhere else: windows that look back only (the
backward pass of one that looks both ways takes it 7 to 70 times as long as ours), float16 and bfloat16, and enough work
that its launch, which takes longer than ours, does not count. Its gradient of the queries is added up
in any order, so a program that asks torch for deterministic algorithms gets our kernels.

A graph of cuDNN belongs to the shapes and strides of its tensors, and takes a twentieth of a second or more to build.
So it is built when they come for the second time: prompts of ever new lengths do not wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor

SHORTEST, SHORTEST_NARROW = 128, 1024  # tokens that a row sees, at least; the second for heads of up to 64
LEAST_WORK = 1 << 32  # multiplications of queries and keys
_WIDEST = 256  # features of a head
_LAYOUTS = 256  # that are remembered
_TYPES = {torch.float16: "HALF", torch.bfloat16: "BFLOAT16"}
_here = threading.local()  # a handle of cuDNN belongs to one thread, and the backward pass has its own

Layout = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides


@cache
def installed() -> bool:
    """Whether cuDNN's Python package is there, and finds its library."""
    try:
        import cudnn  # pyright: ignore[reportMissingImports]
    except Exception:  # it raises more than ImportError where the library is missing or too old
        return False
    return hasattr(cudnn, "pygraph") and hasattr(cudnn, "diagonal_alignment")


def wins(window: tuple[int, int], d: int) -> bool:
    """Whether cuDNN was measured to be faster for such a window, with heads of size d."""
    left, right = window
    return right == 0 and left + 1 >= (SHORTEST if d > 64 else SHORTEST_NARROW)


def suits(q: Tensor, k: Tensor, v: Tensor, window: tuple[int, int]) -> bool:
    """Whether cuDNN may do this call, and is faster: by window, types and size, then by the layout of the tensors."""
    b, heads, n, d = q.shape
    if not wins(window, d) or q.dtype not in _TYPES or d % 8 or d > _WIDEST or not installed():
        return False
    if b * heads * n * min(window[0] + 1, n) * d < LEAST_WORK or torch.are_deterministic_algorithms_enabled():
        return False
    here = q.device.index
    if here != torch.cuda.current_device() or torch.cuda.get_device_capability(here) < (9, 0):
        return False
    return _aligned(q) and _aligned(k) and _aligned(v)


def forward_graph(q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, left: int, scale: float) -> Graph | None:
    """What fills ``out`` and ``lse`` for tensors in this layout, these and others; None: cuDNN does not do it (yet)."""
    return _graph("forward", (q, k, v, out, lse), left, scale)


def backward(given: Sequence[Tensor], grads: Sequence[Tensor], left: int, scale: float) -> bool:
    """From ``given`` = (q, k, v, out, do, lse) fill ``grads`` = (dq, dk, dv); False where cuDNN does not do it (yet).

    P is computed again from the log-sum-exp that is given, so a merged one (a sink in it) gives merged gradients.
    """
    do = given[4]
    graph = _graph("backward", (*given, *grads), left, scale) if _aligned(do) else None
    if graph is not None:
        graph(*given, *grads)
    return graph is not None


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph that is ready to run: its tensors in the order of the call, and the bytes that it works in."""

    graph: Any
    names: tuple[Any, ...]
    workspace: int

    def __call__(self, *tensors: Tensor) -> None:
        device = tensors[0].device
        space = torch.empty(self.workspace, dtype=torch.uint8, device=device)
        self.graph.execute(dict(zip(self.names, tensors, strict=True)), space, handle=_handle(device.index))


def _graph(what: str, tensors: Sequence[Tensor], left: int, scale: float) -> Graph | None:
    q = tensors[0]
    layouts = tuple((tuple(x.shape), x.stride()) for x in tensors)
    return _place(what, layouts, q.dtype, left, scale, q.device.index).next()


class _Place:
    """What is known of a layout: that it came once, then its graph."""

    def __init__(self, *key: Any):
        self.key, self.times, self.graph = key, 0, None

    def next(self) -> Graph | None:
        self.times += 1
        if self.times == 2:
            self.graph = _build(*self.key)
        return self.graph


_place = lru_cache(_LAYOUTS)(_Place)


def _build(
    what: str, layouts: tuple[Layout, ...], dtype: torch.dtype, left: int, scale: float, device: int
) -> Graph | None:
    """None where cuDNN has no kernel for it."""
    import cudnn  # pyright: ignore[reportMissingImports]

    kind, full = getattr(cudnn.data_type, _TYPES[dtype]), cudnn.data_type.FLOAT
    handle = _handle(device)
    graph = cudnn.pygraph(io_data_type=kind, intermediate_data_type=full, compute_data_type=full, handle=handle)
    how = {
        "attn_scale": scale,
        "diagonal_alignment": cudnn.diagonal_alignment.TOP_LEFT,
        "diagonal_band_left_bound": left + 1,  # tokens that are seen, the row's own among them
        "diagonal_band_right_bound": 0,
    }

    def with_features(layout: Layout) -> tuple[list[int], list[int]]:
        """The log-sum-exp has one number where the others have features."""
        shape, stride = layout
        return ([*shape], [*stride]) if len(shape) == 4 else ([*shape, 1], [*stride, 1])

    def tensor(layout: Layout) -> Any:
        shape, stride = with_features(layout)
        return graph.tensor(dim=shape, stride=stride, data_type=kind if len(layout[0]) == 4 else full)

    if what == "forward":
        read = tuple(map(tensor, layouts[:3]))
        made = graph.sdpa(name=what, **dict(zip("qkv", read, strict=True)), generate_stats=True, **how)
        made[1].set_data_type(full)
    else:
        read = tuple(map(tensor, layouts[:6]))
        named = dict(zip(("q", "k", "v", "o", "dO", "stats"), read, strict=True))
        made = graph.sdpa_backward(name=what, **named, **how)
    for each, layout in zip(made, layouts[len(read) :], strict=True):
        shape, stride = with_features(layout)
        each.set_output(True).set_dim(shape).set_stride(stride)
    try:
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plans()
    except (cudnn.cudnnGraphNotSupportedError, ValueError, RuntimeError):
        return None
    return Graph(graph, (*read, *made), max(1, graph.get_workspace_size()))


def _handle(device: int) -> Any:
    """This thread's handle, on the stream that torch uses now."""
    import cudnn  # pyright: ignore[reportMissingImports]

    handles = _here.__dict__.setdefault("handles", {})
    if device not in handles:
        handles[device] = cudnn.create_handle()
    cudnn.set_stream(handle=handles[device], stream=torch.cuda.current_stream(device).cuda_stream)
    return handles[device]


def _aligned(x: Tensor) -> bool:
    """Features one after the other, and rows that start at multiples of 16 bytes; no tensor expanded from a smaller."""
    b, h, n, one = x.stride()
    return one == 1 and x.data_ptr() % 16 == 0 and b > 0 and h > 0 and n > 0 and (b | h | n) % 8 == 0
