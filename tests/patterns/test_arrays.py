"""Patterns from other people's arrays: every fault is named, every format gives the same pattern."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, save_npz

from thereexists.core.errors import InvalidInput
from thereexists.patterns import REGISTRY, build, from_csr, from_mask, from_rows, load_npz, random, strided
from thereexists.patterns.library import sizes_for


def test_round_trips():
    p = strided(n=12, stride=3)
    assert np.array_equal(from_csr(p.to_csr()).mask(), p.mask())
    assert np.array_equal(from_mask(p.mask()).mask(), p.mask())
    assert np.array_equal(from_mask(p.mask()[0].astype(np.int8)).mask(), p.mask()[:1])
    assert np.array_equal(from_rows([p.step(0).rows(k) for k in range(12)]).mask(), p.mask()[:1])
    shuffled = csr_array((np.ones(3, bool), np.array([1, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert from_csr([shuffled]).mask().tolist() == [[[True, True], [False, True]]]
    assert from_csr([coo_array(np.eye(3))]).step(0).self_loops.all()


def test_stored_zeros_are_no_connections():
    array = csr_array((np.array([1, 0, 1]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert from_csr([array]).connections == (2,)


def test_files(tmp_path):
    p = strided(n=12, stride=3)
    first, second = p.to_csr()
    np.savez(tmp_path / "dense.npz", mask=p.mask())
    np.savez(tmp_path / "steps.npz", a=p.mask()[0], b=p.mask()[1])
    pairs = {
        "indptr_0": first.indptr,
        "indices_0": first.indices,
        "indptr_1": second.indptr,
        "indices_1": second.indices,
    }
    np.savez(tmp_path / "csr.npz", **pairs)
    for name in ("dense", "steps", "csr"):
        assert np.array_equal(load_npz(tmp_path / f"{name}.npz").mask(), p.mask()), name
    save_npz(tmp_path / "scipy.npz", first)
    assert np.array_equal(load_npz(tmp_path / "scipy.npz").mask(), p.mask()[:1])


def faulty_csr(indptr, indices):
    return lambda path: np.savez(path, indptr=np.array(indptr), indices=np.array(indices))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_bytes(b"no zip"), "not an .npz file"),
        (lambda path: np.savez(path, mask=np.ones((2, 3), bool)), "shape"),
        (lambda path: np.savez(path, mask=np.ones(3, bool)), "shape"),
        (lambda path: np.savez(path, mask=np.full((2, 2), 0.5)), "zeros and ones"),
        (lambda path: np.savez(path, mask=np.zeros((2, 2), bool)), "attends to no token"),
        (lambda path: np.savez(path, a=np.eye(2, dtype=bool), b=np.eye(3, dtype=bool)), "same number of tokens"),
        (lambda path: np.savez(path, indptr=np.array([0, 1])), "no 'indices'"),
        (faulty_csr([0, 1, 2], [0, 2]), "Token 1 of step 0 attends to 2"),
        (faulty_csr([0, 1, 2], [0, -1]), "attends to -1"),
        (faulty_csr([0, 2, 3], [0, 0, 1]), "lists token 0 twice"),
        (faulty_csr([0, 2, 1], [0, 1]), "must rise"),
        (faulty_csr([0, 1, 3], [0, 1]), "must rise"),
        (faulty_csr([0, 0, 1], [1]), "Token 0 attends to no token"),
        (lambda path: np.savez(path), "no arrays"),
    ],
)
def test_bad_files_are_named(write, message, tmp_path):
    write(tmp_path / "mask.npz")
    with pytest.raises(InvalidInput, match=message):
        load_npz(tmp_path / "mask.npz")


def test_bad_arrays_are_named(tmp_path):
    with pytest.raises(InvalidInput, match="no file"):
        load_npz(tmp_path / "missing.npz")
    with pytest.raises(InvalidInput, match="from_mask for dense"):
        from_csr([np.eye(3)])
    with pytest.raises(InvalidInput, match="square"):
        from_csr([csr_array(np.ones((2, 3)))])
    with pytest.raises(InvalidInput, match="no rows"):
        from_rows([])
    with pytest.raises(InvalidInput, match="at least one step"):
        from_csr([])
    with pytest.raises(InvalidInput, match="attends to 7"):
        from_rows([[0], [7]])


def test_a_mask_of_too_many_connections_is_refused_before_they_are_listed(monkeypatch):
    monkeypatch.setattr("thereexists.patterns.arrays.MOST_LISTED", 100)
    assert from_mask(np.ones((10, 10), bool)).n == 10
    with pytest.raises(InvalidInput, match="at most 100; this one has 121"):
        from_mask(np.ones((11, 11), np.uint8))


def test_large_arrays_come_in_without_a_dense_step():
    p = random(100_000, degree=4, seed=2)
    assert from_csr(p.to_csr()).connections == (500_000,)


def test_twelve_saved_masks_keep_their_order(tmp_path):
    masks = np.random.default_rng(0).random((12, 5, 5)) < 0.4
    masks |= np.eye(5, dtype=bool)
    np.savez(tmp_path / "steps.npz", *masks)
    loaded = load_npz(tmp_path / "steps.npz")
    assert all(np.array_equal(loaded.step(l).mask(), mask) for l, mask in enumerate(masks))
    assert loaded.config == "sequential"


def test_a_connection_listed_twice_in_any_format_is_named(tmp_path):
    twice = coo_array((np.array([128, 128], np.uint8), (np.array([1, 1]), np.array([0, 0]))), shape=(3, 3))
    with pytest.raises(InvalidInput, match="Token 1 of step 0 lists token 0 twice"):
        from_csr([twice])


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint64])
def test_sizes_in_numbers_of_numpy(name, kind):
    """``-window`` of an unsigned window is a large number, ``8 * window`` of a short one wraps around."""
    sizes = sizes_for(name, 64, {})
    narrow = {key: kind(size) if type(size) is int else size for key, size in sizes.items()}
    for found in (build(name, 64, **narrow), REGISTRY[name].build(n=kind(64), **narrow)):
        assert np.array_equal(found.mask(), build(name, 64, **sizes).mask())
