"""What a table or a data set may ask for is bounded by what its file holds, and honest ones never reach that."""

import hashlib
import itertools
import json
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import thereexists as te
from tests.hostile import forge_weights
from thereexists.certificates import verify_tokens
from thereexists.certificates.verify_tokens import _orders, _told
from thereexists.core.errors import BadWitnessFile
from thereexists.core.storage import record_digest
from thereexists.evaluate.recall import numbers_of_one, run_first, run_padded, run_tokens, work_of_one
from thereexists.model import EmbeddedTransformer


def bomb(folder, n, heads=1, units=0, blocks=1):
    """A data set of one pair, all weights 0, in a few kilobytes."""
    d, zeros = 2, torch.zeros
    weights = {"embedding": zeros(2, d), "E": zeros(n, d), "W_out": zeros(1, d)}
    weights |= {f"pairs.{side}": torch.ones(1, n, dtype=torch.int32) for side in ("inputs", "outputs")}
    attention = {
        "W_Q": (heads, 1, d),
        "b_Q": (heads, 1),
        "W_K": (heads, 1, d),
        "W_V": (heads, 1, d),
        "W_O": (heads, d, 1),
    }
    weights |= {f"stages.a.attention.{name}": zeros(blocks, *shape) for name, shape in attention.items()}
    if units:
        feed_forward = {"W_1": (units, d), "b_1": (units,), "W_2": (d, units), "b_2": (d,)}
        weights |= {f"stages.a.feed_forward.{name}": zeros(blocks, *shape) for name, shape in feed_forward.items()}
    stage = {"depth": blocks, "attention": True, "pattern": False, "feed_forward": bool(units), "phi": False}
    structure = {"rho": "softmax", "E": [n, d], "needs": None, "stages": {"a": stage}, "kind": "embedded"}
    record = {
        "format_version": 1, "kind": "witness", "construction": "tokens", "package_version": "0.1.0", "info": {},
        "dtype": "float32", "class": {"h": heads, "m": 1, "r": units, "d": d, "positional": True},
        "structure": structure | {"input": "tokens", "safe": ["float32"]}, "vocabulary": ["a"],
        "output_vocabulary": ["x"],
        "tokens": {"n": n, "base": 3, "digits": 1, "sums": "slots", "fixed": True, "symmetric": False,
                   "purpose": "memorise"},
    }  # fmt: skip
    folder.mkdir()
    save_file(weights, folder / "model.safetensors")
    record["weights_sha256"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    record["digest"] = record_digest(record)
    (folder / "witness.json").write_text(json.dumps(record))
    return folder


def never_run():
    return patch("thereexists.model.EmbeddedTransformer.forward", side_effect=AssertionError("it was run"))


@pytest.mark.parametrize(
    "asked", [{"n": 16_000, "heads": 64}, {"n": 40_000}, {"n": 20_000, "units": 20_000}], ids=["heads", "n", "units"]
)
def test_a_small_file_that_asks_for_gigabytes_is_refused_before_it_is_run(asked, tmp_path):
    folder = bomb(tmp_path / "w", **asked)
    with never_run():
        verdict = te.verify(folder)
        with pytest.raises(BadWitnessFile, match="justify"):
            te.load(folder)
    assert verdict.holds is False
    assert "a sequence would take" in verdict.reasons[0]
    assert "it was run" not in str(verdict.evidence)


def test_more_blocks_than_a_memory_has_are_not_run(tmp_path):
    with never_run():
        verdict = te.verify(bomb(tmp_path / "w", n=3, blocks=5))
    assert verdict.holds is False
    assert (verdict.evidence[-1].name, verdict.evidence[-1].passed) == ("class", False)


def test_a_small_file_does_not_ask_for_hours(tmp_path):
    """Many heads, and 65,535 inputs that are no rows: each would be allowed, all of them are not."""
    folder = bomb(tmp_path / "w", n=16, heads=4096)

    def two_tokens(record):
        record["vocabulary"] = ["a", "b"]
        record["tokens"]["purpose"] = "table"

    forge_weights(folder, lambda w: w.update(embedding=torch.zeros(3, 2)), two_tokens)
    embed, inputs = EmbeddedTransformer.embed, []

    def counted(network, X):
        inputs.append(len(X))
        assert sum(inputs) < 1000
        return embed(network, X)

    with patch.object(EmbeddedTransformer, "embed", counted):
        verdict = te.verify(folder)
    (missing,) = (check for check in verdict.evidence if check.name == "missing rows")
    assert missing.detail == "nothing is claimed about them: to try 65,536 is too much work"
    assert verdict.holds is False  # of such weights nothing is proved


def test_what_is_too_much_to_run_is_undecided(tmp_path):
    table = te.Table([[0, 1, 2], [0, 0, 2]], [[1, 1, 1], [0, 0, 0]])
    te.build(table).save(tmp_path / "w")
    assert te.verify(tmp_path / "w").evidence[-1].detail.startswith("all 25 inputs")
    with patch.object(verify_tokens, "_MOST_WORK", 1):
        assert te.verify(tmp_path / "w").evidence[-1].detail.endswith("is too much work")
        with patch.object(verify_tokens, "work_of_one", lambda *_: 1 << 60):
            verdict = te.verify(tmp_path / "w")
    assert verdict.holds is False
    assert verdict.reasons[0].startswith("recall: undecided")


def test_the_first_position_alone_is_that_of_the_whole_run():
    witness = te.build(te.Table([[0, 1, 2], [0, 0, 2]], [[1, 1, 1], [0, 0, 0]]))
    every = np.array(list(itertools.product((1, 2, 3), repeat=3)))
    found = run_first(witness.network, every)
    assert np.array_equal(found, run_tokens(witness.network, every, "dense")[:, :1])
    assert work_of_one(witness.network, first=True) < work_of_one(witness.network)


HONEST = {
    "one pair": lambda: te.memorise([["a"] * 200], [["x"]]),
    "many pairs": lambda: te.memorise([[i, j] for i in range(30) for j in range(30)], [["x"]] * 900),
    "a word": lambda: te.memorise([["a"]], [["x"]]),
    "a wide table": lambda: te.build(te.Table([list(range(30))], [list(range(30))]), construction="compact"),
    "counts": lambda: te.build(te.Table.of(sorted, (0, 1), 12, symmetric=True), construction="compact"),
    "a single count": lambda: te.build(te.Table([[0] * 30], [[0] * 30], symmetric=True), construction="compact"),
}


@pytest.mark.parametrize("name", HONEST)
def test_every_honest_memory_verifies_though_nothing_is_free(name, tmp_path):
    """Twice what is there is enough for every n (the proof is in ``_check_work``); four times is allowed."""
    witness = HONEST[name]()
    network = witness.network
    assert network.E is not None
    assert network.shape()["d"] >= len(network.E)
    assert numbers_of_one(network) <= 2 * network.parameter_count
    witness.save(tmp_path / "w")
    with patch("thereexists.certificates.stored_tokens.LEAST_NUMBERS", 0):
        assert te.verify(tmp_path / "w").holds
        te.load(tmp_path / "w")


def test_padding_is_run_in_the_same_tiles():
    witness = te.memorise([["a", "b"], ["b"], ["a"]], [["x"], ["y"], ["x", "y"]])
    ids = np.where(witness.inputs == 0, 1, witness.inputs)
    answers = run_padded(witness.network, ids, witness.inputs > 0)
    with patch("thereexists.evaluate.recall._NUMBERS", 1):
        assert (run_padded(witness.network, ids, witness.inputs > 0) == answers).all()
    assert (witness.digits.join(answers) == witness.outputs).all()


def test_numbers_that_python_does_not_write_are_told():
    assert _orders([1, 1, 2]) == 3
    assert _told(1234) == "1,234"
    assert _told(10**5000) == "about 10^5000"
