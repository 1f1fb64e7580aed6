"""Triton kernels: the layers of a part stream past tokens that stay in registers; float64.

No product is contracted into a sum (``enable_fp_fusion=False``), sums over features and tokens are trees. So the bits
are those of the CPU wherever sums are exact: on the networks of our proofs, for inputs off the ramps. Elsewhere the
rounding bound of ``fused`` holds, with the exponential of the device (2 units in the last place).

The weights of a part are packed layer by layer, units that are dead in the whole part left out, the depth padded with
layers of zeros (which add 0) to a multiple of the unrolling: the loads of several layers are under way at once. A
column beyond LARGEST_COLUMN, for which that may be wrong, sets a flag.
"""

from __future__ import annotations

from typing import Any, no_type_check

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from thereexists.evaluate._parts import LARGEST_COLUMN, Part, host, parts_of
from thereexists.evaluate._skip_torch import one_by_one
from thereexists.model import Attention, FeedForward, Stage, Transformer

UNROLL = tl.constexpr(8)
LARGEST = tl.constexpr(LARGEST_COLUMN)
TOKENS = 32  # a program: one warp, one token a thread
SEQUENCES = 8
RHO = {"hardmax": 0, "softmax": 1}


def run_parts(network: Transformer, X: Tensor) -> Tensor | None:
    """g(X), or None where a column grew so large that what adds 0 may not be left out.

    Attention with another probability map than hardmax and softmax runs layer by layer in plain torch.
    """
    Z = (X + 0.0 if network.E is None else X + network.E).detach().contiguous()
    largest, beyond = Z.abs().amax(), torch.zeros((), dtype=torch.int32, device=Z.device)
    for part in parts_of(network):
        stage = network.stages[part.stage]
        if part.kind == "attention" and network.rho not in RHO:
            Z, reached = one_by_one(Z, part, stage, network.rho)
            Z, largest = Z.contiguous(), torch.maximum(largest, reached)
        elif part.kind == "attention":
            _attention(Z, beyond, part, stage, network.rho)
        else:
            _feed_forward(Z, beyond, part, stage)
    return Z + 0.0 if bool((largest <= LARGEST_COLUMN) & (beyond == 0)) else None


def _feed_forward(Z: Tensor, beyond: Tensor, part: Part, stage: Stage) -> None:
    stack = stage.feed_forward
    if stack is None:
        raise ValueError(f"{part.what} is not in this stage.")
    packed, units = _packed(Z, part, stack)
    tokens, d = Z.shape[0] * Z.shape[1], Z.shape[2]
    launch: Any = _feed_forward_kernel  # Triton adds its own options to the arguments
    launch[(triton.cdiv(tokens, TOKENS),)](
        Z, beyond, packed, tokens, len(packed), d, packed.shape[1],
        D=triton.next_power_of_2(d), R=units, PHI=stack.phi is not None, BLOCK=TOKENS,
        num_warps=1, enable_fp_fusion=False,
    )  # fmt: skip


def _packed(Z: Tensor, part: Part, stack: FeedForward) -> tuple[Tensor, int]:
    """(layers, columns): W_1 (R·D), b_1 (R), W_2 (R·D), b_2 (D), then knots, slopes, intercepts (8·R) of a φ."""
    key = ("packed", Z.device)
    if key not in part.known:
        W_1, b_1, W_2, b_2 = (torch.from_numpy(host(w)[part.span]) for w in stack.parameters_list())
        depth, _, d = W_1.shape
        alive = (W_2 != 0).any(dim=1).any(dim=0)
        alive[0] = True
        pad = (0, triton.next_power_of_2(d) - d)
        columns = [W_1[:, alive], b_1[:, alive], W_2[:, :, alive].transpose(1, 2), b_2]
        columns = [torch.nn.functional.pad(w, pad) if i != 1 else w for i, w in enumerate(columns)]
        if stack.phi is not None:
            columns += [torch.from_numpy(host(w)[part.span])[:, alive] for w in stack.phi.parameters_list()]
        rows = torch.cat([w.reshape(depth, -1) for w in columns], dim=1)
        padded = torch.nn.functional.pad(rows, (0, 0, 0, -depth % UNROLL.value))
        part.known[key] = (padded.contiguous().to(Z.device), int(alive.sum()))
    return part.known[key]


@triton.jit
@no_type_check
def _feed_forward_kernel(
    Z, beyond, W, tokens, depth, d, columns, D: tl.constexpr, R: tl.constexpr, PHI: tl.constexpr, BLOCK: tl.constexpr
):
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    feature = tl.arange(0, D)
    place = Z + token[:, None] * d + feature[None, :]
    inside = (token[:, None] < tokens) & (feature[None, :] < d)
    z = tl.load(place, mask=inside, other=0.0)  # (BLOCK, D)
    large = tl.zeros((BLOCK, D), dtype=tl.int32)
    for start in range(0, depth, UNROLL):
        for step in tl.static_range(UNROLL):
            row = W + (start + step) * columns
            total = tl.zeros((BLOCK, D), dtype=tl.float64)
            for i in tl.static_range(R):
                w = tl.load(row + i * D + feature)
                v = tl.load(row + R * D + R + i * D + feature)
                t = tl.sum(z * w[None, :], axis=1) + tl.load(row + R * D + i)  # (BLOCK,)
                if PHI:
                    piece = row + 2 * R * D + R + D
                    low, high = tl.load(piece + 2 * i), tl.load(piece + 2 * i + 1)
                    slope, constant = piece + 2 * R + 3 * i, piece + 5 * R + 3 * i
                    a = tl.where(t >= high, tl.load(slope + 2), tl.where(t >= low, tl.load(slope + 1), tl.load(slope)))
                    b = tl.where(
                        t >= high, tl.load(constant + 2), tl.where(t >= low, tl.load(constant + 1), tl.load(constant))
                    )
                    t = a * t + b
                else:
                    t = tl.where(t <= 0.0, 0.0, t)
                total += t[:, None] * v[None, :]
            z += total + tl.load(row + 2 * R * D + R + feature)[None, :]
            large |= (inside & ~(tl.abs(z) <= LARGEST)).to(tl.int32)
    tl.store(place, z, mask=inside)
    tl.atomic_or(beyond, tl.max(tl.max(large, axis=1), axis=0))


