"""The verifier against the definition, its planted faults, and its independence from everything that fits."""

import ast
import importlib
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import eye_array

from thereexists.core.errors import InvalidInput
from thereexists.heads import fit
from thereexists.heads.matrix import AttentionMatrix, as_matrix, random_matrix
from thereexists.heads.rounding import logit_rounding
from thereexists.heads.verify import Arithmetic, verify


def split(queries, keys):
    m = keys.shape[1]
    one, nil = torch.eye(m, dtype=torch.float64), torch.zeros(m, m, dtype=torch.float64)
    X = torch.from_numpy(np.concatenate([queries, keys], axis=1))
    return X, torch.cat([one, nil]), torch.cat([nil, one])


def exact_head(target, height):
    """X = [B, I] with B = log A + height on the support: the trivial head."""
    L = target.length
    B = np.zeros((L, L))
    B[target.rows(), target.indices] = target.log_values + height
    return split(B, np.eye(L))


@given(st.integers(2, 12), st.integers(1, 3), st.integers(1, 6), st.integers(0, 2**31))
def test_it_measures_what_the_definition_says(dense_errors, length, k, m, seed):
    target = random_matrix(length, min(k, length), 3.0, seed)
    rng = np.random.default_rng(seed)
    X, W_Q, W_K = (torch.from_numpy(rng.normal(size=s)) for s in ((length, 4), (4, m), (4, m)))
    found = verify(X, W_Q, W_K, target, eps1=0.5, eps2=0.5)
    leakage, ratio = dense_errors(X, W_Q, W_K, target)
    # Both are exponentials of a difference of two logits, each within `rounding` of the truth; 1e-15·8 for exp and log.
    factor = math.exp(2 * found.rounding) * (1 + 1e-14)
    assert leakage / factor <= found.leakage <= leakage * factor or leakage == found.leakage == 0
    assert (1 + ratio) / factor <= 1 + found.ratio_error <= (1 + ratio) * factor
    if abs(leakage / 0.5 - 1) > 1e-9 and abs(ratio / 0.5 - 1) > 1e-9:
        assert found.verdict.holds is (leakage < 0.5 and ratio <= 0.5)


def circle_head(target):
    """One non-zero per row, in closed form: the query points at its token on the circle."""
    L = target.length
    angle = 2 * np.pi * np.arange(L) / L
    keys = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    height = (math.log(1e3) + 0.1) / (2 * math.sin(math.pi / L) ** 2)
    return split(height * keys[target.indices], keys), height


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", ["leak", "swap", "nan"])
@pytest.mark.parametrize("row", [0, 255, 256, 4999])
def test_every_planted_leak_is_caught_in_its_row(fault, row):
    """5,000 tokens: several tiles of rows and of columns, faults on both sides of every edge."""
    L = 5000
    target = random_matrix(L, 1, 1.0, 1)
    (X, W_Q, W_K), height = circle_head(target)
    assert verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2).verdict.holds
    guilty = {row}
    if fault == "leak":  # the query turns half a step towards the next token
        turn = 2 * math.pi * target.indices[row] / L + math.pi / L
        X[row, :2] = height * torch.tensor([math.cos(turn), math.sin(turn)], dtype=torch.float64)
    elif fault == "swap":
        other = (row + 1) % L
        X[[row, other], :2] = X[[other, row], :2]
        guilty.add(other)
    else:
        X[row, 0] = math.nan
    found = verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2)
    assert found.verdict.holds is False
    assert found.worst_row in guilty
    assert found.verdict.evidence["row"] in guilty


@pytest.mark.parametrize("row", [0, 255, 256, 299])
def test_a_planted_ratio_error_just_over_the_tolerance_is_caught(row):
    target = random_matrix(300, 3, 2.0, 5)
    X, W_Q, W_K = exact_head(target, 20.0)
    entry = target.indices[target.indptr[row]]
    before = float(X[row, entry])
    X[row, entry] = before + 0.0099  # below log(1.01) = 0.00995
    assert verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2).verdict.holds
    X[row, entry] = before + 0.0100
    found = verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2)
    assert found.verdict.holds is False
    assert found.worst_row == row
    assert found.verdict.evidence["ratio_columns"][0] == entry


def test_a_forgotten_support_entry_is_a_leak():
    target = random_matrix(40, 2, 1.0, 0)
    X, W_Q, W_K = exact_head(target, 20.0)
    fewer = random_matrix(40, 1, 1.0, 0)
    assert verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2).verdict.holds
    assert verify(X, W_Q, W_K, fewer, eps1=1e-3, eps2=1e-2).verdict.holds is False


