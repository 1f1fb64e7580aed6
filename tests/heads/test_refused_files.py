"""Targets and heads that nobody can use: one sentence and exit code 2; odd number types that can be used are."""

import numpy as np
import pytest
import torch
from scipy import sparse
from typer.testing import CliRunner

import thereexists.heads as heads
from tests.heads.forging import forge
from thereexists.cli import app
from thereexists.core.errors import ThereExistsError
from thereexists.heads.bound import theorem_hidden_size
from thereexists.heads.head import Head
from thereexists.heads.io import load_matrix
from thereexists.heads.matrix import as_matrix, from_csr
from thereexists.heads.verify import verify
from thereexists.heads.verify_exact import verify_exact


def refused(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(done.exception, ThereExistsError), done.output  # which ``main`` prints, with exit code 2
    return str(done.exception)


def simple():
    """Token 0 sees itself, token 1 too."""
    target = from_csr(np.arange(3), np.arange(2), np.ones(2))
    one = torch.eye(2, dtype=torch.float64)
    return (one, one * 20, one.clone()), target


def saved(folder, arrays, target, found, needed, words=None):
    size = theorem_hidden_size(target.length, target.k, target.gamma, 1e-3, 1e-2)
    Head(*arrays, target, "moments", 1e-3, 1e-2, 0, found, size, needed, 1.0, {}, words).save(folder)
    return folder


@pytest.fixture
def plain(tmp_path):
    arrays, target = simple()
    return saved(tmp_path / "h", arrays, target, verify(*arrays, target, eps1=1e-3, eps2=1e-2), "float64")


@pytest.mark.parametrize("command", [["bound", "--target"], ["fit"]], ids=["bound", "fit"])
def test_a_row_whose_entries_are_too_far_apart(command, plain, tmp_path):
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_array(np.array([[1e300, 1e-300], [1e-300, 1e300]])))
    refused("heads", *command, tmp_path / "t.npz")


@pytest.mark.parametrize("dtype", ["<f2", ">f2", ">f4", ">f8", ">i4"])
def test_targets_of_any_real_type_are_read(dtype, tmp_path):
    A = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 4.0]]))
    np.savez(
        tmp_path / "t.npz",
        format=b"csr",
        shape=np.array([2, 2]),
        data=A.data.astype(dtype),
        indices=A.indices,
        indptr=A.indptr,
    )
    found = load_matrix(tmp_path / "t.npz")
    A.data = A.data.astype(dtype)
    for target in (found, as_matrix(A)):
        assert np.allclose(np.exp(target.log_values), [0.5, 1, 1], rtol=2.0**-50, atol=0)


@pytest.mark.parametrize("needed", ["9" * 5000 + " bits", "²³ bits"])
def test_a_number_of_bits_that_is_none(needed, plain):
    forge(plain, dtype_needed=needed, report__dtype_needed=needed)
    done = CliRunner().invoke(app, ["heads", "verify", str(plain)])
    told = isinstance(done.exception, SystemExit) and done.exit_code == 1  # a claim like others, and a false one
    assert isinstance(done.exception, ThereExistsError) if len(needed) > 40 else told


def test_an_array_that_no_head_has(plain):
    assert CliRunner().invoke(app, ["heads", "verify", str(plain)]).exit_code == 0
    forge(plain, tensors={"bias": torch.ones(3, dtype=torch.float64)})
    assert "bias" in refused("heads", "verify", plain)


def test_words_whose_products_are_beyond_float64(tmp_path):
    W = np.zeros((30, 2, 3))
    W[0] = [[1e160, 1, 0], [1e160, 0, 1]]
    words = torch.tensor(W)
    W_Q = torch.diag(torch.tensor([1e40, 20, 20], dtype=torch.float64))
    W_K = torch.diag(torch.tensor([1e40, 1, 1], dtype=torch.float64))
    target = from_csr(np.arange(3), np.arange(2), np.ones(2))
    found = verify_exact(words, W_Q, W_K, target, eps1=1e-3, eps2=1e-2, bits=53 * 30 + 64)
    assert found.verdict.holds
    folder = saved(tmp_path / "w", (words[0].clone(), W_Q, W_K), target, found, "3000 bits", words)
    assert "float64" in refused("heads", "verify", folder)
    assert heads.load(folder).words is not None