def _attention(Z: Tensor, beyond: Tensor, part: Part, stage: Stage, rho: str) -> None:
    stack = stage.attention
    if stack is None:
        raise ValueError(f"{part.what} is not in this stage.")
    batch, n, d = Z.shape
    packed, layers, masks = _packed_attention(Z, part, stack)
    _, h, m, _ = stack.W_Q.shape
    launch: Any = _attention_kernel
    launch[(triton.cdiv(batch, SEQUENCES),)](
        Z, beyond, packed, masks, layers, batch, n, d, len(packed), packed.shape[1],
        1 if stack.pattern is None else len(masks),
        N=triton.next_power_of_2(n), D=triton.next_power_of_2(d), H=h, M=m, HARD=rho == "hardmax",
        MASKED=stack.pattern is not None, BLOCK=SEQUENCES, num_warps=1, enable_fp_fusion=False,
    )  # fmt: skip


def _packed_attention(Z: Tensor, part: Part, stack: Attention) -> tuple[Tensor, Tensor, Tensor]:
    """(layers, columns): for every head and row W_Q (D), W_K (D), W_V (D), W_O (D), b_Q; layer numbers; masks."""
    key = ("packed", Z.device)
    if key not in part.known:
        W_Q, b_Q, W_K, W_V, W_O = (torch.from_numpy(host(w)[part.span]) for w in stack.parameters_list())
        d = W_Q.shape[-1]
        pad = (0, triton.next_power_of_2(d) - d)
        matrices = [torch.nn.functional.pad(w, pad) for w in (W_Q, W_K, W_V, W_O.transpose(2, 3))]
        rows = torch.cat([*matrices, b_Q[..., None]], dim=-1)  # (depth, h, m, 4 D + 1)
        masks = torch.ones(1, 1, 1, dtype=torch.int8) if stack.pattern is None else stack.pattern.to(torch.int8)
        layers = torch.from_numpy(part.layers)
        part.known[key] = tuple(t.contiguous().to(Z.device) for t in (rows.reshape(len(rows), -1), layers, masks))
    return part.known[key]


@triton.jit
@no_type_check
def _attention_kernel(
    Z, beyond, W, masks, layers, batch, n, d, depth, columns, cycle,
    N: tl.constexpr, D: tl.constexpr, H: tl.constexpr, M: tl.constexpr, HARD: tl.constexpr,
    MASKED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    token, feature = tl.arange(0, N), tl.arange(0, D)
    place = Z + sequence[:, None, None] * n * d + token[None, :, None] * d + feature[None, None, :]
    inside = (sequence[:, None, None] < batch) & (token[None, :, None] < n) & (feature[None, None, :] < d)
    z = tl.load(place, mask=inside, other=0.0)  # (BLOCK, N, D)
    large = tl.zeros((BLOCK, N, D), dtype=tl.int32)
    real = (token[:, None] < n) & (token[None, :] < n)
    alone = token[:, None] == token[None, :]  # tokens that pad a sequence look at themselves
    for l in range(0, depth):
        visible = real | alone
        if MASKED:
            step = tl.load(layers + l) % cycle
            seen = tl.load(masks + step * n * n + token[:, None] * n + token[None, :], mask=real, other=0)
            visible = (seen != 0) | (alone & (token[:, None] >= n))
        total = tl.zeros((BLOCK, N, D), dtype=tl.float64)
        for head in tl.static_range(H):
            logits = tl.zeros((BLOCK, N, N), dtype=tl.float64)
            for a in tl.static_range(M):
                row = W + l * columns + (head * M + a) * (4 * D + 1)
                q = tl.sum(z * tl.load(row + feature)[None, None, :], axis=2) + tl.load(row + 4 * D)
                k = tl.sum(z * tl.load(row + D + feature)[None, None, :], axis=2)
                logits += q[:, :, None] * k[:, None, :]
            logits = tl.where(visible[None, :, :], logits, float("-inf"))
            gap = logits - tl.max(logits, axis=2)[:, :, None]
            if HARD:  # noqa: SIM108 (decided when the kernel is compiled)
                p = tl.where(gap == 0.0, 1.0, 0.0).to(tl.float64)
            else:
                p = tl.exp(gap)
            p = p / tl.sum(p, axis=2)[:, :, None]
            for a in tl.static_range(M):
                row = W + l * columns + (head * M + a) * (4 * D + 1)
                v = tl.sum(z * tl.load(row + 2 * D + feature)[None, None, :], axis=2)
                mixed = tl.sum(p * v[:, None, :], axis=2)
                total += mixed[:, :, None] * tl.load(row + 3 * D + feature)[None, None, :]
        z += total
        large |= (inside & ~(tl.abs(z) <= LARGEST)).to(tl.int32)
    tl.store(place, z, mask=inside)
    tl.atomic_or(beyond, tl.max(tl.max(tl.max(large, axis=2), axis=1), axis=0))
