"""What a caller has set for the whole process changes no result and no verdict, of any kind and by any door."""

import contextlib

import numpy as np
import pytest
import torch

import thereexists as te
from tests.kinds import EXAMPLES
from thereexists.core.neutral import neutral
from thereexists.reports.explore import Server, open_viewer


@contextlib.contextmanager
def _flushing():
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@contextlib.contextmanager
def _coarse_products():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def _default(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


STATES = {
    "NumPy raises": lambda: np.errstate(all="raise"),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "no counts of changes": torch.inference_mode,
    "another device": lambda: torch.device("meta"),
    "another dtype": lambda: _default(torch.float64),
    "a short dtype": lambda: _default(torch.float16),
    "no subnormal numbers": _flushing,
    "coarse products": _coarse_products,
}
BUILDS = {
    **{kind: (example.build, example.x) for kind, example in EXAMPLES.items()},
    "data": (lambda: te.memorise([["a", "dog"], ["a", "cat"]], [["pes"], ["kočka"]]), ["a", "dog"]),
}


def _goes_through(kind, folder):
    """Built, saved, read back, certified, run, watched and verified: the answer, as text."""
    build, x = BUILDS[kind]
    build().save(folder)
    read = te.load(folder)
    if read.construction != "tokens":
        te.certify(folder, opinions=1)
    assert te.verify(folder).holds
    te.trace(folder, x)
    return f"{read!r}: {read([x])}"


@pytest.mark.sampled(8)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", BUILDS)
def test_no_state_of_the_caller_changes_a_result(kind, state, tmp_path):
    wanted = _goes_through(kind, tmp_path / "before")
    with STATES[state]():
        found = _goes_through(kind, tmp_path / "within")
    assert found == wanted


@pytest.mark.sampled(3)
@pytest.mark.parametrize("state", STATES)
def test_no_state_of_the_caller_changes_a_head(state):
    matrix = te.heads.random_matrix(8, 2)
    with STATES[state]():
        head = te.heads.fit(matrix)
        again = te.heads.verify(head.X, head.W_Q, head.W_K, matrix, eps1=head.eps1, eps2=head.eps2)
    assert head.verdict.holds
    assert again.verdict.holds


def _watched(witness, folder):
    """The page in a file, and what the server says: of the witness, and of its first input."""
    te.explore(witness, out=folder / "page.html")
    with Server(open_viewer(witness)) as server:
        about = server.about()
        answer = server.answer("run", {"words": about["start"]})
    return (folder / "page.html").read_text(encoding="utf-8"), about, answer | {"milliseconds": 0}


def test_no_state_of_the_caller_changes_a_page(tmp_path):
    """In bfloat16 the counts of this network are others."""
    witness = EXAMPLES["parity"].build()
    wanted = _watched(witness, tmp_path)
    with STATES["autocast"]():
        assert _watched(witness, tmp_path) == wanted


def test_the_caller_finds_everything_as_it_was():
    with np.errstate(all="raise"), torch.device("meta"), _default(torch.float64), _flushing(), _coarse_products():
        with neutral():
            assert np.geterr()["under"] == "ignore"
            assert torch.zeros(1).device.type == "cpu"
            assert torch.zeros(1).dtype == torch.float32
            assert float(np.float64(2.0**-1074) * 0.5 + 2.0**-1074) > 0
        assert set(np.geterr().values()) == {"raise"}
        assert torch.zeros(1).device.type == "meta"
        assert torch.get_default_dtype() == torch.float64
        assert torch.get_float32_matmul_precision() == "medium"
        tiny = np.float64(2.0**-1074)
        with np.errstate(all="ignore"):
            assert tiny * 1.0 == 0


def test_what_is_built_where_changes_are_not_counted_counts_them():
    with torch.inference_mode():
        witness = EXAMPLES["compact"].build()
    assert not any(weight.is_inference() for weight in witness.network.parameters())
