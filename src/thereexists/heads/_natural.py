"""Levenberg–Marquardt in the Fisher metric: the end game of descent, where Adam and L-BFGS crawl.

Minimised is ``F(X) = sum_i KL(A_i || p_i)``, ``p_i = softmax(z_i)``, ``z_ij = x_i^T W x_j``. With ``F_i = diag(p_i) -
p_i p_i^T`` (the second derivative of row i's loss in its logits) and ``J_i = dz_i/dX``, the Gauss–Newton matrix is
``H = sum_i J_i^T F_i J_i``. Writing ``K = X W^T``, ``Q = X W`` one has ``dz_ij = K_j·dx_i + Q_i·dx_j``, hence

    H[i, i]  +=  K^T F_i K                                   both factors through x_i
    H[j, j'] +=  delta_jj' sum_i p_ij Q_i Q_i^T  -  sum_i (p_ij Q_i)(p_ij' Q_i)^T     both through x_j, x_j'
    H[i, j]  +=  (K^T F_i)_{:, j} Q_i^T = p_ij (K_j - K^T p_i) Q_i^T                   mixed, and its transpose

A step solves ``(H + lambda (D + mean D / 1000)) s = -grad``, ``D = diag H``; ``lambda`` falls after a step that lowers
the loss and rises otherwise. One iteration costs a Cholesky factorisation of size ``L d``: a fraction of a second at
L d = 2,560, out of reach beyond some thousands (``LARGEST``).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

LARGEST = 6144  # L d above which H (300 MB there) and its factorisation cost more than they give
LOOK = 5  # steps between two looks at the tolerances
PATIENCE = 50  # steps in which the loss must fall by a quarter; a run on its way falls much faster


def levenberg_marquardt(
    X: torch.Tensor,
    W: torch.Tensor,
    A: torch.Tensor,
    steps: int,
    good_enough: Callable[[torch.Tensor], bool],
) -> torch.Tensor:
    """``X (L, d)`` after at most ``steps`` steps that each lower the divergence, or as soon as it is good enough."""
    damping, loss = 1e-3, divergence(X, W, A)
    before = float(loss)
    for step in range(steps):
        if step % LOOK == 0 and good_enough(X):
            break
        if step % PATIENCE == PATIENCE - 1:
            if float(loss) > 0.75 * before:
                break  # stuck beside some row that no small move mends
            before = float(loss)
        H, slope = fisher(X, W), gradient(X, W, A).reshape(-1, 1)
        scale = H.diagonal().clone()
        scale += scale.mean() / 1000
        while damping < 1e8:
            factor, failed = torch.linalg.cholesky_ex(H + torch.diag(damping * scale))
            if not failed:
                trial = X - torch.cholesky_solve(slope, factor).view_as(X)
                reached = divergence(trial, W, A)
                if reached < loss:
                    break
            damping *= 4
        else:
            break  # no step, however short, lowers the loss: a minimum to rounding
        X, loss, damping = trial, reached, max(damping / 3, 1e-14)
    return X


def gradient(X: torch.Tensor, W: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
    """With ``G = softmax(z) - A``: dF/dX = G X W^T + G^T X W. Batched over leading axes."""
    XW = X @ W
    G = torch.softmax(XW @ X.mT, -1) - A
    return G @ (X @ W.mT) + G.mT @ XW


def divergence(X: torch.Tensor, W: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
    entropy = torch.special.entr(A).sum()
    return -(A * torch.log_softmax(X @ W @ X.mT, -1)).sum((-2, -1)) - entropy


def fisher(X: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
    """``H (L d, L d)`` at ``X (L, d)``, as derived above."""
    L, d = X.shape
    K, Q = X @ W.mT, X @ W
    P = torch.softmax(Q @ X.mT, -1)
    mean = P @ K  # (L, d): row i is K^T p_i
    shared = (P[:, :, None] * Q[:, None, :]).reshape(L, L * d)  # row i, column (j, a): p_ij Q_ia
    H = shared.mT @ shared
    H = H.neg_().view(L, d, L, d)
    mixed = P[:, :, None] * (K[None] - mean[:, None])  # (i, j, a)
    mixed = (mixed[:, :, :, None] * Q[:, None, None, :]).transpose(1, 2)  # (i, a, j, b)
    H += mixed
    H += mixed.permute(2, 3, 0, 1)
    own = torch.einsum("ij,ja,jb->iab", P, K, K) - mean[:, :, None] * mean[:, None, :]
    other = torch.einsum("ij,ia,ib->jab", P, Q, Q)
    token = torch.arange(L, device=X.device)
    H[token, :, token, :] += own + other
    return H.view(L * d, L * d)
