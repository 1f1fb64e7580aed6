"""Program files made to cost: refused in one sentence after no more work than their bytes justify; no traceback."""

import contextlib
import resource
import shutil
import time

import pytest
import torch
from safetensors.torch import load_file, save_file

import thereexists as te
from tests.hostile import forge_certificate, forge_program, forge_record
from thereexists import program as P
from thereexists.core import storage
from thereexists.core.errors import BadWitnessFile

SECONDS = 10.0  # of the processor, types checked; what these files ask for takes a minute to hours, or gigabytes
BYTES = 1 << 28


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original") / "w"
    te.build(P.sort(P.tokens(4)), dtypes=("float64",)).save(folder)
    return folder


@pytest.fixture
def copy(original, tmp_path):
    shutil.copytree(original, tmp_path / "w")
    return tmp_path / "w"


def resized(folder, n, nodes):
    """The same blocks for n tokens, and another program."""
    weights = load_file(folder / "model.safetensors")
    weights["E"] = torch.zeros(n, weights["E"].shape[1], dtype=torch.float64)
    save_file(weights, folder / "model.safetensors")
    sha = storage.file_sha256(folder / "model.safetensors")

    def change(record):
        record.update(weights_sha256=sha, program={"n": n, "nodes": nodes})
        record["structure"]["E"] = [n, weights["E"].shape[1]]

    forge_program(folder, change)


def node(operation, *arguments, d=1, **settings):
    return {"operation": operation, "arguments": list(arguments), "d": d, "settings": settings}


TOKENS = node("tokens", d=1, low=0.0, high=1.0, shorter=False) | {
    "settings": {"d": 1, "low": 0.0, "high": 1.0, "shorter": False}
}


def powers(count):
    """Coefficients of more and more bits."""
    return [TOKENS, *(node("linear", k, coefficients=[0.1]) for k in range(count))]


def doubled(count):
    """Sums of everything so far: 2^count paths."""
    return [TOKENS, *(node("linear", k, k, coefficients=[1.1, 0.3]) for k in range(count))]


def bent_powers(count):
    nodes = [TOKENS]
    for k in range(count):
        nodes += [node("linear", 2 * k, coefficients=[1.1]), node("relu", 2 * k + 1)]
    return nodes


