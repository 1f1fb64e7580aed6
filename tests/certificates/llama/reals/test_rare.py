"""Forged programs that go wrong at one corner of the box only, where no random input comes: the proof must notice."""

import dataclasses

import numpy as np
import pytest

from thereexists.core.errors import CannotBuild, NotProved

pytest.importorskip("transformers")
from tests.certificates.llama.reals.real_programs import Nodes, checkpoint_of, model_of
from thereexists.certificates.llama.reals.claim import RealClaim, real_claim
from thereexists.certificates.llama.reals.proof import prove_reals

K = 32  # features; at the corner of all ones, and near it, ReLU(Σ − 31.5) is not 0


def rare(n):
    nodes = Nodes()
    x = nodes.put("tokens", [], K, d=K, low=0.0, high=1.0, shorter=False)
    one = nodes.put("constant", [], array=[[1.0]] * n)
    total = nodes.put("linear", [nodes.put("mix", [x], matrix=[[1.0] * K]), one], coefficients=[1.0, 0.5 - K])
    return nodes, x, nodes.put("relu", [total])


def small_and_large_again():
    """A flag that underflows on the way and comes back: in float64 its range would be 0 for good."""
    nodes, x, flag = rare(2)
    for c in (2.0**-600, 2.0**-600, 2.0**601, 2.0**600):
        flag = nodes.put("linear", [flag], coefficients=[c])
    first = nodes.put("mix", [x], matrix=[[1.0] + [0.0] * (K - 1)])
    other = nodes.put("linear", [first], coefficients=[-1.0])
    nodes.put("where", [flag, first, other], bottom=-1.0, height=2.0)
    return 2, nodes


def far_ends_of_where():
    """Ends so large that what they cut off is lost in float64."""
    nodes, _, r = rare(3)
    flag = nodes.put("constant", [], array=[[1.0], [0.0], [1.0]])
    nodes.put("where", [flag, nodes.put("linear", [r], coefficients=[-1.0]), r], bottom=-(2.0**60), height=2.0**60)
    return 3, nodes


@pytest.mark.parametrize(("forged", "wanted"), [(small_and_large_again, [1, 1]), (far_ends_of_where, [0, 0.5, 0])])
def test_the_bound_holds_at_the_corner_or_is_refused(forged, wanted):
    """``wanted`` is worked out by hand: in float64 the program would underflow, too."""
    n, nodes = forged()
    try:
        claim = real_claim({"n": n, "nodes": list(nodes)})
        bound = prove_reals(checkpoint_of(claim), "float32").bound
    except (NotProved, CannotBuild):
        return
    model = model_of(claim, "float32")
    E = model.model.embed_tokens.weight[:n].detach().clone()[None]
    E[..., claim.network.inputs] = 1.0
    assert np.abs(model(inputs_embeds=E).logits[0, :, 0].detach().numpy() - wanted).max() <= bound


@pytest.fixture
def taken():
    """Three features of the first token, by one head."""
    nodes = Nodes()
    x = nodes.put("tokens", [], 3, d=3, low=0.0, high=1.0, shorter=False)
    nodes.put("take", [x], 3, source=[0, 0], called="take")
    return checkpoint_of(real_claim({"n": 2, "nodes": list(nodes)}))


def test_heads_of_another_size_are_refused(taken):
    """In small heads the third slot would lie in the next head, which looks at all tokens."""
    assert prove_reals(taken, "float32").bound < 0.01
    small = dataclasses.replace(taken.shape, head_size=2, heads=2, key_heads=2)
    with pytest.raises(NotProved, match="size 64"):
        prove_reals(dataclasses.replace(taken, shape=small), "float32")


@pytest.mark.parametrize("power", [-74, -64, -1])
def test_a_small_constant_is_refused(taken, power):
    """Its square would be flushed to 0, and the norm infinite."""
    weights = {name: weight.clone() for name, weight in taken.weights.items()}
    weights["model.embed_tokens.weight"][:, 0] = 2.0**power
    with pytest.raises(NotProved, match="power of two, 1 to"):
        prove_reals(dataclasses.replace(taken, weights=weights), "float32")


def test_the_sentence_says_ends_and_bounds_as_they_are():
    """Rounded ones would claim more: a wider box, a smaller bound."""
    nodes = Nodes()
    nodes.put("tokens", [], d=1, low=-1.0, high=0.9999996, shorter=False)
    said = RealClaim({"n": 1, "nodes": list(nodes)}, {"float32": 1.0044840557448558}).sentence()
    assert "without padding, each of them a number from -1.0 to 0.9999996, rounded to the dtype" in said
    assert "at most 1.0044840557448558 in float32" in said


def test_many_splines_are_refused_in_time():
    """Features of one range are enclosed once; of a hundred ranges, each costs its knots."""
    nodes, S = Nodes(), 100
    x = nodes.put("tokens", [], S, d=S, low=0.0, high=1.0, shorter=False)
    knots = np.linspace(0.0, 1.0, 1000).tolist()
    spline = {"function": "sin", "knots": knots, "values": [0.5] * 1000}
    alike = Nodes(nodes)
    alike.put("apply", [x], S, **spline)
    real_claim({"n": 2, "nodes": list(alike)})
    other = nodes.put("mix", [x], S, matrix=np.diag(1 - np.arange(S) / (2 * S)).tolist())
    nodes.put("apply", [other], S, **spline)
    with pytest.raises(CannotBuild, match="coefficients"):
        real_claim({"n": 2, "nodes": list(nodes)})
