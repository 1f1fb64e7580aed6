"""Networks made so that a bound computed carelessly is too small: float64 rounds while the bound itself is computed."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
import torch

import thereexists as te
from tests.hostile import forge_program
from thereexists import program as P
from thereexists.arithmetic import outward
from thereexists.arithmetic.rounding import rounding_bound
from thereexists.certificates.program_certificate import AGREEMENT, certify_program
from thereexists.certificates.verify_program import _covers
from thereexists.constructions.program.saving import from_record, to_record
from thereexists.constructions.program.witness import ProgramWitness
from thereexists.model import EmbeddedTransformer
from thereexists.model.transformer import Attention, FeedForward, Stage


def half(rows, units, b_2=()):
    """A feed-forward half: units ({row: weight}, bias, {row: weight}), and what is added anyway."""
    r = max(len(units), 1)
    W_1, b_1, W_2, b = (np.zeros(shape) for shape in ((1, r, rows), (1, r), (1, rows, r), (1, rows)))
    for u, (read, bias, write) in enumerate(units):
        W_1[0, u, list(read)], b_1[0, u], W_2[0, list(write), u] = list(read.values()), bias, list(write.values())
    for row, value in dict(b_2).items():
        b[0, row] = value
    return Stage(None, FeedForward(*(torch.from_numpy(w) for w in (W_1, b_1, W_2, b))))


def network(halves, W_in, W_out, n=1):
    stages = {f"block_{k + 1}": stage for k, stage in enumerate(halves)}
    W_in, W_out = (torch.tensor(w, dtype=torch.float64) for w in (W_in, W_out))
    return EmbeddedTransformer(stages, W_out, W_in=W_in, E=torch.zeros(n, len(W_in)).double(), safe=("float64",))


def empty_intervals():
    """Rows 4 and 5 get ends that a careless sum turns around; 2^53 times their difference is then a negative error."""
    u, N = 2.0**-53, 2.0**53
    both = {4: 1.0, 5: 1.0}
    halves = [
        half(7, [({}, u, {3: 2.0})]),
        half(7, [({3: -10.0}, 1.0, both), ({3: 1.0}, 0.0, {3: -1.0}), ({3: -1.0}, 0.0, both)], {4: u, 5: u}),
        half(7, [({4: N, 5: -N}, 0.0, {6: 1.0})]),
    ]
    return network(halves, np.eye(7, 1), [[3 / 64, 0, 0, 0, 0, 0, 1.0]])


def test_no_bound_is_negative():
    assert rounding_bound(empty_intervals(), np.array([0.0]), np.array([3.0]), "float64").min() >= 0


def test_a_negative_bound_does_not_pay_for_an_approximation(tmp_path):
    """A straight line, said to be within 1e-12 of the sine."""
    settings = {"knots": [0.0, 3.0], "values": [0.0, 9 / 64], "function": "sin"}
    tokens = {"low": 0.0, "high": 3.0, "shorter": False, "d": 1}
    listed = [("tokens", [], tokens), ("apply", [0], settings)]
    nodes = [{"operation": o, "arguments": a, "d": 1, "settings": s} for o, a, s in listed]
    found = certify_program({"n": 1, "nodes": nodes}, empty_intervals(), "float64", None, ("float64",))
    assert found.bound >= 0.9
    written = {"n": 1, "nodes": nodes}
    program = from_record(written)
    claim = dataclasses.replace(found, bound=1e-12, bounds={"float64": {"rounding": 0.0, "bound": 1e-12}})
    witness = ProgramWitness(empty_intervals(), program, program.arguments[0], (), claim, written)
    witness.save(tmp_path / "w")
    assert not te.verify(tmp_path / "w").holds


def test_an_end_between_two_float64_is_rounded_outward():
    """relu(2^80·(min(x) + 2^-52) − 2^81) at x = 2: the sum is no float64, and the unit is open in truth."""
    d, c, N = 8, 2.0**-52, 2.0**80
    x = P.tokens(1, d=d, low=1.0, high=2.0)
    e = [P.mix(x, np.eye(d)[i : i + 1]) for i in range(d)]
    halves = []
    while len(e) > 1:
        h = len(e) // 2
        e = [P.minimum(e[i], e[i + h]) for i in range(h)]
        halves.append(half(d + 1, [({i: 1.0, i + h: -1.0}, 0.0, {i: -1.0}) for i in range(h)]))
    halves += [half(d + 1, [], {0: c}), half(d + 1, [({0: N}, -2 * N, {d: 1.0})])]
    forged = network(halves, np.eye(d + 1, d), np.eye(1, d + 1, d))
    y = P.relu((e[0] + c) * N - 2 * N)
    found = certify_program(to_record(y), forged, "float64", None, ("float64",))
    exact = (Fraction(2) + Fraction(c)) * Fraction(N) - 2 * Fraction(N)
    got = forged(torch.full((1, 1, d), 2.0, dtype=torch.float64)).item()
    assert abs(Fraction(got) - exact) <= Fraction(found.bound)


def one_head(logit):
    """Two tokens with one and the same logit."""
    W = {name: torch.zeros(1, 1, 1, 2, dtype=torch.float64) for name in ("W_Q", "W_K", "W_V")}
    W["W_K"][0, 0, 0, 1] = W["W_V"][0, 0, 0, 0] = 1.0
    b_Q, W_O = torch.full((1, 1, 1), logit, dtype=torch.float64), torch.zeros(1, 1, 2, 1, dtype=torch.float64)
    W_O[0, 0, 0, 0] = 1.0
    made = network([Stage(Attention(W["W_Q"], b_Q, W["W_K"], W["W_V"], W_O), None)], [[1.0], [0.0]], [[1.0, 0.0]], n=2)
    with torch.no_grad():
        made.E[:, 1] = 1.0  # both keys
    return rounding_bound(made, np.array([0.0]), np.array([1.0]), "float64")


def test_equal_logits_beyond_2_to_the_63_are_not_told_apart():
    """2^70 − 800 is 2^70 in float64: two tokens with that logit are a mean, not the first of them."""
    assert np.array_equal(one_head(2.0**70), one_head(2.0**10))


@pytest.mark.parametrize("seed", range(4))
def test_sums_are_rounded_outward(seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(200) * 2.0 ** rng.integers(-60, 60, 200) for _ in range(2))
    low, high = outward.sum_down(a, b), outward.sum_up(a, b)
    for x, y, least, most in zip(a, b, low, high, strict=True):
        exact = Fraction(x) + Fraction(y)
        assert Fraction(least) <= exact <= Fraction(most)
        assert (least == most) == (Fraction(x + y) == exact)
    A, B = np.abs(rng.standard_normal((3, 300))), np.abs(rng.standard_normal((300, 2)))
    exact = [[sum(Fraction(x) * Fraction(y) for x, y in zip(row, col, strict=True)) for col in B.T] for row in A]
    assert all(Fraction(v) >= e for vs, es in zip(outward.product_up(A, B), exact, strict=True) for v, e in zip(vs, es, strict=True))  # fmt: skip  # noqa: E501
    total, off = outward.added(a, np.zeros(200), 1 / 3, b)
    for x, y, t, o in zip(a, b, total, off, strict=True):
        assert abs(Fraction(x) + Fraction(1 / 3) * Fraction(y) - Fraction(t)) <= Fraction(o)


def test_a_verifier_forgives_nothing():
    """What is stated has room for another machine; the bound is at least its parts without it, exactly added."""
    x = P.tokens(2)
    certificate = te.build(P.interp(x, [0.0, 1.0], [0.0, 1.0]) * (1 / 3) + P.apply(np.sin, x)).certificate
    for part in certificate.bounds.values():
        parts = sum(Fraction(share) for share in (part["rounding"], *certificate.parts.values()))
        least = parts / (1 + 2 * Fraction(AGREEMENT))
        assert Fraction(part["bound"]) > least * (1 + Fraction(AGREEMENT)) > 0
        assert _covers(part["bound"], part["bound"])
        assert not _covers(np.nextafter(part["bound"], 0), part["bound"])


@pytest.mark.parametrize("found", [-0.87, float("nan"), float("inf"), -1e-300])
def test_no_claim_covers_what_is_no_bound(found):
    assert not _covers(1.0, found)
    assert not _covers(float("inf"), found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("make", "operation", "change"),
    [
        (lambda x: P.argsort(x, margin=0.1), "argsort", {"n": 1}),
        (lambda x: P.argsort(x, margin=0.1), "argsort", {"n": 3.0}),
        (lambda x: P.relu(x - 0.5), "relu", {"foo": 1}),
        (lambda x: 0.5 * P.relu(x - 0.5), "linear", {"coefficients": ["0.5"]}),
        (lambda x: 0.5 * P.relu(x - 0.5), "linear", {"coefficients": 0.5}),
        (lambda x: P.relu(P.mix(x, [[1.0]]) - 0.5), "mix", {"matrix": [[True]]}),
        (lambda x: P.relu(P.mix(x, [[1.0]]) - 0.5), "mix", {"matrix": [["1.0"]]}),
        (lambda x: P.rank(x, margin=0.1), "rank", {"margin": None}),
        (lambda x: P.soft_largest(x, sharpness=3.0), "soft_largest", {"sharpness": "much"}),
        (lambda x: P.relu(x - 0.5), "tokens", {"shorter": 0}),
    ],
)
def test_settings_that_the_interpreter_would_take_otherwise_are_refused(tmp_path, make, operation, change):
    te.build(make(P.tokens(3)), dtypes=("float64",)).save(tmp_path / "w")

    def edit(record):
        nodes = [node for node in record["program"]["nodes"] if node["operation"] == operation]
        nodes[-1]["settings"].update(change)

    assert te.verify(tmp_path / "w").holds
    forge_program(tmp_path / "w", edit)
    assert not te.verify(tmp_path / "w").holds


def test_whole_numbers_in_an_array_are_numbers(tmp_path):
    te.build(P.relu(P.mix(P.tokens(3), [[1.0]]) - 0.5), dtypes=("float64",)).save(tmp_path / "w")

    def edit(record):
        next(node for node in record["program"]["nodes"] if node["operation"] == "mix")["settings"]["matrix"] = [[1]]

    forge_program(tmp_path / "w", edit)
    assert te.verify(tmp_path / "w").holds
    X = np.array([[[0.7], [0.1], [0.4]]])
    assert np.allclose(te.load(tmp_path / "w").interpret(X), np.maximum(X - 0.5, 0))


def test_a_constant_has_no_arguments(tmp_path):
    te.build(P.relu(P.tokens(3) - 0.5), dtypes=("float64",)).save(tmp_path / "w")

    def edit(record):
        next(node for node in record["program"]["nodes"] if node["operation"] == "constant")["arguments"] = [0]

    forge_program(tmp_path / "w", edit)
    assert not te.verify(tmp_path / "w").holds


def test_a_program_without_blocks_is_saved_and_verified(tmp_path):
    built = te.build(0.5 * P.tokens(3) + 0.25)
    built.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    X = np.linspace(0.0, 1.0, 6).reshape(2, 3, 1)
    assert np.array_equal(te.load(tmp_path / "w")(X), built(X))
