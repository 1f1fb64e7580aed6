"""Probability maps ρ on the last axis, and Assumption 2 of paper B for each of them, with the t that achieves it.

**Assumption 2.** For all ζ > 0 and η ∈ (0, 1] there is t > 0 such that every v with ``v_{j*} − max_{j≠j*} v_j ≥ ζ`` has
``ρ[t v]_{j*} ≥ 1 − η``.

- softmax: the others weigh at most ``(n−1) e^{−tζ}`` together against 1, so ``t = log((n−1)(1−η)/η)/ζ`` suffices.
- sparsemax (Martins and Astudillo 2016): ``p_j = max(v_j − τ, 0)``. With a gap ≥ 1 the threshold τ = v_{j*} − 1 leaves
  only j*, so ``t = 1/ζ`` gives a one-hot, for every η.
- α-entmax (Peters et al. 2019), α > 1: ``p_j = max((α−1) v_j − τ, 0)^{1/(α−1)}``. The same argument with τ =
  (α−1) v_{j*} − 1: a gap ≥ 1/(α−1) gives a one-hot, ``t = 1/((α−1) ζ)``; α = 2 is sparsemax, α → 1 is softmax.
- hardmax (the maximisers share the mass): one-hot for every gap, so any t > 0 does; t = 1.

``-inf`` entries get probability exactly 0 in all of them: that is how a pattern enters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import of_63_bits
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_down
from thereexists.core.verdict import Verdict


class ProbabilityMap(ABC):
    """A map ρ from scores to probabilities along the last axis; ``te.patterns.PROBABILITY_MAPS`` lists them.

        te.patterns.PROBABILITY_MAPS["sparsemax"](torch.tensor([2.0, 1.5, -3.0]))  # 0.75, 0.25, 0

    Attributes:
        name: what it is called.
    """

    name: str

    @abstractmethod
    def __call__(self, v: Tensor) -> Tensor: ...

    @abstractmethod
    def temperature(self, zeta: float, eta: float, n: int) -> float:
        """The t of Assumption 2 for n entries."""

    def assumption2(self) -> Verdict:
        """Assumption 2 holds; the evidence is the function ``t(ζ, η, n)``."""
        return Verdict(True, (f"{self.name}: {self.because()}",), self.temperature)

    @abstractmethod
    def because(self) -> str: ...


@dataclass(frozen=True)
class Softmax(ProbabilityMap):
    name: str = "softmax"

    def __call__(self, v: Tensor) -> Tensor:
        return torch.softmax(v, dim=-1)

    def temperature(self, zeta: float, eta: float, n: int) -> float:
        _check_gap(zeta, eta, n)
        odds = (n - 1) * (1 - eta) / eta
        return math.log(odds) / zeta if odds > math.e else 1 / zeta  # any t > 0 does when the odds are below 1

    def because(self) -> str:
        return "t = log((n−1)(1−η)/η)/ζ, since the others weigh at most (n−1)e^{−tζ} against 1"


@dataclass(frozen=True)
class Hardmax(ProbabilityMap):
    name: str = "hardmax"

    def __call__(self, v: Tensor) -> Tensor:
        top = v == v.amax(dim=-1, keepdim=True)
        return top.to(v.dtype) / top.sum(dim=-1, keepdim=True)

    def temperature(self, zeta: float, eta: float, n: int) -> float:
        _check_gap(zeta, eta, n)
        return 1.0

    def because(self) -> str:
        return "t = 1, since a unique maximiser gets all the mass at any temperature"


@dataclass(frozen=True)
class Sparsemax(ProbabilityMap):
    name: str = "sparsemax"

    def __call__(self, v: Tensor) -> Tensor:
        # p = max(v − τ, 0) with Σp = 1: sort, the support is the longest prefix with 1 + r v_(r) > Σ_{i≤r} v_(i)
        shifted = v - v.amax(dim=-1, keepdim=True).detach()
        ordered = shifted.sort(dim=-1, descending=True).values
        finite = ordered.masked_fill(ordered == -torch.inf, -4.0)  # entries 1 below the maximum never matter
        sums = finite.cumsum(dim=-1)
        rank = torch.arange(1, v.shape[-1] + 1, dtype=v.dtype, device=v.device)
        inside = (1 + rank * finite > sums) & (ordered > -torch.inf)
        size = inside.sum(dim=-1, keepdim=True).clamp(min=1)  # 0 where a logit is no number; then no weight is one
        tau = (sums.gather(-1, size - 1) - 1) / size
        return (shifted - tau).clamp(min=0)

    def temperature(self, zeta: float, eta: float, n: int) -> float:
        _check_gap(zeta, eta, n)
        return 1 / zeta

    def because(self) -> str:
        return "t = 1/ζ, since a gap of 1 makes it one-hot"


@dataclass(frozen=True)
class Entmax(ProbabilityMap):
    """α-entmax for α > 1, by bisection on the threshold, to the last bit of the dtype; its own backward pass."""

    alpha: float = 1.5

    def __post_init__(self) -> None:
        if not 1 < self.alpha < math.inf:
            raise InvalidInput(f"alpha-entmax needs a finite alpha > 1 (1 is softmax); got {self.alpha}.")

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{in_full(self.alpha)}-entmax"

    def __call__(self, v: Tensor) -> Tensor:
        return _EntmaxFunction.apply(v, self.alpha)

    def temperature(self, zeta: float, eta: float, n: int) -> float:
        _check_gap(zeta, eta, n)
        return 1 / ((self.alpha - 1) * zeta)

    def because(self) -> str:
        return "t = 1/((α−1)ζ), since a gap of 1/(α−1) makes it one-hot"


class _EntmaxFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v: Tensor, alpha: float) -> Tensor:  # type: ignore[override]
        x = (alpha - 1) * v
        x = x - x.amax(dim=-1, keepdim=True)
        # Σ max(x − τ, 0)^{1/(α−1)} falls with τ: at τ = −1 the maximum alone gives 1, at τ = 0 nothing is left.
        low = torch.full_like(x[..., :1], -1.0)
        high = torch.zeros_like(low)
        power = 1 / (alpha - 1)
        for _ in range(64 if v.dtype == torch.float64 else 32):
            middle = (low + high) / 2
            heavy = (x - middle).clamp(min=0).pow(power).sum(dim=-1, keepdim=True) >= 1
            low, high = torch.where(heavy, middle, low), torch.where(heavy, high, middle)
        p = (x - low).clamp(min=0).pow(power)
        p = p / p.sum(dim=-1, keepdim=True)
        ctx.save_for_backward(p)
        ctx.alpha = alpha
        return p

    @staticmethod
    def backward(ctx, grad: Tensor):  # type: ignore[override]
        # Jacobian: diag(s) − s sᵀ/Σs with s = p^{2−α} on the support, 0 elsewhere.
        (p,) = ctx.saved_tensors
        s = torch.where(p > 0, p.clamp(min=torch.finfo(p.dtype).tiny).pow(2 - ctx.alpha), torch.zeros_like(p))
        mean = (grad * s).sum(dim=-1, keepdim=True) / s.sum(dim=-1, keepdim=True)
        return s * (grad - mean), None


PROBABILITY_MAPS: dict[str, ProbabilityMap] = {
    "softmax": Softmax(),
    "hardmax": Hardmax(),
    "sparsemax": Sparsemax(),
    "entmax15": Entmax(1.5),
}


def probability_map(rho: str | ProbabilityMap) -> ProbabilityMap:
    """By name, or as given."""
    if isinstance(rho, ProbabilityMap):
        return rho
    if rho not in PROBABILITY_MAPS:
        raise InvalidInput(f"There is no probability map '{rho}'. Known: {', '.join(PROBABILITY_MAPS)}, Entmax(alpha).")
    return PROBABILITY_MAPS[rho]


def check_assumption2(
    rho: ProbabilityMap, zeta: float, eta: float, n: int, samples: int = 256, seed: int = 0
) -> Verdict:
    """Try to refute the stated t: the worst v has all others exactly ζ below; random ones are below that."""
    t = rho.temperature(zeta, eta, n)
    generator = torch.Generator().manual_seed(of_63_bits(seed))
    v = -zeta - torch.rand(samples, n, generator=generator, dtype=torch.float64) * zeta
    v[0] = -zeta
    v[:, 0] = 0
    lowest = float(rho(t * v)[:, 0].min())
    slack = 8 * n * torch.finfo(torch.float64).eps  # one rounding a term in the normalising sum
    holds = lowest >= 1 - eta - slack
    return Verdict(
        holds,
        (f"t = {in_full(t)}: the maximiser gets at least {rounded_down(lowest, 6)}, wanted {in_full(1 - eta)}",),
        t,
    )


def _check_gap(zeta: float, eta: float, n: int) -> None:
    if not zeta > 0 or not 0 < eta <= 1 or n < 1:
        raise InvalidInput(f"Assumption 2 takes zeta > 0, eta in (0, 1] and n ≥ 1; got {zeta}, {eta}, {n}.")
