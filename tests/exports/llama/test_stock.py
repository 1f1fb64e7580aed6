"""Stock folders in other people's programs: plain transformers gives the automaton's answers, however it is asked."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import thereexists as te
from tests.automata.machines import SMALL, adder, adversarial, alternating_group
from thereexists.certificates.llama.format import FILES
from thereexists.certificates.llama.tokens import tokenizer_of, vocabulary_of
from thereexists.exports.llama import plan_llama

pytest.importorskip("transformers")
SCRIPT = Path(__file__).with_name("without_us.py")
MACHINES = {
    "brackets": te.automata.regex(r"(\((\((\(\))*\))*\))*", "()"),
    "adder": adder(3),
    "forgets": SMALL["forgets"],
}


def answers(machine, words):
    if machine.writes:
        return [f"→ {machine.transduce(word)[-1]}" for word in words]
    return [" accepted" if machine.accepts(word) else " rejected" for word in words]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    found = {}
    for name, machine in MACHINES.items():
        found[name] = tmp_path_factory.mktemp("llama") / name
        done = te.export(te.build(machine, n=24), "llama", found[name])
        assert done["files"] == [*FILES]
    return found


@pytest.mark.parametrize("name", ["brackets", pytest.param("adder", marks=pytest.mark.slow)])
def test_plain_transformers_without_us(folders, tmp_path, name, fresh):
    machine = MACHINES[name]
    words = [word for word in adversarial(machine, 20, 24, seed=1) if word]
    words += [list(machine.alphabet[-1:]) * 24, list(machine.alphabet[:1])]
    between = "" if vocabulary_of(machine).by_character else " "
    asked = {"prompts": [between.join(word) for word in words], "rounds": str(tmp_path / "rounds")}
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    run = fresh(SCRIPT, folders[name], tmp_path / "asked.json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    found, wanted = json.loads(run.stdout.splitlines()[-1]), answers(machine, words)
    assert len(found) == 2 * (2 * 4 + 2)
    for way, texts in found.items():
        assert "False" not in way.replace("cache=False", ""), way
        assert texts == wanted[: len(texts)], way


def test_a_symbol_that_is_none_is_an_error_of_the_tokenizer(folders):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folders["forgets"])
    assert tokenizer("ab")["input_ids"] == [1, 3, 4]
    with pytest.raises(Exception, match="UNK"):
        tokenizer("abc")


@pytest.mark.parametrize("name", MACHINES)
def test_the_tokenizer_is_the_one_that_the_verifier_wants(folders, name):
    written = json.loads((folders[name] / "tokenizer.json").read_text())
    assert written == tokenizer_of(vocabulary_of(MACHINES[name]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_kind_of_rows_is_proved(tmp_path, dtype):
    for name in ("mod7", "drawn", "everything"):  # the monoid's rows, the states', and one state
        te.export(te.build(SMALL[name], n=5, construction="doubling"), "llama", tmp_path / name, dtype)
        verdict = te.verify(tmp_path / name)
        assert verdict.holds, verdict.reasons


def test_the_alternating_group_is_planned_as_the_theory_says():
    plan = plan_llama(te.build(alternating_group(), n=16384))
    assert (plan["layers"], plan["d_model"], plan["head_size"], plan["parameters"]) == (14, 64, 64, 1_046_592)


def test_what_cannot_be_lowered_is_refused(tmp_path):
    compact = te.build(te.targets.builtin("sort", n=2), delta=1 / 2, construction="compact")
    with pytest.raises(te.ThereExistsError, match="its heads see all n tokens"):
        te.export(compact, "llama", tmp_path / "no")
    witness = te.build(SMALL["swaps"], n=5)
    with pytest.raises(te.ThereExistsError, match="float16"):
        te.export(witness, "llama", tmp_path / "no", "float16")
    spaced = te.automata.dfa({0: {"a b": 0, "cc": 0}}, 0, [0])
    with pytest.raises(te.ThereExistsError, match="without spaces"):
        te.export(te.build(spaced, n=3), "llama", tmp_path / "no")
    twice = te.automata.dfa({0: {"1": 0, 1: 0}}, 0, [0])
    with pytest.raises(te.ThereExistsError, match="rename"):
        te.export(te.build(twice, n=3), "llama", tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_a_wrong_export_is_never_written(tmp_path, monkeypatch):
    from thereexists.exports.llama import folder

    real = folder.lowered

    def spoiled(layout, embedding):
        weights = real(layout, embedding)
        weights["model.layers.0.self_attn.q_proj.weight"] *= np.float32(2.0**-7)
        return weights

    monkeypatch.setattr(folder, "lowered", spoiled)
    with pytest.raises(te.ThereExistsError, match="not proved in float32"):
        te.export(te.build(SMALL["swaps"], n=5), "llama", tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_transformer_lens_sees_the_same_numbers(folders, tmp_path):
    """pip install transformer-lens (4.3 seen here): its bridge loads the folder by its path."""
    if importlib.util.find_spec("transformer_lens") is None:
        pytest.skip("transformer-lens is not installed")
    command = [sys.executable, str(SCRIPT.with_name("in_transformer_lens.py")), str(folders["forgets"]), "abbab"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == {"layers": 5, "different": []}