HOSTILE = {
    "sort of 32,768": (1 << 15, [TOKENS, node("sort", 0)]),
    "sort of 4,096": (1 << 12, [TOKENS, node("sort", 0)]),
    "rank of 1,500": (1500, [TOKENS, node("rank", 0, margin=0.1, n=1500)]),
    "argsort of 1,500": (1500, [TOKENS, node("argsort", 0, margin=0.1, n=1500)]),
    "prefix means of 4,096": (1 << 12, [TOKENS, node("prefix_mean", 0)]),
    "attention of 4,096": (1 << 12, [TOKENS, node("attend", 0, 0, 0, causal=False, called="x")]),
    "powers": (64, powers(2_000)),
    "doubled powers": (64, doubled(2_000)),
    "powers of names": (64, bent_powers(600)),
    "many operations": (4096, [TOKENS, *(node("relu", k) for k in range(5_000))]),
    "all lengths": (
        512,
        [TOKENS | {"settings": {**TOKENS["settings"], "shorter": True}}, node("rank", 0, margin=0.1, n=512)],
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_program_of_enormous_work_is_refused_first(copy, name):
    resized(copy, *HOSTILE[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    verdict = te.verify(copy)
    assert time.process_time() - start <= SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 <= BYTES
    failed = [check for check in verdict.evidence if not check.passed and check.name == "meaning"]
    assert len(failed) == 1
    assert "not proved" in failed[0].detail


def test_a_wide_tokens_is_refused_before_its_work(copy):
    resized(copy, 4, [{**TOKENS, "d": 10**9, "settings": {**TOKENS["settings"], "d": 10**9}}])
    assert not te.verify(copy).holds


BROKEN = {
    "no nodes": {"n": 4, "nodes": []},
    "no list": {"n": 4, "nodes": {"a": 1}},
    "a node that is a number": {"n": 4, "nodes": [3]},
    "n is a word": {"n": "4", "nodes": [TOKENS]},
    "n is a truth value": {"n": True, "nodes": [TOKENS]},
    "n is negative": {"n": -4, "nodes": [TOKENS]},
    "an operation without a name": {"n": 4, "nodes": [{**TOKENS, "operation": 7}]},
    "an argument that is a word": {"n": 4, "nodes": [TOKENS, {**node("sort"), "arguments": ["0"]}]},
    "an argument that follows": {"n": 4, "nodes": [TOKENS, node("sort", 1)]},
    "too few arguments": {"n": 4, "nodes": [TOKENS, node("maximum", 0)]},
    "too many arguments": {"n": 4, "nodes": [TOKENS, node("relu", 0, 0, 0)]},
    "no settings": {"n": 4, "nodes": [TOKENS, {"operation": "sort", "arguments": [0], "d": 1}]},
    "settings that are a list": {"n": 4, "nodes": [TOKENS, {**node("sort", 0), "settings": []}]},
    "a missing setting": {"n": 4, "nodes": [TOKENS, node("clip", 0, low=0.0)]},
    "a setting of the wrong type": {"n": 4, "nodes": [TOKENS, node("clip", 0, low=[0.0], high={"a": 1})]},
    "a setting that is a word": {"n": 4, "nodes": [TOKENS, node("clip", 0, low="low", high=1.0)]},
    "knots in two dimensions": {"n": 4, "nodes": [TOKENS, node("interp", 0, knots=[[0, 1]], values=[[0, 1]])]},
    "no knots": {"n": 4, "nodes": [TOKENS, node("interp", 0, knots=[], values=[])]},
    "a ragged matrix": {"n": 4, "nodes": [TOKENS, node("mix", 0, matrix=[[1.0], [1.0, 2.0]], d=2)]},
    "a matrix of the wrong width": {"n": 4, "nodes": [TOKENS, node("mix", 0, matrix=[[1.0, 2.0]])]},
    "a number of 2,000 digits": {"n": 4, "nodes": [TOKENS, node("linear", 0, coefficients=[10**2000])]},
    "a number beyond the floats": {"n": 4, "nodes": [TOKENS, node("linear", 0, coefficients=[float("inf")])]},
    "no tokens": {"n": 4, "nodes": [node("constant", array=[[0.0]] * 4)]},
    "tokens twice": {"n": 4, "nodes": [TOKENS, TOKENS, node("linear", 0, 1, coefficients=[1.0, 1.0])]},
    "zero features": {"n": 4, "nodes": [{**TOKENS, "d": 0, "settings": {**TOKENS["settings"], "d": 0}}]},
    "ends the wrong way": {"n": 4, "nodes": [{**TOKENS, "settings": {**TOKENS["settings"], "low": 2.0}}]},
    "an unknown operation": {"n": 4, "nodes": [TOKENS, node("\x1b[2J", 0)]},
    "a scale beyond everything": {
        "n": 4,
        "nodes": [TOKENS, *(node("linear", k, coefficients=[1e300]) for k in range(9))],
    },
    "a program that is a word": "sort",
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_program_gets_one_sentence(copy, name):
    forge_record(copy, lambda r: r.update(program=BROKEN[name]))
    verdict = te.verify(copy)
    assert not verdict.holds
    for check in verdict.evidence:
        assert "cannot be checked" not in check.detail  # the last resort: an error that nobody expected
        assert "Traceback" not in check.detail
    with contextlib.suppress(BadWitnessFile):
        te.load(copy)


@pytest.mark.parametrize("depth", [0, 2])
def test_a_stage_of_another_depth(copy, depth):
    weights = load_file(copy / "model.safetensors")
    for name in [key for key in weights if ".block_1." in key]:
        part = weights[name]
        weights[name] = part[:0] if depth == 0 else part.repeat(2, *[1] * (part.ndim - 1))
    save_file(weights, copy / "model.safetensors")
    sha = storage.file_sha256(copy / "model.safetensors")

    def change(record):
        record["weights_sha256"] = sha
        record["structure"]["stages"]["block_1"]["depth"] = depth

    forge_program(copy, change)
    verdict = te.verify(copy)
    assert not verdict.holds
    assert not any("cannot be checked" in check.detail for check in verdict.evidence)


@pytest.mark.parametrize(
    "change",
    [
        {"bounds": 5},
        {"bounds": {"float64": 5}},
        {"bounds": {"float64": {"bound": "small"}}},
        {"box": [[0.0]]},
        {"parts": None},
        {"reasons": [1]},
        {"splines": "none"},
        {"assumptions": [3]},
        {"dtype": 7},
        {"bound": "0"},
        {"epsilon": {}},
    ],
    ids=str,
)
def test_a_certificate_of_wrong_types(copy, change):
    forge_certificate(copy, lambda c: c.update(change))
    with pytest.raises(BadWitnessFile, match="wrong type"):
        te.load(copy)
    verdict = te.verify(copy)
    assert not verdict.holds
    assert not any("cannot be checked" in check.detail for check in verdict.evidence)


@pytest.mark.parametrize("places", [7, [7], [{}], [{"block": "x", "half": 1, "made": [1]}], [{"block": 1, "made": []}]])
def test_places_of_wrong_types(copy, places):
    forge_program(copy, lambda record: record.update(places=places))
    with pytest.raises(BadWitnessFile):
        te.load(copy)
