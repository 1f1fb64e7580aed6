"""Step 1, quantisation by feed-forward layers (Yun et al. 2020, Lemma 5).

Statement. d/δ layers of the modified class (dn/δ with a positional encoding) send every entry to the lower end of
its cell: one layer per feature i and cell k, Z += e_i φ(e_i^T Z − e_k), with φ(t) = −t on [0, step) and 0 elsewhere.

Proof. The layer of cell k moves exactly the entries in [e_k, e_{k+1}), to e_k: there −t = e_k − Z. An entry already
at a grid point e_j lies in the half-open window of layer j only, and φ(0) = 0 leaves it where it is.

The cells are visited from the top down, so that in the ReLU version an entry above the window is always a grid point
already: every number the ramp multiplies is then a dyadic rational of few bits, and the float64 result is exactly 0.
The last cell of a feature is closed: its window is one ramp longer.

Levels. Ids count digits in one unit. A feature whose step is the unit times a power of two is left as it is. For any
other one, λ is the next such number above its step, and layers Z += (λ − step) e_i [e_i^T Z ≥ e_m − q], q about a
quarter of a step, one for each edge m ≥ 1 and again from the top down, send e_m = m·step to m·λ.

Proof. All entries are grid points when these layers begin. The jump of layer m lies strictly between e_{m−1} and e_m.
An entry at e_k passes the layers m > k unmoved, is moved by λ − step ≥ 0 in layer k, so it stays at or above e_k, and
is moved again in each of the layers k−1, …, 1: k times in all, to k·step + k(λ − step) = k·λ. All numbers are dyadic
with few bits (steps have 11, and λ < 2·step), so every product and sum of the ReLU version is exact. Only inputs on a
ramp of the quantiser can come near the jumps.  ∎  Then u^T z is exact, and ids are whole numbers of units.

Deviation: a domain whose origin is not 0 is moved to 0 by E, or without a positional encoding by b_2 of the very last
layer, when every entry is a grid point (so that this addition too is exact).
"""

from __future__ import annotations

import numpy as np
import torch

from thereexists.functions.grid import Grid
from thereexists.model import FeedForward, Stage, ThreePiece


def quantise(grid: Grid) -> Stage:
    """Step 1 as one stage of the modified class (r = 1): every entry goes to the lower edge of its cell.

        from thereexists.constructions.faithful.quantise import quantise

        grid = te.plan(te.targets.builtin("sort", n=2), delta=1 / 2).grid
        quantise(grid).depth

    Args:
        grid: the cells.

    Returns:
        The stage; the module's docstring has the proof.
    """
    feature, edge, length = _windows(grid)
    cells = len(edge)  # layers that quantise; those behind them move edges to levels
    which, above, quarter, move = _jumps(grid)
    feature, edge = np.concatenate([feature, which]), np.concatenate([edge, above])
    depth = len(edge)
    row = np.zeros((depth, 1, grid.d))
    row[np.arange(depth), 0, feature] = 1.0
    b_2 = np.zeros((depth, grid.d))
    if not grid.positional:
        b_2[cells - 1] = -np.array(grid.origin)
    knots, slopes, intercepts = np.zeros((depth, 1, 2)), np.zeros((depth, 1, 3)), np.zeros((depth, 1, 3))
    knots[:cells, 0, 1], slopes[:cells, 0, 1] = length, -1.0
    knots[cells:, 0, 0], intercepts[cells:, 0, 1:] = -quarter, move[:, None]  # the second knot, 0, changes nothing
    phi = ThreePiece(*(torch.from_numpy(a) for a in (knots, slopes, intercepts)))
    W = torch.from_numpy(row)
    return Stage(
        feed_forward=FeedForward(
            W, torch.from_numpy(-edge[:, None]), W.transpose(1, 2).clone(), torch.from_numpy(b_2), phi
        )
    )


def ramp_widths(grid: Grid) -> torch.Tensor:
    """η of every layer: how wide the ramp is that takes the place of its jump in the ReLU network.

        from thereexists.constructions.faithful.quantise import ramp_widths

        grid = te.plan(te.targets.builtin("sort", n=2), delta=1 / 2).grid
        ramp_widths(grid)

    Args:
        grid: the cells.

    Returns:
        The widths (depth,), in the order of the layers of :func:`quantise`.
    """
    feature, _, _ = _windows(grid)
    return torch.from_numpy(np.concatenate([grid.ramp[feature], _jumps(grid)[2]]))


def layer_count(grid: Grid) -> int:
    """How many layers :func:`quantise` has, without making them.

        from thereexists.constructions.faithful.quantise import layer_count

        grid = te.plan(te.targets.builtin("sort", n=2), delta=1 / 2).grid
        layer_count(grid)

    Args:
        grid: the cells.

    Returns:
        The number of layers.
    """
    return len(_windows(grid)[0]) + len(_jumps(grid)[0])


def _jumps(grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For every layer that moves edges to levels: feature, edge, a quarter of its step (a power of two), the move."""
    step = np.array(grid.step)
    odd = np.flatnonzero(grid.level != step)
    last = (grid.n - 1) * (grid.N + 1) + grid.N - 1 if grid.positional else grid.N - 1  # number of the highest edge
    feature, m = np.repeat(odd, last), np.tile(np.arange(last, 0, -1), len(odd))
    quarter = 2.0 ** (np.floor(np.log2(step)) - 2)
    return feature, m * step[feature], quarter[feature], (grid.level - step)[feature]


def _windows(grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every layer: its feature, the lower edge of its window, the window's length."""
    positions = grid.n if grid.positional else 1
    feature, position, k = (
        axis.ravel() for axis in np.meshgrid(np.arange(grid.d), np.arange(positions), np.arange(grid.N), indexing="ij")
    )
    order = np.lexsort((-k, -position, feature))  # feature by feature, from the top cell of the last position down
    feature, position, k = feature[order], position[order], k[order]
    step, start = np.array(grid.step)[feature], np.array(grid.origin)[feature]
    edge = position * grid.pitch[feature] + k * step + (0.0 if grid.positional else start)
    return feature, edge, step + np.where(k == grid.N - 1, grid.ramp[feature], 0.0)
