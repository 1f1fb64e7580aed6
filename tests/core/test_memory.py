"""Too little memory says nothing about a file, in whatever words it is told: torch's, NumPy's, the system's."""

import errno
import os
import resource
import shutil
import sys
import warnings
from unittest.mock import patch

import numpy as np
import pytest
import torch

import thereexists as te
from tests.cli.in_process import ran
from thereexists.cli._in_words import in_words
from thereexists.core.errors import BadWitnessFile, InvalidTarget
from thereexists.core.json_files import malformed
from thereexists.core.memory import is_out_of_memory

TORCH = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "67065600 bytes. Error code 12 (Cannot allocate memory)"
)
EXHAUSTED = {
    "torch": TORCH,
    "mapped": RuntimeError(
        "unable to mmap 36894048 bytes from file <w/model.safetensors>: Cannot allocate memory (12)"
    ),
    "gpu": torch.OutOfMemoryError("HIP ran out of something"),
    "python": MemoryError(),
    "system": OSError(errno.ENOMEM, "Cannot allocate memory"),
}
OTHERS = [
    RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    ValueError("DefaultCPUAllocator: can't allocate memory"),  # words in a record are no failure of torch
    OSError(errno.ENOENT, "No such file"),
    KeyError("memory"),
]


@pytest.fixture(scope="module")
def memorised(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory") / "w"
    te.memorise([["a", "b"], ["b", "a"]], [["x"], ["y"]]).save(folder)
    return folder


@pytest.mark.parametrize("error", EXHAUSTED.values(), ids=EXHAUSTED)
def test_it_is_known_in_every_wording(error):
    assert is_out_of_memory(error)
    wrapped = BadWitnessFile("cannot be read")
    wrapped.__cause__ = error
    assert is_out_of_memory(wrapped)
    assert "emory" in (in_words(error) or "")


def test_torch_itself_says_it_so():
    with pytest.raises(RuntimeError) as said:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_out_of_memory(said.value)
    assert in_words(said.value) == "This needs more memory than there is (1152921504606846976 bytes were asked for)."


@pytest.mark.parametrize("error", OTHERS, ids=repr)
def test_other_failures_are_not_taken_for_it(error):
    assert not is_out_of_memory(error)
    with pytest.raises((BadWitnessFile, OSError)), malformed("w"):
        raise error


@pytest.mark.parametrize("error", EXHAUSTED.values(), ids=EXHAUSTED)
@pytest.mark.parametrize("place", ["core.storage.load_file", "certificates.stored_tokens.run_tokens"])
def test_verify_says_nothing_about_the_files(error, place, memorised):
    with patch(f"thereexists.{place}", side_effect=error):
        verdict = te.verify(memorised)
        done = ran("verify w", cwd=memorised.parent)
    assert verdict.holds is None, verdict.reasons
    assert verdict.evidence[-1].name == "machine"
    assert (done.code, done.stdout) == (2, "")
    assert "could not be checked" in done.stderr
    assert "does not hold" not in done.stderr


def test_a_fault_found_before_it_counts_all_the_same(memorised, tmp_path):
    from tests.hostile import forge_record

    shutil.copytree(memorised, tmp_path / "w")
    forge_record(tmp_path / "w", lambda record: record["class"].update(h=99))
    with patch("thereexists.certificates.stored_tokens.run_tokens", side_effect=TORCH):
        assert te.verify(tmp_path / "w").holds is False


def test_a_function_without_memory_is_not_a_wrong_function(tmp_path):
    def f(X):
        if hungry:
            raise TORCH
        return X / 2

    hungry = False
    target = te.Target(f, n=2, lipschitz=1.0, equivariant=True)
    witness = te.build(target, delta=1 / 2)
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1).save(tmp_path / "w")
    assert te.verify(tmp_path / "w", target, opinions=1).holds
    hungry = True
    assert te.verify(tmp_path / "w", target, opinions=1).holds is None
    with pytest.raises(RuntimeError, match="allocate memory"):
        target(np.zeros((1, 2, 1)))


def test_what_a_function_raises_otherwise_is_its_own_fault():
    def f(X):
        raise RuntimeError("no")

    with pytest.raises(InvalidTarget, match="no"):
        te.Target(f, n=2, lipschitz=1.0)(np.zeros((1, 2, 1)))


def verdicts_within(folder):
    """What ``verify`` says with so many bytes more than this process has; in a child, which the limit may end."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    for more in (1 << 20, 1 << 23, 1 << 25, 1 << 26, 1 << 27):
        resource.setrlimit(resource.RLIMIT_AS, (used + more, -1))
        verdict = te.verify(folder)
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        yield f"{verdict.holds} {verdict.reasons}"[:300]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit and its unit are Linux's")
def test_a_real_limit_never_makes_an_honest_witness_false(tmp_path):
    rng = np.random.default_rng(0)
    inputs = [[str(token) for token in rng.integers(0, 9, 600)] for _ in range(8)]
    te.memorise(inputs, [row[::-1] for row in inputs], dtype="float64").save(tmp_path / "w")
    ours, theirs = os.pipe()
    with warnings.catch_warnings(action="ignore"):  # newer Pythons warn of a fork beside threads
        child = os.fork()
    if child == 0:
        try:
            os.write(theirs, "\n".join(verdicts_within(tmp_path / "w")).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(theirs)
    with os.fdopen(ours) as stream:
        said = stream.read().splitlines()
    assert len(said) == 5
    assert all(line.startswith(("None", "True")) for line in said), said
    assert any(line.startswith("None") for line in said), said
