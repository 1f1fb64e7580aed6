"""Sizes are taken as what they are: no text, fraction or truth value is read as a number, in a record or in a call."""

import json

import numpy as np
import pytest
import torch

import thereexists as te
from tests.attention.cases import odd_unions
from thereexists.core.errors import InvalidInput
from thereexists.patterns.parts import Band, Offsets, Rect
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.stated import build_stated
from thereexists.patterns.step import Step
from thereexists.patterns.stored import record, restore

HOSTILE = [
    ("star", {"n": 7}),
    ("random", {"seed": -1}),
    ("random", {"seed": 1e300}),
    ("random", {"seed": "x"}),
    ("random", {"seed": [1, 2]}),
    ("random", {"seed": None}),
    ("random", {"sparsity": "x"}),
    ("random", {"sparsity": True}),
    ("random", {"sparsity": float("nan")}),
    ("random", {"degree": 2.5}),
    ("random", {"degree": True}),
    ("longformer", {"globals": "abc"}),
    ("longformer", {"globals": [0, "1"]}),
    ("longformer", {"globals": [0, True]}),
    ("longformer", {"globals": 1.0}),
    ("dilated", {"dilation": [1.5]}),
    ("dilated", {"dilation": ["3"]}),
    ("dilated", {"dilation": "3"}),
    ("dilated", {"dilation": []}),
    ("dilated", {"dilation": None}),
    ("bigbird", {"random_blocks": "x"}),
    ("bigbird", {"random_blocks": 0.5}),
    ("bigbird", {"block": 2, "seed": "x"}),
    ("bigbird", {"block": 2, "random_blocks": 0, "seed": -1}),
    ("block_local", {"block": 3, "shifted": "no"}),
    ("block_local", {"block": 3, "shifted": 1}),
    ("window", {"window": True}),
    ("window", {"window": 2.0}),
    ("window", {"window": {}}),
    ("alternating", {"period": 2.5}),
]


@pytest.mark.parametrize(("name", "sizes"), HOSTILE, ids=lambda part: json.dumps(part))
def test_a_size_of_another_kind_is_refused(name, sizes):
    with pytest.raises(InvalidInput):
        build_stated(name, 8, sizes)
    if "n" not in sizes:
        with pytest.raises(InvalidInput):
            te.patterns.build(name, 8, **sizes)


@pytest.mark.parametrize(("name", "sizes"), HOSTILE, ids=lambda part: json.dumps(part))
def test_so_is_one_in_the_config_of_a_model(name, sizes):
    chosen = pytest.importorskip("thereexists.attention.chosen")
    module = torch.nn.Module()
    module._thereexists_pattern = {"name": name, **sizes}
    with pytest.raises(InvalidInput):
        chosen.pattern_of(module, 8, 2, False)


def test_nor_is_it_taken_for_a_right_one_that_came_before():
    """In a cache, true is 1 and 2.0 is 2."""
    chosen = pytest.importorskip("thereexists.attention.chosen")
    module = torch.nn.Module()
    for right, wrong in ((1, True), (2, 2.0)):
        module._thereexists_pattern = {"name": "random", "degree": right}
        assert chosen.pattern_of(module, 8, 2, False).degrees[0] == right + 1
        module._thereexists_pattern = {"name": "random", "degree": wrong}
        with pytest.raises(InvalidInput, match="degree"):
            chosen.pattern_of(module, 8, 2, False)


def test_every_annotation_of_the_library_has_a_meaning():
    import inspect

    from thereexists.patterns.numbers import _KINDS

    for entry in te.patterns.REGISTRY.values():
        for parameter in inspect.signature(entry.build).parameters.values():
            assert parameter.annotation in _KINDS


def test_right_sizes_are_taken_as_before():
    assert te.patterns.random(8, degree=2).connections == (24,)
    assert te.patterns.build("random", 8, sparsity=0.5).connections == (32,)
    assert te.patterns.dilated(9, 2, [1, 2]).cycle == 2
    assert te.patterns.longformer(9, window=1, globals=(0, 4)).parameters["globals"] == 2


def test_what_can_be_built_can_be_stored_and_restored():
    """Offsets that lead nowhere, and ranges that end behind the last token."""
    n = 8
    own = Band(0, 0)
    built = {
        "far offsets": (Offsets((-16, -1, 0)),),
        "farther": (own, Offsets((-(2**31) + 1, 2**31 - 1))),
        "a range past the end": (own, Rect(range(0, 12, 7), range(7, 100, 500))),
        "a range of nobody": (own, Rect(range(5, 5), range(n))),
        "backwards": (own, Rect(range(6, -1, -2), range(n))),
    }
    steps = {name: Step(n, parts) for name, parts in built.items()} | odd_unions(n)
    for name, step in steps.items():
        pattern = Pattern("p", (step,))
        again = restore(json.loads(json.dumps(record(pattern))), n)
        assert (again.mask() == pattern.mask()).all(), name
        assert record(again) == record(pattern), name


def test_offsets_that_lead_nowhere_cost_nothing():
    """A list of a million of them would have been a million numbers for each token."""
    part = Offsets((0, *range(10_000, 60_000)))
    assert len(part.reaching(10)) == 1
    assert part.entries(10, np.arange(10))[1].tolist() == list(range(10))
