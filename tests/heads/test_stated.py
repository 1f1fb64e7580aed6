"""What a saved head says about itself, forged with every hash redone: refused, told, or marked as its author's word."""

import json

import numpy as np
import pytest
import torch

import thereexists.heads as heads
from tests.heads.forging import forge, save_own, verified
from thereexists.core.errors import BadWitnessFile
from thereexists.heads.matrix import from_csr
from thereexists.reports import report


@pytest.mark.parametrize("kind", ["plain", "words"])
def test_an_honest_head_holds(copies, kind):
    code, said, _ = verified(copies / kind)
    assert (code, said["holds"]) == (0, True)


@pytest.mark.parametrize("kind", ["plain", "words"])
def test_a_loaded_head_saved_again_is_the_same_head(copies, kind):
    loaded = heads.load(copies / kind)
    loaded.save(copies / "again")
    first, second = (json.loads((at / "head.json").read_text()) for at in (copies / kind, copies / "again"))
    assert second == first
    code, said, _ = verified(copies / "again")
    assert (code, said["holds"]) == (0, True)
    assert "as_its_author_says" in heads.load(copies / "again").report()  # saving it again makes it no truer


def test_a_loaded_head_with_infinite_figures_is_saved_again_as_it_is(tmp_path):
    target = from_csr(np.array([0, 1, 2]), np.array([0, 1]), np.ones(2))
    X = np.array([[1.0, 0.0], [1.0, 1e6]])  # leakage beyond float64
    save_own(tmp_path / "h", X, [[1.0], [0.0]], [[0.0], [1.0]], target, eps1=0.5, eps2=0.1)
    heads.load(tmp_path / "h").save(tmp_path / "again")
    said = [verified(tmp_path / name)[1]["reasons"] for name in ("h", "again")]
    assert said[0] == said[1]
    first, second = (json.loads((tmp_path / name / "head.json").read_text()) for name in ("h", "again"))
    assert second == first


@pytest.mark.parametrize("change", ["zero", "ulp", "moved into the second word"])
def test_X_is_the_leading_word_or_the_file_is_refused(copies, change):
    saved = heads.load(copies / "words")
    X, words = saved.X.clone(), saved.words.clone()
    if change == "zero":
        X = torch.zeros_like(X)
    elif change == "ulp":
        X[3, 1] = torch.nextafter(X[3, 1], torch.tensor(9.0, dtype=X.dtype))
    else:  # the sum stays what it is, X becomes nonsense
        words[1], words[0], X = words[0].clone(), words[1].clone(), words[1].clone()
    forge(copies / "words", {"X": X.contiguous(), "words": words.contiguous()})
    with pytest.raises(BadWitnessFile, match="word"):
        heads.load(copies / "words")
    code, _, done = verified(copies / "words")
    assert code == 2 or isinstance(done.exception, BadWitnessFile)


FALSE = {
    "leakage": {"verification__leakage": 1e-30, "report__leakage": 1e-30},
    "ratio error": {"verification__ratio_error": 0.007, "report__ratio_error": 0.007},
    "largest logit": {"verification__max_logit": 1.0, "report__max_logit": 1.0},
    "rows": {"verification__rows": 9, "report__rows_verified": 9},
    "theorem": {"theorem_hidden_size": 7, "report__theorem_hidden_size": 7},
    "dtype": {"dtype_needed": "bfloat16", "report__dtype_needed": "bfloat16"},
    "bits": {"dtype_needed": "3 bits", "report__dtype_needed": "3 bits"},
    "arithmetic": {"verification__dtype": "999 bits", "report__verified_in": "999 bits"},
    "report alone": {"report__leakage": 1e-30},
    "gamma": {"report__gamma": 1.0},
    "rounding": {"verification__rounding": 1e-40, "report__rounding": 1e-40},
    "worst row": {"verification__worst_row": 13},
    "a row that is not there": {"verification__worst_row": 99, "verification__verdict__evidence__row": 99},
    "figures of the worst row": {
        "verification__verdict__evidence__leakage": 1e-9,
        "report__worst_row__leakage": 1e-9,
    },
    "no evidence": {"verification__verdict__evidence": None, "report__worst_row": None},
    "reasons": {"verification__verdict__reasons": ["checked by experts"], "report__reasons": ["checked by experts"]},
    "reasons in the report alone": {"report__reasons": ["checked by experts"]},
    "settings in the report alone": {"report__settings": {"draws": 1}},
    "one more entry": {"audited_by": "experts"},
    "one more entry of the report": {"report__audited_by": "experts"},
    "one more entry of the verification": {"verification__audited": True},
    "one more entry of the verdict": {"verification__verdict__audited": True},
    "one more entry of the evidence": {"verification__verdict__evidence__audited": True},
}


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kind", ["plain", "words"])
@pytest.mark.parametrize("what", FALSE)
def test_a_false_figure_does_not_hold(copies, kind, what):
    forge(copies / kind, **FALSE[what])
    code, said, _ = verified(copies / kind)
    assert (code, said["holds"]) == (1, False)


