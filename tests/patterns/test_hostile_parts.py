"""No file, and no call, makes a part that leaves the sequence: refused by a sentence of ours, or right everywhere."""

import random
from dataclasses import fields
from itertools import zip_longest

import numpy as np
import pytest
import torch

from tests.patterns.hostile_parts import part, record
from thereexists.attention import sparse_attention
from thereexists.attention.lower import Entries, Lowered, Strip, lower
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.patterns.numbers import FARTHEST
from thereexists.patterns.parts import Band, BlockBand, CausalPart, Explicit, Offsets, Part, Rect, Residue, Xor
from thereexists.patterns.step import Step
from thereexists.patterns.stored import restore


def assert_sound(step):
    """All answers agree with the definition, asked pair by pair in exact integers; nothing lies outside or ahead."""
    n = step.n
    k, j = (x.ravel() for x in np.mgrid[0:n, 0:n])
    truth = np.asarray(step.contains(k, j)).reshape(n, n)
    assert not (step.causal and np.triu(truth, 1).any())
    counts, columns = step.entries(np.arange(n))
    assert ((columns >= 0) & (columns < n)).all()
    listed = np.zeros((n, n), np.int64)
    np.add.at(listed, (np.repeat(np.arange(n), counts), columns), 1)
    assert np.array_equal(listed, truth)  # every member once
    assert np.array_equal(step.degrees, truth.sum(1))
    asked = step.contains(torch.from_numpy(k), torch.from_numpy(j)).numpy().reshape(n, n)
    assert np.array_equal(asked, truth)
    for listed_below in (0, 16):
        pieces = lower(step, listed_below)
        for row in range(n):
            members = np.concatenate([np.zeros(0, np.int64), *pieces.members(row)])
            assert np.array_equal(np.sort(members), np.flatnonzero(truth[row]))


def test_hostile_records_are_refused_or_right():
    draw, made = random.Random(0), dict.fromkeys(("Band", "BlockBand", "Residue", "Xor", "Offsets", "Rect"), 0)
    made["Explicit"] = 0
    for _ in range(3000):
        n = draw.choice((1, 2, 5, 8, 13))
        parts = [part(draw, n) for _ in range(draw.randint(1, 2))] + [["Band", 0, 0]] * draw.randint(0, 1)
        try:
            pattern = restore(record(parts, n, draw.random() < 0.5), n)
        except ThereExistsError:
            continue
        assert_sound(pattern.steps[0])
        for kind in parts:
            made[kind[0]] += 1
    assert min(made.values()) >= 30, made  # and not by refusing everything


@pytest.mark.parametrize("mask", [-(1 << 40), -7, -3, -2, -1, 0, 1 << 31, 1 << 40])
def test_a_stored_butterfly_with_a_bad_mask_is_refused(mask):
    for others in ([], [["Band", 0, 0]]):
        with pytest.raises(InvalidInput, match="mask of a butterfly"):
            restore(record([["Xor", mask], *others], 8, False), 8)


BAD = [
    *((Xor, (m,)) for m in (-1, 0, True, 1.0, "1", None, 1 << 31, 10**5000)),
    *((Residue, (m,)) for m in (0, -4, 2.5, False, [3])),
    *((Band, ends) for ends in ((0.0, 1), (None, 0), ("0", 0), (0, True))),
    *((BlockBand, sizes) for sizes in ((0,), (-3,), (2.0,), (2, 0, None), (2, 0, 0, 0.5), (True,))),
    *(
        (Offsets, (o,))
        for o in ((), (3, 1), (1, 1), (0.5,), ("a",), 7, ((1, 2), (3,)), (1 << 31,), (-(1 << 70),), None)
    ),
    *((Rect, (t, range(2))) for t in ([-1], [0.5], ["a"], 3, [[0], [1, 2]], range(-2, 2), range(2**40), [1 << 62])),
    *((Explicit, (p, i)) for p, i in (([0, 2], [0, 1]), ([0, 1], [-1]), ([0, 1], [1]), ([1, 1], [0]), ([0], []))),
    *((Explicit, (p, i)) for p, i in (([0, 2, 1], [0]), ([0, 2, 2], [1, 0]), ([0, 2, 2], [1, 1]), ([0.0, 1.0], [0]))),
    *((Explicit, (p, i)) for p, i in (([0, 5, 1], [0]), ([0, -1, 1], [0]), (None, None), ([0, 1 << 63], [0]))),
]


