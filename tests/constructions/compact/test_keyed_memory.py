"""Merging keeps the function and the disjointness; the mass lemma holds on every input; a planted fault is caught."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thereexists.certificates.mass import pairwise_disjoint
from thereexists.constructions.compact.keyed_memory import Cubes, best_default, share, wrong_literals


def vertices(D):
    return np.array(list(itertools.product((0, 1), repeat=D)), dtype=np.int8)


def contains(cubes, codes):
    """Which cube contains which code, by definition: (codes, cubes)."""
    bits = 2 * codes[:, None].astype(int) - 1
    return ((cubes.signs == 0) | (cubes.signs == bits)).all(axis=2)


@given(st.integers(1, 7), st.integers(1, 4), st.floats(0.2, 1.0), st.integers(0, 2**32 - 1))
def test_every_context_is_in_exactly_one_cube_with_its_value(D, labels, share_kept, seed):
    rng = np.random.default_rng(seed)
    codes = vertices(D)
    codes = codes[rng.random(len(codes)) < share_kept]
    if not len(codes):
        return
    label = rng.integers(0, labels, len(codes))
    cubes = share(codes.copy(), label.copy())
    inside = contains(cubes, codes)
    assert (inside.sum(axis=1) == 1).all()
    assert (cubes.labels[inside.argmax(axis=1)] == label).all()
    everywhere = contains(cubes, vertices(D))
    assert everywhere.sum() == len(codes)  # a context that was not given is in no cube
    assert pairwise_disjoint(cubes.signs)
    assert len(cubes) <= len(codes)


def test_irrelevant_bits_disappear():
    codes = vertices(8)
    cubes = share(codes, codes[:, 3].astype(np.int64))
    assert len(cubes) == 2
    assert (cubes.signs != 0).sum(axis=1).tolist() == [1, 1]


def test_more_than_one_word_of_bits():
    rng = np.random.default_rng(0)
    codes = np.unique(rng.integers(0, 2, (50, 150), dtype=np.int8), axis=0)
    flipped = codes.copy()
    flipped[:, 149] ^= 1  # a twin for every code, in the last word
    both = np.unique(np.concatenate([codes, flipped]), axis=0)
    cubes = share(both, np.zeros(len(both), dtype=np.int64))
    assert len(cubes) == len(both) // 2
    assert (cubes.signs[:, 149] == 0).all()


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_mass_lemma(D, seed):
    """Σ a_C ≤ 1 for any literals with r⁺ + r⁻ ≥ 1, and the units are exact on contexts."""
    rng = np.random.default_rng(seed)
    codes = vertices(D)
    cubes = share(codes, rng.integers(0, 3, len(codes)))
    plus = rng.random((200, D)) * rng.choice([0.5, 1.0, 3.0], (200, 1))
    minus = np.maximum(1 - plus, 0) + rng.random((200, D)) * rng.choice([0.0, 1.0], (200, D))
    W = wrong_literals(cubes)
    mass = np.maximum(1 + np.concatenate([plus, minus], axis=1) @ W.T, 0).sum(axis=1)
    assert mass.max() <= 1 + 8 * D * len(cubes) * np.finfo(float).eps
    exact = np.concatenate([codes * 7.25, (1 - codes) * 1.5], axis=1)
    assert np.array_equal(np.maximum(1 + exact @ W.T, 0), contains(cubes, codes).astype(float))


def test_without_the_pair_condition_the_mass_is_not_bounded():
    cubes = share(vertices(3), np.arange(8))
    literals = np.zeros((1, 6))  # r⁺ + r⁻ = 0: every unit fires
    assert np.maximum(1 + literals @ wrong_literals(cubes).T, 0).sum() == 8


def test_overlapping_cubes_are_noticed():
    signs = np.array([[1, 0], [0, 1]])
    assert not pairwise_disjoint(signs)
    assert pairwise_disjoint(np.array([[1, 0], [-1, 1]]))


def test_a_default_restores_every_value_exactly_or_is_zero():
    third, tiny = np.array([[1 / 3], [1e-20], [0.5]]), np.array([5, 1, 1])
    default = best_default(third, tiny)
    assert (default + (third - default) == third).all()
    assert best_default(np.array([[0.25], [0.5]]), np.array([1, 9])) == 0.5


def test_cubes_without_a_label():
    cubes = Cubes(np.array([[1], [-1]]), np.array([4, 5]))
    assert len(cubes.without(4)) == 1
    with pytest.raises(AttributeError):
        cubes.labels = None  # frozen
