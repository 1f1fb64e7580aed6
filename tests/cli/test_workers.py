"""The commands of a newcomer: dry runs, workers, samples, mistakes."""

import functools
import json

import pytest


@pytest.fixture(scope="module")
def thereexists(fresh):
    return functools.partial(fresh, "-m", "thereexists", warm=True)


@pytest.fixture(scope="module")
def witness(thereexists, tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands") / "w"
    run = thereexists(
        "build", "sort", "--n", 2, "--delta", "1/4", "--out", folder, "--shard-size", "2KB", "--workers", 2
    )
    assert run.returncode == 0, run.stderr
    return folder


def test_a_sharded_build_is_certified_and_a_dry_run_says_what_more_would_cost(thereexists, witness):
    assert (witness / "model.safetensors.index.json").is_file()
    assert (witness / "certificate.json").is_file()
    run = thereexists("certify", witness, "--dry-run", "--workers", 2, "--json")
    told = json.loads(run.stdout)
    assert (told["cells"], told["blocks"], told["chunks"], told["workers"]) == (16, 1, 1, 2)
    assert told["worker_bytes"] > 1e7
    assert 0 < told["hours"] <= told["core_hours"]


def slow(*values):
    """Every command is a process that imports everything; two of them are enough for each run of the suite."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("certify", "W", "--pool", "slurm"), "must be one of loky, ray; got 'slurm'"),
        slow(("certify", "W", "--address", "auto"), "say --pool ray"),
        slow(("verify", "W", "--sample", "2"), "'sample' must be a share above 0 and at most 1; got 2.0"),
        slow(("build", "sort", "--n", "3", "--delta", "1/4", "--shard-size", "many"), "must look like 64MB"),
        slow(("build", "sort", "--n", "3", "--delta", "1/4", "--dry-run"), "--dry-run is for --shard-size"),
        (("experiment", "copying", "--pool", "loky"), "must be local or ray"),
    ],
)
def test_mistakes_are_one_sentence_and_code_two(thereexists, witness, arguments, found, tmp_path):
    run = thereexists(*(str(witness) if a == "W" else a for a in arguments))
    assert run.returncode == 2
    assert found in run.stderr
    assert "Traceback" not in run.stderr
