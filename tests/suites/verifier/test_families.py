"""The theorem of a family is the test: nothing is beyond its extreme, and its point has it. Disguises, properties."""

import dataclasses

import numpy as np
import pytest

from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.suites.disguise import disguise, hadamard
from thereexists.suites.net import Fixed, folded
from thereexists.suites.verifier import onnx_files, vnnlib
from thereexists.suites.verifier.families import FAMILIES, Question
from thereexists.suites.verifier.instance import LEVELS, sample
from thereexists.suites.verifier.interval import outputs


@pytest.mark.sampled(11)
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("level", range(1, LEVELS + 1))
def test_nothing_is_beyond_the_extreme(name, level):
    family = FAMILIES[name]
    for seed in range(3):
        rng = np.random.default_rng([seed, level])
        params = family.draw(rng, level)
        question = family.ask(params, rng)
        value, slack, point = family.extreme(params, question)
        token, feature = question.output
        asked = vnnlib.Property(question.boxes, (), 0)
        X = sample(asked, 2000, rng)
        X[:100] = point  # and around it
        X[1:100] += rng.normal(size=X[1:100].shape) * 1e-3
        X = X[asked.inside(X)]
        Y = family.reference(params, X)[:, token, feature]
        assert asked.inside(point[None]).all()
        assert (question.sense * (Y - value) <= slack + 1e-12).all()
        assert abs(family.reference(params, point[None])[0, token, feature] - value) <= slack + 1e-12


def test_a_wrong_extreme_would_be_found():
    """The same test on the wrong side: the smallest value is not the largest."""
    family = FAMILIES["softmax"]
    rng = np.random.default_rng(1)
    params = family.draw(rng, 3)
    question = family.ask(params, rng)
    least, _, _ = family.extreme(params, Question(question.boxes, question.output, -1))
    Y = family.reference(params, sample(vnnlib.Property(question.boxes, (), 0), 1000, rng))
    assert (Y[:, question.output[0], 0] > least + 1e-3).any()


@pytest.mark.parametrize("name", ["table", "pairs"])
def test_what_is_near_a_stored_input_gets_its_answer(name):
    """The networks themselves, at corners of the largest boxes that the proof allows; larger ones are refused.

    Of a table, interval propagation proves the same from the weights: the output's box is a point.
    """
    family = FAMILIES[name]
    rng = np.random.default_rng(0)
    params = family.draw(rng, 3)
    net = family.build(params).net
    r = np.floor(family.furthest(params) * 1024) / 1024  # a box with ends that are exact
    wide = dict(params, radius=r, boxes=8)
    question = family.ask(wide, rng)
    family.extreme(wide, question)
    low, high = (np.stack(sides) for sides in zip(*question.boxes, strict=True))
    X = np.where(rng.random((50, *low.shape)) < 0.5, low, high).reshape(-1, *low.shape[1:])
    assert np.abs(net.run(X) - family.reference(params, X)).max() < 1e-9
    if name == "table":
        graph = onnx_files.model_of(onnx_files.parts_of(net)).graph
        for a, b in question.boxes:
            ends = outputs(graph, a[None], b[None])
            assert np.abs(np.stack(ends) - family.reference(params, a[None])).max() < 1e-6
    larger = family.ask(dict(params, radius=r + 2**-10), rng)
    with pytest.raises(CannotBuild, match="further than"):
        family.extreme(params, larger)
    X = np.concatenate([net.run(np.clip(np.stack(box), 0.3, 0.7)) for box in question.boxes])  # much further
    assert np.abs(X - np.rint(X)).max() > 1e-3 or not np.isin(X, family.reference(params, low)).all()


@pytest.fixture(scope="module")
def net():
    return FAMILIES["sort"].build({"n": 4, "folded": False}).net


def test_disguises_keep_the_function(net):
    X = np.random.default_rng(0).random((50, 4, 1))
    for seed, turn in ((0, True), (1, True), (2, False)):
        rng = np.random.default_rng(seed)
        worn, _ = disguise(net, rng, turn)
        assert np.abs(worn.run(X) - np.sort(X, axis=1)).max() < 1e-10
        assert not np.array_equal(worn.W_in[:, : net.d], net.W_in)
        parts = onnx_files.parts_of(worn, rng)
        assert max(map(len, parts.values())) > 1
        joined = onnx_files.joined(parts).weights()
        assert all(np.array_equal(joined[name], W) for name, W in worn.weights().items())
    H = hadamard(16)
    assert np.array_equal(H @ H.T, 16 * np.eye(16))


def test_a_disguise_that_would_round_is_refused(net):
    third = dataclasses.replace(net, E=net.E / 3)
    with pytest.raises(CannotBuild, match="rounded"):
        disguise(third, np.random.default_rng(0), True)
    disguise(third, np.random.default_rng(0), False)  # rows in another order: nothing is added up