def test_closer_to_the_tolerance_than_rounding_is_undecided():
    target = random_matrix(16, 1, 1.0, 0)
    X, W_Q, W_K = exact_head(target, math.log(1e3) * (1 + 1e-16) + 2e-15)
    found = verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2)
    assert found.verdict.holds is None
    with pytest.raises(ValueError, match="undecided"):
        bool(found.verdict)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_lower_dtype_is_really_run(dtype):
    """Logits of 1000 + log A: float64 sees the ratios, a short significand cannot."""
    target = random_matrix(32, 2, 2.0, 3)
    fine = exact_head(target, 20.0)
    coarse = exact_head(target, 60000.0)
    assert verify(*fine, target, eps1=1e-3, eps2=1e-2).verdict.holds
    assert verify(*coarse, target, eps1=1e-3, eps2=1e-2).verdict.holds
    assert verify(*coarse, target, eps1=1e-3, eps2=1e-2, arithmetic=Arithmetic(dtype)).verdict.holds is not True
    if dtype == "float32":
        assert verify(*fine, target, eps1=1e-3, eps2=1e-2, arithmetic=Arithmetic(dtype)).verdict.holds


def test_the_rounding_bound_covers_another_summation_order():
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(64, 24)) * 10.0 ** rng.integers(-3, 4, size=(64, 24)))
    W_Q, W_K = torch.from_numpy(rng.normal(size=(24, 12))), torch.from_numpy(rng.normal(size=(24, 12)))
    rho = logit_rounding(X, W_Q, W_K, np.arange(64))
    z = ((X @ W_Q) @ (X @ W_K).T).numpy()
    exact = (X.numpy().astype(np.longdouble) @ W_Q.numpy()) @ (X.numpy().astype(np.longdouble) @ W_K.numpy()).T
    reverse = (X.flip(1) @ W_Q.flip(0)).flip(1) @ (X @ W_K).flip(1).T
    assert (np.abs(z - exact).max(1) <= rho).all()
    assert (np.abs(reverse.numpy() - exact).max(1) <= rho).all()
    assert rho.max() < 1e-6 * np.abs(z).max()  # and it is not so wide that it says nothing


@pytest.mark.parametrize(("dtype", "size"), [("float16", 400.0), ("float64", 2.0**520)])
def test_sums_that_overflow_on_their_way_decide_nothing(dtype, size):
    """size² − size² + 16 is 16 in real numbers, within both tolerances; in the dtype it is infinity − infinity."""
    X = torch.tensor([[size, size, 4.0, 0.0], [size, size, 0.0, 4.0]], dtype=torch.float64)
    W_Q, W_K = torch.eye(4, dtype=torch.float64), torch.diag(torch.tensor([1.0, -1.0, 1.0, 1.0], dtype=torch.float64))
    target = as_matrix(eye_array(2, format="csr"))
    found = verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2, arithmetic=Arithmetic(dtype))
    assert found.verdict.holds is None
    assert found.rounding == math.inf
    assert "overflow" in found.verdict.reasons[0]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_head_that_is_not_finite_itself_fails(bad):
    target = random_matrix(4, 1)
    X, W_Q, W_K = exact_head(target, 20.0)
    X[0, 0] = bad
    assert verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2).verdict.holds is False


def test_a_full_row_has_no_leakage():
    target = random_matrix(3, 3, 1.0, 0)
    X, W_Q, W_K = exact_head(target, 0.0)
    assert verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2).leakage == 0.0


def test_rows_can_be_picked_and_the_verdict_says_so():
    target = random_matrix(50, 2, 2.0, 0)
    X, W_Q, W_K = exact_head(target, 20.0)
    X[7] = 0
    part = verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2, rows=np.array([1, 3]))
    assert part.verdict.holds
    assert "only 2 of 50 rows" in part.verdict.reasons[0]
    assert verify(X, W_Q, W_K, target, eps1=1e-3, eps2=1e-2, rows=np.array([7])).verdict.holds is False


@pytest.mark.parametrize(("eps1", "eps2"), [(0.0, 0.1), (1.0, 0.1), (0.1, 0.0), (0.1, math.inf), (math.nan, 0.1)])
def test_senseless_tolerances_are_refused(eps1, eps2):
    target = random_matrix(4, 1)
    X, W_Q, W_K = exact_head(target, 9.0)
    with pytest.raises(InvalidInput):
        verify(X, W_Q, W_K, target, eps1=eps1, eps2=eps2)


def test_shapes_that_do_not_fit_are_refused():
    target = random_matrix(4, 1)
    X, W_Q, W_K = exact_head(target, 9.0)
    with pytest.raises(InvalidInput, match="does not fit"):
        verify(X[:3], W_Q, W_K, target, eps1=0.1, eps2=0.1)
    with pytest.raises(InvalidInput, match="dtype"):
        verify(X, W_Q, W_K, target, eps1=0.1, eps2=0.1, arithmetic=Arithmetic("int8"))


