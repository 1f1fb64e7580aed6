"""Step 2, the contextual mapping by selective shifts (Yun et al. 2020, Lemma 6), as array functions and as layers.

Let l_j = u^T z_j be the ids of the quantised columns, in units of a step; K = δ^{-d} the number of cells; and suppose
the ids l_1 < … < l_n of the tokens (in increasing order) are pairwise distinct.

    ψ(Z; b)      = e_1 · u^T Z · σ_H[(u^T Z)^T (u^T Z − b 1^T)]
                   gives token j, in row 1, the largest id if u^T z_j > b and the smallest if u^T z_j < b
    Ψ(Z; b, b')  = ψ(Z; b) − ψ(Z; b')  gives (largest − smallest) to the tokens with b < u^T z_j < b', 0 to the others
    shift of l   : Z += K Ψ(Z; l − 1/2, l + 1/2),   for every possible id l in increasing order
    global shift : Z += C ψ(Z; −1/2),               every token receives C times the largest id

Claim. The tokens end with ids q_j = l̃_j + C·l̃_n, where
    l̃_1 = l_1 + K (l_n − l_1)   and   l̃_j = l_j + K (l̃_{j−1} − l_j),
and q is a contextual mapping if C > max l̃_n; C = K^n (l_max + 1) is enough, l_max being the largest possible l.

Proof. When l_1 is swept, token 1 is the smallest and token n the largest, which gives l̃_1 ≥ l_1 + K > l_max (without
positional encoding l_max = K − 1; with it, l̃_1 − l_max ≥ (K−1)((n−1)·id_pitch − K) > 0 as id_pitch > K): a shifted
token is never swept again. When l_j is swept, tokens 1 … j−1 have left, token j is the smallest and token j−1 the
largest; hence the recursion, and l̃_1 < … < l̃_n. It is injective: l̃_j ≡ l_j (mod K), so l̃_n gives l_n, then
l̃_{n−1} = (l̃_n − l_n)/K + l_n gives l_{n−1}, and so on down. Finally l̃_n ≤ K l̃_{n−1} ≤ … ≤ K^n l_max < C, so q_j
determines l̃_n = ⌊q_j / C⌋ and l̃_j = q_j mod C: neither two tokens nor two contexts share an id.  ∎

Tokens with equal ids move together, so without positional encoding the ids depend only on the *set* of columns: a
sequence with equal columns shares its ids with every sequence that has the same set of them.

K (n K with positions) shifts and one global shift: δ^{-d} + 1 attention layers, nδ^{-d} + 1 with positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from thereexists.core.errors import InvalidInput
from thereexists.functions.grid import Grid
from thereexists.functions.target import Array
from thereexists.model import Attention, Stage
from thereexists.witness.inputs import real_numbers


@dataclass(frozen=True)
class SelectiveShift:
    """The dense contextual mapping on a grid: how many layers, how large the ids, which ids, which weights."""

    grid: Grid

    @property
    def layers(self) -> int:
        return len(swept_ids(self.grid)) + 1

    @property
    def largest_id(self) -> int:
        return largest_id(self.grid)

    def ids(self, l: Array) -> Array:
        """Contextual ids of increasing column ids (count, j)."""
        return shifted_ids(l, self.grid.K, global_factor(self.grid))

    def stage(self) -> Stage:
        return context(self.grid)


def selective_shift(Z: Array, u: Array, low: float, high: float, factor: float) -> Array:
    """Z += factor · Ψ(Z; low, high): Z is (batch, n, d); tokens with low < u^T z < high rise by factor·(max − min).

        te.selective_shift(np.array([[[1.0], [3.0]]]), np.ones(1), low=0.0, high=2.0, factor=8.0)

    Args:
        Z: (batch, n, d).
        u: (d,), what ids are read off by.
        low: ids above this one move.
        high: ids below this one move.
        factor: how far.

    Returns:
        The moved sequences, in float64.

    Raises:
        InvalidInput: the shapes do not fit, or these are not real numbers.
    """
    Z, u = _in_float64(Z, u)
    low, high, factor = _number("low", low), _number("high", high), _number("factor", factor)
    ids = Z @ u  # (batch, n)
    selected = (low < ids) & (ids < high)
    return _raise_first_row(Z, factor * np.ptp(ids, axis=-1, keepdims=True) * selected)


def global_shift(Z: Array, u: Array, factor: float) -> Array:
    """Z += factor · ψ(Z; b) with b below every id: every token rises by factor · max.

        te.global_shift(np.ones((1, 2, 1)), np.ones(1), factor=2.0)

    Args:
        Z: (batch, n, d).
        u: (d,), what ids are read off by.
        factor: how far the tokens rise.

    Returns:
        The moved sequences, in float64.

    Raises:
        InvalidInput: the shapes do not fit, or these are not real numbers.
    """
    Z, u = _in_float64(Z, u)
    ids = Z @ u
    return _raise_first_row(Z, _number("factor", factor) * ids.max(axis=-1, keepdims=True) * np.ones_like(ids))


def contextual_mapping(Z: Array, grid: Grid) -> Array:
    """The whole contextual mapping: one selective shift for every id, in increasing order, then the global shift.

        grid = te.plan(te.targets.builtin("sort", n=2), delta=1 / 2).grid
        te.contextual_mapping(np.array([[[0.0], [0.5]]]), grid)

    Args:
        Z: quantised sequences (batch, n, d).
        grid: the grid that they are quantised to.

    Returns:
        The sequences after the last shift; their ids are ``Z @ grid.u``.

    Raises:
        InvalidInput: the sequences have other features than the grid, or are not real numbers.
    """
    Z, _ = _in_float64(Z, grid.u)
    for l in swept_ids(grid) * grid.unit:
        Z = selective_shift(Z, grid.u, l - grid.unit / 2, l + grid.unit / 2, float(grid.K))
    return global_shift(Z, grid.u, float(global_factor(grid)))


def shifted_ids(l: Array, K: int, C: int) -> Array:
    """The claim above in closed form: increasing column ids (count, j) -> q (count, j), exact in int64."""
    shifted = np.empty_like(l)
    largest = l[:, -1]
    for j in range(l.shape[1]):
        shifted[:, j] = l[:, j] + K * (largest - l[:, j])
        largest = shifted[:, j]
    return shifted + C * shifted[:, -1:]


def global_factor(grid: Grid) -> int:
    """C = K^n (l_max + 1); without positions this is the paper's δ^{-(n+1)d}."""
    return grid.K**grid.n * (grid.max_column_id + 1)