def test_folded_heads_are_fixed_matrices(net):
    flat = folded(net)
    assert all(isinstance(head, Fixed) for block in flat.blocks for head in block.heads)
    X = np.random.default_rng(0).random((50, 4, 1))
    assert np.array_equal(flat.run(X), net.run(X))


def test_properties_are_parsed_back():
    rng = np.random.default_rng(0)
    boxes = tuple((low, low + 2.0**-7) for low in rng.integers(-4, 5, (3, 2, 2)) / 8)
    limits = (vnnlib.Limit(1, 1, 0.1 + 0.0 * 1), vnnlib.Limit(3, -1, -2.5))
    limits = (dataclasses.replace(limits[0], value=float(np.float32(0.1))), limits[1])
    for some in (boxes[:1], boxes):
        asked = vnnlib.Property(some, limits, 4)
        found = vnnlib.parse(vnnlib.text_of(asked, "t"), (2, 2))
        assert found.limits == limits
        assert all(np.array_equal(a, b) for a, b in zip(np.ravel(found.boxes), np.ravel(some), strict=True))
    assert vnnlib.decimal(-0.375) == "-0.375"
    with pytest.raises(InvalidInput, match="float32"):
        vnnlib.decimal(0.1)


def test_assertions_hold_together():
    """A bound beside an ``or``, before or behind it, and two of them: never does one replace another."""
    declared = "(declare-const X_0 Real)(declare-const X_1 Real)(declare-const Y_0 Real)(assert (>= Y_0 0.5))"
    plain = "(assert (>= X_1 0.0))(assert (<= X_1 1.0))"
    two = "(assert (or (and (>= X_0 0.0) (<= X_0 1.0)) (and (>= X_0 2.0) (<= X_0 3.0))))"
    cut = "(assert (<= X_0 0.5))"
    third = "(assert (or (and (<= X_1 0.25)) (and (>= X_1 0.75))))"

    def boxes(text):
        return [np.stack(box).T.tolist() for box in vnnlib.parse(declared + text, (2,)).boxes]

    assert boxes(plain + two) == boxes(two + plain) == [[[0, 1], [0, 1]], [[2, 3], [0, 1]]]
    for text in (cut + plain + two, two + cut + plain, two + plain + cut + cut):
        assert boxes(text) == [[[0, 0.5], [0, 1]]]
    assert boxes(third + plain + cut + two) == [[[0, 0.5], [0, 0.25]], [[0, 0.5], [0.75, 1]]]
    for empty in ("(assert (<= X_0 -1.0))", "(assert (or (and (<= X_0 -2.0)) (and (>= X_0 9.0))))"):
        for text in (empty + plain + two, plain + two + empty):
            with pytest.raises(InvalidInput, match="empty set"):
                boxes(text)
    with pytest.raises(InvalidInput, match="more than"):
        boxes(plain + two * 9)


@pytest.mark.parametrize("text", [
    "(assert (>= Y_-1 0.5))", "(assert (>= Y_00 0.5))", "(assert (>= Y_0 1_0))", "(assert (>= Y_0 0.1))",
    "(assert (>= Y_0 1e1))", "(assert (>= Y_0 nan))", "(assert (>= Y_0 inf))", "(assert (>= Y_0 0.5)) ; \u2028",
    "(assert (>= Y_0 0.5))(assert (<= X_1 1.0))", "(assert (>= Y_0 0.5))(assert (or))",
    "(assert (>= Y_0 0.5))(assert (or (and) (and (>= X_0 0.5))))", "(assert (>= Y_0 0.5)) ;\r(assert (>= X_0 0.5))",
    f"(assert (>= Y_0 {10**50}))",
])  # fmt: skip
def test_what_might_be_read_in_two_ways_is_refused(text):
    declared = "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (>= X_0 0))(assert (<= X_0 1))"
    vnnlib.parse(declared + "(assert (>= Y_0 0.5))", (1,))
    with pytest.raises(InvalidInput):
        vnnlib.parse(declared + text, (1,))


@pytest.mark.parametrize("bad", [
    "", "(assert", "(assert (>= X_0 1.0))", "(declare-const X_1 Real)", "(assert (and (>= Z_0 1.0)))",
    "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (>= X_0 2))(assert (<= X_0 1))(assert (>= Y_0 0))",
    "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (>= X_0 0))(assert (<= X_0 1))(assert (>= Y_0 X_0))",
])  # fmt: skip
def test_other_texts_are_refused(bad):
    with pytest.raises(InvalidInput):
        vnnlib.parse(bad, (1,))
