"""A few models with known circuits, one of every dress: files, check, score; what is planted must be caught."""

import copy
import errno
import json
import os
import shutil
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.cli.in_process import ran
from tests.suites.verifier.forging import rehashed

from thereexists.core.errors import CannotBuild, InvalidInput, ThereExistsError
from thereexists.core.verdict import Verdict
from thereexists.suites import checked, scored
from thereexists.suites.circuits import check, programs, superposed
from thereexists.suites.circuits.files import read_circuit, read_model
from thereexists.suites.circuits.graph import Circuit, circuit_of
from thereexists.suites.circuits.make import DRESSES, ENDINGS, make_circuits
from thereexists.suites.circuits.programs import inputs
from thereexists.suites.circuits.ready import read_ready
from thereexists.suites.circuits.run import run
from thereexists.suites.folders import MARK
from thereexists.suites.hashes import sha256

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "circuits.py"
LENS = Path(__file__).with_name("in_transformer_lens.py")
OFF = {"float32": 1e-4, "float64": 1e-9}  # a few blocks of numbers around 1, logits up to 2,048


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite") / "bench"
    make_circuits(folder, count=6)
    return folder


@pytest.fixture(scope="module")
def names(suite):
    return json.loads((suite / MARK).read_text())["models"]


def test_every_dress_computes_its_program(suite, names):
    """From the files alone: the weights, and the NumPy text, on the inputs of the data."""
    assert [name.rpartition("-")[2] for name in names] == list(DRESSES)
    schema = json.loads((suite / "circuit.schema.json").read_text())
    for name in names[:-1]:  # the stock one: stock/test_stock_circuits.py
        folder = suite / "models" / name
        circuit = json.loads((folder / "circuit.json").read_text())
        jsonschema.validate(circuit, schema)
        net, tokens = read_model(folder)
        data = load_file(folder / "data.safetensors")
        outputs = run(net, inputs(tokens)).output
        for k, ending in enumerate(ENDINGS[: len(circuit["programs"])]):
            made = {}
            exec((folder / f"program{ending}.py").read_text(), made)
            values = [made["program"](row) for row in tokens[:5]]
            for key in values[0]:
                assert np.array_equal(data[f"values{ending}.{key}"][:5], [value[key] for value in values])
            last = list(values[0])[-1]
            assert np.abs(outputs[:5, :, k] - np.stack([value[last][:, 0] for value in values])).max() < 1e-9
        assert any(edge["needed"] for edge in circuit["edges"])


def test_every_json_file_has_its_schema(suite, names):
    """Of ours, that is: config.json is TransformerLens', llama/ is Llama's, witness/ the package's own."""
    others = {"witness", "llama", "witness_second"}
    files = [file for file in suite.rglob("*.json") if file.parent.name not in others and file.name != "config.json"]
    assert len(files) == 4 + 1 + len(names) + 1  # schemas, suite.json, circuits, one superposition
    for file in files:
        if not file.name.endswith(".schema.json"):
            jsonschema.validate(
                json.loads(file.read_text()), json.loads((suite / f"{file.stem}.schema.json").read_text())
            )
        else:
            jsonschema.Draft202012Validator.check_schema(json.loads(file.read_text()))
    edges = json.loads((suite / "edges.schema.json").read_text())
    jsonschema.validate({names[0]: [["input", "m0"], ["input", "output", 0.5]]}, edges)
    for bad in ({names[0]: [["input"]]}, {names[0]: [["input", "m0", "much"]]}, []):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, edges)


