"""Step 4, back to the standard class: hardmax becomes softmax, three-piece functions become ReLUs.

Hardmax to softmax. Logits are multiplied by λ, the least power of two of at least 2048/unit², on the query side. On
quantised input two different ids differ by at least one unit, and |u^T z_j − b| ≥ unit/2, so the second-largest logit
is at least λ·unit²/2 ≥ 1024 below the largest: its weight is below e^-1024, which float64 rounds to an exact 0 (and
real arithmetic to less than 1e-444). Sparsemax is one-hot from a gap of 1 on, in real arithmetic too. A power of two
changes no bit of u and b: the queries read exactly the direction that keys and values read, and the proof that a
network is 0 outside its box (``certificates/support.py``) asks for that.

φ to ReLU. At a knot κ without a jump the slope changes: one ReLU. At a jump φ is replaced, on [κ − η, κ], by the
straight line from φ(κ − η) to φ(κ): two ReLUs. Two knots, at most four ReLUs: r = 4. Off the ramps nothing changes.

The clamp. An input on a ramp may come out anywhere, as large as an id, and no finite bound on d_p would follow. A
value layer uses two of its four units; the last d of them use the other two for

    Z_i += ReLU(−M_i − Z_i) − ReLU(Z_i − M_i)        (row i in the layer that is i-th from the end),

so the clamp costs no layer. In the layer that clamps row i, the token with the layer's own id holds z_i and is
clamped in the same step; its move is therefore A_i − clip(z_i, ±M_i) instead of A_i − z_i, and it still arrives at
A_i. Other tokens are values, or columns still to come: M_i is at least as large as both, for i ≥ 2. After its clamp a
row changes only by the moves of that and the later layers, each at most |move|·1: the output is bounded everywhere.
With d = 1 it is bounded by M itself: a token that the last layer moves lies beyond M before, so it ends between M
and A.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from thereexists.constructions.faithful.guard import guard, outside
from thereexists.constructions.faithful.quantise import ramp_widths
from thereexists.constructions.faithful.value_mapping import Extremes, ValueTable, last_columns
from thereexists.functions.grid import Grid
from thereexists.functions.target import Array
from thereexists.model import Attention, FeedForward, Stage, Transformer

__all__ = ["relu_limit", "softmax_limit", "temperature", "tempered"]  # the reference shows these

WIDTH = 4


def softmax_limit(modified: Transformer, table: ValueTable, grid: Grid, rho: str = "softmax") -> Transformer:
    """Step 4: the standard network, of T^{2,1,4}, that agrees with the modified one off the ramps.

        from thereexists.constructions.faithful.selective_shift import SelectiveShift
        from thereexists.constructions.faithful.softmax_limit import softmax_limit
        from thereexists.constructions.faithful.value_mapping import tabulate

        target = te.targets.builtin("sort", n=2)
        modified = te.build(target, delta=1 / 2, modified=True)
        table = tabulate(target, modified.grid, SelectiveShift(modified.grid).ids)
        softmax_limit(modified.network, table, modified.grid).shape()  # h = 2, m = 1, r = 4

    Args:
        modified: a network of the three stages of the proof, with hardmax and three-piece functions.
        table: the one that its value mapping was made of.
        grid: the cells.
        rho: ``softmax`` or ``sparsemax``.

    Returns:
        The network; it runs in float64 only.

    Raises:
        ValueError: the network is not made of those three stages.
    """
    quantiser, shifts = modified.stages["quantise"].feed_forward, modified.stages["context"].attention
    steps = modified.stages["value"].feed_forward
    if quantiser is None or shifts is None or steps is None:
        raise ValueError("softmax_limit takes a network made of the three stages of the proof.")
    return Transformer(
        {
            **({"guard": guard(grid)} if grid.low else {}),
            "quantise": Stage(feed_forward=relu_limit(quantiser, ramp_widths(grid))),
            "context": Stage(attention=tempered(shifts, temperature(grid))),
            **({"outside": outside(grid)} if grid.low else {}),
            "value": Stage(feed_forward=_value_limit(steps, table, grid)),
        },
        rho=rho,
        E=None if modified.E is None else modified.E.detach().clone(),
        needs=torch.float64,
    )


def temperature(grid: Grid) -> float:
    """λ, the factor of the logits for which softmax rounds to hardmax in float64: a power of two from 2048/unit² on.

        from thereexists.constructions.faithful.softmax_limit import temperature

        grid = te.plan(te.targets.builtin("sort", n=2), delta=1 / 2).grid
        temperature(grid)

    Args:
        grid: the cells; its unit is the distance of two ids.

    Returns:
        The factor.
    """
    mantissa, exponent = math.frexp(2048 / grid.unit**2)
    return math.ldexp(1.0, exponent - (mantissa == 0.5))


def tempered(attention: Attention, factor: float) -> Attention:
    """The same attention with its logits multiplied by a factor, on the query side.

        from thereexists.constructions.faithful.softmax_limit import tempered

        modified = te.build(te.targets.builtin("sort", n=2), delta=1 / 2, modified=True)
        tempered(modified.network.stages["context"].attention, 2.0)

    Args:
        attention: the layers.
        factor: what the logits are multiplied by.

    Returns:
        New layers; the given ones stay as they are.
    """
    W_Q, b_Q, W_K, W_V, W_O = (p.detach() for p in attention.parameters_list())
    return Attention(factor * W_Q, factor * b_Q, W_K.clone(), W_V.clone(), W_O.clone(), attention.pattern)


def relu_limit(layers: FeedForward, eta: Tensor) -> FeedForward:
    """Layers with three-piece functions (r = 1) as ReLU layers (r = 4) that agree with them off the ramps.

        from thereexists.constructions.faithful.quantise import quantise, ramp_widths
        from thereexists.constructions.faithful.softmax_limit import relu_limit

        grid = te.plan(te.targets.builtin("sort", n=2), delta=1 / 2).grid
        relu_limit(quantise(grid).feed_forward, ramp_widths(grid))

    Args:
        layers: of the modified class.
        eta: the width of the ramp of every layer, (depth,).

    Returns:
        The ReLU layers, as many as before.

    Raises:
        ValueError: the layers have ReLUs already, or r is not 1.
    """
    phi = layers.phi
    if phi is None or layers.W_1.shape[1] != 1:
        raise ValueError("relu_limit takes layers of the modified class with r = 1.")
    units = _relu_units(phi.knots[:, 0].detach(), phi.slopes[:, 0].detach(), phi.intercepts[:, 0].detach(), eta)
    depth, _, d = layers.W_1.shape
    W_1, b_1 = layers.W_1.new_zeros(depth, WIDTH, d), layers.W_1.new_zeros(depth, WIDTH)
    W_2 = layers.W_1.new_zeros(depth, d, WIDTH)
    for i, (knot, coefficient) in enumerate(units):  # coefficient · ReLU(w^T z + b − knot)
        W_1[:, i] = layers.W_1.detach()[:, 0]
        b_1[:, i] = layers.b_1.detach()[:, 0] - knot
        W_2[:, :, i] = layers.W_2.detach()[:, :, 0] * coefficient[:, None]
    return FeedForward(W_1, b_1, W_2, layers.b_2.detach().clone())


def _relu_units(knots: Tensor, slopes: Tensor, intercepts: Tensor, eta: Tensor) -> list[tuple[Tensor, Tensor]]:
    """(knot, coefficient) of every ReLU, each (depth,): φ(t) = Σ coefficient · ReLU(t − knot) off the ramps."""
    if bool((slopes[:, 0] != 0).any() or (intercepts[:, 0] != 0).any()):
        raise ValueError("The first piece of φ must be 0; a constant belongs in b_2.")
    units: list[tuple[Tensor, Tensor]] = []
    for s in range(2):
        knot = knots[:, s]
        if bool(torch.isinf(knot).all()):
            continue
        before = slopes[:, s] * (knot - eta) + intercepts[:, s]  # φ where the ramp starts
        at_knot = slopes[:, s + 1] * knot + intercepts[:, s + 1]
        if bool((slopes[:, s] * knot + intercepts[:, s] == at_knot).all()):
            units.append((knot, slopes[:, s + 1] - slopes[:, s]))
        else:
            ramp = (at_knot - before) / eta
            units.append((knot - eta, ramp - slopes[:, s]))
            units.append((knot, slopes[:, s + 1] - ramp))
    return units


def _value_limit(layers: FeedForward, table: ValueTable, grid: Grid) -> FeedForward:
    """Value layers with ramps of width w, the last d of them clamping one row each."""
    result = value_limit(layers)
    clamp(result, clamp_levels(table.extremes), last_columns(table, grid), layers)
    return result


def value_limit(layers: FeedForward) -> FeedForward:
    """Value layers with ramps of width w."""
    return relu_limit(layers, _windows(layers))


def clamp(result: FeedForward, M: Array, columns: Array, layers: FeedForward) -> None:
    """Let the last d of the value layers clamp one row each; ``columns`` are those they move, ``layers`` their φ."""
    depth, window = len(layers.W_1), _windows(layers)
    with torch.no_grad():
        for i in range(len(M)):
            last = depth - 1 - i
            result.W_1[last, 2, i], result.b_1[last, 2], result.W_2[last, i, 2] = -1.0, -M[i], 1.0
            result.W_1[last, 3, i], result.b_1[last, 3], result.W_2[last, i, 3] = 1.0, -M[i], -1.0
            excess = columns[-1 - i, i] - np.clip(columns[-1 - i, i], -M[i], M[i])
            result.W_2[last, i, 0] += excess / window[last]
            result.W_2[last, i, 1] -= excess / window[last]


def clamp_levels(extremes: Extremes) -> Array:
    """M_i: the largest |A_i|; for rows i ≥ 2 of one sweep also the largest |z_i|, which must pass unharmed."""
    M = np.array(extremes.A)
    if not extremes.two_sweeps:
        M[1:] = np.maximum(M[1:], np.array(extremes.z)[1:])
    return M


def _windows(layers: FeedForward) -> Tensor:
    return -layers.phi.knots[:, 0, 0].detach()  # pyright: ignore[reportOptionalMemberAccess]
