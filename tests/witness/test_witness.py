"""A witness runs, refuses what it is not for, and survives its files being broken in every way."""

import json
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import thereexists as te
from tests.hostile import forge_record
from thereexists.core import storage
from thereexists.functions.targets import builtin


@pytest.fixture(scope="module")
def witness():
    return te.build(builtin("sort", n=3), delta=1 / 4)


@pytest.fixture
def saved(witness, tmp_path):
    witness.save(tmp_path / "w")
    return tmp_path / "w"


def test_numpy_in_numpy_out_torch_in_torch_out(witness):
    x = np.array([[[0.9], [0.1], [0.6]]])
    assert isinstance(witness(x), np.ndarray)
    assert isinstance(witness(torch.from_numpy(x)), torch.Tensor)
    assert np.array_equal(witness(torch.from_numpy(x)).numpy(), witness(x))
    assert np.array_equal(witness(x[0]), witness(x)[0])
    assert witness(x).tolist() == [[[0.125], [0.625], [0.875]]]


def test_both_ends_of_the_domain_are_inputs(witness):
    assert witness([[1.0], [0.0], [1.0]]).ravel().tolist() == [0.125, 0.875, 0.875]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[0.1], [0.2]], r"shape \(batch, 3, 1\) or \(3, 1\).*got \(2, 1\)"),
        ([0.1, 0.2, 0.3], "got"),
        (np.zeros((0, 3, 1)), "at least one sequence"),
        ([[[0.1], [0.2], [0.3]], [[0.1]]], "one length"),
        ([[0.1], [np.nan], [0.3]], "token 1, feature 0 is nan"),
        ([[0.1], [np.inf], [0.3]], "is inf"),
        ([[0.1], [0.2], [1.1]], r"domain \[0, 1\]; sequence 0, token 2, feature 0 is 1.1"),
        ("text", "must be real numbers"),
        (np.full((3, 1), 0.5j), "must be real numbers"),
    ],
)
def test_bad_inputs_are_named(witness, x, message):
    with pytest.raises(te.ThereExistsError, match=message):
        witness(x)


def test_save_and_load_give_the_same_bits(witness, saved):
    loaded = te.load(saved)
    X = np.random.default_rng(0).random((100, 3, 1))
    assert np.array_equal(loaded(X), witness(X))
    assert loaded.plan == witness.plan
    assert loaded.grid == witness.grid
    assert loaded.exactness(samples=100).max_error == 0
    assert sorted(p.name for p in saved.iterdir()) == ["model.safetensors", "witness.json"]


def test_the_modified_network_saves_and_loads_too(tmp_path):
    modified = te.build(builtin("sort", n=2), delta=1 / 4, modified=True)
    modified.save(tmp_path / "m")
    X = np.random.default_rng(0).random((100, 2, 1))
    assert np.array_equal(te.load(tmp_path / "m")(X), modified(X))


def test_saving_again_replaces_and_saving_over_something_else_is_refused(witness, saved, tmp_path):
    witness.save(saved)
    assert te.load(saved).plan == witness.plan
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").write_text("…")
    with pytest.raises(te.ThereExistsError, match="not a saved witness; it is left alone"):
        witness.save(tmp_path / "precious")
    assert (tmp_path / "precious" / "thesis.tex").read_text() == "…"


