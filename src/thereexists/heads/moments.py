"""Moments (beyond the paper): a head of fixed width, whatever the length.

Every token gets a point ``theta_j`` on the torus ``T^s``; its key is ``(cos a·theta_j, sin a·theta_j)`` over the
frequencies ``a in Z^s`` with ``0 < |a|_1 <= D``, one of each pair ``±a``. A query is a trigonometric polynomial
without its constant term (which a softmax does not see), and row ``i`` takes

    p_i(theta) = r_i(theta) - lambda_i F_i(theta),      F_i = product over the blocks of S_i of  f_block(theta) >= 0,

``r_i`` the minimum-norm interpolant of ``log A`` on the support. ``F_i`` vanishes exactly on ``S_i``, so the logits
there are ``log A`` up to a constant; off it ``lambda_i`` pushes them down as far as wanted. The price is
``lambda_i``, hence precision.

- ``s = 1``: ``f = 1 - cos(theta - theta_j)`` for one token, or ``2 sin((theta-a)/2) sin((theta-b)/2)``, non-negative
  on the
  grid, for two neighbours ``a, b`` with nothing between them (Gale's evenness). ``D`` blocks suffice: key width ``m =
  2D``, ``D <= k``, hidden size ``2m <= 4k``. Between zeros ``log F`` is concave (a sum of ``log |sin|``), so its
  minimum over the off-support grid points is attained next to a zero: ``lambda_i`` needs only the neighbours. It
  grows like ``L^2``.
- ``s >= 2``: digits of the token's place in base ``L^(1/s)`` are its ``s`` angles, ``f_j = sum_r (1 - cos(theta_r -
  theta_jr))``,
  ``D = k``; ``lambda_i`` grows like ``L^(2/s)`` only. Width ``m = #{a : 0 < |a|_1 <= k}``: 40 for k = 4, s = 2.

Places on the torus are free: ``places.py`` spreads the tokens of each support apart, or lays them side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from thereexists.heads.matrix import AttentionMatrix
from thereexists.heads.places import blocks_of_rows, clustered_order, spread_order

MARGIN = 0.05


@dataclass(frozen=True, eq=False)
class MomentHead:
    """Queries and keys (L, m) in float64, and the largest ``||q_i||_1``, which sets the precision."""

    queries: np.ndarray
    keys: np.ndarray
    scales: int
    degree: int
    dynamic_range: float


@dataclass(frozen=True, eq=False)
class Torus:
    """Where the tokens stand, and the waves on it: one circle, or several scales of them."""

    digits: np.ndarray  # (L, s) integers in [0, base)
    frequencies: np.ndarray  # (m/2, s)
    base: int  # places on a circle

    @property
    def scales(self) -> int:
        return self.digits.shape[1]

    def features(self) -> np.ndarray:
        """Keys (L, m): cosines then sines of ``2 pi a·digits / base``; the integer phase is reduced before dividing."""
        phase = (self.digits @ self.frequencies.T) % self.base  # exact integers
        angle = 2 * np.pi * phase.astype(np.longdouble) / self.base
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=1).astype(np.float64)


def moment_width(k: int, scales: int = 1) -> int:
    """Key width ``m``: lattice points with ``0 < |a|_1 <= k`` in ``Z^scales`` (cosine and sine for half of them)."""
    return sum(2**j * math.comb(scales, j) * math.comb(k, j) for j in range(1, min(k, scales) + 1))


def place_on_moments(target: AttentionMatrix, *, eps1: float, scales: int = 1, seed: int = 0) -> MomentHead:
    """The head of the module docstring. It always returns; whether float64 carries it, the verifier says."""
    if scales == 1:
        return circle_heads(target, eps1=eps1, seed=seed)[0]
    return _torus(target, eps1, scales, seed)


def circle_heads(target: AttentionMatrix, *, eps1: float, seed: int = 0) -> list[MomentHead]:
    """One head per order of the tokens: smaller degree first, and more degree only for less precision."""
    orders = (np.arange(target.length), clustered_order(target), spread_order(target, seed))
    heads = [_circle_head(target, order, *blocks_of_rows(target, order), eps1) for order in orders]
    heads.sort(key=lambda head: (head.degree, head.dynamic_range))
    best = [heads[0]]
    for head in heads[1:]:
        if head.dynamic_range < best[-1].dynamic_range:
            best.append(head)
    return best


def _circle_head(
    target: AttentionMatrix, place: np.ndarray, left: np.ndarray, right: np.ndarray, eps1: float
) -> MomentHead:
    L, degree = target.length, left.shape[1]
    step = 2 * np.pi / np.longdouble(L)
    torus = Torus(place[:, None], np.arange(1, degree + 1)[:, None], L)
    F = _block_product(left, right, step)  # (L, 2D + 1) Fourier coefficients, n = -D..D
    smallest = _smallest_beside_zero(target, place, left, right, float(step))
    bump = -2 * F[:, degree + 1 :]  # coefficients of -F: (Re, -Im) against (cos, sin)
    return _assemble(target, torus, bump, smallest, eps1, degree)


def _torus(target: AttentionMatrix, eps1: float, scales: int, seed: int) -> MomentHead:
    L, k = target.length, target.k_row
    base = math.ceil(round(L ** (1 / scales), 9))
    place = spread_order(target, seed, base, scales)
    digits = np.stack([place // base**r % base for r in range(scales)], axis=1)  # (L, s)
    torus = Torus(digits, np.array(half_lattice(k, scales)), base)
    coefficients, constant = _torus_product(target, torus)
    bump = -2 * coefficients
    smallest = _smallest_streamed(target, torus, bump, constant)
    return _assemble(target, torus, bump, smallest, eps1, k)


def half_lattice(k: int, scales: int) -> list[tuple[int, ...]]:
    """One of ``±a`` for every ``a`` in ``Z^scales`` with ``0 < |a|_1 <= k``: first non-zero coordinate positive."""
    points = (a for a in product(range(-k, k + 1), repeat=scales) if 0 < sum(map(abs, a)) <= k)
    return [a for a in points if next(x for x in a if x) > 0]


def _assemble(
    target: AttentionMatrix, torus: Torus, bump: np.ndarray, smallest: np.ndarray, eps1: float, degree: int
) -> MomentHead:
    """Interpolant plus ``lambda`` times bump, then one refinement against the rounded keys."""
    keys = torus.features()
    push = np.concatenate(
        [np.real(bump), -np.imag(bump)], axis=1
    )  # (L, m) longdouble; its logits are F(own zeros)=0 minus F
    columns, log_values, real = target.padded()
    values = log_values - np.where(real, log_values, 0).sum(1, keepdims=True) / real.sum(1, keepdims=True)
    interpolant = _interpolate(keys, columns, np.where(real, values, 0.0), real)
    lowest = np.where(real, values, np.inf).min(1)
    # r <= ||r||_1 everywhere, every feature being at most 1 in size.
    headroom = -math.log(eps1) + MARGIN + np.abs(interpolant).sum(1) - lowest
    # Rounding moves a logit by about m·u·lambda·||push||_1: ask for that much more height as well.
    loss = 4 * (push.shape[1] + 2) * 2.0**-53 * np.abs(push).sum(1)
    height = headroom / np.maximum(smallest - loss, smallest / 2)
    queries = interpolant + height[:, None] * push
    for _ in range(2):
        logits = np.einsum("rm,rkm->rk", queries, keys[columns].astype(np.longdouble))
        error = np.where(real, logits - values, 0)
        error -= np.where(real, error.sum(1, keepdims=True) / real.sum(1, keepdims=True), 0)
        queries = (queries - _interpolate(keys, columns, error, real)).astype(np.float64).astype(np.longdouble)
    queries = queries.astype(np.float64)
    return MomentHead(queries, keys, torus.scales, degree, float(np.abs(queries).sum(1).max()))


def _interpolate(keys: np.ndarray, columns: np.ndarray, values: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Minimum-norm vectors with the given logits on the support (filler slots decoupled)."""
    own = keys[columns] * real[:, :, None]
    gram = own @ own.transpose(0, 2, 1)
    slots = np.arange(columns.shape[1])
    gram[:, slots, slots] += ~real
    # Supports crowded on a short arc have a near-singular Gram matrix; the pseudo-inverse keeps r small there.
    coefficients = np.linalg.pinv(gram, rcond=1e-14, hermitian=True) @ values.astype(np.float64)[:, :, None]
    return (own.transpose(0, 2, 1) @ coefficients)[:, :, 0].astype(np.longdouble)


