"""Saved heads come back whole; broken files say so."""

import copy
import dataclasses
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array, save_npz

import thereexists.heads as heads
from thereexists.core import storage
from thereexists.core.errors import BadWitnessFile, InvalidInput
from thereexists.core.json_files import record_digest

STORED = Path(__file__).parents[2] / "docs" / "data" / "heads-witnesses"


@pytest.fixture(scope="module")
def head():
    return heads.fit(heads.random_matrix(32, 2, 2.0, 0), method="moments")


def test_a_head_comes_back_bit_for_bit(head, tmp_path):
    head.save(tmp_path / "h")
    again = heads.load(tmp_path / "h")
    for name in ("X", "W_Q", "W_K"):
        assert (getattr(again, name) == getattr(head, name)).all()
    said = again.report()
    assert "leakage" in said.pop("as_its_author_says")
    assert said == head.report()
    assert heads.verify(again.X, again.W_Q, again.W_K, again.target, eps1=again.eps1, eps2=again.eps2).verdict.holds


def test_words_come_back_too(tmp_path):
    head = heads.fit(heads.random_matrix(24, 2, 2.0, 0), method="moments", eps2=1e-14)
    head.save(tmp_path / "h")
    assert (heads.load(tmp_path / "h").words == head.words).all()


def test_saving_twice_replaces_and_leaves_nothing_beside(head, tmp_path):
    head.save(tmp_path / "h")
    head.save(tmp_path / "h")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["h"]
    assert sorted(p.name for p in (tmp_path / "h").iterdir()) == ["head.json", "head.safetensors"]


def test_a_foreign_directory_is_never_overwritten(head, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidInput, match="not a saved head"):
        head.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("damage", ["truncate", "no json", "bad json", "format", "shape", "missing key"])
def test_damage_is_named(head, tmp_path, damage):
    path = tmp_path / "h"
    head.save(path)
    tensors, record = path / "head.safetensors", path / "head.json"
    if damage == "truncate":
        tensors.write_bytes(tensors.read_bytes()[:100])
    elif damage == "no json":
        record.unlink()
    elif damage == "bad json":
        record.write_text("{")
    elif damage == "shape":
        from safetensors.torch import load_file, save_file

        loaded = load_file(tensors)
        save_file(loaded | {"X": loaded["X"][:-1].contiguous()}, tensors)
    else:
        data = json.loads(record.read_text())
        data |= {"format_version": 99} if damage == "format" else {}
        if damage == "missing key":
            del data["verification"]
        record.write_text(json.dumps(data))
    with pytest.raises(BadWitnessFile):
        heads.load(path)


def test_a_tampered_number_is_caught_by_verifying_not_by_believing(head, tmp_path):
    from safetensors.torch import load_file, save_file

    head.save(tmp_path / "h")
    loaded = load_file(tmp_path / "h" / "head.safetensors")
    loaded["X"][3, 0] *= 1.01
    save_file(loaded, tmp_path / "h" / "head.safetensors")
    with pytest.raises(BadWitnessFile, match="truncated or changed"):
        heads.load(tmp_path / "h")
    record = json.loads((tmp_path / "h" / "head.json").read_text())
    record["weights_sha256"] = storage.file_sha256(tmp_path / "h" / "head.safetensors")
    record["digest"] = record_digest(record)
    (tmp_path / "h" / "head.json").write_text(json.dumps(record))
    again = heads.load(tmp_path / "h")
    found = heads.verify(again.X, again.W_Q, again.W_K, again.target, eps1=again.eps1, eps2=again.eps2)
    assert found.verdict.holds is False
    assert found.worst_row == 3


def test_targets_round_trip(tmp_path):
    target = heads.random_matrix(50, 3, 4.0, 0)
    heads.save_matrix(target, tmp_path / "t.npz")
    again = heads.load_matrix(tmp_path / "t.npz")
    assert (again.indices == target.indices).all()
    shift = (again.log_values - target.log_values).reshape(50, 3)  # rows come back normalised
    assert np.ptp(shift, axis=1).max() <= 8 * np.finfo(float).eps


def test_files_that_are_no_sparse_matrix_say_what_to_do(tmp_path):
    np.savez(tmp_path / "dense.npz", np.ones((5, 5)))
    np.save(tmp_path / "dense.npy", np.ones((5, 5)))
    (tmp_path / "text.npz").write_text("hello")
    save_npz(tmp_path / "wide.npz", csr_array(np.ones((2, 3))))
    for name, words in (
        ("dense.npz", "dense 5×5"),
        ("dense.npy", "dense 5×5"),
        ("text.npz", "not a sparse matrix"),
        ("none.npz", "no file"),
        ("wide.npz", "square"),
    ):
        with pytest.raises(InvalidInput, match=words):
            heads.load_matrix(tmp_path / name)


