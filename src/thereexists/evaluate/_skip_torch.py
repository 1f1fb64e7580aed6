"""The exact skip with whole-array operations of torch: for machines without Numba, and for GPUs.

Same proofs, same thresholds, same order of sums as the Numba sweeps. All tokens make their next jump together; a round
ends when no token has a layer left that may touch it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from thereexists.evaluate._parts import (
    LARGEST_COLUMN,
    LEAST_TAU,
    NEEDED_GAP,
    Array,
    AttentionSweep,
    FeedForwardSweep,
    Part,
    parts_of,
)
from thereexists.model import Attention, FeedForward, Stage, Transformer
from thereexists.model.probability import PROBABILITY_MAPS
from thereexists.model.transformer import Block, three_piece_of_tokens


def run_parts(network: Transformer, X: Tensor) -> Tensor | None:
    """g(X), or None where a column grew so large that what adds 0 may not be left out."""
    Z = (X + 0.0 if network.E is None else X + network.E).detach()
    largest = Z.abs().amax()
    for part in parts_of(network):
        stage = network.stages[part.stage]
        if isinstance(part.sweep, FeedForwardSweep) and stage.feed_forward is not None:
            tokens, reached = _sweep_feed_forward(Z.flatten(0, 1), part, part.sweep, stage.feed_forward)
            Z = tokens.view(Z.shape)
        elif isinstance(part.sweep, AttentionSweep) and stage.attention is not None:
            Z, reached = _sweep_attention(Z, part, part.sweep, stage.attention, network.rho)
        else:
            Z, reached = one_by_one(Z, part, stage, network.rho)
        Z, largest = Z + 0.0, torch.maximum(largest, reached)  # NaN stays
    return Z if bool(largest <= LARGEST_COLUMN) else None


def one_by_one(Z: Tensor, part: Part, stage: Stage, rho: str) -> tuple[Tensor, Tensor]:
    """The half-layers of a part as the reference runs them, and the largest |column| on the way."""
    largest = Z.new_zeros(())
    for layer in part.layers.tolist():
        if part.kind == "attention" and stage.attention is not None:
            weights = (w.detach()[layer] for w in stage.attention.parameters_list())
            Z = Block(rho, (*weights, stage.attention.mask(layer)), None)(Z)
        elif stage.feed_forward is not None:
            weights, phi = (w.detach()[layer] for w in stage.feed_forward.parameters_list()), stage.feed_forward.phi
            pieces = None if phi is None else tuple(w.detach()[layer] for w in phi.parameters_list())
            Z = Block(rho, None, (*weights, pieces))(Z)
        largest = torch.maximum(largest, Z.abs().amax())
    return Z, largest


def _bisect(reached: Callable[[Tensor], Tensor], like: Tensor, depth: int) -> Tensor:
    """For every entry of ``like`` the first layer that ``reached`` (monotone in the layer) holds for, or the depth."""
    low = torch.zeros_like(like, dtype=torch.int64)
    high = torch.full_like(low, depth)
    for _ in range(depth.bit_length()):
        open = low < high
        middle = (low + high) // 2
        yes = reached(middle.clamp(max=depth - 1))
        low, high = torch.where(open & ~yes, middle + 1, low), torch.where(open & yes, middle, high)
    return low


def _sweep_feed_forward(Z: Tensor, part: Part, sweep: FeedForwardSweep, stack: FeedForward) -> tuple[Tensor, Tensor]:
    direction, bias, number = (_there(a, Z) for a in (sweep.direction, sweep.bias, part.layers))
    depth, Z, largest = len(bias), Z.clone(), Z.new_zeros(())  # Z: (tokens, d)
    moving = torch.arange(len(Z), device=Z.device)
    position = torch.zeros_like(moving)
    while len(moving):
        s = _dot(direction, Z[moving])
        knot = sweep.knot
        if knot is None:
            first = torch.searchsorted(bias, -s, right=True)  # s + bias > 0 rounded or not
        else:
            first = _bisect(lambda l, s=s, knot=knot: s + bias[l] >= knot, s, depth)
        at = torch.maximum(first, position)
        left = at < depth
        moving, at = moving[left], at[left]
        moved = _layers(Z[moving], stack, number[at])
        Z[moving], position = moved, at + 1
        largest = _larger(largest, moved)
    return Z, largest


def _larger(largest: Tensor, Z: Tensor) -> Tensor:
    return torch.maximum(largest, Z.abs().amax()) if Z.numel() else largest


def _layers(z: Tensor, stack: FeedForward, layer: Tensor) -> Tensor:
    """Every token (tokens, d) through a layer of its own."""
    W_1, b_1, W_2, b_2 = (w.detach()[layer] for w in stack.parameters_list())
    t = _dot(W_1, z[:, None, :]) + b_1  # (tokens, r)
    if stack.phi is None:
        t = torch.where(t <= 0, 0.0, t)
    else:
        t = three_piece_of_tokens(t, *(w.detach()[layer] for w in stack.phi.parameters_list()))
    return z + (_dot(W_2, t[:, None, :]) + b_2)


def _sweep_attention(Z: Tensor, part: Part, sweep: AttentionSweep, stack: Attention, rho: str) -> tuple[Tensor, Tensor]:
    upper, lower, number = (_there(a, Z) for a in (sweep.upper, sweep.lower, part.layers))
    query, key = _there(sweep.query, Z), _there(sweep.key, Z)
    depth, Z, largest = len(lower), Z.clone(), Z.new_zeros(())  # Z: (batch, n, d)
    moving = torch.arange(len(Z), device=Z.device)
    position = torch.zeros_like(moving)
    while len(moving):
        s, keys = _dot(query, Z[moving]), _dot(key, Z[moving])  # (moving, n)
        tau = _margin(keys, NEEDED_GAP[rho])[:, None]
        first = _bisect(lambda l, s=s, tau=tau: s + lower[l] < tau, s, depth)
        first = torch.maximum(first, position[:, None])
        touched = (first < depth) & (s + upper[first.clamp(max=depth - 1)] > -tau)
        first = torch.where(touched, first, depth)
        at = first.amin(dim=1)
        left = at < depth
        moving, at = moving[left], at[left]
        selected = (first[left] == at[:, None])[..., None]
        update = _pulls(Z[moving], s[left], keys[left], stack, number[at], rho)
        Z[moving] += torch.where(selected, update, 0.0)
        largest, position = _larger(largest, Z[moving]), at + 1
    return Z, largest


def _margin(keys: Tensor, needed: float) -> Tensor:
    """τ of every sequence, as in the Numba sweep: keys (batch, n) -> (batch,)."""
    steps = keys.sort(dim=1).values.diff(dim=1)
    gap = torch.where(steps > 0, steps, torch.inf).amin(dim=1) if keys.shape[1] > 1 else keys[:, 0] + torch.inf
    known = gap * (1 - 2.0**-50) - 2.0**-50 * keys.abs().amax(dim=1)
    tau = torch.where(known > 0, (needed / known * (1 + 2.0**-50)).clamp(min=LEAST_TAU), torch.inf)
    return torch.where(gap == torch.inf, 0.0, tau)


def _pulls(Z: Tensor, s: Tensor, keys: Tensor, stack: Attention, layer: Tensor, rho: str) -> Tensor:
    """What a layer of its own (two heads of size 1) adds to every sequence (batch, n, d)."""
    _, b_Q, _, W_V, W_O = (w.detach()[layer] for w in stack.parameters_list())
    logits = (s[:, None, :] + b_Q)[..., None] * keys[:, None, None, :]  # (batch, 2, n, n)
    if stack.pattern is not None:
        logits = logits.masked_fill(~stack.pattern[layer % len(stack.pattern)][:, None], -torch.inf)
    P = PROBABILITY_MAPS[rho](logits)
    V = _dot(W_V[:, 0], Z)  # (batch, n)
    mixed = _dot(P, V[:, None, None, :])  # (batch, 2, n)
    return W_O[:, 0, None, :, 0] * mixed[:, 0, :, None] + W_O[:, 1, None, :, 0] * mixed[:, 1, :, None]


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Σ_k a[…, k] b[…, k] from left to right, every product and every sum rounded."""
    total = a[..., 0] * b[..., 0]
    for k in range(1, a.shape[-1]):
        total = total + a[..., k] * b[..., k]
    return total


def _there(array: Array, Z: Tensor) -> Tensor:
    return torch.from_numpy(array).to(Z.device)
