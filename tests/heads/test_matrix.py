"""Targets: what is accepted is right, what is not is named with its place."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from thereexists.core.errors import InvalidInput
from thereexists.heads.matrix import AttentionMatrix, as_matrix, from_csr, random_matrix
from thereexists.heads.verify import Arithmetic, verify
from thereexists.heads.verify_exact import verify_exact


@given(st.integers(1, 40), st.integers(1, 6), st.floats(1.0, 50.0), st.integers(0, 2**31))
def test_random_targets_have_exactly_k_per_row_and_column_within_gamma(length, k, gamma, seed):
    k = min(k, length)
    target = random_matrix(length, k, gamma, seed)
    A = target.to_scipy().toarray()
    assert ((A > 0).sum(0) == k).all()
    assert ((A > 0).sum(1) == k).all()
    ratio = np.array([row[row > 0].max() / row[row > 0].min() for row in A])
    # exp and log each round to within an ulp, and the division once more: 8 ulp is generous and still tiny.
    assert ratio.max() <= gamma * (1 + 8 * np.finfo(float).eps)
    assert (target.k, target.k_row, target.k_column) == (k, k, k)


def test_a_seed_gives_the_same_target_and_another_seed_another():
    first, again, other = (random_matrix(50, 3, 2.0, s) for s in (7, 7, 8))
    assert (first.indices == again.indices).all()
    assert (first.log_values == again.log_values).all()
    assert (first.indices != other.indices).any()


def test_rows_of_unequal_length_survive_padding():
    A = np.array([[0, 1, 0], [1 / 3, 1 / 3, 1], [1, 0, 0]])  # relative to the largest of each row
    target = as_matrix(csr_array(A))
    columns, log_values, real = target.padded()
    rebuilt = np.zeros_like(A)
    for i in range(3):
        rebuilt[i, columns[i, real[i]]] = np.exp(log_values[i, real[i]])
    assert np.abs(rebuilt - A).max() <= 4 * np.finfo(float).eps * A.max()
    assert target.k_row == 3
    assert target.k_column == 2


def test_duplicates_are_summed_and_explicit_zeros_dropped():
    A = coo_array(([1.0, 2.0, 0.0, 1.0], ([0, 0, 0, 1], [1, 1, 0, 1])), shape=(2, 2))
    target = as_matrix(A)
    assert target.indices.tolist() == [1, 1]
    assert np.array_equal(target.probabilities(), as_matrix(csr_array([[0.0, 3.0], [0.0, 1.0]])).probabilities())


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (csr_array(np.array([[1.0, -1.0], [0.0, 1.0]])), ["negative", "A[0, 1] = -1.0"]),
        (csr_array(np.array([[1.0, np.nan], [0.0, 1.0]])), ["NaN", "A[0, 1]"]),
        (csr_array(np.array([[1.0, np.inf], [0.0, 1.0]])), ["infinite"]),
        (csr_array(np.array([[1.0, 0.0], [0.0, 0.0]])), ["Row 1", "empty", "self-loop"]),
        (csr_array(np.ones((2, 3))), ["square", "(2, 3)"]),
        (np.ones((300, 300)), ["dense", "90,000", "MB", "csr_array"]),
        (csr_array((0, 0)), ["no rows"]),
        ("a string", ["scipy.sparse", "str"]),
        (csr_array(np.eye(2) * 1j), ["real"]),
    ],
)
def test_bad_targets_are_refused_with_the_place_and_the_remedy(matrix, words):
    with pytest.raises(InvalidInput) as error:
        as_matrix(matrix)
    for word in words:
        assert word in str(error.value)


def test_broken_csr_arrays_are_refused():
    with pytest.raises(InvalidInput, match="fit together"):
        from_csr(np.array([0, 2]), np.array([0]), np.array([1.0]))
    with pytest.raises(InvalidInput, match="outside"):
        from_csr(np.array([0, 1]), np.array([3]), np.array([1.0]))
    with pytest.raises(InvalidInput, match="repeat"):
        from_csr(np.array([0, 2, 3]), np.array([1, 1, 0]), np.array([1.0, 1.0, 1.0]))


@pytest.mark.parametrize(("length", "k", "gamma"), [(0, 1, 2.0), (4, 5, 2.0), (4, 0, 2.0), (4, 1, 0.5), (4, 1, np.nan)])
def test_impossible_random_targets_are_refused(length, k, gamma):
    with pytest.raises(InvalidInput):
        random_matrix(length, k, gamma)


@pytest.mark.parametrize("a", [1e300, 1000.0, 30.0, 1e-300])
def test_numbers_with_one_logarithm_are_two_numbers(a):
    """Up to 4e-14 apart, and log rounds both to the same: a head with equal weights misses that, and it is noticed."""
    apart = 2.0**-50
    while np.log(a * (1 + 2 * apart)) == np.log(a):
        apart *= 2
    b = a * (1 + apart)
    X, W = torch.zeros(2, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    target, how = as_matrix(csr_array(np.array([[a, b], [b, a]]))), {"eps1": 1e-3, "eps2": 1e-30}
    assert verify(X, W, W, target, **how).verdict.holds is not True
    assert verify_exact(X[None], W, W, target, **how, bits=200).verdict.holds is not True
    equal = as_matrix(csr_array(np.full((2, 2), a)))
    assert verify(X, W, W, equal, **how).verdict.holds
    assert verify_exact(X[None], W, W, equal, **how, bits=200).verdict.holds


def test_another_order_of_the_sums_is_within_what_is_verified():
    """1 + 100 numbers just above half a last place and 100 at half of one: one order loses them all, another none."""
    u, k = 2.0**-24, 100
    b = u * (1 + 2.0**-20)
    x = np.array([1.0, *[b, u] * k])
    X, W_Q, W_K = torch.from_numpy(np.stack([x, -x])), torch.zeros(len(x), 2).double(), torch.zeros(len(x), 2).double()
    W_Q[:, 0], W_K[:, 0] = 8, 1
    target, run = as_matrix(csr_array(np.eye(2))), Arithmetic("float32")
    found = verify(X, W_Q, W_K, target, eps1=0.5, eps2=1e-2, arithmetic=run)

    def added(terms):
        total = np.float32(0)
        for term in terms:
            total = np.float32(total + np.float32(term))
        return total

    sums = added([1.0, *[u] * k, *[np.float32(b) + np.float32(b)] * (k // 2)]), added([1.0, *[u] * k, *[b] * k])
    leakage = [float(np.exp(-2 * np.float64(np.float32(np.float32(8 * s) * s)))) for s in sums]
    assert max(leakage) / min(leakage) > 1 + 1e-5
    for eps1 in np.geomspace(min(leakage) * (1 - 1e-4), max(leakage) * (1 + 1e-2), 64):
        holds = verify(X, W_Q, W_K, target, eps1=eps1, eps2=1e-2, arithmetic=run).verdict.holds
        assert holds is not True or max(leakage) < eps1
    assert verify(X, W_Q, W_K, target, eps1=2 * found.leakage, eps2=1e-2, arithmetic=run).verdict.holds


def test_a_target_made_of_arrays_stays_what_it_was_when_they_change():
    given = np.array([0, 1, 2]), np.array([0, 1]), np.zeros(2)
    target = AttentionMatrix(2, *given)
    given[1][:] = 1
    assert target.indices.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        target.log_values[0] = 1.0