def _block_product(left: np.ndarray, right: np.ndarray, step: np.longdouble) -> np.ndarray:
    """Fourier coefficients of ``prod (cos((a-b)/2) - cos(theta - (a+b)/2))`` for every row, by D short convolutions."""
    L, degree = left.shape
    F = np.zeros((L, 2 * degree + 1), dtype=np.clongdouble)
    F[:, degree] = 1
    for b in range(degree):
        present = left[:, b] >= 0
        middle, half = (left[:, b] + right[:, b]) * step / 2, (right[:, b] - left[:, b]) * step / 2
        up = np.where(present, -0.5 * np.exp(-1j * middle.astype(np.clongdouble)), 0)[:, None]  # of e^{+i theta}
        centre = np.where(present, np.cos(half), 1)[:, None]
        G = centre * F
        G[:, 1:] += up * F[:, :-1]
        G[:, :-1] += np.conj(up) * F[:, 1:]
        F = G
    return F


def _smallest_beside_zero(
    target: AttentionMatrix, place: np.ndarray, left: np.ndarray, right: np.ndarray, step: float
) -> np.ndarray:
    """min of F over the off-support grid points: they are next to a zero (docstring). Products, not differences."""
    L = target.length
    columns, _, real = target.padded()
    own = np.where(real, place[columns], -1)  # (L, k)
    beside = np.concatenate([(own + 1) % L, (own - 1) % L], axis=1)  # (L, 2k)
    taken = (beside[:, :, None] == own[:, None, :]).any(2) | np.concatenate([~real, ~real], axis=1)
    value = np.ones(beside.shape)
    for b in range(left.shape[1]):
        a, c = left[:, b : b + 1], right[:, b : b + 1]
        factor = 2 * np.sin((beside - a) * step / 2) * np.sin((beside - c) * step / 2)
        value *= np.where(a >= 0, np.abs(factor), 1.0)
    smallest = np.where(taken, np.inf, value).min(1)
    return np.where(np.isfinite(smallest), smallest, 1.0)  # a full row has nothing to push down