def test_an_interrupted_save_leaves_the_old_witness_and_nothing_else(witness, saved, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(storage, "save_tensors", interrupted)
    with pytest.raises(KeyboardInterrupt):
        witness.save(saved)
    assert te.load(saved).plan == witness.plan
    assert [p.name for p in tmp_path.iterdir()] == ["w"]


def change_record(saved, change):
    record = json.loads((saved / "witness.json").read_text())
    change(record)
    (saved / "witness.json").write_text(json.dumps(record))


BREAKAGES = {
    "truncated weights": (
        lambda w: (w / "model.safetensors").write_bytes((w / "model.safetensors").read_bytes()[:-8]),
        "truncated or changed",
    ),
    "one flipped bit": (
        lambda w: (w / "model.safetensors").write_bytes(
            (data := bytearray((w / "model.safetensors").read_bytes())).__setitem__(-3, data[-3] ^ 1) or bytes(data)
        ),
        "truncated or changed",
    ),
    "no weights": (lambda w: (w / "model.safetensors").unlink(), "has no model.safetensors"),
    "no record": (lambda w: (w / "witness.json").unlink(), "no saved witness"),
    "truncated record": (
        lambda w: (w / "witness.json").write_text((w / "witness.json").read_text()[:100]),
        "not a witness record",
    ),
    "empty record": (lambda w: (w / "witness.json").write_text(""), "not a witness record"),
    "record is a list": (lambda w: (w / "witness.json").write_text("[1]"), "not a witness record"),
    "changed domain": (lambda w: change_record(w, lambda r: r["target"].update(high=[2.0])), "digest does not match"),
    "newer format": (lambda w: change_record(w, lambda r: r.update(format_version=99)), "update thereexists"),
    "another kind": (
        lambda w: forge_record(w, lambda r: r.update(kind="head")),
        "holds a 'head'",
    ),
    "missing field": (
        lambda w: forge_record(w, lambda r: r.pop("grid")),
        "not a complete witness",
    ),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_broken_files_are_named(saved, name):
    breakage, message = BREAKAGES[name]
    breakage(saved)
    with pytest.raises(te.ThereExistsError, match=message):
        te.load(saved)


@pytest.mark.parametrize("dtype", [torch.float32, "bfloat16", torch.float16])
def test_a_lower_dtype_is_refused_with_the_reason(witness, saved, dtype):
    for attempt in (lambda: witness.to(dtype), lambda: te.load(saved, dtype=dtype)):
        with pytest.raises(te.ThereExistsError, match=r"not safe in \w+: its ids need 2\d bits"):
            attempt()
    assert witness.to(torch.float64) is witness
    with pytest.raises(te.ThereExistsError, match="must be one of"):
        witness.to("int8")


def test_the_bare_network_refuses_a_lower_dtype_too(saved):
    network = te.load(saved).network.float()
    with pytest.raises(te.ThereExistsError, match=r"right only in torch.float64.*weights in torch.float32"):
        network(torch.rand(1, 3, 1))


def test_files_of_others_in_the_folder_are_never_deleted(witness, saved):
    (saved / "notes.md").write_text("mine")
    with pytest.raises(te.ThereExistsError, match="left alone"):
        witness.save(saved)
    assert (saved / "notes.md").read_text() == "mine"


def test_weights_stored_in_a_lower_dtype_are_refused(saved):
    weights = {k: v.float() for k, v in load_file(saved / "model.safetensors").items()}
    save_file(weights, saved / "model.safetensors")
    sha = storage.file_sha256(saved / "model.safetensors")
    forge_record(saved, lambda r: r.update(weights_sha256=sha))
    with pytest.raises(te.ThereExistsError, match=r"must be in float64.*is torch.float32"):
        te.load(saved)


def test_a_witness_of_own_code_loads_but_does_not_pretend_to_know_the_function(tmp_path):
    witness = te.build(te.Target(lambda X: X / 2, n=2), delta=1 / 2)
    witness.save(tmp_path / "w")
    loaded = te.load(tmp_path / "w")
    assert np.array_equal(loaded([[0.1], [0.9]]), witness([[0.1], [0.9]]))
    with pytest.raises(te.ThereExistsError, match="not stored in a witness"):
        loaded.estimate_distance()


def test_trace_ends_where_the_network_ends(witness):
    x = [[0.9], [0.1], [0.6]]
    traced = te.trace(witness, x)
    assert np.array_equal(traced.output, witness(x))
    shifts = [move for move in traced.moves if move.stage == "context"]
    assert len(shifts) == 3 + 3  # one selective shift a token, then the global shift moves all three
    assert [move.token for move in shifts[:3]] == [0, 1, 2]  # positions are swept in order
    assert traced.ids["quantise"].tolist() == [3, 0 + 5, 2 + 10]


def test_estimate_records_its_seed_and_covers_the_truth(witness):
    one, again, other = (witness.estimate_distance(seed=s) for s in (1, 1, 2))
    assert one == again
    assert one.seed == 1
    assert one.estimate != other.estimate
    ramps = 6 * witness.grid.ramp_share()  # sort: d_1 = 3δ/4 off the ramps
    assert one.low - ramps <= 3 / 16 <= one.high + ramps


def test_too_few_samples_are_refused(witness):
    with pytest.raises(te.ThereExistsError, match="from 16 to"):
        witness.estimate_distance(samples=3)


@pytest.mark.parametrize("name", te.targets.BUILTINS)
def test_a_witness_of_a_built_in_function_travels(name):
    witness = te.build(builtin(name, n=2), delta=1 / 2)
    copied = pickle.loads(pickle.dumps(witness))
    assert te.certify(copied, opinions=1).bound == te.certify(witness, opinions=1).bound


def test_a_certificate_travels_with_its_sums(tmp_path):
    """Made by ``te.certify``, or when the witness was built for an epsilon; a loaded one too."""
    witness = te.build(builtin("sort", n=2), epsilon=1 / 2)
    witness.save(tmp_path / "w")
    for made in (te.certify(witness, opinions=1), te.certify(tmp_path / "w", opinions=1)):
        copied = pickle.loads(pickle.dumps(made))
        assert copied == made
        assert copied.sums() == made.sums()
    assert pickle.loads(pickle.dumps(witness)).epsilon(1.0) == 1 / 2
