"""Nothing is claimed of a network any longer once its weights were changed in place."""

import numpy as np
import pytest
import torch

import thereexists as te
from thereexists.program import symbols, tokens

P = te.program


def _turn(q, a):
    return (q + (a == "a")) % 3


KINDS = {
    "faithful": lambda: te.build(te.targets.builtin("sort", n=2), epsilon=0.4),
    "compact": lambda: te.build(te.targets.builtin("sort", n=2), epsilon=0.4, construction="compact"),
    "program": lambda: te.build(P.sort(tokens(n=2))),
    "symbols": lambda: te.build(symbols("ab", n=3).sort()),
    "automaton": lambda: te.build(te.automata.regex("(ab)*", alphabet="ab"), n=4),
    "counting": lambda: te.build(te.automata.from_function(_turn, start=0, alphabet="ab", accept=[0]), n=4),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_weight_ends_every_claim(kind, tmp_path):
    witness = KINDS[kind]()
    assert witness.certificate is not None
    assert "float64" in witness.safe()
    told = repr(witness)
    with torch.no_grad():
        for weight in witness.network.parameters():
            weight.mul_(3.0)
    assert witness.certificate is None
    if kind != "faithful":
        assert witness.safe() == ()
        with pytest.raises(te.ThereExistsError):
            witness.to("float32")
        with pytest.raises(te.ThereExistsError):
            te.export(witness, "torch", tmp_path / "t")
    if kind in ("program", "symbols"):
        assert repr(witness) != told
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds is not True


def safe_in_words(witness):
    described = witness.describe()
    return tuple(described["safe"] if "safe" in described else described["sizes"]["safe"])


@pytest.mark.parametrize("kind", ["compact", "program", "symbols", "automaton", "counting"])
def test_a_description_names_the_dtypes_that_are_safe_now(kind, tmp_path):
    witness = KINDS[kind]()
    converted = witness.to("float32")
    witness.save(tmp_path / "w")
    loaded = te.load(tmp_path / "w")
    for one in (witness, converted, loaded, te.load(tmp_path / "w", "float32")):
        assert tuple(one.blocks()["safe"]) == safe_in_words(one) == one.safe() != ()
    with torch.no_grad():
        for weight in converted.network.parameters():
            weight.mul_(3.0)
    assert tuple(converted.blocks()["safe"]) == safe_in_words(converted) == converted.safe()


def test_a_converted_network_says_why_it_is_safe_in_no_other_dtype():
    found = KINDS["compact"]().to("float32").verdicts()
    assert found["float32"].holds
    assert found["float64"].holds is None
    assert "load it again" in found["float64"].reasons[0]


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_of_an_optimizer_ends_it_too(fused):
    """Torch does not count what a fused step changes."""
    witness, other = KINDS["program"](), KINDS["faithful"]()
    X = np.random.default_rng(0).random((50, 2, 1))
    before = other(X, engine="skip")
    assert witness.certificate is not None
    assert other.certificate is not None
    weights = [*witness.network.parameters(), *other.network.parameters()]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    torch.optim.SGD(weights, lr=0.05, fused=fused).step()
    assert witness.certificate is None
    assert other.certificate is None
    after = other(X, engine="skip")
    assert np.array_equal(after, other(X, engine="reference"))
    assert not np.array_equal(after, before)
