"""Files of pairs: every token is the one that is written, and no two become one."""

import csv

import pytest

from thereexists.core.errors import InvalidInput
from thereexists.functions.pairs import read_jsonl, read_pairs, read_table


@pytest.mark.parametrize("inside", ["\n", "\r\n", "\x85", "\u2028", "\x0c", "\x0b", "\x1e"])
def test_a_quoted_token_keeps_what_it_holds(inside, tmp_path):
    path, rows = tmp_path / "t.csv", [["x1", "y1"], [f"a{inside}b", "p"], ["ab", "q"]]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    assert read_table(path)[:2] == ([[f"a{inside}b"], ["ab"]], [["p"], ["q"]])


def test_a_line_of_json_may_hold_a_line_separator(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes('{"input": ["a\u2028b"], "output": ["c\x85"]}\r\n\n{"input": [1], "output": [2]}'.encode())
    assert read_jsonl(path) == ([["a\u2028b"], [1]], [["c\x85"], [2]], [1, 3])


@pytest.mark.parametrize("other", ["01", "１", "-0", "+1"])
def test_two_spellings_of_a_number_are_two_tokens(other, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"x1,y1\n1,2\n{other},3\n", encoding="utf-8")
    assert read_table(path)[0] == [["1"], [other]]
    path.write_text("x1,y1\n1,2\n-7,3\n")
    assert read_table(path)[0] == [[1], [-7]]


@pytest.mark.parametrize("text", ['q,r\na,"b\nc,d\n', 'q,r\n"a"z,b\n'])
def test_a_quote_that_does_not_end_is_no_table(text, tmp_path):
    (tmp_path / "t.csv").write_text("x1,y1\n" + text)
    with pytest.raises(InvalidInput, match="this is not valid CSV"):
        read_table(tmp_path / "t.csv")


def test_only_an_empty_line_is_skipped(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x1,y1\n1,2\n\n3,4\n")
    assert read_table(path) == ([[1], [3]], [[2], [4]], [2, 4])
    for row in (",", ",2", '"",""'):
        path.write_text(f"x1,y1\n1,2\n{row}\n")
        with pytest.raises(InvalidInput, match="line 3: a token is missing"):
            read_table(path)
    path.write_text("input,output\na,b\n,\n")
    assert read_pairs(path) == ([["a"], []], [["b"], []], [2, 3])  # ``memorise`` refuses an input without tokens


def test_texts_in_csv_are_split_into_words_or_characters(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text('input,output\nthe  cat,le chat\n"a, dog",un chien\n\nyes,\n')
    inputs, outputs, lines = read_pairs(file)
    assert inputs == [["the", "cat"], ["a,", "dog"], ["yes"]]
    assert outputs == [["le", "chat"], ["un", "chien"], []]
    assert lines == [2, 3, 5]
    assert read_pairs(file, "characters")[0][2] == ["y", "e", "s"]
    for content, why in (("a,b\nc,d\n", "header input,output"), ("input,output\na,b,c\n", "line 2: wanted two texts")):
        file.write_text(content)
        with pytest.raises(InvalidInput, match=why):
            read_pairs(file)
    with pytest.raises(InvalidInput, match="words or characters"):
        read_pairs(file, "syllables")
    (tmp_path / "p.jsonl").write_text('{"input": ["a"], "output": ["b"]}\n')
    with pytest.raises(InvalidInput, match="list their tokens"):
        read_pairs(tmp_path / "p.jsonl", "words")
