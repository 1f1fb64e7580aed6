"""Convex (beyond the paper): for given keys, the query of least norm that attends as told, row by row.

With ``j0`` the support token of the smallest weight, row ``i`` solves

    min ||q||^2 / 2    s.t.   (k_j - k_j0)·q = log(A_j / A_j0)   for j in S,
                              (k_j0 - k_l)·q >= log(1/eps1) + margin   for l not in S.

It is feasible iff the keys of ``S`` span a face of the convex hull of all keys, met by no other key. Only a few
columns bind, so they are found by cutting planes: solve with the columns seen so far, scan all columns for violated
ones, add them, repeat.

The equalities are projected out; what is left is dualised, ``max_{mu >= 0} b·mu - mu^T H mu / 2``, and solved by
cyclic coordinate ascent (compiled, ``_ascent.py``). Certificates: the scan shows primal feasibility; the dual value
of any ``mu >= 0`` is a lower bound on ``||q||^2/2`` for the *full* problem (fewer constraints only lower the
minimum), so the norm is optimal within the reported gap; and a dual value above ``cap^2/2`` proves that no query of
norm below ``cap`` exists for these keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thereexists.heads.matrix import AttentionMatrix
from thereexists.heads.scan import support_tiles

MARGIN = 0.05
START, ADD, ROUNDS = 48, 16, 12
CAP = 1e4  # queries longer than this are not "moderate norm": such rows count as failed, with a dual proof


@dataclass(frozen=True, eq=False)
class ConvexRows:
    """Queries; rows without a query below the cap (proved by the dual) or left violated; the worst relative gap."""

    queries: np.ndarray
    failed: np.ndarray
    rounds: int
    gap: float


def convex_queries(
    target: AttentionMatrix, keys: np.ndarray, *, eps1: float, rows: np.ndarray | None = None, cap: float = CAP
) -> ConvexRows:
    """Minimum-norm queries of ``rows`` (all by default) against the keys (L, m)."""
    from thereexists.heads._ascent import ascend

    rows = np.arange(target.length) if rows is None else np.asarray(rows)
    wanted = -math.log(eps1) + MARGIN
    geometry = _Geometry(target, keys, rows)
    queries = geometry.free.copy()
    active = geometry.first_columns(min(START, target.length))  # (rows, w)
    mu = np.zeros(active.shape)
    settled, failed = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    gap, used = np.zeros(len(rows)), 0
    for used in range(1, ROUNDS + 1):  # noqa: B007
        todo = np.flatnonzero(~settled & ~failed)
        if len(todo) == 0:
            break
        for part in np.array_split(todo, max(1, len(todo) * active.shape[1] * keys.shape[1] * 8 // 2**28)):
            D, b, valid = geometry.constraints(part, active[part], wanted)
            H = D @ D.transpose(0, 2, 1)
            base = 0.5 * (geometry.free[part] ** 2).sum(1)
            mu[part], bounds, proved = ascend(H, b, valid, mu[part], base, 0.5 * cap * cap)
            queries[part] = geometry.free[part] + np.einsum("rw,rwm->rm", mu[part], D, optimize=True)
            primal = 0.5 * (queries[part] ** 2).sum(1)
            gap[part] = np.abs(primal - bounds) / np.maximum(primal, 1e-300)
            failed[part] |= proved
        new, violation = geometry.violated(todo, queries[todo], wanted)
        settled[todo] = violation <= MARGIN * 0.9
        active = np.concatenate([active, np.full((len(rows), ADD), -1)], axis=1)
        active[todo, -ADD:] = new
        mu = np.concatenate([mu, np.zeros((len(rows), ADD))], axis=1)
    return ConvexRows(queries, rows[failed | ~settled], used, float(gap[settled].max(initial=0.0)))


class _Geometry:
    """Differences of keys for a set of rows, with the equality constraints projected out."""

    def __init__(self, target: AttentionMatrix, keys: np.ndarray, rows: np.ndarray) -> None:
        columns, log_values, real = target.padded()
        columns, log_values, real = columns[rows], log_values[rows], real[rows]
        self.target, self.keys, self.rows = target, keys, rows
        lowest = np.where(real, log_values, np.inf).argmin(1)
        pick = np.arange(len(rows))
        self.anchor = keys[columns[pick, lowest]]  # (rows, m), the key of j0
        E = (keys[columns] - self.anchor[:, None, :]) * real[:, :, None]  # (rows, k, m); the row of j0 is zero
        c = np.where(real, log_values - log_values[pick, lowest][:, None], 0.0)
        self.inverse = np.linalg.pinv(E, rcond=1e-10)  # (rows, m, k)
        self.E = E
        self.free = (self.inverse @ c[:, :, None])[:, :, 0]  # least-norm solution of the equalities
        self.support, self.real = columns, real

    def constraints(
        self, part: np.ndarray, active: np.ndarray, wanted: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        valid = active >= 0
        D = self.anchor[part][:, None, :] - self.keys[np.maximum(active, 0)]  # (rows, w, m)
        b = wanted - np.einsum("rwm,rm->rw", D, self.free[part], optimize=True)
        D = D - (D @ self.inverse[part]) @ self.E[part]
        return D * valid[:, :, None], np.where(valid, b, 0.0), valid

    def first_columns(self, width: int) -> np.ndarray:
        """The columns nearest to the support's mean key: the likeliest to bind."""
        centre = (self.keys[self.support] * self.real[:, :, None]).sum(1)
        new, _ = self._top(np.arange(len(self.rows)), centre, width)
        return new

    def violated(self, todo: np.ndarray, queries: np.ndarray, wanted: float) -> tuple[np.ndarray, np.ndarray]:
        """The ADD worst columns of every row (-1 where satisfied), and the worst violation."""
        floor = np.einsum("rm,rm->r", queries, self.anchor[todo]) - wanted
        columns, values = self._top(todo, queries, ADD)
        excess = values - floor[:, None]
        return np.where(excess > 0, columns, -1), excess.max(1)

    def _top(self, todo: np.ndarray, queries: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        import torch

        q, kt = torch.from_numpy(queries), torch.from_numpy(np.ascontiguousarray(self.keys.T))
        width = min(width, self.target.length)
        columns, values = np.empty((len(todo), width), np.int64), np.empty((len(todo), width))
        for start, local, support in support_tiles(self.target, self.rows[todo], 512):
            z = q[start : start + 512] @ kt  # (512, L)
            z[torch.from_numpy(local), torch.from_numpy(support)] = -torch.inf
            top = torch.topk(z, width, dim=1)
            columns[start : start + 512], values[start : start + 512] = top.indices.numpy(), top.values.numpy()
        columns = np.where(np.isfinite(values), columns, -1)
        if width < ADD:
            pad = ((0, 0), (0, ADD - width))
            columns, values = np.pad(columns, pad, constant_values=-1), np.pad(values, pad, constant_values=-np.inf)
        return columns, values