@pytest.mark.parametrize("name", ["rounding", "verify", "verify_exact"])
def test_the_verifier_imports_nothing_that_fits(name):
    allowed = {
        "thereexists.core.errors",
        "thereexists.core.neutral",
        "thereexists.core.verdict",
        "thereexists.heads.rounding",
        "thereexists.core.devices",
        "thereexists.core.plain_text",
        "thereexists.core.rounded_figures",
        "thereexists.heads.matrix",
        "thereexists.heads.verify",
    }
    source = Path(importlib.import_module(f"thereexists.heads.{name}").__file__ or "").read_text()
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module)
        elif isinstance(node, ast.Import):
            imported |= {a.name for a in node.names}
    ours = {m for m in imported if m and m.startswith("thereexists")}
    assert ours <= allowed
    assert not any(m and m.split(".")[0] in {"scipy", "numba"} for m in imported)


@pytest.mark.gpu
def test_the_gpu_agrees_with_the_cpu():
    target = random_matrix(20000, 2, 2.0, 0)
    X = torch.randn(20000, 8, dtype=torch.float64)
    W_Q, W_K = torch.randn(8, 4, dtype=torch.float64), torch.randn(8, 4, dtype=torch.float64)
    cpu = verify(X, W_Q, W_K, target, eps1=0.5, eps2=0.5)
    gpu = verify(X, W_Q, W_K, target, eps1=0.5, eps2=0.5, arithmetic=Arithmetic(device="cuda"))
    assert abs(math.log(cpu.leakage) - math.log(gpu.leakage)) <= 4 * max(cpu.rounding, gpu.rounding)
    assert cpu.verdict.holds == gpu.verdict.holds


@pytest.mark.parametrize("size", [2.0**70, -700.0, 0.0])
def test_large_logarithms_of_the_target_swallow_no_logit(size):
    """Every row asks for two equal entries; the head gives them a ratio of e^100. Only ratios within a row count."""
    indptr, indices = np.array([0, 2, 4, 6]), np.array([0, 1, 1, 2, 0, 2])
    target = AttentionMatrix(3, indptr, indices, np.full(6, size))
    B = torch.full((3, 3), -20.0, dtype=torch.float64)
    for row, (a, b) in enumerate([(0, 1), (1, 2), (0, 2)]):
        B[row, a], B[row, b] = 0.0, 100.0
    eye, none = torch.eye(3, dtype=torch.float64), torch.zeros(3, 3, dtype=torch.float64)
    head = torch.cat([B, eye], 1), torch.cat([eye, none]), torch.cat([none, eye])
    found = verify(*head, target, eps1=1e-3, eps2=1e-2)
    assert found.verdict.holds is False
    assert found.ratio_error == pytest.approx(np.expm1(100.0))
    apart = np.where(np.arange(6) % 2, size, -size)  # a target that float64 cannot compare with any logit
    if abs(size) > 2.0**60:
        far = AttentionMatrix(3, indptr, indices, apart)
        assert verify(*head, far, eps1=1e-3, eps2=1e-2).verdict.holds is not True


@pytest.fixture(scope="module")
def shown():
    return fit(random_matrix(16, 2, seed=1))


@pytest.mark.parametrize("rows", [[-2], [16], [], [2.9], np.zeros(15, bool), [True, False], np.zeros((2, 2), int)])
def test_rows_that_are_none_of_the_targets_are_refused(shown, rows):
    with pytest.raises(InvalidInput, match="'rows'"):
        verify(shown.X, shown.W_Q, shown.W_K, shown.target, eps1=1e-3, eps2=1e-2, rows=rows)


def test_a_mask_says_which_rows(shown):
    X = shown.X.clone()
    X[14] = X[15]
    mask = np.arange(16) == 14
    found = verify(X, shown.W_Q, shown.W_K, shown.target, eps1=1e-3, eps2=1e-2, rows=mask)
    assert (found.verdict.holds, found.rows, found.worst_row) == (False, 1, 14)


def test_arrays_and_sparse_matrices_are_taken_as_tensors_and_targets_are():
    head = fit(random_matrix(8, 2, 2.0, 0))
    wanted = verify(head.X, head.W_Q, head.W_K, head.target, eps1=1e-3, eps2=1e-2)
    arrays = (head.X.numpy(), head.W_Q.numpy(), head.W_K.numpy())
    found = verify(*arrays, head.target.to_scipy(), eps1=1e-3, eps2=1e-2)
    assert wanted.verdict.holds
    assert found.verdict.holds
    assert found.leakage == wanted.leakage
    for other in (head.X.tolist(), head.X + 0j, head.X.numpy() + 0j):
        with pytest.raises(InvalidInput, match="must be tensors or arrays of real numbers"):
            verify(other, head.W_Q, head.W_K, head.target, eps1=1e-3, eps2=1e-2)
