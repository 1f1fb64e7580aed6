"""Stock folders with known circuits: rows on all strings, edges, units, files; what is planted must be caught."""

import copy
import dataclasses
import json
import shutil

import jsonschema
import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.certificates.llama.forging import forge_weights

from thereexists.certificates.llama.circuit import BITS
from thereexists.certificates.llama.signals import Recalls, Remembers, Says
from thereexists.certificates.verify import verify
from thereexists.core.errors import CannotBuild, ThereExistsError
from thereexists.suites.circuits.graph import Circuit
from thereexists.suites.circuits.stock import programs
from thereexists.suites.circuits.stock.circuit import SAME, stock_circuit
from thereexists.suites.circuits.stock.model import FOLDER, claim_of, draw, read_tokens, stock_problems, write_stock
from thereexists.suites.circuits.stock.naming import Names, tokens_of
from thereexists.suites.circuits.stock.network import read_stock
from thereexists.suites.circuits.texts import CIRCUIT_SCHEMA

pytest.importorskip("transformers")
TITLE = "as_it_began"  # two blocks, a head that looks by distance and one that looks by content


def write(folder, steps):
    folder.mkdir()
    write_stock(folder, steps, np.random.default_rng(0))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write(tmp_path_factory.mktemp("stock") / "model", programs.GALLERY[TITLE])


@pytest.fixture(scope="module")
def net(model):
    return read_stock(model / FOLDER)[0]


def circuit_of(folder):
    return json.loads((folder / "circuit.json").read_text())


def test_files_say_what_the_program_does(model, net):
    """The NumPy text, the data and the network's answers agree, and transformers has the network's logits."""
    from transformers import AutoModelForCausalLM

    jsonschema.validate(circuit_of(model), CIRCUIT_SCHEMA)
    data, made = load_file(model / "data.safetensors"), {}
    exec((model / "program.py").read_text(), made)
    for string, row in zip(data["values.x"], range(64), strict=True):
        for name, value in made["program"](string).items():
            assert np.array_equal(data[f"values.{name}"][row], value)
    tokens = read_tokens(model)
    logits = net.run(tokens).output
    assert np.array_equal(logits[:, 1:].argmax(-1), data["answers"])
    import torch

    stock = AutoModelForCausalLM.from_pretrained(model / FOLDER, dtype=torch.float64)
    with torch.no_grad():
        theirs = stock(torch.from_numpy(tokens)).logits.numpy()
    assert np.abs(theirs - logits).max() < 1e-3  # their rotary table and norms are in float32
    assert verify(model / FOLDER).holds
    assert stock_problems(model, circuit_of(model)) == []


def test_the_circuit_is_the_one_that_was_drawn(model):
    """By hand: x goes to a place's mark and to the comparison; the first letter is fetched by content."""
    circuit = circuit_of(model)
    assert circuit["steps"] == {"v1": {"in": [], "part_of": ["v2"]}, "v2": {"in": ["m1"], "part_of": []}}
    assert circuit["components"]["m0"]["operations"] == ["position"]
    assert circuit["components"]["a1.h0"]["operations"] == ["x at 0"]
    assert sum(map(len, circuit["components"]["m1"]["units"].values())) == 18
    needed = {(edge["from"], edge["to"]): edge["carries"] for edge in circuit["edges"] if edge["needed"]}
    assert needed.pop(("m1", "output")) == ["v2"]
    assert needed == {
        ("input", "a1.h0.v"): ["x"],
        ("input", "m1"): ["constant", "x"],
        ("a1.h0", "m1"): ["x at 0"],
    }


def test_a_changed_record_is_caught(model, tmp_path):
    """An edge too few, a unit of another value, a row that says something else, a step elsewhere: each by name."""
    wrong = circuit_of(model)
    del wrong["edges"][2]
    wrong["components"]["m1"]["units"]["v2"][0] += 1
    wrong["steps"]["v2"]["in"] = ["m0"]
    parts = [f"circuit.json: '{part}' is not what {FOLDER}/ gives" for part in ("components", "edges", "steps")]
    assert stock_problems(model, wrong) == parts
    wrong = circuit_of(model)
    wrong["components"]["a1.h0"]["rows"][0]["is"] = ["c"]
    next(edge for edge in wrong["edges"] if edge["needed"])["effect"] = 1.0
    assert stock_problems(model, wrong) == parts[:2]
    assert "another program" in stock_problems(model, wrong | {"programs": [programs.GALLERY["first_letter"]]})[0]
    with pytest.raises(ThereExistsError, match="not a model"):
        stock_problems(model, wrong | {"programs": []})
    shutil.copy(model / "circuit.json", tmp_path / "data.safetensors")
    with pytest.raises(ThereExistsError, match="not a safetensors file"):
        read_tokens(tmp_path)