def test_more_values_than_rows_and_no_error(suite, names):
    """Directions that are not orthogonal, fewer rows than values; a weight that is off is found by the proof."""
    folder = suite / "models" / names[4]
    said, circuit = (json.loads((folder / f"{name}.json").read_text()) for name in ("superposition", "circuit"))
    D = np.array(list(said["directions"].values()))
    assert D.shape == (said["values"], said["rows"]) == (32, 16)
    gram = D @ D.T
    assert np.array_equal(np.diag(gram), np.ones(32))
    assert np.abs(gram - np.eye(32)).max() == said["interference"] == 0.25
    assert np.linalg.matrix_rank(D) == 16
    assert len(circuit["programs"]) == 3
    net, _ = read_model(folder)
    assert superposed.proved(net, circuit["programs"]) == said
    for block, name, where in ((0, "W_2", (3, 9)), (1, "W_1", (9, 5)), (1, "b_1", (7,))):
        wrong = copy.deepcopy(net)
        getattr(wrong.blocks[block].hidden, name)[where] += 2.0**-6
        with pytest.raises(CannotBuild, match="in the table"):
            superposed.proved(wrong, circuit["programs"])
    wrong = copy.deepcopy(net)
    wrong.blocks[1].heads[0].W_K[0, 0] = 2.0  # looks at the tokens too
    with pytest.raises(CannotBuild, match="positions only"):
        superposed.proved(wrong, circuit["programs"])


def test_the_suite_holds_and_a_changed_edge_is_caught(suite, names):
    """Of a model of TransformerLens' own, and of a stock one, with the hashes redone."""
    assert checked(suite).problems == ()
    mark, changed = (suite / MARK).read_text(), (names[0], names[-1])
    record, before = json.loads(mark), {}
    for name in changed:
        file = suite / "models" / name / "circuit.json"
        before[file] = file.read_text()
        circuit = json.loads(before[file])
        circuit["edges"] = circuit["edges"][1:]
        file.write_text(json.dumps(circuit))
        record["files"][f"models/{name}/circuit.json"] = sha256(file)
    (suite / MARK).write_text(json.dumps(record))
    assert checked(suite).problems == (
        *(f"{name}: circuit.json is not what the seed gives" for name in changed),
        f"{names[-1]}: circuit.json: 'edges' is not what llama/ gives",
    )
    for file, text in before.items():
        file.write_text(text)
    (suite / MARK).write_text(mark)


def test_the_true_circuit_scores_one_and_others_less(suite, names, tmp_path):
    file = tmp_path / "edges.json"
    truth = {
        name: [
            [e["from"], e["to"]] for e in json.loads((suite / "models" / name / "circuit.json").read_text())["edges"]
        ]
        for name in names
    }
    file.write_text(json.dumps(truth))
    rows = {row["model"]: row for row in scored(suite, file)["rows"]}
    assert rows[names[-1]]["mean"] == pytest.approx(1.0, abs=1e-6)  # bits, up to what RMSNorm leaves of them
    file.write_text(json.dumps({name: truth[name] for name in names[:-1]}))
    total = scored(suite, file)["total"]
    assert [total[key] for key in ("precision", "recall")] == [1.0, 1.0]
    assert total["resample"] == pytest.approx(1.0, abs=1e-9)
    assert total["mean"] == pytest.approx(1.0, abs=1e-9)
    everything = {name: [list(edge) for edge in read_ready(suite / "models" / name).edges] for name in names}
    file.write_text(json.dumps(everything))
    total = scored(suite, file)["total"]
    assert total["recall"] == 1.0
    assert total["precision"] < 0.7
    file.write_text(json.dumps({names[1]: [["input", "output", 1.0]]}))
    assert scored(suite, file)["total"]["recall"] < 1
    for bad in ({"nobody": []}, {names[0]: [["input", "nowhere"]]}, []):
        file.write_text(json.dumps(bad))
        with pytest.raises(InvalidInput):
            scored(suite, file)


def test_models_titles_and_pages_are_compared(suite, names, tmp_path):
    """A suite of one model, then what nobody lists, names or counts as it is; hashes mended each time."""
    record = json.loads((suite / MARK).read_text())

    def one(place, **lies):
        folder = tmp_path / place
        shutil.copytree(suite, folder, ignore=lambda where, files: names[1:] if Path(where).name == "models" else [])
        (folder / MARK).write_text(json.dumps(record | {"count": 1, "models": names[:1]} | lies))
        return folder

    def problems(folder):
        return " ".join(checked(rehashed(folder)).problems)

    other = one("title", models=["0000-median-of-everything-pair"])
    (other / "models" / names[0]).rename(other / "models" / "0000-median-of-everything-pair")
    shutil.copytree(suite / "models" / names[1], other / "models" / names[1])
    (other / "README.md").write_text("another page")
    (other / "edges.schema.json").unlink()
    found = problems(other)
    assert f"the seed gives {names[0]}" in found
    assert f"models/{names[1]}/circuit.json is not a file of this suite" in found
    assert "README.md is not the one" in found
    assert "edges.schema.json is missing" in found
    assert problems(one("right")) == ""
    for lies in ({"count": 5000}, {"models": []}, {"package_version": "99"}, {"more": 1}):
        with pytest.raises(InvalidInput):
            checked(rehashed(one(f"r{len(str(lies))}", **lies)))


