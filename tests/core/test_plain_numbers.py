"""Numbers of every type are taken as what they are, at the doors where they come in."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import thereexists as te
from tests.kinds import EXAMPLES
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import positive, share_of_one, shown

SORT = te.targets.builtin("sort", n=2)
KINDS = (np.float32, np.float64, np.float16, Fraction)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_is_one_whatever_its_type(kind):
    assert type(positive(kind(0.5), "x")) is float
    assert positive(kind(0.5), "x") == share_of_one(kind(0.5), "x", whole_too=False) == 0.5


def test_a_promise_is_never_rounded_to_a_weaker_one():
    for value in (Fraction(1, 3), Fraction(2, 3), Fraction(1, 7), Fraction(1, 10)):
        assert value - Fraction(1, 1 << 50) < Fraction(positive(value, "x")) <= value


@pytest.mark.parametrize("value", [0, -1, True, np.True_, "1", None, float("nan"), float("inf"), 1j, 10**400])
def test_what_is_no_positive_number_is_refused(value):
    with pytest.raises(InvalidInput, match="'x' must be a positive number"):
        positive(value, "'x'")


@pytest.mark.parametrize("value", [0, 1.5, -1, True, "1", None, float("nan"), 10**400])
def test_what_is_no_share_is_refused(value):
    with pytest.raises(InvalidInput, match="'x' must be a share above 0"):
        share_of_one(value, "'x'", whole_too=True)


def test_what_is_shown_is_one_line():
    assert "\n" not in shown(EXAMPLES["faithful"].build())


@pytest.mark.parametrize("kind", KINDS)
def test_grids_promises_and_confidences_of_any_type_are_saved(kind, tmp_path):
    te.build(SORT, delta=kind(0.5)).save(tmp_path / "delta")
    te.build(SORT, epsilon=kind(0.5), construction="compact").save(tmp_path / "epsilon")
    te.build(EXAMPLES["program"].given, epsilon=kind(0.5)).save(tmp_path / "program")
    black_box = te.build(te.Target(np.sort, n=1, bound=1.0), delta=1 / 2)
    te.certify(black_box, confidence=kind(0.5), samples=np.int32(50), seed=np.int64(3)).save(tmp_path / "delta")


def test_counts_of_numpy_are_counts(tmp_path):
    two = np.int64(2)
    assert te.targets.builtin("sort", n=two, d=two) == te.targets.builtin("sort", n=2, d=2)
    assert type(te.Target(np.sort, n=two).n) is int
    whole = te.domains.Simplex(whole=np.True_)
    te.build(te.Target(np.sort, n=two, lipschitz=1.0, domain=whole), delta=1 / 2).save(tmp_path / "simplex")
    te.build(EXAMPLES["automaton"].given, n=two).save(tmp_path / "doubling")
    te.build(EXAMPLES["parity"].given, n=two).save(tmp_path / "counting")
    te.memorise([["a"]], [["b"]], n=two).save(tmp_path / "data")
    assert te.parallel.Workers(count=two).processes == 2
    measured = te.build(SORT, delta=1 / 2)
    found = measured.estimate_distance(p=np.float32(2), samples=np.int64(64), seed=np.uint8(3))
    dataclasses.replace(measured, distance=found).save(tmp_path / "measured")


REFUSED = {
    "a witness is no folder": lambda w: te.load(w),
    "nor for a report": lambda w: te.report(w),
    "no folder to save in": lambda w: w.save(None),
    "nor of a certificate": lambda w: te.certify(w).save(None),
    "a number is no witness": lambda w: te.export(3, "torch", "out"),
    "no folder to export to": lambda w: te.export(EXAMPLES["compact"].build(), "torch", None),
    "no name of a function": lambda w: te.targets.resolve(None, n=2),
    "no domain": lambda w: te.Target(np.sort, n=2, domain={}),
    "no truth value": lambda w: te.domains.Simplex(whole="yes"),
    "half a worker": lambda w: te.parallel.Workers(count=1.5),
    "no number of workers": lambda w: te.parallel.Workers(count="2"),
    "no seconds": lambda w: te.patterns.reach(te.patterns.check(te.patterns.window(5, 2)), seconds=None),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_nothing_of_the_kind_is_refused_in_a_sentence(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(te.ThereExistsError) as refused:
        REFUSED[call](EXAMPLES["faithful"].build())
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())
