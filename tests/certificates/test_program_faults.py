"""Planted faults in saved programs, every hash redone where a careful forger would: ``verify`` must name each."""

import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import thereexists as te
from tests.hostile import forge_certificate, forge_program, forge_record, forge_weights
from thereexists import program as P
from thereexists.certificates import certificate as certificates
from thereexists.certificates import program_bound
from thereexists.core import storage


def program():
    x = P.tokens(4, low=-0.5, high=0.5)
    y = P.sort(P.roll(x, 1) - 0.25 * P.mean(x))
    return P.maximum(y, 0.5 * P.abs(P.flip(x))) + P.apply(np.cos, x, epsilon=1e-2, curvature=1.0)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original") / "w"
    te.build(program(), epsilon=2e-2, dtypes=("float64", "float32")).save(folder)
    return folder


@pytest.fixture
def copy(original, tmp_path):
    shutil.copytree(original, tmp_path / "w")
    return tmp_path / "w"


def failing(folder):
    verdict = te.verify(folder)
    assert not verdict.holds
    return {check.name for check in verdict.evidence if not check.passed}


def test_the_original_holds(copy):
    assert te.verify(copy).holds


def every_weight(folder):
    weights = load_file(folder / "model.safetensors")
    rng = np.random.default_rng(0)
    for name in sorted(weights):
        used = np.argwhere(weights[name].numpy() != 0)
        for index in used[rng.permutation(len(used))[:1]].tolist():
            yield name, tuple(index)


@pytest.mark.slow
def test_one_changed_weight_of_every_array(original, tmp_path):
    """One number of every array, made 1% larger: refused, or harmless (a gate or a logit that was larger than it must

    be anyway). What counts as harmless is decided by running the forged network.
    """
    honest = te.load(original)
    X = -0.5 + np.random.default_rng(1).random((2000, 4, 1))
    wanted = honest.interpret(X)
    refused = 0
    for number, (name, index) in enumerate(every_weight(original)):
        folder = tmp_path / str(number)
        shutil.copytree(original, folder)

        def change(weights, name=name, index=index):
            weights[name][index] *= 1.01

        forge_weights(folder, change)
        if te.verify(folder).holds:
            forged = te.load(folder)
            assert np.abs(forged(X) - wanted).max() <= forged.certificate.bounds["float64"]["bound"], (name, index)
        else:
            refused += 1
        shutil.rmtree(folder)
    assert refused >= 10


def test_a_query_turned_around(copy):
    forge_weights(copy, lambda w: w["stages.block_1.attention.W_Q"].mul_(-1))
    assert "meaning" in failing(copy)


def test_a_blunt_head(copy):
    forge_weights(copy, lambda w: w["stages.block_1.attention.W_Q"].div_(64))
    assert "meaning" in failing(copy)


def test_swapped_rows(copy):
    def change(weights):
        W_2 = weights["stages.block_2.feed_forward.W_2"]
        rows = np.flatnonzero(W_2[0].numpy().any(axis=1))
        W_2[0, rows[[0, 1]]] = W_2[0, rows[[1, 0]]]

    forge_weights(copy, change)
    assert "meaning" in failing(copy)


def test_swapped_blocks(copy):
    def change(weights):
        a, b = "stages.block_2.feed_forward.b_1", "stages.block_3.feed_forward.b_1"
        if weights[a].shape == weights[b].shape:
            weights[a], weights[b] = weights[b].clone() + 0.125, weights[a].clone()
        else:
            weights[a] += 0.125

    forge_weights(copy, change)
    assert "meaning" in failing(copy)


def setting(operation, change, arguments=None):
    def forge(record):
        nodes = [node for node in record["program"]["nodes"] if node["operation"] == operation]
        change(next(node for node in nodes if arguments in (None, len(node["arguments"]))))

    return forge


