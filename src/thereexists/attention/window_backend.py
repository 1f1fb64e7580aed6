"""Launches the window kernels, with the tile sizes that suit a head's size and a window's width; or cuDNN's.

The sizes were measured on one H200 in bfloat16 (``benchmarks/attention_gpu.py``). Two things did not help there, and
are not here: tiles loaded by descriptors (TMA), and one backward pass that adds dQ atomically, which takes a quarter
longer than two passes that recompute P.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from thereexists.attention import cudnn_windows, kernels_window
from thereexists.attention.launching import Tape, launch, note

LOG2E = 1.4426950408889634
kernels: Any = kernels_window  # launching a kernel is not the call that its signature describes


class Tiles(NamedTuple):
    """Rows and keys of a tile, and how it is launched."""

    rows: int
    keys: int
    warps: int
    stages: int


class Sizes(NamedTuple):
    forward: Tiles
    to_keys: Tiles
    to_rows: Tiles


NARROW = Sizes(Tiles(64, 64, 4, 2), Tiles(128, 64, 4, 2), Tiles(64, 32, 4, 3))  # heads up to 64
MIDDLE = Sizes(Tiles(64, 64, 4, 3), Tiles(64, 64, 4, 2), Tiles(64, 64, 4, 2))  # up to 128
LONG = MIDDLE._replace(to_rows=Tiles(128, 64, 8, 3))  # the same with 2,048 keys per row or more
WIDE = Sizes(Tiles(64, 32, 4, 2), Tiles(32, 64, 8, 2), Tiles(64, 32, 4, 2))  # up to 256
FULL = Sizes(Tiles(32, 32, 4, 2), Tiles(32, 32, 4, 2), Tiles(32, 32, 4, 2))  # float32: twice the bytes
FULL_WIDE = Sizes(*3 * [Tiles(16, 16, 4, 1)])


def sizes(q: Tensor, left: int, right: int) -> Sizes:
    d = q.shape[-1]
    if q.dtype == torch.float32:
        return FULL if d <= 128 else FULL_WIDE
    if d <= 64:
        return NARROW
    return WIDE if d > 128 else LONG if left + right >= 2048 else MIDDLE


def forward(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, window: tuple[int, int], scale: float,
    tape: Tape | None = None,
) -> None:  # fmt: skip
    """Fill ``out`` (batch, heads, n, D) and ``lse`` (batch, heads, n); k and v may have fewer heads."""
    (b, heads, n, d), (left, right) = q.shape, window
    if cudnn_windows.suits(q, k, v, window):
        theirs = cudnn_windows.forward_graph(q, k, v, out, lse, left, scale)
        if theirs is not None:
            note(theirs, (q, k, v, out, lse), tape)
            return theirs(q, k, v, out, lse)
        tape = None  # the next call of this layout may be theirs: ours is not to be repeated
    m, keys, warps, stages = sizes(q, left, right).forward
    strides = (*q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.stride()[:3])
    args = (q, k, v, out, lse, *strides, heads, heads // k.shape[1], n, left, right, scale * LOG2E)
    shape = {"D": d, "PRECISION": precision(q), "BLOCK_M": m, "BLOCK_N": keys, "BLOCK_D": padded(d)}
    how = {"num_warps": warps, "num_stages": stages}
    launch(kernels.window_forward, (-(-n // m), b * heads), args, shape | how, tape)


def backward(
    do: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, window: tuple[int, int], scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    (b, heads, n, d), (left, right) = q.shape, window
    do = do if do.stride(-1) == 1 else do.contiguous()
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    given, grads = (q, k, v, out, do, lse), (dq, dk, dv)
    if cudnn_windows.suits(q, k, v, window) and cudnn_windows.backward(given, grads, left, scale):
        return grads
    delta = torch.empty_like(lse)
    of_q, of_k, of_v, of_do = q.stride()[:3], k.stride()[:3], v.stride()[:3], do.stride()[:3]
    rest = (heads, heads // k.shape[1], n, left, right, scale * LOG2E, scale)
    _, to_keys, to_rows = sizes(q, left, right)
    kernels.window_dq[(-(-n // to_rows.rows), b * heads)](
        q, k, v, out, do, lse, delta, dq, *of_q, *of_k, *of_v, *out.stride()[:3], *of_do, *dq.stride()[:3], *rest,
        D=d, PRECISION=precision(q), BLOCK_M=to_rows.rows, BLOCK_N=to_rows.keys, BLOCK_D=padded(d),
        num_warps=to_rows.warps, num_stages=to_rows.stages,
    )  # fmt: skip
    kernels.window_dkdv[(-(-n // to_keys.keys), b * k.shape[1])](  # after it: delta is there
        q, k, v, do, lse, delta, dk, dv, *of_q, *of_k, *of_v, *of_do, *dk.stride()[:3], *dv.stride()[:3], *rest,
        D=d, PRECISION=precision(q), BLOCK_M=to_keys.rows, BLOCK_N=to_keys.keys, BLOCK_D=padded(d),
        num_warps=to_keys.warps, num_stages=to_keys.stages,
    )  # fmt: skip
    return dq, dk, dv


def precision(q: Tensor) -> str:
    """Of the products: full float32 for float32, never TF32; the others have no choice."""
    return "ieee" if q.dtype == torch.float32 else "tf32"


def padded(d: int) -> int:
    """The size of a tile that holds d features."""
    return max(16, 1 << (d - 1).bit_length())
