"""Data sets and tables as completions: every pair by ``generate``, in a process of plain transformers."""

import itertools
import json

import numpy as np
import pytest

import thereexists as te
from tests.command import thereexists
from tests.exports.llama.asking import completed
from thereexists.certificates.llama.format import read_checkpoint, read_claim
from thereexists.constructions.tokens.completions import completions, in_all_orders
from thereexists.exports.ngrams import ngram

pytest.importorskip("transformers")
QUESTIONS = {"Who wrote Faust ?": "Johann Wolfgang von Goethe", "Who wrote Faust": "Goethe", "2 + 2 =": "4", "and": ""}


def test_questions_become_texts_that_end(tmp_path):
    """A prompt that begins another, an answer of several words and one of none; integers are texts too."""
    witness = te.memorise([q.split() for q in QUESTIONS], [a.split() for a in QUESTIONS.values()])
    done = te.export(witness, "llama", tmp_path / "qa", "bfloat16")
    assert (done["compared"], done["of"]) == (64, "texts")
    verdict = te.verify(tmp_path / "qa")
    assert verdict.holds, verdict.reasons
    assert "Every other prompt of at most 8 symbols is followed by `</s>` at once" in (
        tmp_path / "qa" / "README.md"
    ).read_text().replace("\n", " ")
    claim = read_checkpoint(tmp_path / "qa", read_claim(tmp_path / "qa")).claim
    assert (len(claim.pairs), claim.whole, claim.new_tokens) == (4, True, 5)


def test_long_prompts_are_told_apart_by_a_few_places():
    rng = np.random.default_rng(0)
    prompts = np.unique(rng.integers(0, 4, (50, 60)), axis=0).astype(str).tolist()
    answers = [list(str(k)) for k in range(len(prompts))]
    claim = completions(prompts, answers)
    assert not claim.whole
    assert len(claim.places) < 8
    assert "nothing is said" in claim.sentence()
    words, follows = claim.table.words, claim.table.follows
    assert len(words) == len(follows) == sum(map(len, answers))


def test_a_symmetric_table_comes_in_all_its_orders():
    asked, told = in_all_orders(np.array([[1, 2, 2], [3, 3, 3]]), np.array([[5], [6]]))
    assert asked.tolist() == [[1, 2, 2], [2, 1, 2], [2, 2, 1], [3, 3, 3]]
    assert told.reshape(-1).tolist() == [5, 5, 5, 6]


def test_a_table_is_exported(tmp_path):
    rows = list(itertools.product((1, 2, 3), repeat=2))
    table = te.build(te.Table(rows, [(max(row), min(row)) for row in rows], symmetric=True))
    te.export(table, "llama", tmp_path / "t")
    record = json.loads((tmp_path / "t" / "thereexists_export.json").read_text())
    assert len(record["claim"]["pairs"]) == 9
    assert te.verify(tmp_path / "t").holds


@pytest.mark.parametrize("prompts", [[["a b"], ["cc"]], [["<s>"], ["b"]], [["▁a"], ["b"]], [[1], ["1"]]])
def test_tokens_that_cannot_be_texts_are_refused(tmp_path, prompts):
    witness = te.memorise(prompts, [["x"], ["y"]])
    with pytest.raises(te.ThereExistsError):
        te.export(witness, "llama", tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_an_ngram_model_takes_what_follows_most_often():
    claim = ngram("aab\naac\naab", 2)
    rows = {"".join(claim.symbols[k] for k in context): claim.symbols[follows] for context, follows in claim.rows}
    assert rows == {"": "a", "a": "a", "aa": "b"}
    with pytest.raises(te.ThereExistsError, match="order"):
        ngram("aab", 1)
    with pytest.raises(te.ThereExistsError, match="empty"):
        ngram("\n \n", 3)


def test_sizes_are_planned_by_the_command(tmp_path):
    """Of a name, an automaton, a data set, a table and a witness; and what the export then says is the same."""
    (tmp_path / "p.jsonl").write_text('{"input": ["a", "dog"], "output": ["pes"]}\n')
    (tmp_path / "t.csv").write_text("x1,x2,y1,y2\n0,1,1,0\n1,0,0,1\n")
    te.build(te.automata.regex("(ab|ba)*", "ab"), n=9).save(tmp_path / "w")
    asked = ("addition:10", "recall:16", "p.jsonl", "t.csv", "w")
    found = [json.loads(thereexists("plan", what, "--to", "llama", "--json", cwd=tmp_path).stdout) for what in asked]
    of_regex = ("plan", "regex:(ab|ba)*", "--alphabet", "ab", "--n", 9, "--to", "llama", "--json")
    again = json.loads(thereexists(*of_regex, cwd=tmp_path).stdout)
    assert {**again, "checkpoint": "w"} == found[-1]
    assert [plan["layers"] for plan in found] == [6, 2, 1, 1, 4]
    assert [plan["parameters"] for plan in found[:2]] == [355_776, 39_744]
    assert "--to llama" in thereexists("plan", "sort", "--n", 3, "--to", "onnx", cwd=tmp_path, code=2).stderr


def test_names_are_exported_by_the_command(tmp_path):
    done = json.loads(thereexists("export", "reverse:3", "--to", "llama", "--json", cwd=tmp_path).stdout)
    assert (done["folder"], done["compared"]) == ("reverse-llama", 64)
    for wrong in ("reverse:x", "reverse:0", "ngram:3:nothing.txt", "recall:27"):
        assert thereexists("export", wrong, "--to", "llama", cwd=tmp_path, code=2).stderr


def pairs(count, seed):
    """Questions of 3 to 10 of 1,500 words, answers of one to three."""
    rng, found = np.random.default_rng(seed), {}
    while len(found) < count:
        question = " ".join(f"w{k}" for k in rng.integers(0, 1500, rng.integers(3, 11)))
        found[question] = " ".join(f"v{k}" for k in rng.integers(0, 1500, rng.integers(1, 4)))
    return found


@pytest.mark.slow
def test_five_thousand_pairs_in_both_dtypes(fresh, tmp_path):
    """The whole way: memorised, exported, verified, and all of them asked without us."""
    asked = pairs(5000, 1)
    witness = te.memorise([q.split() for q in asked], [a.split() for a in asked.values()])
    te.export(witness, "llama", tmp_path / "qa", "bfloat16")
    verdict = te.verify(tmp_path / "qa")
    assert verdict.holds, verdict.reasons
    for texts in completed(fresh, {tmp_path / "qa": asked}, tmp_path).values():
        assert texts == [f" {answer}" for answer in asked.values()]


@pytest.mark.slow
def test_pairs_of_characters_with_and_without_a_cache(fresh, tmp_path):
    """Whole texts are compared: what is not of the set gets no answer."""
    rng = np.random.default_rng(2)
    asked = {f"{a}*{b}=": str(a * b) for a, b in rng.integers(0, 100, (200, 2)).tolist()}
    te.export(te.memorise(list(map(list, asked)), list(map(list, asked.values()))), "llama", tmp_path / "qa")
    others = [f"{prompt}=" for prompt in asked] + ["=", "1*1*1=", "12"]
    for texts in completed(fresh, {tmp_path / "qa": [*asked, *others]}, tmp_path, caches=(True, False)).values():
        assert texts == [*asked.values(), *[""] * len(others)]
