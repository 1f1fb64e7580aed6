"""Figures and counts of a saved head, forged by little: a logit moves by ρ, a count is whole, eps has a floor."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import thereexists.heads as heads
from tests.heads.forging import forge, save_own, verified
from thereexists.cli import app
from thereexists.core.errors import BadWitnessFile, InvalidInput
from thereexists.heads.matrix import from_csr
from thereexists.heads.verify_exact import verify_exact

DIAGONAL = from_csr(np.array([0, 1, 2]), np.array([0, 1]), np.ones(2))
W_Q, W_K = np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])


def test_a_logit_moves_by_the_rounding_bound_and_no_more(tmp_path):
    """Logits of 1e16, whose rounding bound is above 1: an exponential may be off by any factor, a logit may not."""
    X = np.array([[1e8, 1e8], [-1e8, -1e8]])
    found = save_own(tmp_path / "h", X, W_Q, W_K, DIAGONAL, eps1=0.5, eps2=1e30)
    assert (found.max_logit, found.rounding > 1, found.verdict.holds) == (1e16, True, True)
    assert verified(tmp_path / "h")[0] == 0
    forge(tmp_path / "h", verification__max_logit=0.001, report__max_logit=0.001)
    code, said, _ = verified(tmp_path / "h")
    assert code == 1
    assert any("max logit" in line for line in said["reasons"])


def test_a_small_ratio_error_is_compared_on_its_own_scale(copies):
    """5e-15 and nothing are both 1, plus little."""
    record = json.loads((copies / "words" / "head.json").read_text())
    told = 5e-15
    assert record["verification"]["ratio_error"] < told / 4
    forge(
        copies / "words",
        verification__ratio_error=told,
        report__ratio_error=told,
        verification__verdict__evidence__ratio_error=told,
        report__worst_row__ratio_error=told,
    )
    code, said, _ = verified(copies / "words")
    assert code == 1
    assert any("ratio error" in line for line in said["reasons"])


def test_nothing_is_near_infinity_but_infinity():
    from thereexists.heads import figures

    for same in (figures.same_leakage, figures.same_ratio_error, figures.same_logit):
        said = [same(a, b, 1.0) for a, b in ((5.0, math.inf), (math.nan, 1.0), (math.inf, math.inf))]
        assert said == [False, False, True]
    assert [figures.same_logit(5.0, other, 1.0) for other in (6.9, 7.1)] == [True, False]
    assert [figures.same_rounding(5.0, other) for other in (math.inf, math.nan, 5.0)] == [False, False, True]


COUNTS = {
    "rows": {"verification__rows": 16.9, "report__rows_verified": 16},
    "rows as a float": {"verification__rows": 16.0},
    "worst row": {"verification__worst_row": 0.7},
    "seed": {"seed": 0.5, "report__seed": 0},
    "seed is false": {"seed": False, "report__seed": False},
    "format version": {"format_version": True},
    "format version before the first": {"format_version": -1},
    "reason is a number": {"verification__verdict__reasons": [5]},
}


@pytest.mark.parametrize("what", COUNTS)
def test_a_count_is_a_whole_number_or_the_file_is_refused(copies, what):
    forge(copies / "plain", **COUNTS[what])
    with pytest.raises(BadWitnessFile):
        heads.load(copies / "plain")


@pytest.mark.parametrize(
    "name", ["length", "k", "hidden_size", "head_size", "rows_verified", "seed", "theorem_hidden_size", "holds"]
)
def test_a_count_in_the_report_is_whole_too(copies, name):
    stated = json.loads((copies / "plain" / "head.json").read_text())["report"][name]
    forge(copies / "plain", **{f"report__{name}": float(stated)})
    assert verified(copies / "plain")[0] == 1


def test_the_theorems_size_is_a_whole_number(copies):
    stated = json.loads((copies / "plain" / "head.json").read_text())["theorem_hidden_size"]
    forge(copies / "plain", theorem_hidden_size=float(stated))
    assert verified(copies / "plain")[0] == 1


def test_the_report_repeats_the_tolerances_exactly(copies):
    forge(copies / "plain", report__eps2=0.01 * (1 + 1e-10))
    assert verified(copies / "plain")[0] == 1


@pytest.mark.parametrize("eps", ["1e-200", "1e-160", "5e-324", "nan", "inf", "0"])
def test_a_tolerance_too_small_to_compute_with_is_refused(copies, eps):
    for name in ("--eps1", "--eps2"):
        done = CliRunner().invoke(app, ["heads", "bound", "--length", "16", "--k", "2", name, eps])
        assert isinstance(done.exception, InvalidInput) or done.exit_code == 2
    if eps not in ("nan", "inf", "0"):
        forge(copies / "plain", eps2=float(eps), report__eps2=float(eps))
        with pytest.raises(BadWitnessFile, match="eps2"):
            heads.load(copies / "plain")


def test_the_smallest_tolerances_have_a_bound_that_a_file_can_hold():
    found = heads.bounds(2**62, 2**62, 1e308, 1e-100, 1e-30)
    assert len(str(found.theorem_hidden_size)) <= 100
    with pytest.raises(InvalidInput, match="digits"):
        heads.bounds(10**400, 10**399, 2.0, 1e-3, 1e-2)


def test_balls_do_not_lose_an_error_of_the_size_of_the_tolerance():
    """Two entries of a row, apart by 1.4 eps2, at every size of eps2 that is allowed, and in the last place."""
    target = from_csr(np.array([0, 2, 4]), np.array([0, 1, 0, 1]), np.ones(4))
    selects_q, selects_k = (torch.as_tensor(W) for W in (W_Q, W_K))
    for eps2 in (1e-2, 1e-15, 1e-30):
        for share, wanted in ((1.4, False), (0.6, True)):
            X = np.array([[1.0, 0.0], [1.0, share * math.log1p(eps2)]])
            said = verify_exact(torch.as_tensor(X)[None], selects_q, selects_k, target, eps1=0.5, eps2=eps2, bits=200)
            assert said.verdict.holds is wanted, (eps2, share)
    # One unit in the last place above log(1 + 1), whose logarithm is rounded itself: never True.
    exact = Fraction(math.log(2.0))
    X = np.array([[1.0, 0.0], [1.0, float(exact) + 2.0**-53]])
    said = verify_exact(torch.as_tensor(X)[None], selects_q, selects_k, target, eps1=0.5, eps2=1.0, bits=200)
    assert said.verdict.holds is not True
    with pytest.raises(InvalidInput, match="eps2"):
        verify_exact(torch.as_tensor(X)[None], selects_q, selects_k, target, eps1=0.5, eps2=5e-324, bits=200)


def test_balls_with_logits_beyond_the_exponential_warn_of_nothing():
    """A planted weight that makes a logit of 1e6 where a zero belongs: refuted, in words, without a warning."""
    X = torch.tensor([[1.0, 0.0], [1.0, 1e6]], dtype=torch.float64)
    W = (torch.as_tensor(W_Q), torch.as_tensor(W_K))
    said = verify_exact(X[None], *W, DIAGONAL, eps1=0.5, eps2=0.1, bits=100)
    assert (said.verdict.holds, said.leakage) == (False, math.inf)


def test_the_largest_logit_of_a_head_of_words_is_sought_in_every_entry(tmp_path):
    """On the diagonal the logits are 0, beside it -1e200; and a sum that the balls lose counts with its radius."""
    words = torch.tensor([[[1e100, 0.0], [0.0, 1e100]]], dtype=torch.float64)
    one, crossed = np.eye(2), np.array([[0.0, -1.0], [-1.0, 0.0]])
    asked = {"eps1": 0.5, "eps2": 0.01, "dtype_needed": "1000 bits"}
    found = save_own(tmp_path / "h", words[0].clone(), one, crossed, DIAGONAL, **asked, words=words)
    assert found.verdict.holds
    assert verified(tmp_path / "h")[0] == 0
    assert found.max_logit == pytest.approx(1e200, rel=1e-12)
    forge(tmp_path / "h", verification__max_logit=0.0, report__max_logit=0.0)
    code, said, _ = verified(tmp_path / "h")
    assert (code, said["max_logit"]) == (1, found.max_logit)
    assert any("max logit" in line for line in said["reasons"])
    both = torch.tensor([[[1e100, 1e100, 1.0]] * 2], dtype=torch.float64)  # 1e200 - 1e200 + 1, in 60 bits
    signs = torch.diag(torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))
    lost = verify_exact(both, torch.eye(3, dtype=torch.float64), signs, DIAGONAL, eps1=0.5, eps2=0.01, bits=60)
    assert lost.max_logit >= 1.0


def test_the_largest_logit_of_a_fitted_sum_of_words(copies):
    head = heads.load(copies / "words")
    X = [[sum(map(Fraction, entry)) for entry in row] for row in head.words.permute(1, 2, 0).tolist()]
    m = head.head_size  # queries and keys lie side by side
    real = max(abs(sum(a * b for a, b in zip(x[:m], y[m:], strict=True))) for x in X for y in X)
    assert head.verification.max_logit == pytest.approx(float(real), rel=1e-12)
