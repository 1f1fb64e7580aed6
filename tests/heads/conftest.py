"""The slow readable check, shared: the whole softmax matrix in numpy, the definition read off row by row."""

import shutil

import numpy as np
import pytest

import thereexists.heads as heads


def _dense_errors(X, W_Q, W_K, target):
    """Leakage and ratio error by definition, in longdouble."""
    X, W_Q, W_K = (np.asarray(t, dtype=np.longdouble) for t in (X, W_Q, W_K))
    z = (X @ W_Q) @ (X @ W_K).T
    A = np.zeros(z.shape, dtype=np.longdouble)
    A[target.rows(), target.indices] = np.exp(target.log_values.astype(np.longdouble))
    M = np.exp(z - z.max(1, keepdims=True))
    M /= M.sum(1, keepdims=True)
    leakage = ratio = np.longdouble(0)
    for i in range(len(z)):
        on = A[i] > 0
        if not on.all():
            leakage = max(leakage, M[i, ~on].max() / M[i, on].min())
        relative = M[i, on] / A[i, on]
        ratio = max(ratio, relative.max() / relative.min() - 1)
    return float(leakage), float(ratio)


@pytest.fixture(scope="session")
def dense_errors():
    return _dense_errors


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A head in float64 and one of words."""
    at = tmp_path_factory.mktemp("made")
    heads.fit(heads.random_matrix(16, 2, 2.0, 0), method="moments").save(at / "plain")
    heads.fit(heads.random_matrix(16, 2, 2.0, 0), method="moments", eps2=1e-14).save(at / "words")
    return at


@pytest.fixture
def copies(made, tmp_path):
    """Both, to be changed."""
    shutil.copytree(made, tmp_path / "h")
    return tmp_path / "h"
