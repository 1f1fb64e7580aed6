"""Configs and arrays that nobody can use: one sentence and exit code 2; odd number types that can be used are."""

import json

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from thereexists.cli import app
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.patterns import from_csr
from thereexists.patterns.arrays import load_npz
from thereexists.patterns.configs import from_config

NEO = {"model_type": "gpt_neo", "attention_types": [], "max_position_embeddings": 16}
LONG = {"model_type": "mixtral", "num_hidden_layers": 2, "max_position_embeddings": 2147483647}
BERT = {"model_type": "modernbert", "num_hidden_layers": 2, "max_position_embeddings": 16}
BAD = {
    "no layers": NEO,
    "too long": LONG,
    "too many kinds": BERT | {"layer_types": ["full_attention"] * 3},
    "kinds by name": BERT | {"layer_types": {"full_attention": 1, "sliding_attention": 2}},
}


@pytest.mark.parametrize("config", BAD.values(), ids=BAD.keys())
def test_a_config_that_cannot_be_one_is_refused(config):
    with pytest.raises(InvalidInput):
        from_config(config)


@pytest.mark.parametrize("command", [["pattern", "check"], ["report"], ["attention", "explain"]], ids=" ".join)
@pytest.mark.parametrize("config", BAD.values(), ids=BAD.keys())
def test_the_commands_say_so_in_one_sentence(config, command, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    out = ["--out", str(tmp_path / "out.html")] if command == ["report"] else []
    done = CliRunner().invoke(app, [*command, str(tmp_path / "config.json"), *out])
    assert isinstance(done.exception, ThereExistsError)  # which ``main`` prints, with exit code 2


def test_layer_types_of_modernbert_still_count():
    pattern = from_config(BERT | {"layer_types": ["full_attention", "sliding_attention"], "local_attention": 4})
    assert pattern.connections[0] == 256
    assert pattern.connections[1] < 256
    assert from_config(BERT | {"num_hidden_layers": 4, "local_attention": 4}).connections[0] == 256


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
@pytest.mark.parametrize("dtype", ["<f2", ">f2", ">f4", ">f8", ">i4", ">u2", "g"])
def test_arrays_of_any_real_type_are_read(kind, dtype, tmp_path):
    dense = np.array([[1, 0, 1], [0, 1, 0], [0, 2, 1]])
    plain = sparse.csr_array(dense).asformat(kind)
    with open(tmp_path / "a.npz", "wb") as file:
        arrays = {"coo": ("row", "col"), "dia": ("offsets",)}.get(kind, ("indices", "indptr"))
        index = {name: getattr(plain, name).astype(">i8") for name in arrays}
        np.savez(file, format=kind.encode(), shape=np.array([3, 3]), data=plain.data.astype(dtype), **index)
    assert (load_npz(tmp_path / "a.npz").mask()[0] == (dense != 0)).all()


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
def test_so_are_those_of_a_caller(kind):
    half = sparse.csr_array(np.array([[1.0, 0.0], [3.0, 1.0]])).asformat(kind)
    half.data = half.data.astype(">f8")
    half.data.flat[0] = 1.0
    assert (from_csr(half).mask()[0] == [[1, 0], [1, 1]]).all()
