"""Witnesses in shards: the same weights as in one piece, and every fault in the files is noticed."""

import json
import tempfile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import thereexists as te
from tests.hostile import forge_record
from thereexists.certificates import second_opinion as opinions
from thereexists.constructions.faithful import sharded as building
from thereexists.core import shards, storage
from thereexists.core.errors import BadWitnessFile, CannotBuild, InvalidInput
from thereexists.functions.targets import builtin
from thereexists.parallel import Workers
from thereexists.parallel import map as parallel_map

SMALL = te.Target(lambda X: 1e-9 * np.sort(X, axis=1), n=3, lipschitz=1e-9, name="small")  # rounds: two sweeps
CASES = {
    "one sweep": (builtin("sort", n=3), 4, None, 1),
    "two features": (builtin("cumulative-mean", n=2, d=2), 2, None, 1),
    "two sweeps": (SMALL, 8, None, 2),
    "sparse": (builtin("sort", n=3), 4, te.patterns.star(n=3), None),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(building, "_IDS_AT_ONCE", 200)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_shards_hold_the_weights_of_the_build_in_memory(case, tmp_path):
    target, N, pattern, sweeps = CASES[case]
    whole = te.build(target, delta=1 / N, pattern=pattern)
    parts = building.build_sharded(target, tmp_path / "w", 1 / N, pattern=pattern, shard_bytes=6000)
    assert sweeps in (None, whole.plan.sweeps)
    a, b = whole.network.state_dict(), parts.network.state_dict()
    stages = [name for name in parts.network.stages if name.startswith("value")]
    assert len(stages) >= 2 * whole.plan.sweeps
    for weight in ("W_1", "b_1", "W_2", "b_2"):
        joined = torch.cat([b[f"stages.{stage}.feed_forward.{weight}"] for stage in stages])
        assert torch.equal(joined, a[f"stages.value.feed_forward.{weight}"])
    assert all(torch.equal(a[name], b[name]) for name in a if ".value." not in name)
    assert parts.plan.error == whole.plan.error
    assert parts.plan.parameters == parts.network.parameter_count == whole.plan.parameters
    assert shards.is_mapped(parts.network)
    assert not shards.is_mapped(whole.network)
    X = np.random.default_rng(0).random((50, target.n, target.d))
    assert np.array_equal(parts(X), whole(X))
    assert not any(file.name.startswith(".") for file in tmp_path.iterdir())  # nothing is left of the work


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sharded") / "w"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "_IDS_AT_ONCE", 200)
        witness = building.build_sharded(builtin("sort", n=2), folder, 1 / 4, shard_bytes=1500)
    te.certify(witness, opinions=1, folder=folder).save(folder)
    return folder


@pytest.fixture
def copy(sharded, tmp_path):
    folder = tmp_path / "w"
    folder.mkdir()
    for file in sharded.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_a_sharded_witness_verifies_as_one_in_memory_does(sharded, monkeypatch):
    monkeypatch.setattr(opinions, "VERY_DEEP", 0)  # so that the second opinions skip, too
    assert te.verify(sharded, opinions=3).holds is True
    whole = te.build(builtin("sort", n=2), delta=1 / 4)
    assert te.certify(whole, opinions=1).bound == te.certify(te.load(sharded), opinions=1).bound
    index = json.loads((sharded / shards.INDEX).read_text())
    assert set(index["weight_map"]) == set(te.load(sharded).network.state_dict())
    size = sum(w.numel() * w.element_size() for w in te.load(sharded).network.state_dict().values())
    assert index["metadata"]["total_size"] == size


def shard(folder, number=2):
    return sorted(folder.glob("model-*.safetensors"))[number]


def redo(folder):
    """Every hash of the record, as a careful forger would."""

    def change(record):
        record["shards_sha256"] = {name: storage.file_sha256(folder / name) for name in record["shards_sha256"]}

    forge_record(folder, change)


def flip(folder):
    data = bytearray(shard(folder).read_bytes())
    data[-5] ^= 1
    shard(folder).write_bytes(bytes(data))


def change_a_weight(folder):
    weights = load_file(shard(folder))
    name = next(name for name in weights if name.endswith("W_2"))
    weights[name] = weights[name] * (1 + 1e-6)
    save_file(weights, shard(folder))
    redo(folder)


def lead_outside(folder):
    index = json.loads((folder / shards.INDEX).read_text())
    index["weight_map"] = {name: f"../{file}" for name, file in index["weight_map"].items()}
    (folder / shards.INDEX).write_text(json.dumps(index))


def swap_two(folder):
    one, two = shard(folder, 1), shard(folder, 2)
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    redo(folder)


FAULTS = {
    "missing shard": (lambda f: shard(f).unlink(), "has no model-"),
    "flipped bit": (flip, "truncated or changed"),
    "truncated shard": (lambda f: shard(f).write_bytes(shard(f).read_bytes()[:-8]), "truncated or changed"),
    "swapped shards": (swap_two, "the index places elsewhere"),
    "index that leads outside": (lead_outside, "not one of this folder"),
    "weight changed, hashes redone": (change_a_weight, "is not the certified one"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_shards_are_noticed(copy, fault):
    plant, found = FAULTS[fault]
    plant(copy)
    verdict = te.verify(copy, opinions=1)
    assert verdict.holds is False
    assert any(found in reason for reason in verdict.reasons), verdict.reasons


def test_a_build_that_was_interrupted_goes_on(tmp_path, monkeypatch):
    target, calls = builtin("sort", n=3), []
    plain = building.Contexts._tabulate

    def tabulate(self, target, number):
        calls.append(number)
        if number == 2 and calls.count(2) == 1:
            raise KeyboardInterrupt
        return plain(self, target, number)

    monkeypatch.setattr(building.Contexts, "_tabulate", tabulate)
    monkeypatch.setattr(parallel_map, "CHUNK_SECONDS", 0.0)
    monkeypatch.setattr(building, "_IDS_AT_ONCE", 48)
    with pytest.raises(KeyboardInterrupt):
        building.build_sharded(target, tmp_path / "w", 1 / 4, shard_bytes=6000)
    assert not (tmp_path / "w").exists()
    witness = building.build_sharded(target, tmp_path / "w", 1 / 4, shard_bytes=6000)
    assert calls == [0, 1, 2, 2, 3]
    X = np.random.default_rng(0).random((20, 3, 1))
    assert np.array_equal(witness(X), te.build(target, delta=1 / 4)(X))


@pytest.mark.parametrize("stopped_in", ["file_sha256", "_written", "put_in_place"])
def test_a_build_that_was_stopped_at_its_end_goes_on(stopped_in, tmp_path, monkeypatch):
    target, tabulated, stopped = builtin("sort", n=3), [], []
    plain, last = building.Contexts._tabulate, getattr(storage, stopped_in)

    def stop(*given):
        if (tmp_path / ".w.build" / shards.INDEX).exists() and not stopped:
            stopped.append(given)
            raise KeyboardInterrupt
        return last(*given)

    monkeypatch.setattr(building.Contexts, "_tabulate", lambda *given: (tabulated.append(given[-1]), plain(*given))[1])
    monkeypatch.setattr(storage, stopped_in, stop)
    with pytest.raises(KeyboardInterrupt):
        building.build_sharded(target, tmp_path / "w", 1 / 4, shard_bytes=6000)
    before = list(tabulated)
    witness = building.build_sharded(target, tmp_path / "w", 1 / 4, shard_bytes=6000)
    assert tabulated == before  # nothing is done again
    assert sorted(file.name for file in tmp_path.iterdir()) == ["w"]
    assert np.array_equal(witness(np.full((1, 3, 1), 0.3)), te.build(target, delta=1 / 4)(np.full((1, 3, 1), 0.3)))


def test_a_build_is_predicted_without_a_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = building.predict_sharded(builtin("sort", n=3), 1 / 4, workers=Workers(2))
    assert (found.cells, found.workers) == (64, 2)
    assert 0 < found.hours <= found.core_hours
    assert found.worker_bytes > 1e7
    assert not list(tmp_path.iterdir())


def test_what_shards_cannot_do_is_refused(tmp_path):
    with pytest.raises(CannotBuild, match="more memory or more machines do not help"):
        building.build_sharded(builtin("sort", n=21), tmp_path / "w", 1 / 2)
    with pytest.raises(CannotBuild, match="targets with positions"):
        building.build_sharded(builtin("deep-sets", n=2), tmp_path / "w", 1 / 2)
    with pytest.raises(InvalidInput, match="a few layers"):
        building.build_sharded(builtin("sort", n=2), tmp_path / "w", 1 / 2, shard_bytes=8)
    with pytest.raises(InvalidInput, match="say --pool ray"):
        Workers(2, address="auto")
    with pytest.raises(InvalidInput, match="one of loky, ray"):
        Workers(2, "slurm")
    with pytest.raises(BadWitnessFile, match="no saved witness"):
        te.load(tmp_path / "w")


def test_a_shard_that_no_index_names_is_somebody_elses(tmp_path):
    build = lambda: building.build_sharded(builtin("sort", n=3), tmp_path / "w", 1 / 4, shard_bytes=6000)  # noqa: E731
    build()
    mine = tmp_path / "w/model-notes-of-alice.safetensors"
    mine.write_text("precious")
    with pytest.raises(InvalidInput, match="left alone"):
        build()
    assert mine.read_text() == "precious"