def test_a_changed_weight_is_caught(model, tmp_path):
    """Every hash redone: a unit or a head that writes another row, a threshold, a letter, an answer."""

    def unit(w):
        w["model.layers.1.mlp.down_proj.weight"][BITS + 1, 0] = 1.0

    def head(w):
        w["model.layers.1.self_attn.o_proj.weight"][BITS + 1, 0] = 1.0

    def threshold(w):
        w["model.layers.1.mlp.gate_proj.weight"][:, 0] *= -1

    def letter(w):
        w["model.embed_tokens.weight"][[3, 4]] = w["model.embed_tokens.weight"][[4, 3]]

    def answer(w):
        w["lm_head.weight"][[6, 7]] = w["lm_head.weight"][[7, 6]]

    words = {threshold: "after the gates", letter: "embedding", answer: "answers something else"}
    for change in (unit, head, threshold, letter, answer):
        wrong = tmp_path / change.__name__
        shutil.copytree(model, wrong)
        forge_weights(wrong / FOLDER, change)
        (problem,) = stock_problems(wrong, circuit_of(wrong))
        assert problem.startswith(f"{FOLDER}/ is not what circuit.json says")
        assert words.get(change, "") in problem
        assert not verify(wrong / FOLDER).holds


def test_what_reads_the_weights_notices_by_itself(net):
    """Without the strings: a unit, then a head, that writes a row more, however little."""
    names = Names(programs.GALLERY[TITLE], claim_of(programs.GALLERY[TITLE]))
    made = np.flatnonzero(net.layers[1].down.any(axis=1))
    another = next(row for row in made if net.layers[1].down[row, 0] == 0)
    for part, row, word in (("down", another, "hidden unit"), ("O", BITS + 1, "head of block 1")):
        layer = copy.deepcopy(net.layers[1])
        (layer.O[0] if part == "O" else layer.down)[row, 0] = 2.0**-30
        with pytest.raises(CannotBuild, match=word):
            stock_circuit(dataclasses.replace(net, layers=(net.layers[0], layer)), names)


def test_a_meaning_that_is_not_so_is_refused(net):
    """What the wiring says of a row is looked at: a note that is turned around is noticed."""
    names = Names(programs.GALLERY[TITLE], claim_of(programs.GALLERY[TITLE]))
    notes = names.claim.wired.wiring.notes
    names.check(net)
    for key, says in list(notes.items())[::3]:
        every = range(says.of.size if hasattr(says.of, "size") else len(says.of.values))
        notes[key] = dataclasses.replace(says, which=tuple(k for k in every if k not in says.which))
        with pytest.raises(CannotBuild, match=f"Row {BITS + key[2]} "):
            names.check(net)
        notes[key] = says


def test_a_circuit_with_an_edge_too_few_is_refused(net):
    names = Names(programs.GALLERY[TITLE], claim_of(programs.GALLERY[TITLE]))
    found = stock_circuit(net, names).circuit
    strings = names.strings[:: len(names.strings) // 32]
    X, other = tokens_of(strings), tokens_of(np.roll(strings, 1, axis=0))
    for edge in [("input", "a1.h0.v"), ("a1.h0", "m1"), ("m1", "output")]:
        fewer = Circuit({e: rows for e, rows in found.carries.items() if e != edge}, found.rows, found.units)
        with pytest.raises(CannotBuild, match="not all of the network"):
            fewer.record(net.run, (X, other), (X, other), SAME)


def test_random_programs_do_something_and_repeat_themselves():
    for steps in (2, 4):
        one, two = (draw(np.random.default_rng([7, steps]), steps) for _ in range(2))
        assert one == two
        assert len(one) == steps
        answers = programs.values_of(one, programs.every_string())[one[-1]["name"]]
        assert len(np.unique(answers)) > 1


def test_every_operation_is_the_compilers():
    """Its NumPy and its text, on all strings, against the interpreter of programs."""
    from thereexists.certificates.program_numpy import run

    strings = programs.every_string()
    seen = set()
    for steps in (*programs.GALLERY.values(), _with_the_others()):
        values, made = programs.values_of(steps, strings), {}
        assert np.array_equal(run(claim_of(steps).program, strings), values[steps[-1]["name"]])
        exec(programs.numpy_text(steps), made)
        for k in range(0, len(strings), 91):
            for name, value in made["program"](strings[k]).items():
                assert np.array_equal(value, values[name][k]), name
        seen |= {step["op"] for step in steps}
    assert seen == programs.OPERATIONS.keys()


def _with_the_others():
    lines = (
        ("v1", "find", ["x", "x", "x"], {"default": 1}), ("v2", "before", ["x"], {"by": 2, "fill": 2}),
        ("v3", "find", ["v2", "x", "v1"], {"default": 1}), ("v4", "is_one_of", ["v3"], {"some": [1, 2]}),
        ("v5", "is_one_of", ["x"], {"some": [0]}), ("v6", "either", ["v4", "v5"], {}),
        ("v7", "earlier", ["v5"], {"by": 1}), ("v8", "differ", ["v6", "v7"], {}),
    )  # fmt: skip
    return [{"name": name, "op": op, "of": of, **more} for name, op, of, more in lines]


@pytest.mark.slow
def test_all_known_programs_and_random_ones(tmp_path):
    """Every kind of meaning comes up, and the files of each show that it holds."""
    rng, kinds = np.random.default_rng(3), set()
    drawn = {f"random-{k}": draw(rng, 2 + k % 5) for k in range(15)}
    for name, steps in (programs.GALLERY | drawn).items():
        folder = write(tmp_path / name, steps)
        assert stock_problems(folder, circuit_of(folder)) == [], name
        assert verify(folder / FOLDER).holds
        jsonschema.validate(circuit_of(folder), CIRCUIT_SCHEMA)
        kinds |= {type(says) for says in claim_of(steps).wired.wiring.notes.values()}
    assert kinds == {Says, Remembers, Recalls}