def largest_id(grid: Grid) -> int:
    """An upper bound on every q, in units: l̃_n (C + 1) ≤ K^n l_max (C + 1)."""
    return grid.K**grid.n * grid.max_column_id * (global_factor(grid) + 1)


def swept_ids(grid: Grid) -> Array:
    """Every id a quantised column can have, in units, increasing: K of them for each position.

    On a domain that is not a box, fewer: a shift that selects an id which no token has there would do nothing.
    """
    if not grid.positional:
        return grid.columns()
    at = np.argsort(grid.slot)  # which token has which range
    return np.concatenate([slot * grid.id_pitch + grid.columns(int(at[slot])) for slot in range(grid.n)])


def context(grid: Grid) -> Stage:
    """The same as attention layers of the modified class: two heads of size one."""
    l = swept_ids(grid) * grid.unit
    depth = len(l) + 1
    u = np.broadcast_to(grid.u, (depth, 2, 1, grid.d)).copy()
    b_Q = np.stack([grid.unit / 2 - l, -grid.unit / 2 - l], axis=-1)  # −b and −b'
    b_Q = np.concatenate([b_Q, np.full((1, 2), grid.unit / 2)])[:, :, None]
    W_O = np.zeros((depth, 2, grid.d, 1))
    W_O[:-1, 0, 0, 0], W_O[:-1, 1, 0, 0] = grid.K, -grid.K
    W_O[-1, 0, 0, 0] = global_factor(grid)  # the second head of the global shift stays silent
    W = torch.from_numpy(u)
    return Stage(attention=Attention(W, torch.from_numpy(b_Q), W.clone(), W.clone(), torch.from_numpy(W_O)))


def _in_float64(Z: Any, u: Any) -> tuple[Array, Array]:
    """Copies of their own: a type of few bits would let ids wrap around."""
    Z, u = (real_numbers(given, f"{name} must be real numbers") for name, given in (("'Z'", Z), ("'u'", u)))
    if Z.ndim != 3 or not Z.shape[1] or u.shape != Z.shape[2:]:
        raise InvalidInput(f"Sequences are (batch, n, d) with 'u' (d,); got Z {Z.shape} and u {u.shape}.")
    return Z, u


def _number(name: str, given: Any) -> float:
    number = real_numbers(given, f"'{name}' must be a real number")
    if number.ndim:
        raise InvalidInput(f"'{name}' must be a real number; got an array of the shape {number.shape}.")
    return float(number)


def _raise_first_row(Z: Array, amount: Array) -> Array:
    moved = Z.copy()
    moved[..., 0] += amount
    return moved
