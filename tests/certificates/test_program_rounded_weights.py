"""Weights that are rounded coefficients: the verifier follows them, and what it overlooks is part of the bound."""

import numpy as np
import pytest
import torch
from flint import fmpq

import thereexists as te
from tests.hostile import forge_weights
from tests.program.cases import inputs
from thereexists import program as P
from thereexists.certificates.program_bound import Refuted, compare
from thereexists.certificates.program_certificate import certify_program
from thereexists.certificates.program_forms import Form, Terms
from thereexists.certificates.program_nearest import EDGE, Nearest, distance, flattened
from thereexists.constructions.program.saving import to_record
from thereexists.core.errors import NotProved


def affine(n):
    return 0.3 * P.tokens(n) + 0.1


def odd(n=5):
    return P.tokens(n, low=0.1, high=0.7)


ROUNDED = {
    "prefix_mean of 65": lambda: P.prefix_mean(P.tokens(65)),
    "sort of prefix means": lambda: P.sort(P.prefix_mean(P.tokens(3))),
    "median of prefix means": lambda: P.median(P.prefix_mean(P.tokens(3))),
    "smallest of prefix means": lambda: P.min(P.prefix_mean(P.tokens(3))),
    "top_k of prefix means": lambda: P.top_k(P.prefix_mean(P.tokens(3)), 2),
    "greater": lambda: (lambda a: P.greater(a, P.flip(a), margin=0.1))(affine(3)),
    "divide": lambda: (lambda a: P.divide(a, P.clip(a, 0.5, 2.0)))(affine(4)),
    "where on an odd box": lambda: (lambda x: P.where(np.arange(5) % 2, x, P.flip(x)))(odd()),
    "sort of prefix means on an odd box": lambda: P.sort(P.prefix_mean(odd())),
    "histogram on an odd box": lambda: P.histogram(odd(), [0.1, 0.3, 0.5], margin=0.05),
    "reciprocal of a clipped soft maximum": lambda: P.apply(
        P.reciprocal, P.clip(P.soft_largest(P.tokens(3), sharpness=3.0), 0.3, 2.0), epsilon=1e-2
    ),
}

