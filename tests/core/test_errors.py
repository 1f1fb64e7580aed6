"""What an error says is harmless to print, whoever's file it quotes."""

import json

import jaxtyping
import numpy as np
import pytest
import torch

import thereexists as te
from thereexists.core.storage import record_digest


def test_a_sentence_that_quotes_a_file_has_nothing_that_a_terminal_obeys(tmp_path):
    folder = tmp_path / "w"
    te.build(te.targets.builtin("sort", n=2), delta=1 / 2).save(folder)
    record = json.loads((folder / "witness.json").read_text())
    record["format_version"] = "\x1b[31mhi\x07"
    record["digest"] = record_digest(record)
    (folder / "witness.json").write_text(json.dumps(record))
    with pytest.raises(te.ThereExistsError) as refused:
        te.load(folder)
    assert "\\x1b[31mhi\\x07" in str(refused.value)
    assert not {"\x1b", "\x07"} & set(str(refused.value))


ODD = {
    "a step": lambda p: p.step("x"),
    "a token": lambda p: p.rows(1.5),
    "heads": lambda p: p.multihead(4.7),
    "rows of fractions": lambda p: te.patterns.from_rows([[0.9], [1.2]]),
    "rows of texts": lambda p: te.patterns.from_rows(["0", "1"]),
    "rows of Booleans": lambda p: te.patterns.from_rows([[True, False], [False, True]]),
    "rows of nothing": lambda p: te.patterns.from_rows([[None], [1]]),
    "seconds that are no number": lambda p: te.patterns.check(p, seconds=float("nan")),
    "seconds below 0": lambda p: te.patterns.check(p, seconds=-1),
    "seconds as a text": lambda p: te.patterns.check(p, seconds="x"),
    "a seed": lambda p: te.patterns.check(p, seed=-1),
    "a dropout of many": lambda p: te.attention.sparse_attention(*[torch.zeros(1, 1, 4, 2)] * 3, p, dropout_p=[0.1]),
    "a flag of many": lambda p: te.attention.sparse_attention(*[torch.zeros(1, 1, 4, 2)] * 3, p, return_lse=[1]),
    "sinks without numbers": lambda p: te.attention.sparse_attention(
        *[torch.zeros(1, 1, 4, 2)] * 3, p, sinks=torch.zeros(1, device="meta")
    ),
    "no tensors": lambda p: te.attention.sparse_attention(None, None, None, p),
    "no heads": lambda p: te.attention.SparseAttention(p, heads=None, dim=4),
    "a half": lambda p: te.heads.random_matrix(16, 2.5),
    "half a number": lambda p: te.heads.bounds(1024, k=2.5, gamma=2.0, eps1=1e-3, eps2=1e-2),
    "a list of constructions": lambda p: te.build(te.targets.builtin("sort", n=2), delta=1 / 2, construction=[]),
    "an acceptor that writes": lambda p: te.automata.regex("a*", "a").transduce("a"),
    "no sample": lambda p: te.verify("w", sample=""),
    "no samples": lambda p: te.build(te.targets.builtin("sort", n=2), delta=1 / 2).exactness(0),
    "a seed of random points": lambda p: te.build(te.targets.builtin("sort", n=2), delta=1 / 2).exactness(9, seed=-1),
    "samples that are no number": lambda p: te.build(te.targets.builtin("sort", n=2), delta=1 / 2).estimate_distance(
        samples=float("nan")
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_arguments_are_refused_in_words(name):
    """Some are refused by the annotations, which tests check on every call."""
    with pytest.raises((te.ThereExistsError, jaxtyping.TypeCheckError)):
        ODD[name](te.patterns.window(n=4, window=1))


def test_a_search_may_have_all_the_time_in_the_world():
    assert te.patterns.check(te.patterns.random(n=30, degree=3, seed=1), seconds=float("inf")).seconds < 60


def test_whole_numbers_of_numpy_are_whole_numbers():
    two, eight = np.int64(2), np.int64(8)
    for made, same in (
        (te.patterns.butterfly(n=eight), te.patterns.butterfly(n=8)),
        (te.patterns.dilated(n=8, window=1, dilation=two), te.patterns.dilated(n=8, window=1, dilation=2)),
        (te.patterns.documents(n=8, lengths=two), te.patterns.documents(n=8, lengths=2)),
        (
            te.patterns.neighbourhood(n=8, shape=(2, 4), window=np.int64(3)),
            te.patterns.neighbourhood(n=8, shape=(2, 4), window=3),
        ),
    ):
        assert np.array_equal(made.mask(), same.mask())


@pytest.mark.parametrize(
    "ask",
    [
        lambda: te.patterns.dense(n=10**19),
        lambda: te.patterns.random(n=10**20, degree=2),
        lambda: te.patterns.build(["a"], 4),
        lambda: te.heads.random_matrix(10**400, k=1),
        lambda: te.heads.random_matrix(8, k=1, gamma=10**400),
        lambda: te.targets.builtin(["a"], n=2),
        lambda: te.program.abs(np.float16),
        lambda: te.program.symbols(np.float16, n=4),
    ],
)
def test_what_is_no_size_or_name_at_all_is_refused_in_words(ask):
    with pytest.raises(te.ThereExistsError):
        ask()


@pytest.mark.parametrize("folder", [None, 5, []])
def test_a_folder_that_is_none_is_a_mistake_and_no_verdict(folder):
    with pytest.raises(te.ThereExistsError, match="A folder is named by a text or a path"):
        te.verify(folder)


def test_absurd_cycles_and_depths_end_at_once():
    with pytest.raises(te.ThereExistsError, match="at most 1,024 steps"):
        te.patterns.alternating(n=4, window=1, period=10**7)
    assert te.patterns.recheck_depth(te.patterns.dense(n=4), 10**9, None).holds is False