def test_the_columns_of_the_worst_row_are_compared(copies):
    for name, value in (("largest_zero_column", 0), ("smallest_support_column", 99), ("ratio_columns", [1, 1, 1])):
        saved = heads.load(copies / "plain").verification.verdict.evidence
        path = f"verdict__evidence__{name}"
        changed = saved["smallest_support_column"] if name == "largest_zero_column" else value
        forge(copies / "plain", **{f"verification__{path}": changed, f"report__worst_row__{name}": changed})
        assert verified(copies / "plain")[0] == 1
        forge(copies / "plain", **{f"verification__{path}": saved[name], f"report__worst_row__{name}": saved[name]})
        assert verified(copies / "plain")[0] == 0


@pytest.mark.parametrize("kind", ["plain", "words"])
def test_nothing_stated_is_shown_as_if_it_had_been_checked(copies, kind):
    forge(
        copies / kind,
        theorem_hidden_size=123457,
        dtype_needed="bfloat16",
        verification__leakage=0.0123,
        package_version="77.1",
    )
    loaded = heads.load(copies / kind)
    assert loaded.theorem_hidden_size != 123457
    assert "as its author says" in repr(loaded)
    page = str(report(copies / kind))
    assert "123,457" not in page
    for stated in ("0.0123", "77.1", *(["bfloat16"] if kind == "words" else [])):
        at = page.index(stated)
        assert "as its author says" in page[max(0, at - 120) : at + 120], stated


@pytest.mark.parametrize("kind", ["plain", "words"])
def test_the_verdict_of_a_file_is_its_authors_word(copies, kind):
    forge(copies / kind, verification__leakage=1e-30, verification__device="cpu (proved)")
    loaded = heads.load(copies / kind)
    with pytest.raises(ValueError, match="author"):
        bool(loaded.verdict)
    for result in (loaded.verdict, loaded.verification):
        assert all("as its author says" in line for line in repr(result).splitlines())
    assert "as its author says" in loaded.verdict.in_words()
    card = loaded.verdict._repr_html_()
    assert 'class="good"' not in card
    assert "as its author says" in card


def test_a_verdict_of_ones_own_says_nothing_of_an_author():
    verdict = heads.fit(heads.random_matrix(8, k=2), eps1=1e-2, eps2=1e-1).verdict
    assert verdict
    assert 'class="good"' in verdict._repr_html_()
    assert "author" not in repr(verdict)


def test_a_false_sum_of_words_is_not_called_good(copies):
    saved = heads.load(copies / "words")
    words = saved.words.clone()
    words[:, 3] = 0.0
    forge(copies / "words", {"X": words[0].clone(), "words": words})
    assert verified(copies / "words")[0] == 1
    page = str(report(copies / "words"))
    assert "Every checked row keeps" not in page


WRONG = {
    "eps1 is text": ({}, {"eps1": "small"}),
    "eps1 is a list": ({}, {"eps1": [0.1]}),
    "eps2 is true": ({}, {"eps2": True}),
    "eps1 is too large": ({}, {"eps1": 3.0}),
    "verification is a list": ({}, {"verification": []}),
    "leakage is text": ({}, {"verification__leakage": "tiny"}),
    "seed is an object": ({}, {"seed": {}}),
    "settings is text": ({}, {"settings": "none"}),
    "words are flat": ({"words": torch.zeros(3, dtype=torch.float64)}, {}),
    "words of other shape": ({"words": torch.zeros(2, 3, 4, dtype=torch.float64)}, {}),
    "no words": ({"words": torch.zeros(0, 16, 8, dtype=torch.float64)}, {}),
    "words are integers": ({"words": torch.zeros(2, 16, 8, dtype=torch.int64)}, {}),
    "W_Q is flat": ({"W_Q": torch.zeros(8, dtype=torch.float64)}, {}),
    "log values infinite": ({"log_values": torch.full((32,), -torch.inf, dtype=torch.float64)}, {}),
    "indptr is one number": ({"indptr": torch.tensor(3)}, {}),
    "indptr of floats": ({"indptr": torch.zeros(17)}, {}),
}


@pytest.mark.parametrize("what", WRONG)
def test_entries_of_a_wrong_kind_are_refused_in_one_sentence(copies, what):
    tensors, fields = WRONG[what]
    forge(copies / "words", tensors, **fields)
    with pytest.raises(BadWitnessFile) as refusal:
        heads.load(copies / "words")
    assert "make it again" in str(refusal.value)


def test_the_command_says_so_without_a_traceback(copies, fresh):
    """In a process of its own: the tests' type checker would catch the text before the command does."""
    forge(copies / "words", eps1="small")
    done = fresh("-m", "thereexists", "heads", "verify", copies / "words", warm=True)
    assert done.returncode == 2
    assert "eps1 must be a number" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
