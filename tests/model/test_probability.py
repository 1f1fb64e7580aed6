"""Probability maps against the ``entmax`` package and Assumption 2; a map that breaks it must be caught."""

import math
from dataclasses import dataclass

import pytest
import torch

from thereexists.core.errors import InvalidInput
from thereexists.model.probability import PROBABILITY_MAPS, Entmax, Softmax, check_assumption2, probability_map

MAPS = [*PROBABILITY_MAPS.values(), Entmax(1.2), Entmax(3.0)]
EPS = torch.finfo(torch.float64).eps


def logits(seed=0, shape=(64, 9), scale=3.0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale


@pytest.mark.parametrize("rho", MAPS, ids=lambda rho: rho.name)
def test_values_lie_in_the_simplex_and_masked_entries_are_exactly_zero(rho):
    v = logits()
    v[:, 2], v[5, 3:] = -torch.inf, -torch.inf
    p = rho(v)
    assert (p >= 0).all()
    assert (p[v == -torch.inf] == 0).all()
    assert (p.sum(-1) - 1).abs().max() <= 4 * v.shape[-1] * EPS
    assert torch.equal(p.argmax(-1), v.argmax(-1))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rho", MAPS, ids=lambda rho: rho.name)
@pytest.mark.parametrize("n", [1, 2, 17])
def test_assumption_2_with_the_stated_temperature(rho, n):
    assert rho.assumption2()
    for zeta in (1e-3, 0.5, 40.0):
        for eta in (1e-9, 0.1, 0.9, 1.0):
            assert check_assumption2(rho, zeta, eta, n)


def test_softmax_needs_no_smaller_order_of_temperature():
    """The stated t is tight: at the worst v, 1 % less fails."""
    zeta, eta, n = 0.5, 1e-4, 50
    t = Softmax().temperature(zeta, eta, n) * 0.99
    v = torch.full((n,), -zeta, dtype=torch.float64)
    v[0] = 0
    assert Softmax()(t * v)[0] < 1 - eta


def test_a_map_that_breaks_assumption_2_is_caught():
    @dataclass(frozen=True)
    class Lazy(Softmax):
        def temperature(self, zeta, eta, n):
            return 0.5 * super().temperature(zeta, eta, n)

    assert check_assumption2(Lazy(), 0.1, 1e-6, 10).holds is False


def test_hardmax_ties_share():
    p = PROBABILITY_MAPS["hardmax"](torch.tensor([1.0, 3.0, 3.0, -torch.inf]))
    assert p.tolist() == [0, 0.5, 0.5, 0]


def test_against_the_entmax_package():
    entmax = pytest.importorskip("entmax")
    v = logits(3, (200, 12))
    # Bisection in both: the threshold is known to about 1e-15, and p = (x−τ)^{1/(α−1)} has slope ≤ 1/(α−1) there.
    for ours, theirs in (
        (PROBABILITY_MAPS["sparsemax"], lambda v: entmax.sparsemax(v, dim=-1)),
        (Entmax(1.5), lambda v: entmax.entmax15(v, dim=-1)),
        (Entmax(1.2), lambda v: entmax.entmax_bisect(v, alpha=1.2, dim=-1, n_iter=80)),
        (Entmax(2.0), lambda v: entmax.sparsemax(v, dim=-1)),
        (Entmax(3.0), lambda v: entmax.entmax_bisect(v, alpha=3.0, dim=-1, n_iter=80)),
    ):
        a, b = v.clone().requires_grad_(), v.clone().requires_grad_()
        p, q = ours(a), theirs(b)
        # steepest for α > 2: p changes like sqrt of the threshold where an entry is about to vanish
        alpha = getattr(ours, "alpha", 2.0)
        tolerance = (64 * 12 * EPS) ** min(1.0, 1 / (alpha - 1))
        assert (p - q).abs().max() <= tolerance, ours.name
        weight = logits(4, (200, 12), 1.0)
        (p * weight).sum().backward()
        (q * weight).sum().backward()
        if alpha <= 2:
            assert (a.grad - b.grad).abs().max() <= 12 * weight.abs().max() * math.sqrt(64 * 12 * EPS), ours.name


@pytest.mark.parametrize("rho", [PROBABILITY_MAPS["sparsemax"], Entmax(1.5)], ids=lambda rho: rho.name)
def test_gradients(rho):
    v = logits(9, (4, 5), 0.3).requires_grad_()
    assert torch.autograd.gradcheck(rho, (v,))


def test_bad_input():
    with pytest.raises(InvalidInput, match="alpha > 1"):
        Entmax(1.0)
    with pytest.raises(InvalidInput, match="no probability map"):
        probability_map("argmax")
    with pytest.raises(InvalidInput, match="zeta > 0"):
        Softmax().temperature(0.0, 0.5, 3)


@pytest.mark.parametrize("name", PROBABILITY_MAPS)
def test_what_is_no_number_gives_none_and_no_error(name):
    """Overflow inside a network ends here: every map says so alike."""
    for bad in (torch.nan, torch.inf):
        v = torch.tensor([[0.5, bad, 0.25], [0.5, 0.25, 0.0]], dtype=torch.float64)
        p = PROBABILITY_MAPS[name](v)
        assert name == "hardmax" or p[0].isnan().any()
        assert p[1].isfinite().all()
