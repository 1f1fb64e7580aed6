"""Stock folders over the reals as a stranger would send them, every hash redone: the proof notices, or it is true."""

import contextlib
import dataclasses
import json

import numpy as np
import pytest
import torch

import thereexists as te
from tests.certificates.llama.forging import copied, forge_json, forge_weights, redo
from thereexists.core.errors import NotProved
from thereexists.exports import export_claim

pytest.importorskip("transformers")
from tests.certificates.llama.reals.real_programs import checkpoint_of, claim_of, everything, model_of
from thereexists.certificates.llama.reals.proof import prove_reals
from thereexists.certificates.llama.reals.verify import drawn, far_off


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reals") / "stock"
    export_claim(claim_of(everything()), folder)
    return folder


def test_the_folder_is_verified(stock):
    verdict = te.verify(stock)
    assert verdict.holds, verdict.reasons
    assert [check.name for check in verdict.evidence][:3] == ["files", "class", "proof"]
    record = json.loads((stock / "thereexists_export.json").read_text())
    assert record["claim"]["bounds"]["float32"] < 0.1  # 0.01 of the spline, times what comes behind it
    assert sorted(file.name for file in stock.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "thereexists_export.json",
    ]


def counts(weight):
    """Where the largest weight is."""
    return np.unravel_index(int(weight.abs().argmax()), weight.shape)


def _scaled(name, factor=1.2):
    def change(weights):
        found = next(key for key in sorted(weights) if key.endswith(name) and weights[key].any())
        weights[found][counts(weights[found])] *= factor

    return change


def _added(name):
    """Somewhere where there is nothing."""

    def change(weights):
        found = next(key for key in sorted(weights) if key.endswith(name) and weights[key].any())
        weights[found].view(-1)[int((weights[found].view(-1) == 0).nonzero()[-1])] = 1.0

    return change


def _turned(name):
    """The lowest bit of a code, which every token needs."""

    def change(weights):
        found = next(key for key in sorted(weights) if key.endswith(name) and weights[key].any())
        weights[found][weights[found].any(dim=1).nonzero()[-1]] *= -1

    return change


PARTS = ("gate_proj", "up_proj", "down_proj", "v_proj", "o_proj", "lm_head", "embed_tokens")
CHANGES = {f"{part} changed": _scaled(f"{part}.weight") for part in PARTS}
CHANGES |= {f"{part} added": _added(f"{part}.weight") for part in (*PARTS, "q_proj", "k_proj")}
CHANGES |= {f"{part} turned round": _turned(f"{part}.weight") for part in ("q_proj", "k_proj")}
CHANGES |= {part: _scaled(f"{part}.weight", 0.5) for part in ("input_layernorm", "model.norm")}


def test_every_changed_weight_is_caught():
    """By the proof alone: it is given the weights, whatever the hashes say."""
    claim = claim_of(everything())
    checkpoint = checkpoint_of(claim)
    honest = prove_reals(checkpoint, "float32").bound
    for name, change in CHANGES.items():
        weights = {key: weight.clone() for key, weight in checkpoint.weights.items()}
        change(weights)
        changed = dataclasses.replace(checkpoint, weights=weights)
        with contextlib.suppress(NotProved):
            assert prove_reals(changed, "float32").bound > 1.01 * honest, name  # more than is claimed


def test_a_changed_file_is_caught(stock, tmp_path):
    forge_weights(copied(stock, tmp_path / "weight"), CHANGES["up_proj changed"])
    forge_json(copied(stock, tmp_path / "gates"), "config.json", lambda config: config.update(hidden_act="gelu"))
    (copied(stock, tmp_path / "card") / "README.md").write_text("it is right everywhere")
    redo(tmp_path / "card")
    (copied(stock, tmp_path / "more") / "tokenizer.json").write_text("{}")
    for name in ("weight", "gates", "card", "more"):
        verdict = te.verify(tmp_path / name)
        assert verdict.holds is False, name
        assert len(verdict.reasons) == 1


def _node(record, operation):
    return next(node for node in record["claim"]["program"]["nodes"] if node["operation"] == operation)["settings"]


def _less(record):
    record["claim"]["bounds"]["float32"] *= 0.9


def _more_dtypes(record):
    record["dtypes"] = record["dtypes"][::-1]


def _wider(record):
    _node(record, "tokens").update(low=-1.5, high=1.5)


def _coefficient(record):
    _node(record, "linear")["coefficients"][0] += 0.25


def _elsewhere(record):
    _node(record, "take")["source"][-1] -= 1


def _knots(record):
    _node(record, "interp")["values"][1] += 0.5


def _flags(record):
    _node(record, "where")["height"] /= 8


def _function(record):
    _node(record, "apply")["function"] = "cos"


def _no_number(record):
    record["claim"]["bounds"]["float32"] = True


FORGED = (_less, _more_dtypes, _wider, _coefficient, _elsewhere, _knots, _flags, _function, _no_number)


def test_a_forged_record_is_caught(stock, tmp_path):
    for forged in FORGED:
        verdict = te.verify(redo(copied(stock, tmp_path / forged.__name__), forged))
        assert verdict.holds is False, forged.__name__


@pytest.mark.slow
def test_single_weights_are_caught_or_keep_the_bound():
    """A random forger: whatever the proof still bounds is within that bound when it is run."""
    claim, rng, passed = claim_of(everything()), np.random.default_rng(0), 0
    checkpoint, X = checkpoint_of(claim), drawn(claim, rng, 64)
    models = {dtype: model_of(claim, dtype) for dtype in ("float32", "bfloat16")}
    names = sorted(checkpoint.weights)
    for _ in range(150):
        name = names[rng.integers(len(names))]
        changed = checkpoint.weights[name].clone()
        at = tuple(rng.integers(0, size) for size in changed.shape)
        if rng.random() < 0.8 and changed.count_nonzero():
            places = changed.nonzero()
            at = tuple(places[rng.integers(len(places))].tolist())
        factor = float(rng.choice([1.0001, 1.01, 1.25, 0.5, -1.0, 4.0]))
        changed[at] = float(rng.choice([0.0, 1.0, 2.0**20])) if rng.random() < 0.3 else changed[at] * factor
        forged = dataclasses.replace(checkpoint, weights={**checkpoint.weights, name: changed})
        for dtype, model in models.items():
            try:
                bound = prove_reals(forged, dtype).bound
            except NotProved:
                continue
            passed += 1
            weight = model.get_parameter(name)
            kept = weight.data.clone()
            weight.data.copy_(changed.to(weight.dtype))
            assert far_off(claim, model, X) <= bound, (name, at, dtype)
            weight.data.copy_(kept)
    assert passed > 20


def test_bounds_are_carried_when_nothing_is_random():
    """A weight that is off by a little is charged for, in the bound: twice the fault, twice the charge."""
    claim = claim_of(everything())
    checkpoint = checkpoint_of(claim)
    bounds = []
    for factor in (1.0, 1 + 2.0**-10, 1 + 2.0**-9):
        lm_head = checkpoint.weights["lm_head.weight"].clone()
        lm_head[counts(lm_head)] *= factor
        forged = dataclasses.replace(checkpoint, weights={**checkpoint.weights, "lm_head.weight": lm_head})
        bounds.append(prove_reals(forged, "float32").bound)
    assert bounds[0] < bounds[1] < bounds[2]
    assert torch.isfinite(torch.tensor(bounds)).all()
