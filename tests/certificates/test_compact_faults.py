"""``verify`` catches planted faults in compact witnesses and in memorised data, every hash redone."""

import json
import shutil

import numpy as np
import pytest
import torch

import thereexists as te
from tests.hostile import certified, forge_record, forge_weights, weight
from thereexists.certificates.output_bound import output_bound
from thereexists.functions.targets import builtin
from thereexists.model import EmbeddedTransformer, FeedForward, Stage


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compact")
    for name in ("sort", "distance-to-mean"):
        witness = te.build(builtin(name, n=2), delta=1 / 4, construction="compact")
        witness.save(folder / name)
        te.certify(witness, opinions=1).save(folder / name)
    rng = np.random.default_rng(0)
    inputs = [[f"w{i}" for i in rng.integers(0, 20, rng.integers(1, 6))] for _ in range(40)]
    te.memorise(inputs, [x[::-1] for x in inputs]).save(folder / "memorise")
    te.build(te.Table.of(sorted, range(3), 3, symmetric=True), construction="compact").save(folder / "table")
    return folder


@pytest.fixture
def copy(originals, tmp_path):
    return lambda name: shutil.copytree(originals / name, tmp_path / name)


def pair_of_literals(weights):
    weights["stages.gather.feed_forward.b_1"][0, 0] -= 2.0  # r⁺ + r⁻ ≥ 1 no longer holds, and bit 0 is never seen


def two_units_alike(weights):
    weights["stages.recall.feed_forward.W_1"][0, 1] = weights["stages.recall.feed_forward.W_1"][0, 0]


def uneven_attention(weights):
    weights["stages.gather.attention.W_Q"][0, 0, 0, 0] = 3.0
    weights["stages.gather.attention.W_K"][0, 0, 0, 0] = 3.0


def claim_safe(record):
    record["structure"]["safe"] = ["float64", "float32", "bfloat16"]


FAULTS = {
    "an edge moved": (weight("edges.feed_forward.b_1", (0, 1), 4.0e5), "bound"),
    "an edge unit gone": (weight("edges.feed_forward.W_2", (0, 3, 0), 1.0), "output bound"),
    "a cell writes other bits": (weight("cells.feed_forward.W_2", (0, -1, 2), 1.0), "output bound"),
    "the sum too small": (weight("gather.attention.W_O", (0, 0, 10, 0), -2.0), "bound"),
    "attention that chooses": (lambda f: forge_weights(f, uneven_attention), "bound"),
    "a literal without its pair": (lambda f: forge_weights(f, pair_of_literals), "output bound"),
    "one value wrong": (weight("recall.feed_forward.W_2", (0, 1, 0), 0.25), "bound"),
    "a value beyond the bound": (weight("recall.feed_forward.W_2", (0, 1, 0), 9.0), "output bound"),
    "a gate above one": (weight("recall.feed_forward.b_1", (0, 0), 0.5), "output bound"),
    "two units with one key": (lambda f: forge_weights(f, two_units_alike), "bound"),
    "a default moved": (lambda f: forge_weights(f, lambda w: w["E"][0, 1].add_(0.1)), "bound"),
    "an output bound too small": (certified(output_bound=[0.1]), "output bound"),
    "an unsafe dtype called safe": (lambda f: forge_record(f, claim_safe), "dtypes"),
    "parameters miscounted": (lambda f: forge_record(f, lambda r: r["plan"].update(parameters=7)), "plan"),
    "another construction claimed": (
        lambda f: forge_record(f, lambda r: r["plan"].update(construction="faithful")),
        "files",
    ),
    "a block left out": (lambda f: forge_record(f, lambda r: r["structure"]["stages"].pop("cells")), "files"),
}


def test_the_originals_hold(originals):
    for folder in originals.iterdir():
        verdict = te.verify(folder, opinions=1)
        assert verdict.holds, verdict.reasons


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", FAULTS)
def test_verify_catches_and_names(copy, fault):
    folder = copy("sort")
    forge, named = FAULTS[fault]
    forge(folder)
    verdict = te.verify(folder, opinions=1)
    assert verdict.holds is False
    assert named in [check.name for check in verdict.evidence if not check.passed], verdict.reasons


def other_digit(weights):
    W_2 = weights["stages.recall.feed_forward.W_2"]
    row = int(W_2[0, :, 3].nonzero()[0, 0])  # the first digit that unit 3 stores
    W_2[0, row, 3] += 1


def other_answer(weights):
    first = weights["pairs.outputs"][0, 0]
    weights["pairs.outputs"][0, 0] = 3 if first == 2 else 2


def spoil(name, index, value):
    def change(weights):
        weights[name][index] = value

    return change


TOKEN_FAULTS = {
    "a stored digit": ("memorise", other_digit, "recall"),
    "a token's code": ("memorise", spoil("embedding", (3, slice(0, 16)), 1.0), "recall"),
    "a stored pair": ("memorise", other_answer, "recall"),
    "two equal inputs": ("memorise", lambda w: w["pairs.inputs"].__setitem__(1, w["pairs.inputs"][0].clone()), "pairs"),
    "a field left out": ("memorise", None, "files"),
    "a symmetric table that is not": ("table", spoil("stages.gather.attention.W_O", (0, 0, 5, 0), 1.0), "recall"),
}


@pytest.mark.parametrize("fault", TOKEN_FAULTS)
def test_verify_catches_faults_in_tokens(copy, fault):
    name, change, named = TOKEN_FAULTS[fault]
    folder = copy(name)
    if change is None:
        forge_weights(folder, record=lambda r: r["tokens"].pop("n"))
    else:
        forge_weights(folder, change)
    verdict = te.verify(folder)
    assert verdict.holds is False
    assert named in [check.name for check in verdict.evidence if not check.passed], verdict.reasons


def test_a_changed_file_is_refused_at_load(copy):
    folder = copy("memorise")
    record = json.loads((folder / "witness.json").read_text())
    record["vocabulary"][0] = "other"
    (folder / "witness.json").write_text(json.dumps(record))
    with pytest.raises(te.ThereExistsError, match="digest does not match"):
        te.load(folder)
    forge_record(folder, lambda r: r["vocabulary"].append("one more"))
    with pytest.raises(te.ThereExistsError, match="do not fit the weights"):
        te.load(folder)


def test_what_a_second_layer_of_a_stage_writes_is_counted():
    once = te.build(builtin("sort", n=2), delta=1 / 4, construction="compact").network
    stages = dict(once.stages.items())
    weights = [w.detach() for w in stages["recall"].feed_forward.parameters_list()]
    stages["again"] = Stage(None, FeedForward(*(torch.cat([w, w]) for w in weights)))  # every value, twice more
    thrice = EmbeddedTransformer(stages, once.W_out.detach(), once.W_in.detach(), E=once.E.detach())
    X = torch.full((1, 2, 1), 0.9, dtype=torch.float64)
    assert float(thrice(X).detach().max()) > 1.5 * max(output_bound(once))
    assert min(output_bound(thrice)) >= float(thrice(X).detach().abs().max())
