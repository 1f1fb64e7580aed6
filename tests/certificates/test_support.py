"""Is a network 0 outside its box? The proof from the weights, against networks that are not, every hash redone."""

import dataclasses
import shutil
from fractions import Fraction

import numpy as np
import pytest
import torch

import thereexists as te
from tests.hostile import forge_certificate, forge_record, forge_weights, planted, weight
from tests.supported import BOXES, bumped, inputs_everywhere
from thereexists.certificates.float_edges import strays
from thereexists.certificates.support import _attended, _image, _Unproved, vanishes_outside
from thereexists.core.errors import NotProved
from thereexists.evaluate import evaluate
from thereexists.model import Attention, FeedForward, Stage, Transformer

TARGETS = {d: bumped("distance-to-mean", n=2, d=d, domain=(-0.25, 1.0)) for d in (1, 2)}


COMPACT = {kind: bumped("distance-to-mean", n=2, equivariant=kind == "counts") for kind in ("counts", "slots")}


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("supported")
    built = {str(d): te.build(target, delta=1 / 2) for d, target in TARGETS.items()}
    built |= {kind: te.build(target, delta=1 / 2, construction="compact") for kind, target in COMPACT.items()}
    for name, witness in built.items():
        witness.save(folder / name)
        te.certify(witness, opinions=1).save(folder / name)
    return folder


def scaled(name, index, factor):
    """A forger who multiplies one weight."""

    def change(weights):
        weights[f"stages.{name}"][index] *= factor

    return lambda folder: forge_weights(folder, change)


