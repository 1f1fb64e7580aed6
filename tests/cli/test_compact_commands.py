"""The commands of the compact construction, used as a newcomer would: good input, bad input, files."""

import json

import pytest

from tests.command import thereexists


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compact")
    pairs = [(["a", "dog"], ["pes"]), (["a", "cat"], ["to", "je", "kočka"]), (["dog"], [])]
    lines = [json.dumps({"input": x, "output": y}) for x, y in pairs]
    (folder / "pairs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "table.csv").write_text("x1,x2,y1,y2\n0,0,0,0\n0,1,0,1\n1,0,0,1\n1,1,1,1\n")
    (folder / "clash.jsonl").write_text('{"input": ["a"], "output": ["b"]}\n\n{"input": ["a"], "output": ["c"]}\n')
    (folder / "clash.csv").write_text("x1,y1\n0,1\n0,2\n")
    (folder / "ragged.csv").write_text("x1,x2,y1,y2\n0,0,0\n")
    (folder / "header.csv").write_text("a,b\n0,0\n")
    (folder / "hole.csv").write_text("x1,y1\n0,\n")
    (folder / "empty.csv").write_text("")
    (folder / "empty.jsonl").write_text("\n")
    (folder / "nan.jsonl").write_text('{"input": [NaN], "output": [1]}\n')
    (folder / "odd.jsonl").write_text('{"input": ["a"], "output": ["b"]}\n{"inputs": 3}\n')
    thereexists("build", "table.csv", "--construction", "compact", "--out", "t", cwd=folder)
    thereexists("memorise", "pairs.jsonl", "--out", "m", cwd=folder)
    build = ("build", "sort", "--n", 2, "--delta", "1/4", "--construction", "compact", "--samples", 64, "--out", "w")
    done = json.loads(thereexists(*build, "--json", cwd=folder).stdout)
    assert done["layers"]["total"] == 4
    assert done["sizes"]["safe"] == ["float64", "float32"]
    assert done["certificate"]["undecided"] == 0
    return folder


def test_plan_says_what_build_gives(folder):
    arguments = ("plan", "sort", "--n", 2, "--delta", "1/4", "--construction", "compact")
    planned = json.loads(thereexists(*arguments, "--json", cwd=folder).stdout)
    shown = json.loads(thereexists("show", "w", "--json", cwd=folder).stdout)
    assert planned["parameters"] == shown["parameters"] == sum(s["parameters"] for s in shown["stages"])
    assert "standard blocks" in thereexists(*arguments, cwd=folder).stdout


def test_run_trace_and_verify(folder):
    run = ("run", "w", "--input", "0.9 0.1", "--json")
    for dtype in ((), ("--dtype", "float32")):
        answer = json.loads(thereexists(*run, *dtype, cwd=folder).stdout)
        assert answer["output"] == [[[0.125], [0.875]]]
        assert answer["engine"]["used"] == "reference"
    assert "recall" in thereexists("trace", "w", "--input", "0.9 0.1", cwd=folder).stdout
    for witness in ("w", "m", "t"):
        assert json.loads(thereexists("verify", witness, "--json", cwd=folder).stdout)["holds"] is True


def test_how_long_sequences_are_is_shown(folder):
    assert json.loads(thereexists("show", "t", "--json", cwd=folder).stdout)["lengths"] == "exactly 2 tokens"
    assert "exactly 2 tokens, vocabularies" in " ".join(thereexists("show", "t", cwd=folder).stdout.split())
    assert "up to 3 tokens, vocabularies" in " ".join(thereexists("show", "m", cwd=folder).stdout.split())
    for witness, said in (("t", "Sequences of exactly 2 tokens,"), ("m", "Sequences of up to 3 tokens,")):
        thereexists("report", witness, "--out", f"{witness}-lengths.html", cwd=folder)
        assert said in (folder / f"{witness}-lengths.html").read_text(encoding="utf-8")


def test_tables_and_data_sets_answer(folder):
    assert thereexists("run", "t", "--input", "1 0", cwd=folder).stdout == "0 1\n"
    assert thereexists("run", "m", "--input", "a cat", "--dtype", "bfloat16", cwd=folder).stdout == "to je kočka\n"
    assert thereexists("run", "m", "--input", "cat a", cwd=folder).stdout == "(nothing stored)\n"
    assert json.loads(thereexists("show", "m", "--json", cwd=folder).stdout)["pairs"] == 3
    assert "lower bound" in " ".join(thereexists("show", "m", cwd=folder).stdout.split())


def test_conflicts_are_resolved_by_the_flag(folder):
    done = thereexists("memorise", "clash.jsonl", "--on-conflict", "last", "--out", "c", "--json", cwd=folder)
    assert json.loads(done.stdout)["conflicts"] == [{"input": ["a"], "lines": [1, 3]}]
    assert thereexists("run", "c", "--input", "a", cwd=folder).stdout == "c\n"


def test_export_says_what_it_compared(folder):
    done = json.loads(thereexists("export", "w", "--to", "torch", "--json", cwd=folder).stdout)
    assert (done["folder"], done["compared"], done["of"]) == ("w-torch", 16, "cells")
    text = thereexists("export", "m", "--to", "torch", "--dtype", "bfloat16", cwd=folder).stdout
    assert "3 pairs compared in bfloat16, all equal" in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("build", "sort", "--delta", "1/4", "--construction", "compact"), "Say it with --n"),
        (("build", "sort", "--n", 2, "--delta", "1/4", "--construction", "tiny"), "'construction' must be one of"),
        (("build", "table.csv", "--construction", "faithful"), "must be one of compact"),
        (("build", "table.csv", "--construction", "compact", "--n", 2), "or no option"),
        (("plan", "table.csv", "--n", 2), "or no option"),
        (("plan", "sort", "--n", 2, "--delta", "1/2", "--dtype", "float32"), "--dtype is for programs"),
        (("build", "clash.csv", "--construction", "compact"), "'0' (lines 2, 3)"),
        (("build", "ragged.csv", "--construction", "compact"), "line 2: wanted 4 columns; got 3"),
        (("build", "header.csv", "--construction", "compact"), "the header must name"),
        (("build", "hole.csv", "--construction", "compact"), "a token is missing"),
        (("build", "empty.csv", "--construction", "compact"), "is empty"),
        (("build", "absent.csv", "--construction", "compact"), "cannot be read"),
        (("memorise", "clash.jsonl"), "'a' (lines 1, 3)"),
        (("memorise", "clash.jsonl", "--on-conflict", "guess"), "'on_conflict' must be one of"),
        (("memorise", "empty.jsonl"), "is empty"),
        (("memorise", "nan.jsonl"), "NaN is not a JSON number"),
        (("memorise", "odd.jsonl"), "odd.jsonl, line 2"),
        (("memorise", "absent.jsonl"), "cannot be read"),
        (("memorise", "pairs.jsonl", "--n", 1), "'n' must be an integer of at least 3"),
        (("memorise", "pairs.jsonl", "--dtype", "int4"), "'dtype' must be one of"),
        (("memorise", "pairs.jsonl", "--out", "pairs.jsonl"), "left alone"),
        (("run", "m", "--input", "a bird"), "'bird' of sequence 0 is not in the vocabulary"),
        (("run", "m", "--input", ""), "1 to 3 tokens; sequence 0 has 0"),
        (("run", "m", "--input", "a dog", "--engine", "nonsense"), "--engine does not apply here"),
        (("run", "t", "--input", "1"), "exactly 2 tokens"),
        (("run", "t", "--input", "7 1"), "The token 7 of sequence 0"),
        (("run", "t", "--input", "x 1"), "are integers, written as 7 or -7; got 'x'"),
        (("run", "w", "--input", "0.1 0.2", "--dtype", "bfloat16"), "not safe in bfloat16"),
        (("certify", "m"), "no distance to certify"),
        (("trace", "m", "--input", "a bird"), "not in the vocabulary"),
        (("export", "w", "--to", "gguf"), "one of onnx, hf, torch"),
        (("export", "w", "--to", "torch", "--dtype", "float16"), "not safe in float16"),
        (("export", "absent", "--to", "torch"), "no saved witness"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(folder, arguments, message):
    before = sorted(p.name for p in folder.iterdir())
    done = thereexists(*arguments, cwd=folder, code=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(p.name for p in folder.iterdir()) == before
