"""Every proof has hypotheses, and whoever forges parameters breaks one: mutated ones are refused, or still right."""

import copy
import dataclasses

import numpy as np
import pytest

from thereexists.core.errors import ThereExistsError
from thereexists.suites.net import Net
from thereexists.suites.verifier import instance
from thereexists.suites.verifier.families import FAMILIES, Built
from thereexists.suites.verifier.vnnlib import Limit, Property

STRANGE = (None, True, -1, 0, 0.0, 2, 1e9, -0.5, 3.0, "x", [], [0.5], [[0.5]], {}, 10**30)


def mutated(rng, value):
    """Another value of the same kind, mostly; at the bottom of lists one entry changes, or two change places."""
    if isinstance(value, list) and value and rng.random() < 0.8:
        i, j = rng.integers(len(value), size=2)
        value = copy.copy(value)
        if rng.random() < 0.4:
            value[i], value[j] = value[j], value[i]
        elif rng.random() < 0.2:
            value = value[: max(int(i), 1)]
        else:
            value[i] = mutated(rng, value[i])
        return value
    if type(value) in (int, float) and rng.random() < 0.8:
        return rng.choice([-value, 2 * value, value / 2, value + 1, 1 - value]).item()
    return STRANGE[rng.integers(len(STRANGE))]


def dense(box, value_of, rng):
    """The largest value found: random points, corners, the diagonal, then one coordinate at a time from the best."""
    low, high = box
    shares = [rng.random((100, *low.shape)), rng.integers(0, 2, (300, *low.shape))]
    shares.append(np.broadcast_to(np.linspace(0, 1, 65)[:, None, None], (65, *low.shape)))
    X = np.concatenate([low + share * (high - low) for share in shares])
    best = X[value_of(X).argmax()]
    for _ in range(2):
        for index in np.ndindex(low.shape):
            line = np.repeat(best[None], 17, axis=0)
            line[(slice(None), *index)] = np.linspace(low[index], high[index], 17)
            best = line[value_of(line).argmax()]
    return float(value_of(best[None])[0])


def flat(family, params, shape):
    """In place of the network: nothing but its width, so that hundreds of parameters are tried in a second."""
    width = family.reference(params, np.zeros((1, *shape))).shape[2]
    return Built(Net(np.zeros((1, 1)), np.zeros((shape[0], 1)), (), np.zeros((1, width))), 0.0, "")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "automata"])
def test_mutated_parameters_are_refused_or_still_right(name, monkeypatch):
    family, rng, accepted = FAMILIES[name], np.random.default_rng(7), 0
    for _ in range(120):
        params = family.draw(rng, int(rng.integers(1, 4)))
        question = family.ask(params, rng)
        made = flat(family, params, question.boxes[0][0].shape)
        monkeypatch.setattr(instance, "built", lambda family, params, made=made: made)
        key = str(rng.choice(list(params)))
        params = params | ({key: mutated(rng, params[key])} if rng.random() < 0.8 else {})
        shift = float(rng.choice([0.0, 0.0, 0.0, -0.5, 0.5, -0.05]))  # out of [0, 1], sometimes
        boxes = tuple((low + shift, high + shift) for low, high in question.boxes)
        token, feature = question.output
        try:
            limit = Limit(token * made.net.W_out.shape[1] + feature, question.sense, 99.0 * question.sense)
            asked = Property(boxes, (limit,), 10**6)
            found = instance.decide(family, params, asked)
            _, slack, _ = family.extreme(params, dataclasses.replace(question, boxes=boxes))
        except (ThereExistsError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeWarning):
            continue
        accepted += 1

        def value_of(X, params=params, question=question):
            return question.sense * family.reference(params, X)[(slice(None), *question.output)]

        largest = max(dense(box, value_of, rng) for box in boxes)
        assert largest <= question.sense * found.extremes[0] + slack + 1e-12, params
        assert min(low.min() for low, _ in boxes) >= 0
        assert max(high.max() for _, high in boxes) <= 1
    assert accepted >= 8


def test_letters_below_the_first_are_refused(monkeypatch):
    """The proof has bits that are off by at most 1/8, *none below 0*."""
    family, rng = FAMILIES["automata"], np.random.default_rng(0)
    params = family.draw(rng, 1)
    question = family.ask(params, rng)
    made = flat(family, params, question.boxes[0][0].shape)
    monkeypatch.setattr(instance, "built", lambda family, params: made)
    index = question.output[0] * made.net.W_out.shape[1] + question.output[1]
    instance.decide(family, params, Property(question.boxes, (Limit(index, 1, 99.0),), 99))
    down = np.array([0.0, *[-1 / 16] * params["n"]])[:, None]
    boxes = tuple((low + down, high) for low, high in question.boxes)
    with pytest.raises(ThereExistsError, match=r"\[0, 1\]"):
        instance.decide(family, params, Property(boxes, (Limit(index, 1, 99.0),), 99))


@pytest.mark.parametrize("name", FAMILIES)
def test_no_strange_parameter_is_taken(name):
    """Whatever stands in the place of one parameter, the hypotheses answer, and the answer is one sentence."""
    family = FAMILIES[name]
    params = family.draw(np.random.default_rng(1), 1)
    family.require(params)
    for key in params:
        for strange in STRANGE:
            whole = type(strange) is int and type(params[key]) is float
            if (
                type(strange) is not type(params[key])
                and not whole
                and (key, strange) not in (("f", None), ("g", None))
            ):
                with pytest.raises(ThereExistsError, match="assumes"):
                    family.require(params | {key: strange})
        with pytest.raises(ThereExistsError):
            family.require({k: v for k, v in params.items() if k != key})
    for strange in STRANGE:
        with pytest.raises(ThereExistsError):
            family.require(strange)
