"""How many layers, which pairs come last, what one more token changes: against the definition, written out."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import thereexists as te
from tests.patterns import brute, graphs
from tests.patterns.mixed import mixed_cycle
from thereexists.patterns import REGISTRY, build, check, reach
from thereexists.patterns.reach import _sampled


def missing(masks, t, causal):
    seen = np.eye(masks.shape[1], dtype=bool)
    for i in range(t):
        seen = (masks[i % len(masks)].astype(int) @ seen) > 0
    return ~seen & (np.tri(len(seen), dtype=bool) if causal else True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", REGISTRY)
def test_every_pattern_is_answered_as_it_is_defined(name):
    n = 16
    for pattern in (build(name, n), build(name, n).as_causal(), build(name, n).multihead(8)):
        verdict = check(pattern)
        causal = verdict.causal is not None
        answers = reach(verdict)
        masks = pattern.mask() if pattern.heads is None else pattern.mask().any(0, keepdims=True)
        depth = brute.depth(masks, causal)
        assert answers.layers.depth == depth
        assert (answers.last is None) == (depth in (None, 1))
        if answers.last is not None:
            late = missing(masks, depth - 1, causal)
            assert answers.last.count == late.sum()
            assert all(late[k, j] for k, j in answers.last.examples)
            turns = pattern if pattern.heads is None else pattern.union()
            some = _sampled(turns, causal, answers.layers, depth - 1, 9)
            assert (some.count, some.asked) == (late.sum(), n * (n + 1) // 2 if causal else n * n)  # all tokens here
        sunk, wide = masks.copy(), masks.copy()
        sunk[:, :, 0] = wide[:, :, 0] = wide[:, 0] = True
        assert answers.sink.connections == sunk.sum() - masks.sum()
        assert answers.sink.depth.depth == brute.depth(sunk, causal)
        if causal:
            assert answers.hub is None
        else:
            assert answers.hub.connections == wide.sum() - masks.sum()
            assert answers.hub.depth.depth == brute.depth(wide) <= 2


@pytest.mark.slow
def test_long_windows_are_counted_by_formula_and_large_graphs_by_sample():
    n = 10_003
    pattern = te.patterns.window(n, 7)
    last = reach(check(pattern)).last
    s = -(-(n - 1) // 7)
    beyond = n - 1 - 7 * (s - 1)  # tokens that the first and the last token still miss
    assert (last.count, last.targets) == (beyond * (beyond + 1), n)
    grid = graphs.grid(25, 25)
    last = reach(check(grid)).last
    assert 0 < last.targets < grid.n
    assert last.count >= 1  # the farthest pair is among them
    assert last.asked == last.targets * grid.n


def test_the_commands_say_it():
    from thereexists.cli import app

    run = CliRunner().invoke
    out = run(app, ["pattern", "check", "window", "--n", "64", "--window", "4"]).output
    assert "layers until the receptive field is full: 16" in out
    assert "with a sink, token 0 (+59 connections): 16" in out
    assert "with one global token (+118 connections): 2" in out
    found = json.loads(run(app, ["pattern", "check", "window", "--n", "64", "--window", "4", "--json"]).output)["reach"]
    assert found["last_pairs"]["count"] == 12
    assert found["with_a_global_token"]["layers"] == 2
    assert "with a global token" in run(app, ["pattern", "compare", "--n", "16"]).output


@pytest.mark.parametrize("seed", range(25))
def test_the_same_masks_have_the_same_answers_however_they_are_written(seed):
    pattern = mixed_cycle(seed)
    listed = te.patterns.from_mask(pattern.mask())
    answers = reach(check(pattern))
    assert answers.sentences() == reach(check(listed)).sentences()
    if answers.hub is not None:
        wide = pattern.mask()
        wide[:, :, 0] = wide[:, 0] = True
        assert answers.hub.connections == wide.sum() - pattern.mask().sum()
        assert answers.hub.depth.depth == brute.depth(wide) <= 2


def test_a_global_token_sees_all_in_a_causal_step_too():
    ahead, back = te.patterns.butterfly(8).steps[0], te.patterns.window(8, 1).as_causal().steps[0]
    for n, steps in ((8, (back, ahead)), (8, (ahead, back))):
        found = reach(check(te.patterns.Pattern("mixed", steps))).hub
        assert (found.connections, found.depth.depth) == (25, 2), n
    n = 5000
    long = te.patterns.Pattern(
        "long", (te.patterns.window(n, 9).as_causal().steps[0], te.patterns.window(n, 9).steps[0])
    )
    assert reach(check(long)).hub.depth.depth == 2