def test_models_that_are_not_there_are_not_made(suite, tmp_path, monkeypatch):
    """suite.json may name a million of them."""
    record = json.loads((suite / MARK).read_text())
    made = []
    monkeypatch.setattr(check, "write_model", lambda *a: made.append(a))
    names = [f"{k:04d}-none-plain" for k in range(1000)]
    (tmp_path / MARK).write_text(json.dumps(record | {"count": len(names), "models": names}))
    found = checked(tmp_path).problems
    assert made == []
    assert sum("there is no such folder" in problem for problem in found) <= check.MOST_PROBLEMS
    assert found[-1].endswith("was not looked at")


def no_room(*words):
    raise OSError(errno.ENOSPC, "No space left on device")


def no_memory(*words):
    raise CannotBuild("The network could not be made.") from MemoryError()


@pytest.mark.parametrize("stopped", [no_room, no_memory])
def test_trouble_of_this_machine_is_no_problem_of_the_suite(suite, monkeypatch, stopped):
    """Nor is an error of ours that came of it. What was found before it counts all the same."""
    monkeypatch.setattr(check, "write_model", stopped)
    found = checked(suite)
    assert (found.holds, found.problems) == (None, ())
    assert found.obstacle is not None
    done = ran("suite check", suite, cwd=suite)
    assert done.code == 2
    assert "could not be checked" in done.stderr
    (suite / "more.txt").write_text("more")
    found = checked(suite)
    (suite / "more.txt").unlink()
    assert found.holds is False
    assert found.problems == ("more.txt is in the folder but not in suite.json", "more.txt is not a file of this suite")


def test_a_file_or_folder_that_may_not_be_read_is_no_problem_of_the_suite(suite, names, monkeypatch):
    for name, opened in ((f"models/{names[0]}/circuit.json", "open"), (f"models/{names[1]}", "scandir")):
        with monkeypatch.context() as patch:
            patch.setattr(os, opened, _shut(getattr(os, opened), suite / name))
            found = checked(suite)
        assert (found.holds, found.problems) == (None, ())
        assert "Permission denied" in found.obstacle


def _shut(function, closed):
    """A function of the system that this process may not use on one path."""

    def of_another(path=".", *more, **options):
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return function(path, *more, **options)

    return of_another


def test_a_witness_that_could_not_be_verified_is_not_called_false(suite, monkeypatch):
    verify = import_module("thereexists.certificates.verify")  # the package has a function of this name
    unknown = Verdict(None, ("machine: This needs more memory than there is.",), ())
    monkeypatch.setattr(verify, "verify", lambda folder: unknown)
    found = checked(suite)
    assert (found.holds, found.problems) == (None, ())
    assert "more memory" in found.obstacle


def test_outputs_of_another_machine_are_the_same_and_others_are_not(suite, names, tmp_path):
    """Sums in another order: the last bits differ. No other file, value or difference is let through."""
    file = suite / "models" / names[0] / "data.safetensors"
    data = load_file(file)
    again = tmp_path / "data.safetensors"
    for change, same in ((2.0**-50, True), (2.0**-30, False), (float("nan"), False)):
        save_file(data | {"outputs": data["outputs"] + change}, again)
        assert check._same_data(file, again) == same
    value = next(name for name in data if name.startswith("values"))
    save_file(data | {value: data[value] + 2.0**-50}, again)
    assert not check._same_data(file, again)
    save_file({name: x for name, x in data.items() if name != value}, again)
    assert not check._same_data(file, again)
    other_kinds = (
        {"tokens": data["tokens"] * 1.0},
        {value: np.complex64(data[value] + 5j)},
        {"outputs": np.float32(data["outputs"])},
    )
    for other in other_kinds:  # equal numbers, or equal but for what float64 drops
        save_file(data | other, again)
        assert not check._same_data(file, again)
    save_file(data, again, metadata={"note": "Gauss checked it"})
    assert not check._same_data(file, again)
    save_file(data, again)
    assert check._same_data(file, again)
    effects = [edge for name in names for edge in read_circuit(suite / "models" / name)["edges"]]
    assert all((edge["effect"] > 0) == edge["needed"] for edge in effects)