def _torus_product(target: AttentionMatrix, torus: Torus) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of ``prod_{j in S} sum_r (1 - cos(theta_r - theta_jr))`` on the half lattice; the constant."""
    columns, _, real = target.padded()
    L, k = columns.shape
    digits, base, scales = torus.digits, torus.base, torus.scales
    shape = (2 * k + 1,) * scales
    F = np.zeros((L, *shape), dtype=np.complex128)
    F[(slice(None), *(k,) * scales)] = 1
    for j in range(k):
        here = real[:, j].reshape(-1, *(1,) * scales)
        G = scales * F
        for r in range(scales):
            up = -0.5 * np.exp(-2j * np.pi * digits[columns[:, j], r] / base).reshape(-1, *(1,) * scales)
            G = G + up * np.roll(F, 1, axis=r + 1) + np.conj(up) * np.roll(F, -1, axis=r + 1)
        F = np.where(here, G, F)
    picked = F[(slice(None), *(torus.frequencies[:, r] + k for r in range(scales)))]
    return picked, np.real(F[(slice(None), *(k,) * scales)])


def _smallest_streamed(target: AttentionMatrix, torus: Torus, bump: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """min of F over the off-support tokens, from its coefficients, in tiles."""
    from thereexists.heads.scan import off_support_maximum

    push = np.concatenate([np.real(bump), -np.imag(bump)], axis=1)
    top = off_support_maximum(push, torus.features(), target)  # max of -(F - constant)
    smallest = constant - top
    floor = 2.0**-40 * np.abs(push).sum(1)  # below this, float64 cannot tell F from 0 anyway
    return np.where(np.isfinite(smallest), np.maximum(smallest, floor), 1.0)