HARSH = {  # small boxes, large constants, steep lines; and what nobody reads
    "taken away": lambda: (lambda x: P.clip(x - x, 0.0, 1.0))(P.sort(P.abs(P.tokens(5, 2)))),
    "attention from where, all logits tiny": lambda: (
        lambda x: P.attend(P.where(np.arange(8) % 2, x, x), x, x)  # eight softmaxes with nearly the same values
    )(P.tokens(8, low=1e-12, high=2e-12)),
    "where above its argument": lambda: (
        lambda x: P.where([0.0, 1.0], P.multiply(x, P.multiply(x, x, epsilon=1e-2), epsilon=1e-2), 0.0) * -0.3
    )(P.tokens(2, low=1e-12, high=2e-12)),
    "where of a rank": lambda: (lambda x: P.where(np.arange(5) % 2, x, P.rank(x, margin=2e-6)))(
        P.tokens(5, low=-1e-5, high=1e-5)
    ),
    "two steep lines": lambda: (
        lambda x: P.interp(
            P.interp(x, [1.2e-12, 1.3e-12], [-2.9, 1.3]), [1.2e-12, 1.925e-12, 1.928e-12], [0.2, -1.3, -0.16]
        )
    )(P.tokens(2, low=1e-12, high=2e-12)),
    "a sharp soft maximum": lambda: P.soft_largest(
        0.0041 * P.interp(P.tokens(2, low=1e-12, high=2e-12), [1.1e-12, 1.6e-12], [0.4, -1.1]), sharpness=2.27e14
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", HARSH)
def test_what_is_rounded_by_more_than_its_size_is_proved_at_its_price(name, tmp_path):
    program = HARSH[name]()
    witness = te.build(program, dtypes=("float64",))
    X = inputs(witness.source, 512, 0)
    off = np.abs(witness(X) - P.interpret(program, X.astype(np.longdouble))).max()
    assert off <= witness.certificate.bound
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds


@pytest.mark.parametrize("name", HARSH)
def test_a_harsh_program_is_still_told_from_another(name):
    """The output a hundredth larger: refused, unless the bound that is then stated allows for it."""
    program = HARSH[name]()
    compiled = P.compile(program)
    with torch.no_grad():
        compiled.network.W_out.mul_(1.01)
    try:
        claimed = certify_program(to_record(program), compiled.network, dtypes=("float64",)).bound
    except (NotProved, Refuted):
        return
    X = inputs(compiled.source, 512, 0)
    assert np.abs(compiled.network.run(X) - P.interpret(program, X.astype(np.longdouble))).max() <= claimed


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ROUNDED)
def test_what_the_compiler_gets_right_is_proved(name, tmp_path):
    program = ROUNDED[name]()
    witness = te.build(program, dtypes=("float64",))
    assert witness.certificate.parts["weights"] <= 1e-12
    X = inputs(witness.source, 512, 0)
    off = np.abs(witness(X) - P.interpret(program, X.astype(np.longdouble))).max()
    assert off <= witness.certificate.bound
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds


def test_a_weight_that_is_a_little_off_is_paid_for(tmp_path):
    """Every weight of the last block moved by one part in 2^40: still near, but the old bound is refused."""
    te.build(P.sort(P.prefix_mean(P.tokens(3))), dtypes=("float64",)).save(tmp_path / "w")
    forge_weights(tmp_path / "w", lambda w: w["W_out"].mul_(1 + 2.0**-40))
    verdict = te.verify(tmp_path / "w")
    assert not verdict.holds
    assert {check.name for check in verdict.evidence if not check.passed} >= {"parts"}
    witness = te.load(tmp_path / "w")
    found = compare(witness.record(), witness.network)
    assert found.weights >= 2.0**-40


def test_three_outcomes():
    """Proved; refuted, with an input; and not proved, where the network is right in a way that nobody follows."""
    program = P.relu(P.tokens(2) - 0.25)
    record, compiled = to_record(program), P.compile(program)
    assert certify_program(record, compiled.network).bound < 1e-12
    wrong = P.compile(P.relu(P.tokens(2) - 0.5)).network
    with pytest.raises(Refuted, match=r"Refuted: .* at the input \(0"):
        certify_program(record, wrong)
    x = P.tokens(4)  # the largest of four by sorting them: right, but other steps than those of a tournament
    with pytest.raises(NotProved, match=r"Not proved: .* at 'maximum'.*may well be right"):
        certify_program(to_record(P.max(x)), P.compile(P.broadcast(P.sort(x), 3)).network)


def test_a_refutation_names_its_input(tmp_path):
    te.build(P.relu(P.tokens(2) - 0.25), dtypes=("float64",)).save(tmp_path / "w")
    forge_weights(tmp_path / "w", lambda w: w["stages.block_1.feed_forward.b_1"].sub_(0.125))
    (check,) = [c for c in te.verify(tmp_path / "w").evidence if c.name == "meaning"]
    assert check.detail.startswith("refuted: ")
    assert "at the input (" in check.detail


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_breakpoint_at_the_end_of_a_range_is_straightened_at_its_price(end):
    terms = Terms()
    token = terms.term(("token", 0, 0), 0, 1, "token")
    x = Form({token: 1})
    hair = EDGE / 4
    t = hair if end == "low" else 1 - hair
    bent = terms.relu(terms.combine([(1, x)], -t))
    plain, error = flattened(terms, bent)
    assert not plain.bends
    assert error == hair
    for value in (fmpq(0), hair, hair / 2, fmpq(1, 2), 1 - hair / 2, fmpq(1)):
        wanted = max(value - t, 0)
        got = sum((c * value for c in plain.linear.values()), start=fmpq(plain.constant))
        assert abs(got - wanted) <= error
    inside = terms.relu(terms.combine([(1, x)], -fmpq(1, 2)))
    assert flattened(terms, inside)[0].bends


def test_distances_are_bounds():
    """Random pairs of forms: |a − b| at random points is never above the distance."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        terms = Terms()
        tokens = [Form({terms.term(("token", i, 0), -1, 2, "token"): 1}) for i in range(3)]

        def random_form(tokens=tokens, terms=terms):
            parts = [(fmpq(int(rng.integers(-8, 9)), 4), t) for t in tokens]
            inner = terms.combine(parts, fmpq(int(rng.integers(-8, 9)), 4))
            if inner.is_constant:
                return inner
            return terms.combine([(1, terms.relu(inner)), (fmpq(1, 3), tokens[0])])

        one, other = random_form(), random_form()
        away = distance(terms, one, other)
        near = Nearest(terms)
        assert np.abs(near.value(one) - near.value(other)).max() <= away + 1e-12


def test_a_mean_of_many_tokens_by_adding_up():
    """65 tokens: the program's mean is a term of its own, a network may add and divide all the same."""
    x = P.tokens(65)
    by_sum = P.compile(P.broadcast(P.prefix_mean(x), 64)).network
    assert compare(to_record(P.mean(x)), by_sum).weights <= 1e-12
    with torch.no_grad():
        by_sum.W_out.mul_(1.001)
    with pytest.raises(NotProved, match="mean"):
        compare(to_record(P.mean(x)), by_sum)