def test_a_changed_file_is_refused_in_a_sentence(suite, names, tmp_path):
    """circuit.json, config.json, weights and data of another kind than they should be; strange scores."""
    edges = tmp_path / "edges.json"
    name = names[0]
    copied = tmp_path / "models" / name
    shutil.copytree(suite / "models" / name, copied)
    shutil.copy(suite / MARK, tmp_path)
    edges.write_text(json.dumps({name: [["input", "m0"]]}))
    scored(tmp_path, edges)
    circuit, config = (json.loads((copied / f"{part}.json").read_text()) for part in ("circuit", "config"))
    for file, contents in {
        "circuit.json": ([], {}, {"dress": "plain", "edges": [{}]}, circuit | {"dress": {}}, circuit | {"edges": 3}),
        "config.json": ([], {}, config | {"n_layers": 10**30}, config | {"n_layers": 99}, config | {"n_heads": 10**9},
                        config | {"n_heads": []}, config | {"attn_scale": 0.0}, config | {"attn_scale": 5e-324}),
        "model.safetensors": ([], "x"),
        "data.safetensors": ([], "x"),
    }.items():  # fmt: skip
        before = (copied / file).read_bytes()
        for content in contents:
            (copied / file).write_text(json.dumps(content))
            rehashed(tmp_path)
            with pytest.raises(ThereExistsError) as said:
                scored(tmp_path, edges)
            assert "SHA-256" not in str(said.value)
        (copied / file).write_bytes(before)
    rehashed(tmp_path)
    for bad in ([["input", "m0", "x"]], [["input", ["m0"]]], [["input", "m0", True]], [[{}, {}]]):
        edges.write_text(json.dumps({name: bad}))
        with pytest.raises(InvalidInput):
            scored(tmp_path, edges)
    record = json.loads((tmp_path / MARK).read_text())
    for models in ([], {}, ["../x"], [[]], [name, name]):
        (tmp_path / MARK).write_text(json.dumps(record | {"models": models}))
        for ask in (lambda: scored(tmp_path, edges), lambda: checked(tmp_path)):
            with pytest.raises(InvalidInput):
                ask()


def test_a_score_reads_nothing_that_was_changed(suite, names, tmp_path):
    """Each file of a model that a score is made of, with its hash as it was; other files are not looked at."""
    edges = tmp_path / "edges.json"
    for name in (names[0], names[-1]):
        folder = tmp_path / name
        copied = folder / "models" / name
        shutil.copytree(suite / "models" / name, copied)
        shutil.copy(suite / MARK, folder)
        circuit = read_circuit(copied)
        edges.write_text(json.dumps({name: [[edge["from"], edge["to"]] for edge in circuit["edges"]]}))
        (copied / "program.txt").write_text("another")
        assert scored(folder, edges)["as_its_author_says"] == ["total", "rows"]
        network = "llama/model.safetensors" if name.endswith("stock") else "model.safetensors"
        for file in (network, "data.safetensors"):
            before = (copied / file).read_bytes()
            (copied / file).write_bytes(before.replace(b'"dtype"', b'"dtype" ', 1))
            with pytest.raises(InvalidInput, match="another SHA-256"):
                scored(folder, edges)
            (copied / file).write_bytes(before)
        for edge in circuit["edges"]:
            edge["needed"] = not edge["needed"]
        (copied / "circuit.json").write_text(json.dumps(circuit))
        with pytest.raises(InvalidInput, match="another SHA-256"):
            scored(folder, edges)


