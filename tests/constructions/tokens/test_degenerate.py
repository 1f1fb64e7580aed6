"""Tables with one answer, data sets with none, words that look like numbers."""

import pytest

import thereexists as te
from tests.command import thereexists
from thereexists.core.errors import InvalidInput


@pytest.mark.parametrize("rows", ["0,7\n1,7", "5,5", "a,b\nb,b"])
def test_a_table_with_one_answer_is_read_again(rows, tmp_path):
    (tmp_path / "t.csv").write_text(f"x1,y1\n{rows}\n")
    thereexists("build", "t.csv", "--construction", "compact", "--out", "w", cwd=tmp_path)
    assert te.verify(tmp_path / "w").holds
    question, answer = rows.split("\n")[0].split(",")
    assert answer in thereexists("run", "w", "--input", question, cwd=tmp_path).stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", [1, 2, 20])
@pytest.mark.parametrize("values", [["a"], [7], [0, 1]])
def test_a_symmetric_table_is_read_again_whatever_its_size(values, n, tmp_path):
    witness = te.build(te.Table.of(lambda x: [max(x)] * n, values, n, symmetric=True), construction="compact")
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    asked = [values[-1:] * n, values[:1] * n]
    assert te.load(tmp_path / "w")(asked) == asked
    assert te.export(tmp_path / "w", "torch", tmp_path / "t")["compared"] == len(witness.inputs)


@pytest.mark.parametrize("outputs", [[["x"], []], [[], ["x", "y"]]])
def test_an_empty_answer_is_recalled(outputs, tmp_path):
    te.memorise([["a"], ["b", "c"]], outputs).save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    assert te.load(tmp_path / "w")([["a"], ["b", "c"]]) == outputs


def test_nothing_to_recall_from_a_file_is_refused(tmp_path):
    (tmp_path / "p.csv").write_text("input,output\na,\nb,\n")
    done = thereexists("memorise", "p.csv", "--out", "w", cwd=tmp_path, code=2)
    assert "Every answer is empty" in done.stderr
    assert not (tmp_path / "w").exists()


def test_nothing_to_recall_is_refused():
    with pytest.raises(InvalidInput, match="Every answer is empty"):
        te.memorise([["a"]], [[]])


def test_tokens_are_asked_for_as_they_are_written(tmp_path):
    te.memorise([["a", 1], ["b", 10]], [[1], ["c"]]).save(tmp_path / "mixed")
    assert "1" in thereexists("run", "mixed", "--input", "a 1", cwd=tmp_path).stdout
    te.memorise([[1], [10]], [[1], [2]]).save(tmp_path / "whole")
    for word in ("01", "+1", "１", "1_0"):
        done = thereexists("run", "whole", "--input", word, cwd=tmp_path, code=2)
        assert "written as 7" in done.stderr