FAULTS = {
    "the upper end of the box moved out": weight("guard.feed_forward.b_1", (-1, slice(0, 2)), -0.1),
    "the lower end of the box moved out": weight("guard.feed_forward.b_1", (-1, slice(2, 4)), -0.1),
    "the upper end left open": scaled("guard.feed_forward.W_2", (-1, -1, slice(0, 2)), 0.0),
    "the lower end left open": scaled("guard.feed_forward.W_2", (-1, -1, slice(2, 4)), 0.0),
    "a jump too small": scaled("guard.feed_forward.W_2", (-1, -1), 1e-3),
    "a jump with the wrong sign": scaled("guard.feed_forward.W_2", (-1, -1, slice(0, 2)), -1.0),
    "a jump that falls again": scaled("guard.feed_forward.W_2", (-1, -1, 1), 1.001),
    "the cap below removed": scaled("guard.feed_forward.W_2", (1, 0, 0), 0.0),
    "a cap that folds": scaled("guard.feed_forward.W_2", (1, 0, 0), 4.0),
    "the box shifted": weight("guard.feed_forward.b_2", (0, 0), 0.05),
    "the quantiser pulls down": scaled("quantise.feed_forward.W_2", (0, 0, 1), 0.5),
    "a head that lowers ids": scaled("context.attention.W_O", (0, 0, 0, 0), 0.5),
    "heads in the other order": scaled("context.attention.W_O", (0, slice(0, 2), 0, 0), -1.0),
    "a global shift that looks for the smallest": scaled("context.attention.b_Q", (-1, 0, 0), -1.0),
    "a global shift too weak": scaled("context.attention.W_O", (-1, 0, 0, 0), 0.1),
    "a threshold too high": scaled("outside.feed_forward.b_1", (0, 0), 8.0),
    "a push too weak": scaled("outside.feed_forward.W_2", (0, 0, 0), 0.05),
    "columns that are not emptied": scaled("outside.feed_forward.W_2", (-1, 0, 0), 0.5),
    "the column 0 gets a value": weight("value.feed_forward.b_2", (1, 0), 0.01),
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("d", TARGETS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_network_that_is_not_0_outside_is_noticed(fault, d, originals, tmp_path):
    shutil.copytree(originals / str(d), tmp_path / "w")
    FAULTS[fault](tmp_path / "w")
    verdict = te.verify(tmp_path / "w", TARGETS[d], opinions=1)
    assert verdict.holds is False
    failed = {check.name for check in verdict.evidence if check.passed is False}
    assert "support" in failed or fault == "a global shift too weak"  # there the ids inside are too low too


WIDE = {  # of compact networks: the units and rows are the last of their layers
    "the lower end moved out": weight("edges.feed_forward.b_1", (0, -2), 2.0**18),
    "the upper end moved out": weight("edges.feed_forward.b_1", (0, -1), 2.0**18),
    "the lower end not told": scaled("cells.feed_forward.W_2", (0, slice(None), -2), 0.0),
    "the upper end not told": scaled("cells.feed_forward.W_2", (0, slice(None), -1), 0.0),
    "an end told by half": scaled("cells.feed_forward.W_2", (0, slice(None), -1), 0.5),
    "an end taken back": scaled("cells.feed_forward.W_2", (0, slice(None), -1), -1.0),
    "not summed over the tokens": scaled("gather.attention.W_O", (0, 0, slice(None), -1), 0.25),
    "not all tokens counted alike": weight("gather.attention.b_Q", (0, 0, -1), 3.0),
    "a sum that closes nothing": scaled("gather.feed_forward.b_1", (0, -2), 4.0),
    "one unit that stays open": scaled("recall.feed_forward.W_1", (0, 0, -2), 0.0),
    "a default that is not 0": weight("recall.feed_forward.b_2", (0, 1), 0.01),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", COMPACT)
@pytest.mark.parametrize("fault", WIDE)
def test_a_compact_network_that_is_not_0_outside_is_noticed(fault, kind, originals, tmp_path):
    shutil.copytree(originals / kind, tmp_path / "w")
    WIDE[fault](tmp_path / "w")
    verdict = te.verify(tmp_path / "w", COMPACT[kind], opinions=1)
    assert verdict.holds is False
    failed = {check.name for check in verdict.evidence if check.passed is False}
    assert "support" in failed or fault == "not all tokens counted alike"  # with keys that are 0 they are


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["1", "2", *COMPACT])
def test_the_honest_one_holds(name, originals):
    verdict = te.verify(originals / name, COMPACT[name] if name in COMPACT else TARGETS[int(name)], opinions=1)
    assert verdict.holds
    assert next(check for check in verdict.evidence if check.name == "support").passed


@pytest.mark.parametrize(("delta", "domain"), [("1/3", (0.0, 1.0)), ("1/5", (-0.25, 1.0)), ("1/3", BOXES[2])])
def test_cells_of_any_width_are_proved(delta, domain):
    """The queries read u times the temperature: u itself, or no direction is shared."""
    target = bumped("distance-to-mean", n=2, d=2, domain=domain)
    assert vanishes_outside(te.build(target, delta=delta).network, target, 2).holds


def test_a_witness_without_guards_cannot_claim_it(tmp_path):
    target = TARGETS[1]
    plain = te.Target(
        target.f, n=2, lipschitz=target.lipschitz, equivariant=True, domain=(-0.25, 1.0), name=target.name
    )
    witness = te.build(plain, delta=1 / 2)
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")

    def claims(r):
        r["target"]["compact_support"] = True
        r["grid"]["low"] = [-0.25]

    forge_record(tmp_path / "w", claims)
    forge_certificate(tmp_path / "w", claims)
    verdict = te.verify(tmp_path / "w", target, opinions=1)
    assert verdict.holds is False
    assert any(check.name == "support" and check.passed is False for check in verdict.evidence)


def test_a_run_that_is_not_0_outside_is_noticed_though_the_network_is():
    """A layer in front, min(Z, 1): at 2^54 float64 makes 0 of it, and the guard sees a token inside."""
    target = TARGETS[1]
    network = te.build(target, delta=1 / 2).network
    stages = dict(network.stages)
    layers = [weight.detach() for weight in stages["guard"].feed_forward.parameters_list()]
    front = [torch.zeros_like(weight[:1]) for weight in layers]
    front[0][0, 0, 0], front[1][0, 0], front[2][0, 0, 0] = 1.0, -1.0, -1.0
    forged = [torch.cat(pair) for pair in zip(front, layers, strict=True)]
    stages["guard"] = Stage(feed_forward=FeedForward(*forged))
    forger = Transformer(stages, network.rho, None, network.needs)
    assert vanishes_outside(forger, target, 2).holds
    grid = te.plan(target, delta=1 / 2).grid
    for run, told in ((network, None), (forger, "outside the domain, where it is 0 in exact arithmetic")):
        found = strays(lambda X, run=run: evaluate(run, torch.from_numpy(X)).detach().numpy(), target, grid, [9.0], 0)
        assert found == told or (told is not None and found is not None and found.endswith(told))


def test_nothing_is_certified_of_a_network_that_is_not_0_outside(originals):
    witness = te.load(originals / "1")
    opened = planted(witness.network, lambda net: net.stages["guard"].feed_forward.W_2.data[-1].zero_())
    with pytest.raises(NotProved, match="is 0 outside its box"):
        te.certify(dataclasses.replace(witness, network=opened), target=TARGETS[1], opinions=1)


def test_no_row_is_lower_after_the_attention_than_is_proved():
    """Random layers, ids below 0 and means below 0 among them, run in float64 on random tokens: whatever is proved of
    their rows is true of them."""
    rng, proved = np.random.default_rng(0), 0
    for _ in range(300):
        depth = int(rng.integers(1, 4))
        scale, shift, keys = (rng.choice([0.25, 1.0, 8.0, 64.0], (depth, 1, 1, 1)) for _ in range(3))
        W_Q, W_K = scale * np.ones((1, 2, 1, 1)), keys * np.ones((1, 2, 1, 1))
        b_Q = (shift * rng.choice([-1.0, 1.0, 16.0], shift.shape))[..., 0] + np.array([0.0, -1.0])[:, None]
        W_O = rng.choice([0.5, 1.0, 20.0], (depth, 1, 1, 1)) * np.array([1.0, -1.0])[:, None, None]
        W_O[rng.random(depth) < 0.7, 1] = 0.0  # many layers of one head
        weights = (W_Q, b_Q, W_K, np.ones((depth, 2, 1, 1)), W_O)
        stage = Stage(attention=Attention(*map(torch.from_numpy, weights)))
        least, outer = -rng.choice([0.0, 1.0, 9.0]), rng.choice([-0.5, 2.0, 30.0])
        if least > outer:
            continue
        try:
            bound = float(_attended(stage, [Fraction(least)], [Fraction(outer)], 3)[0])
        except _Unproved:
            continue
        proved += 1
        Z = least + rng.exponential(rng.choice([0.01, 3.0], (200, 3, 1)), (200, 3, 1))
        Z[:, 0] = outer + rng.exponential(1.0, (200, 1))
        rows = Transformer({"context": stage}, "softmax", None, torch.float64)(torch.from_numpy(Z)).detach().numpy()
        assert rows.min() >= bound - 1e-9 * np.abs(rows).max()
    assert proved > 60


def test_the_image_of_an_interval_is_exact():
    """Against a fine grid of points, for random functions and intervals, infinite ones too."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        units = [tuple(Fraction(int(x), 4) for x in rng.integers(-8, 9, size=3)) for _ in range(int(rng.integers(4)))]
        low, high = sorted(Fraction(int(x), 2) for x in rng.integers(-20, 21, size=2))
        case = (None if rng.random() < 0.3 else low, None if rng.random() < 0.3 else high)
        far = [[] if end is not None else [side * 1e6] for end, side in zip(case, (-1, 1), strict=True)]
        t = np.linspace(-100.0 if case[0] is None else float(low), 100.0 if case[1] is None else float(high), 20001)
        t = np.concatenate([far[0], t, far[1]])
        y = t + sum(float(w) * np.maximum(float(a) * t + float(b), 0) for a, b, w in units) + 1.0
        found = _image(case, units, Fraction(1))
        for end, extreme, side in zip(found, (y.min(), y.max()), (-1, 1), strict=True):
            assert extreme * side >= 1e4 if end is None else abs(float(end) - extreme) < 0.5
            assert end is None or float(end) * side >= extreme * side - 1e-9


@pytest.mark.parametrize("d", TARGETS)
def test_every_engine_answers_0_outside(d, originals):
    witness = te.load(originals / str(d))
    X, outside = inputs_everywhere(TARGETS[d], 2000)
    for engine in ("reference", "fused", "skip"):
        assert not witness(X, engine)[outside].any()
    assert vanishes_outside(witness.network, TARGETS[d], 2).holds