@pytest.mark.parametrize(("kind", "values"), BAD, ids=lambda x: str(x)[:40] if x != (10**5000,) else "long")
def test_constructors_refuse(kind, values):
    """Past the type checks of the tests, which a user does not have: the constructor's own look alone."""
    bare = object.__new__(kind)
    for field, value in zip_longest(fields(kind), values, fillvalue=0):
        object.__setattr__(bare, field.name, value)
    with pytest.raises(InvalidInput):
        bare.__post_init__()


LISTED = Explicit(np.array([0, 1, 2]), np.array([0, 1]))


@pytest.mark.parametrize(
    ("part_of_another", "n"), [(Rect(range(1), range(8, 9)), 8), (LISTED, 3), (CausalPart(LISTED), 3)]
)
def test_a_step_refuses_parts_of_another_length(part_of_another, n):
    with pytest.raises(InvalidInput, match="the step has"):
        Step(n, (part_of_another,))


@pytest.mark.parametrize("n", [0, -1, True, 1 << 31])
def test_a_step_refuses_a_bad_number_of_tokens(n):
    with pytest.raises(InvalidInput, match="number of tokens"):
        Step(n, (Band(0, 0),))


def test_listed_rows_without_entries():
    """Alone they leave every token without anybody; beside other parts they add nothing."""
    nothing = ["Explicit", [0] * 9, []]
    with pytest.raises(InvalidInput, match="attends to no token"):
        restore(record([nothing], 8, False), 8)
    for parts in ([nothing, ["Band", -1, 0]], [["Band", -1, 0], nothing]):
        for causal in (False, True):
            pattern = restore(record(parts, 8, causal), 8)
            assert_sound(pattern.steps[0])
            x = torch.randn(3, 1, 1, 8, 4)
            assert torch.equal(sparse_attention(*x, pattern), sparse_attention(*x, Step(8, (Band(-1, 0),), causal)))
    found = restore(record([nothing, ["Band", 0, 0]], 8, False), 8).mask_mod()
    assert found(0, 0, torch.arange(8), torch.arange(8)).all()


def test_blocks_with_extreme_shifts_and_sizes_are_the_blocks_of_the_definition():
    n = 9
    for size in (1, 3, 9, 20, FARTHEST, FARTHEST + 5, 1 << 40, 1 << 80):
        for shift in (0, 1, -1, -5, size - 3, size - n, 1 - size, 1 << 40, -(1 << 80)):
            for lo, hi in ((0, 0), (-1, 0), (-(1 << 70), 1 << 70)):
                block = [(k + shift) // size for k in range(n)]
                truth = [[lo <= block[j] - block[k] <= hi for j in range(n)] for k in range(n)]
                step = Step(n, (BlockBand(size, lo, hi, shift),))
                assert_sound(step)
                assert np.array_equal(step.mask(), truth)


class Astray(Part):
    """The planted fault: a formula that leaves the sequence in spite of everything."""

    def contains(self, k, j):
        return j == k - 4

    def entries(self, n, k):
        return np.ones(len(k), np.int64), k - 4

    def count(self, n, k, lo, hi):
        return np.ones(len(k), np.int64)

    def image(self, x, causal):
        return x

    preimage = image


def test_the_last_look_before_kernels():
    step = Step(8, (Astray(),))
    for use in (
        step.mask,
        step.to_csr,
        lambda: lower(step),
        lambda: sparse_attention(*torch.zeros(3, 1, 1, 8, 4), step),
    ):
        with pytest.raises(InvalidInput, match="leads to token -4"):
            use()
    k = np.arange(4)
    with pytest.raises(InvalidInput, match="leads to token 4"):
        Lowered(4, False, (Strip(1, k, k + 1),))
    with pytest.raises(InvalidInput, match="leads to token 9"):
        Lowered(4, False, entries=Entries(k, np.arange(5), np.array([0, 1, 9, 3])))
