"""Every f(g(x)) builds, certifies, and verifies from its files; the whole list is slow, a sample of it is not.

What the verifier cannot follow may be *not proved*, with the operation named, for at most one in a thousand.
"""

import random

import numpy as np
import pytest

import thereexists as te
from tests.program.composed import ARGUMENTS, LEFT_OUT, SPANS, compositions, operations
from thereexists import program as P
from thereexists.core.errors import InvalidInput, NotProved

SIZES = (3, 5, 8)
SAMPLE = 20


def outcome(program, folder):
    """Proved, and kept on a few inputs; or the sentence that says that it is not proved."""
    try:
        witness = te.build(program, dtypes=("float64",))
    except NotProved as error:
        return str(error)
    witness.save(folder)
    verdict = te.verify(folder)
    assert verdict.holds, verdict.reasons
    low, high = (witness.source.settings[end] for end in ("low", "high"))
    X = np.clip(low + (high - low) * np.random.default_rng(0).random((8, program.n, 1)), low, high)
    off = np.abs(witness(X) - P.interpret(program, X.astype(np.longdouble))).max()
    assert off <= witness.certificate.bound
    return "proved"


def test_a_sample_of_all_compositions(tmp_path):
    rng = random.Random(18)
    names, spans = list(operations()), list(SPANS)
    sizes = rng.choices(SIZES, (6, 3, 1), k=SAMPLE)  # the largest take longest
    chosen = [(n, rng.choice(spans), rng.choice(names), rng.choice(names)) for n in sizes]
    found = []
    for n, span, outer, inner in chosen:
        low, high = SPANS[span]
        try:
            program = operations()[outer](operations()[inner](P.tokens(n, low=low, high=high)))
        except te.ThereExistsError:
            continue  # one that cannot be written
        found.append(((outer, inner, n, span), outcome(program, tmp_path / "w")))
    assert len(found) >= SAMPLE - 3
    assert [name for name, text in found if text != "proved"] == []


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
def test_all_compositions(n, tmp_path):
    found = {name: outcome(program, tmp_path / "w") for name, program in compositions(n)}
    left = {name: text for name, text in found.items() if text != "proved"}
    assert len(found) > 2500
    assert len(left) <= len(found) / 1000, left
    assert all(text.startswith("Not proved: ") and "'" in text for text in left.values())  # the operation is named


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES[:2])
def test_all_compositions_for_shorter_sequences(n, tmp_path):
    found = {}
    for name, program in compositions(n, shorter=True):
        try:
            found[name] = outcome(program, tmp_path / "w")
        except InvalidInput:  # what needs the end of the sequence
            continue
    left = {name: text for name, text in found.items() if text != "proved"}
    assert len(found) > 1900
    assert len(left) <= len(found) / 1000, left


@pytest.mark.parametrize("n", [3, 5])
@pytest.mark.parametrize("outer", [P.sum, P.max, P.sort, lambda x: P.argsort(x, margin=0.1)])
def test_what_is_larger_of_two_is_known_to_be_small_where_no_token_is(n, outer, tmp_path):
    """Behind a shorter sequence the network computes things that are no quantities of the program."""
    x = P.tokens(n, shorter=True)
    assert outcome(outer(P.cummax(x)), tmp_path / "w") == "proved"
    assert outcome(outer(P.greater_equal(x, P.delay(x, 1, 0.1), margin=0.13)), tmp_path / "v") == "proved"


@pytest.mark.parametrize(("n", "bins"), [(1, 30), (4, 12), (16, 30), (2, 300)])
def test_many_bins_that_look_alike_at_most_inputs(n, bins, tmp_path):
    counts = P.histogram(P.tokens(n), np.linspace(0, 1, bins + 1), margin=1e-3)
    assert outcome(counts, tmp_path / "w") == "proved"


def test_every_operation_can_be_called():
    """A new operation is in the list by itself; its parameters must be among those that we know how to choose."""
    for name, operation in operations().items():
        assert isinstance(operation(P.tokens(5)), P.Value), name
    assert not LEFT_OUT & set(ARGUMENTS)
