"""Step 1, quantisation by feed-forward layers (Yun et al. 2020, Lemma 5).

Statement. d/δ layers of the modified class (dn/δ with a positional encoding) send every entry to the lower end of
its cell: one layer per feature i and cell k, Z += e_i φ(e_i^T Z − e_k), with φ(t) = −t on [0, step) and 0 elsewhere.

Proof. The layer of cell k moves exactly the entries in [e_k, e_{k+1}), to e_k: there −t = e_k − Z. An entry already
at a grid point e_j lies in the half-open window of layer j only, and φ(0) = 0 leaves it where it is.

The cells are visited from the top down, so that in the ReLU version an entry above the window is always a grid point
already: every number the ramp multiplies is then a dyadic rational of few bits, and the float64 result is exactly 0.
The last cell of a feature is closed: its window is one ramp longer.

Deviation: a domain whose origin is not 0 is moved to 0 by E, or without a positional encoding by b_2 of the very last
layer, when every entry is a grid point (so that this addition too is exact).
"""

from __future__ import annotations

import numpy as np
import torch

from thereexists.grid import Grid
from thereexists.model import FeedForward, Stage, ThreePiece


def quantise(grid: Grid) -> Stage:
    """The quantiser as one stage of the modified class (r = 1)."""
    feature, edge, length = _windows(grid)
    depth = len(edge)
    row = np.zeros((depth, 1, grid.d))
    row[np.arange(depth), 0, feature] = 1.0
    b_2 = np.zeros((depth, grid.d))
    if not grid.positional:
        b_2[-1] = -np.array(grid.origin)
    phi = ThreePiece(
        knots=torch.from_numpy(np.stack([np.zeros(depth), length], axis=-1)[:, None, :]),
        slopes=torch.tensor([0.0, -1.0, 0.0], dtype=torch.float64).repeat(depth, 1, 1),
        intercepts=torch.zeros(depth, 1, 3, dtype=torch.float64),
    )
    W = torch.from_numpy(row)
    return Stage(
        feed_forward=FeedForward(
            W, torch.from_numpy(-edge[:, None]), W.transpose(1, 2).clone(), torch.from_numpy(b_2), phi
        )
    )


def ramp_widths(grid: Grid) -> torch.Tensor:
    """η of every layer, in the order of :func:`quantise`: (depth,)."""
    feature, _, _ = _windows(grid)
    return torch.from_numpy(grid.ramp[feature])


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
