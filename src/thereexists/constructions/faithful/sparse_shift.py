"""The contextual mapping of sparse Transformers (Yun et al., *O(n) Connections are Expressive Enough*, NeurIPS 2020).

Hypotheses (Assumption 1): in the pattern {A_k^l}, l = 1 … p, every token attends to itself; γ is a Hamiltonian path,
γ(i−1) ∈ ∪_l A^l_{γ(i)}; and after s steps every token has, through others, seen all tokens.

Positions. E sends γ(1) to the last range and γ(i), i ≥ 2, to range i−2: along the path ids increase, and γ(1) is above.

Shifts. For i = 2 … n, for every id l of γ(i)'s range: Z += K Ψ(Z; l−1/2, l+1/2), maxima and minima over A_k, in a layer
whose step contains γ(i−1) ∈ A_{γ(i)}; the other p−1 layers of the cycle have zero weights. When γ(i) is swept, the
tokens before it on the path (γ(1) included) are above it and γ(i−1), shifted last, is the largest of all; those after
it are above it too, unshifted. So it is the smallest of its neighbours, γ(i−1) their largest, and
    l̃_{γ(i)} = l_{γ(i)} + K (l̃_{γ(i−1)} − l_{γ(i)}),      l̃_{γ(1)} = l_{γ(1)}.
As in the dense case a shifted token is above every id still to be swept, and l̃_{γ(n)} determines all cells: it is an id
of the whole sequence, and the largest of all.

All-max shifts. s layers Z += c · max over A_k of u^T Z, the first with step 1. Claim: q_k determines l̃_{γ(n)} and
token k's own l̃_k if c > C(s, ⌊s/2⌋)·K^{n−1} l_max.
Proof. Write ids after t layers as Σ_r c^r a_r. A layer gives a_r ← a_r + a'_{r−1}, a' being the digits of a neighbour,
so a_r ≤ C(t, r)·max l̃ < c: these are digits in base c, and larger numbers have larger leading digits. The leading digit
of token k after t layers is thus the largest l̃ that token k has seen through t steps; after s it is l̃_{γ(n)} for
all tokens. The last digit is l̃_k. Both are read off q_k.  ∎

Layers: p(n−1)δ^{-d} + s. The cycle is counted from the first layer of this stage: the feed-forward blocks before it
attend to nothing and may be given any step.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import torch

from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.functions.grid import Grid
from thereexists.functions.target import Array
from thereexists.model import Attention, Stage
from thereexists.patterns import Pattern, check


@dataclass(frozen=True)
class Route:
    """What the construction needs of a pattern: its masks, and a path through all tokens.

        from thereexists.constructions.faithful.sparse_shift import Route

        Route.through(te.patterns.fixed(n=4, stride=2)).path

    Attributes:
        name: of the pattern.
        masks: which token attends to which in each step, (p, n, n).
        path: the Hamiltonian path γ.
        edge_steps: for each edge of the path, a step that has it.
        depth: s, the number of steps after which every token has received something from all tokens.
    """

    name: str
    masks: Array
    path: tuple[int, ...]
    edge_steps: tuple[int, ...]
    depth: int

    @classmethod
    def through(cls, pattern: Pattern) -> Route:
        """The route of a pattern that satisfies Assumption 1; any other is refused with the verdict."""
        verdict = check(pattern)
        if verdict.universal is not True or verdict.path is None or verdict.edge_steps is None or verdict.depth is None:
            raise CannotBuild(
                f"The pattern {pattern.name} does not satisfy the theorem's conditions: {'; '.join(verdict.reasons)}."
            )
        return cls(
            name=pattern.name,
            masks=pattern.mask(),
            path=tuple(int(k) for k in verdict.path),
            edge_steps=tuple(int(l) for l in verdict.edge_steps),
            depth=int(verdict.depth),
        )

    @property
    def slots(self) -> tuple[int, ...]:
        """The range of every token: the first of the path goes last."""
        slots = np.empty(len(self.path), dtype=int)
        slots[list(self.path)] = np.arange(len(self.path)) - 1
        slots[self.path[0]] = len(self.path) - 1
        return tuple(slots.tolist())

    def describe(self) -> dict:
        """Plain data for witness.json; the masks themselves are stored with the weights."""
        return {
            "name": self.name,
            "cycle": len(self.masks),
            "connections": [int(mask.sum()) for mask in self.masks],
            "path": list(self.path),
            "depth": self.depth,
        }


@dataclass(frozen=True)
class SparseShift:
    """The sparse contextual mapping on a grid: how many layers, how large the ids, which ids, which weights.

        from thereexists.constructions.faithful.sparse_shift import Route, SparseShift

        target, pattern = te.targets.builtin("shift", n=4), te.patterns.fixed(n=4, stride=2)
        grid = te.plan(target, delta=1 / 2, pattern=pattern).grid
        SparseShift(grid, Route.through(pattern)).layers

    Args:
        grid: the cells.
        route: the masks and the path of a pattern with as many tokens as the grid.
    """

    grid: Grid
    route: Route

    def __post_init__(self) -> None:
        if self.route.masks.shape[1] != self.grid.n:
            raise InvalidInput(
                f"The pattern {self.route.name} has {self.route.masks.shape[1]} tokens and the target {self.grid.n}."
            )

    @property
    def layers(self) -> int:
        return len(self.route.masks) * (self.grid.n - 1) * self.grid.K + self.route.depth

    @property
    def factor(self) -> int:
        """c of the all-max shifts."""
        s = self.route.depth
        return comb(s, s // 2) * self.grid.K ** (self.grid.n - 1) * self.grid.max_column_id + 1

    @property
    def largest_id(self) -> int:
        return (1 + self.factor) ** self.route.depth * self.grid.K ** (self.grid.n - 1) * self.grid.max_column_id

    def ids(self, l: Array) -> Array:
        """Contextual ids of column ids (count, n), token by token, exact in int64."""
        x = np.array(l, dtype=np.int64)
        for before, k in zip(self.route.path[:-1], self.route.path[1:], strict=True):
            x[:, k] += self.grid.K * (x[:, before] - x[:, k])
        for t in range(self.route.depth):
            mask = self.route.masks[t % len(self.route.masks)]
            seen = np.where(mask, x[:, None, :], np.iinfo(np.int64).min)  # (count, k, j)
            x = x + self.factor * seen.max(axis=2)
        return x

    def stage(self) -> Stage:
        """The layers, in the modified class, with the pattern they attend by."""
        grid, route = self.grid, self.route
        depth, working = self.layers, self._swept_layers()
        turns = np.arange(grid.n - 1)[:, None]  # of a single token, none
        l = (np.arange(grid.K) + turns * grid.id_pitch).reshape(-1) * grid.unit
        W = np.zeros((depth, 2, 1, grid.d))
        b_Q, W_O = np.zeros((depth, 2, 1)), np.zeros((depth, 2, grid.d, 1))
        W[working] = grid.u
        b_Q[working, 0, 0], b_Q[working, 1, 0] = grid.unit / 2 - l, -grid.unit / 2 - l
        W_O[working, 0, 0, 0], W_O[working, 1, 0, 0] = grid.K, -grid.K
        last = np.arange(depth - route.depth, depth)
        W[last], b_Q[last], W_O[last, 0, 0, 0] = grid.u, grid.unit / 2, self.factor
        weights = (torch.from_numpy(a) for a in (W, b_Q, W.copy(), W.copy(), W_O))
        return Stage(attention=Attention(*weights, pattern=torch.from_numpy(route.masks)))

    def _swept_layers(self) -> Array:
        """The layer that sweeps each id: the p layers of its turn hold one whose step carries the path's edge."""
        steps = np.repeat(np.array(self.route.edge_steps, dtype=np.int64), self.grid.K)
        return np.arange(len(steps)) * len(self.route.masks) + steps
