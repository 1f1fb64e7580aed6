"""``skip``: the exact skip. A layer that adds exactly 0 to a token is found by bisection instead of being run.

Which layers those are is proved from the weights alone (``_parts.py``); parts that do not qualify are run in full. A
value stage of N layers costs a token O(log N) instead of O(N), a contextual mapping costs a sequence one layer per
shifted token. With Numba the bits are those of ``fused`` on *every* network and input, because both run a half-layer by
the same code and a skipped one adds exactly 0. Without it the same is done with whole-array operations of torch.

Settled tokens. A quantising layer written with ReLUs stays active on everything above its cell, where its units cancel.
On a sweep along one axis (direction and moves both multiples of e_i) a layer is a function of z_i alone, so what the
rest of the sweep does to one value can be computed once: a token that layer l leaves at c_l = −β_l / w_i leaves the
sweep where c_l does. For a quantiser c_l is the edge of cell l, and every token off the ramps is settled by one layer.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thereexists.evaluate._engine import Engine, refused_by_every_kernel, register, small
from thereexists.evaluate._parts import NEEDED_GAP, Array, AttentionSweep, FeedForwardSweep, Part, host, parts_of
from thereexists.evaluate.fused import PROMISE, attention_weights, feed_forward_weights, run_part
from thereexists.model import Stage, Transformer

LONGEST_SETTLED = 4096  # settling takes depth²/2 steps


class Skip(Engine):
    name = "skip"
    promise = f"{PROMISE}; on a CPU with Numba the bits of fused on every network"

    def refuses(self, network: Transformer, X: Tensor) -> str | None:
        reason = refused_by_every_kernel(network, X)
        if reason is None and all(part.sweep is None for part in parts_of(network)):
            return "no run of layers qualifies for bisection (shared direction, sorted thresholds, exact zeros)"
        return reason

    def __call__(self, network: Transformer, X: Tensor) -> Tensor:
        if X.device.type != "cpu" or find_spec("numba") is None:
            from thereexists.evaluate._skip_torch import run_parts

            Z = run_parts(network, X)
            return network(X) if Z is None else Z
        Z = X if network.E is None else X + network.E  # (batch, n, d)
        small_all_the_way = small(Z)
        Z = host(Z).copy()
        for part in parts_of(network):
            run = run_part if part.sweep is None else _sweep
            small_all_the_way = small_all_the_way and run(Z, part, network.stages[part.stage], network.rho)
        return torch.from_numpy(Z + 0.0) if small_all_the_way else network(X)

    def explain(self, network: Transformer, X: Tensor) -> tuple[str, ...]:
        how = {True: "crossed by bisection", False: "one by one"}
        return tuple(f"{part.what}: {how[part.sweep is not None]}" for part in parts_of(network))


def _sweep(Z: Array, part: Part, stage: Stage, rho: str) -> bool:
    """A part that qualifies, on sequences Z (batch, n, d), in place; whether all columns stayed small."""
    from thereexists.evaluate import _numba_sweeps
    from thereexists.evaluate._numba import RHO

    kernels: Any = _numba_sweeps  # its functions are compiled ones

    sweep = part.sweep
    if isinstance(sweep, AttentionSweep):
        weights, masks, layers = attention_weights(part, stage, Z.shape[1])
        thresholds = (sweep.upper, sweep.lower, NEEDED_GAP[rho])
        return kernels.sweep_attention(Z, *weights, masks, layers, RHO[rho], *thresholds) == 0
    if not isinstance(sweep, FeedForwardSweep):
        raise ValueError(f"{part.what} is not a sweep.")
    tokens = Z.reshape(-1, Z.shape[-1])
    weights, phi = feed_forward_weights(part, stage)
    if phi is None:
        settled = _settled(part, sweep, weights)
        return kernels.sweep_feed_forward(tokens, *weights, sweep.direction, sweep.bias, *settled) == 0
    return kernels.sweep_feed_forward_phi(tokens, *weights, *phi, sweep.direction, sweep.bias, sweep.knot) == 0


def _settled(part: Part, sweep: FeedForwardSweep, weights: list[Array]) -> tuple[Array, Array]:
    """(c_l, where the rest of the sweep takes it) for a sweep along one axis; empty arrays for any other."""
    if "settled" not in part.known:
        part.known["settled"] = _settle(sweep, weights)
    return part.known["settled"]


def _settle(sweep: FeedForwardSweep, weights: list[Array]) -> tuple[Array, Array]:
    from thereexists.evaluate._numba import feed_forward

    W_1, b_1, W_2, b_2 = weights
    axes = np.flatnonzero(sweep.direction)
    nothing = np.zeros(0), np.zeros(0)
    if len(axes) != 1 or len(sweep.bias) > LONGEST_SETTLED:
        return nothing
    axis = int(axes[0])
    along = np.delete(W_2, axis, axis=1)
    if along.any():
        return nothing
    candidate = -sweep.bias / sweep.direction[axis]
    settled = candidate.copy()
    # Layer l takes in the candidates of the layers before it: after the last layer each has passed all that follow it.
    one_axis = (W_1[:, :, axis : axis + 1].copy(), b_1, W_2[:, axis : axis + 1].copy(), b_2[:, axis : axis + 1].copy())
    beyond = 0
    for l in range(1, len(candidate)):
        beyond += feed_forward(settled[:l, None], *(w[l : l + 1] for w in one_axis))
    return nothing if beyond else (candidate, settled)


register(Skip())