def _last_take(record):
    return [node for node in record["program"]["nodes"] if node["operation"] == "take"][-1]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "forge",
    [
        setting("maximum", lambda node: node.update(operation="minimum")),
        setting("sort", lambda node: node.update(operation="relu")),
        setting("linear", lambda node: node["settings"]["coefficients"].reverse(), arguments=2),
        setting("linear", lambda node: node["settings"].update(coefficients=[1.0, -0.99999999]), arguments=2),
        lambda record: _last_take(record)["settings"]["source"].reverse(),  # (what is sorted may be permuted)
        setting("apply", lambda node: node["settings"].update(function="exp")),
        setting("apply", lambda node: node["settings"]["values"].__setitem__(1, 0.5)),
        setting("tokens", lambda node: node["settings"].update(high=0.75)),
        setting("tokens", lambda node: node["settings"].update(low=-0.25)),
        lambda record: record["program"]["nodes"].pop(),
        lambda record: record["program"]["nodes"][-1].update(operation="something"),
        lambda record: record["program"]["nodes"][-1].update(arguments=[99, 0]),
        lambda record: record["program"].update(n=5),
        lambda record: record["structure"].update(safe=["float64", "float32", "bfloat16"]),
        lambda record: record["structure"].update(safe=["float64"]),
        lambda record: record["class"].update(h=99),
    ],
)
def test_a_changed_record(copy, forge):
    forge_program(copy, forge)
    assert failing(copy)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "forge",
    [
        lambda c: c["bounds"]["float32"].update(bound=c["bounds"]["float32"]["bound"] / 1.001),
        lambda c: c["bounds"]["float32"].update(rounding=c["bounds"]["float32"]["rounding"] / 1.001),
        lambda c: c.update(bound=c["bound"] / 2),
        lambda c: c["bounds"]["float64"].update(bound=float("nan")),
        lambda c: c["parts"].update(approximation=c["parts"]["approximation"] / 1.01),
        lambda c: c["parts"].update(weights=-1.0),
        lambda c: c["splines"][0].update(own=c["splines"][0]["own"] / 1.01),
        lambda c: c["splines"][0].update(function="sin"),
        lambda c: c.update(splines=[]),
        lambda c: c["bounds"].update(bfloat16={"rounding": 1e-6, "bound": 1e-2}),
        lambda c: c.update(dtype="bfloat16"),
        lambda c: c.update(box=[[0.0, 0.5]]),
        lambda c: c.update(epsilon=1e-6),
        lambda c: c.update(assumptions=[]),
        lambda c: c.update(norm="d_1"),
        lambda c: c.update(kind="statistical"),
        lambda c: c.update(weights_sha256="0" * 64),
        lambda c: c.update(program_sha256="0" * 64),
        lambda c: c.pop("bounds"),
        lambda c: c.update(about="something"),
    ],
)
def test_a_changed_certificate(copy, forge):
    forge_certificate(copy, forge)
    assert failing(copy)


def test_a_claim_for_a_dtype_without_enough_bits(copy):
    """Everything redone for bfloat16 with the bound of float32: only the recomputed bound can notice."""
    forge_program(copy, lambda r: r["structure"].update(safe=["float64", "float32", "bfloat16"]))
    forge_certificate(copy, lambda c: c["bounds"].update(bfloat16=dict(c["bounds"]["float32"])))
    assert "bound bfloat16" in failing(copy)


def test_weights_in_another_dtype(copy):
    weights = {name: w.float() for name, w in load_file(copy / "model.safetensors").items()}
    save_file(weights, copy / "model.safetensors")
    sha = storage.file_sha256(copy / "model.safetensors")
    forge_record(copy, lambda r: r.update(weights_sha256=sha))
    assert failing(copy)


def test_a_second_layer_in_a_stage(copy):
    """The rounding bound reads one layer of a stage; a hidden second one must be refused."""

    def change(weights):
        for name in [key for key in weights if ".block_2.feed_forward." in key or ".block_2.attention." in key]:
            weights[name] = weights[name].repeat(2, *[1] * (weights[name].ndim - 1))

    weights = load_file(copy / "model.safetensors")
    change(weights)
    save_file(weights, copy / "model.safetensors")
    sha = storage.file_sha256(copy / "model.safetensors")
    forge_program(copy, lambda r: (r.update(weights_sha256=sha), r["structure"]["stages"]["block_2"].update(depth=2)))
    assert "meaning" in failing(copy)


def test_no_certificate(copy):
    (copy / certificates.FILE).unlink()
    assert failing(copy)
    loaded = te.load(copy)
    with pytest.raises(te.ThereExistsError, match="not certified in float32"):
        loaded.to("float32")


@pytest.mark.parametrize(
    "forge",
    [
        lambda record: record["program"].update(n=1 << 15),
        setting("tokens", lambda node: node["settings"].update(d=10**12)),
    ],
)
def test_a_program_far_larger_than_its_network_costs_no_work(copy, forge, monkeypatch):
    monkeypatch.setattr(program_bound, "meaning_of", lambda *_: pytest.fail("a program of that size was written out"))
    forge_program(copy, forge)
    assert "meaning" in failing(copy)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_query_that_is_not_a_number(copy, number):
    forge_weights(copy, lambda w: w["stages.block_1.attention.W_Q"][0, 0, 0].fill_(number))
    assert "meaning" in failing(copy)