def test_a_pickle_is_never_opened(tmp_path):
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInput):
        heads.load_matrix(tmp_path / "evil.npy")


@pytest.mark.parametrize("name", sorted(p.name for p in STORED.iterdir()))
def test_the_stored_witnesses_hold(name, dense_errors):
    head = heads.load(STORED / name)
    checked = heads.verify(head.X, head.W_Q, head.W_K, head.target, eps1=1e-3, eps2=1e-2)
    leakage, ratio = dense_errors(head.X, head.W_Q, head.W_K, head.target)
    assert checked.verdict.holds
    assert leakage < 1e-3
    assert ratio <= 1e-2


def test_the_stored_head_of_hidden_size_ten_is_for_the_benchmarks_target():
    head, target = heads.load(STORED / "random-256-4"), heads.random_matrix(256, 4, 2.0, 0)
    assert head.hidden_size == 10
    assert (head.target.indices == target.indices).all()
    stored = head.target.log_values - np.repeat(np.maximum.reduceat(head.target.log_values, target.indptr[:-1]), 4)
    assert np.abs(stored - target.log_values).max() <= 8 * np.finfo(float).eps


def test_a_head_that_was_changed_claims_nothing_and_is_not_saved(tmp_path):
    head = heads.fit(heads.random_matrix(8, 2))
    copied = copy.deepcopy(head)
    assert copied.verdict.holds
    with torch.no_grad():
        head.W_Q.mul_(0.01)
    assert head.verdict.holds is None
    assert head.report()["holds"] is None
    assert math.isnan(head.verification.leakage)
    assert "changed after it was verified" in repr(head)
    assert "holds" not in repr(head)
    with pytest.raises(InvalidInput, match="changed after it was verified"):
        head.save(tmp_path / "h")
    assert not (tmp_path / "h").exists()
    assert copy.deepcopy(head).verdict.holds is None
    assert copied.verdict.holds


def test_a_loaded_head_that_was_changed_does_not_repeat_its_author(tmp_path):
    heads.fit(heads.random_matrix(8, 2)).save(tmp_path / "h")
    head = heads.load(tmp_path / "h")
    head.save(tmp_path / "again")
    head.X.add_(1.0)
    assert head.verdict.holds is None
    with pytest.raises(InvalidInput, match="changed after it was verified"):
        head.save(tmp_path / "again")


def _other_weights(head):
    return dataclasses.replace(head, W_Q=head.W_Q * 0)


def _turned(head):
    return dataclasses.replace(head, X=head.X.flip(0))


def _less_allowed(head):
    return dataclasses.replace(head, eps1=1e-60)


def _other_target(head):
    return dataclasses.replace(head, target=heads.random_matrix(8, 2, seed=9))


def _stepped(head):
    """Torch does not count what a fused step changes; a parameter shares its memory with the tensor it was made of."""
    weights = [torch.nn.Parameter(array) for array in (head.X, head.W_Q, head.W_K)]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    torch.optim.SGD(weights, lr=0.1, fused=True).step()
    return head


@pytest.mark.parametrize("change", [_other_weights, _turned, _less_allowed, _other_target, _stepped])
def test_a_verification_is_about_the_arrays_and_tolerances_it_was_made_of(change, tmp_path):
    head = change(heads.fit(heads.random_matrix(8, 2)))
    for one in (head, pickle.loads(pickle.dumps(head)), dataclasses.replace(copy.deepcopy(head), seed=1)):
        assert one.verdict.holds is None
        assert "holds" not in repr(one)
        with pytest.raises(InvalidInput, match="changed after it was verified"):
            one.save(tmp_path / "h")


def test_a_head_that_was_verified_again_says_what_was_found():
    head = heads.fit(heads.random_matrix(8, 2))
    W_Q = head.W_Q * 0
    found = heads.verify(head.X, W_Q, head.W_K, head.target, eps1=head.eps1, eps2=head.eps2)
    assert dataclasses.replace(head, W_Q=W_Q, verified=found).verdict.holds is False
    assert dataclasses.replace(head, seed=1).verdict.holds is True
    assert pickle.loads(pickle.dumps(head)).verdict.holds is True
