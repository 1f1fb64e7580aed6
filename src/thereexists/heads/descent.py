"""Descent: let one vector per token be query and key at once, and find it by minimising the cross-entropy.

The other methods keep query and key in separate halves of ``X``, so a head of width ``m`` costs a hidden size of
``2m``. Nothing in the problem asks for that: with a *fixed* invertible ``W = W_Q W_K^T`` the logits ``x_i^T W x_j``
reach rank ``d``, and every coordinate serves both sides. No theorem says when the search below succeeds; a result
stands on the verification alone, and a failure proves nothing.

``W_K = I`` and ``W_Q`` is block-diagonal: plane rotations by the angles ``pi (q + 1/2) / floor(d/2)``, ``q = 0, 1, ..``
(and a last 1 when ``d`` is odd). A symmetric ``W`` would force ``z_ij = z_ji``, a skew one ``z_ii = 0``; rotations by
spread angles are neither. The loss ``sum_i KL(A_i || softmax(z_i))`` vanishes in the limit only for the wanted head.

Adam finds the basin, Levenberg–Marquardt (``_natural``) its bottom. A step of Adam costs O(restarts · L² · d), L×L
arrays included: a tool for short sequences (L up to about 2,000).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from thereexists.core.errors import CannotBuild
from thereexists.core.plain_numbers import of_63_bits
from thereexists.heads._natural import LARGEST, divergence, gradient, levenberg_marquardt
from thereexists.heads.matrix import AttentionMatrix

LONGEST = 2048
ROUND = 1000  # iterations of L-BFGS between two looks at the tolerances
PER_STEP = 50  # iterations of L-BFGS granted for one step of Levenberg–Marquardt


def rotation_weights(d: int) -> torch.Tensor:
    """The fixed ``W_Q`` (d, d); ``W_K`` is the identity."""
    W = torch.zeros(d, d, dtype=torch.float64)
    planes = d // 2
    for q in range(planes):
        angle = math.pi * (q + 0.5) / planes
        c, s = math.cos(angle), math.sin(angle)
        W[2 * q : 2 * q + 2, 2 * q : 2 * q + 2] = torch.tensor([[c, s], [-s, c]], dtype=torch.float64)
    if d % 2:
        W[-1, -1] = 1.0
    return W


@dataclass(frozen=True)
class Search:
    """How long to look: ``restarts`` runs of Adam of so many ``steps``, then ``polish`` steps to the bottom."""

    restarts: int = 8
    steps: int = 2000
    polish: int = 100
    rate: float = 0.03  # of Adam, at its peak


def descend(
    target: AttentionMatrix,
    d: int,
    *,
    eps1: float,
    eps2: float,
    search: Search = Search(),
    seed: int = 0,
    device: str = "cpu",
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """``X (L, d)``, ``W_Q``, ``W_K``: the best of some runs of Adam, then some steps to the bottom."""
    L = target.length
    if L > LONGEST:
        raise CannotBuild(
            f"Descent works on L×L arrays and is limited to L = {LONGEST}. Got L = {L}; use another method."
        )
    A = torch.zeros(L, L, dtype=torch.float64)
    rows, columns = torch.from_numpy(target.rows()), torch.tensor(target.indices)
    A[rows, columns] = torch.from_numpy(target.probabilities())
    A = A.to(device)
    W = rotation_weights(d).to(device)
    generator = torch.Generator().manual_seed(of_63_bits(seed))
    X = (0.5 * torch.randn(search.restarts, L, d, generator=generator, dtype=torch.float64)).to(device)
    X = _adam(X, W, A, search.steps, search.rate)
    order = divergence(X, W, A).argsort()
    best = X[order[0]]
    for candidate in order[: min(3, search.restarts)].tolist():
        if L * d <= LARGEST:
            best = levenberg_marquardt(X[candidate], W, A, search.polish, lambda x: _slack(x, W, A, eps1, eps2) > 0)
        else:
            best = _lbfgs(X[candidate].cpu(), W.cpu(), A.cpu(), eps1, eps2, PER_STEP * search.polish)
        if _slack(best, W.to(best.device), A.to(best.device), eps1, eps2) > 0:
            break
    return best.cpu(), W.cpu(), torch.eye(d, dtype=torch.float64)


def _adam(X: torch.Tensor, W: torch.Tensor, A: torch.Tensor, steps: int, rate: float) -> torch.Tensor:
    first, second = torch.zeros_like(X), torch.zeros_like(X)
    for s in range(1, steps + 1):
        grad = gradient(X, W, A)
        first.mul_(0.9).add_(grad, alpha=0.1)
        second.mul_(0.999).addcmul_(grad, grad, value=0.001)
        now = rate * min(1.0, s / 200) * (0.5 * (1 + math.cos(math.pi * s / steps)) + 1e-3)
        X = X - now * (first / (1 - 0.9**s)) / ((second / (1 - 0.999**s)).sqrt() + 1e-12)
    return X


def _slack(X: torch.Tensor, W: torch.Tensor, A: torch.Tensor, eps1: float, eps2: float) -> float:
    """How far inside the tolerances the head is, on the log scale, a little room for rounding already taken off."""
    z = X @ W @ X.mT
    on = A > 0
    offset = torch.where(on, z - torch.log(torch.where(on, A, 1.0)), 0.0)
    spread = torch.where(on, offset, -math.inf).amax(-1) - torch.where(on, offset, math.inf).amin(-1)
    gap = torch.where(on, -math.inf, z).amax(-1) - torch.where(on, z, math.inf).amin(-1)
    room = torch.minimum(math.log(eps1) - gap - 0.01, 0.9 * math.log1p(eps2) - spread)
    return float(room.min())


def _lbfgs(
    X: torch.Tensor, W: torch.Tensor, A: torch.Tensor, eps1: float, eps2: float, iterations: int
) -> torch.Tensor:
    """For long targets: L-BFGS on the same loss, in rounds, until both tolerances hold with room to spare."""
    import numpy as np
    from scipy.optimize import minimize

    shape, entropy = X.shape, float(torch.special.entr(A).sum())
    rate, weight = A.numpy(), W.numpy()

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        x = flat.reshape(shape)
        xw = x @ weight
        z = xw @ x.T
        z -= z.max(1, keepdims=True)
        e = np.exp(z)
        total = e.sum(1, keepdims=True)
        G = e / total - rate
        return float(-(rate * (z - np.log(total))).sum() - entropy), (G @ (x @ weight.T) + G.T @ xw).ravel()

    point = X.numpy().ravel()
    for _ in range(max(1, iterations // ROUND)):
        if _slack(torch.from_numpy(point.reshape(shape)), W, A, eps1, eps2) > 0:
            break
        options = {"maxiter": ROUND, "maxfun": 2 * ROUND, "maxcor": 60, "ftol": 1e-16, "gtol": 1e-13}
        result = minimize(loss, point, jac=True, method="L-BFGS-B", options=options)
        point = result.x
        if result.nit < ROUND // 50:
            break
    return torch.from_numpy(point.reshape(shape).copy())