def test_a_circuit_with_an_edge_too_few_is_refused():
    from thereexists.constructions.build import build
    from thereexists.suites.net import net_of

    steps = programs.GALLERY["greater_than_before"]
    tokens = programs.sample(np.random.default_rng(0), 32)
    witness = build(programs.program_of(steps), dtypes=("float64",))
    net = net_of(witness.network)
    found = circuit_of(net, list(witness.places), inputs(tokens))
    go = partial(run, net)
    record = found.record(go, *[(inputs(tokens[:16]), inputs(tokens[16:]))] * 2)
    needed = next((e["from"], e["to"]) for e in record["edges"] if e["needed"])
    fewer = Circuit({e: rows for e, rows in found.carries.items() if e != needed}, found.rows, found.units)
    with pytest.raises(CannotBuild, match="not all of the network"):
        fewer.record(go, *[(inputs(tokens[:16]), inputs(tokens[16:]))] * 2)


def test_random_programs_do_something_and_repeat_themselves():
    for steps in (2, 4, 6):
        drawn = [programs.random_program(np.random.default_rng([7, steps]), steps) for _ in range(2)]
        assert drawn[0] == drawn[1]
        assert programs.needed(drawn[0]) == steps


def lenses():
    """Pythons that have TransformerLens: this one, or those that THEREEXISTS_LENS names, with commas between them."""
    import importlib.util

    named = [python for python in os.environ.get("THEREEXISTS_LENS", "").split(",") if python]
    if not named and importlib.util.find_spec("transformer_lens") is None:
        pytest.skip('pip install "transformer-lens", or name other Pythons by THEREEXISTS_LENS')
    return named or [sys.executable]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench") / "bench"
    make_circuits(folder, count=18)
    return folder


@pytest.mark.slow
def test_transformer_lens_loads_every_model_without_this_package(bench):
    """By the lines of the suite's own page, in a process where importing thereexists fails."""
    for python in lenses():
        command = [python, "-I", "-W", "ignore", str(LENS), str(bench)]
        said = json.loads(subprocess.run(command, check=True, timeout=600, stdout=subprocess.PIPE).stdout)
        print(said["version"], max(said["off"].values()))
        assert list(said["off"]) == json.loads((bench / MARK).read_text())["models"]
        for name, off in said["off"].items():
            if name.endswith("-stock"):
                assert off == 0  # no answer is wrong
                continue
            dtype = json.loads((bench / "models" / name / "config.json").read_text())["dtype"]
            assert off <= OFF[dtype], name


@pytest.mark.slow
def test_two_methods_on_transformer_lens_3(bench, tmp_path):
    """Edge attribution patching needs the hooks of a HookedTransformer, which version 4 has dropped."""
    version = "import importlib.metadata as m; print(m.version('transformer-lens'))"
    for python in lenses():
        if subprocess.check_output([python, "-I", "-c", version], text=True).startswith("3."):
            break
    else:
        pytest.skip("no TransformerLens before 4")
    found = {}
    for method in ("eap", "eap-ig"):
        command = [python, "-W", "ignore", str(SCRIPT), method, str(bench)]
        subprocess.run([*command, str(tmp_path / "e.json")], check=True, timeout=600)
        found[method] = scored(bench, tmp_path / "e.json")["total"]
        print(method, found[method])
        assert 0.9 < found[method]["average_precision"] <= 1  # known programs: see docs/suites.md


@pytest.mark.slow
def test_two_methods_on_stock_models(bench, tmp_path):
    """In plain torch. Gates that are shut hide edges from a gradient, and less so from one that is integrated."""
    found = {}
    for method in ("eap", "eap-ig"):
        command = [sys.executable, "-W", "ignore", str(SCRIPT.with_name("stock_circuits.py")), method, str(bench)]
        subprocess.run([*command, str(tmp_path / "e.json")], check=True, timeout=600)
        found[method] = scored(bench, tmp_path / "e.json")["total"]
        print(method, found[method])
        assert found[method]["models"] == 3
    assert 0.5 < found["eap"]["average_precision"] < found["eap-ig"]["average_precision"] <= 1
