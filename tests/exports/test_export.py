"""Exports compute the witness's own numbers on every cell; a wrong one is never written."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import thereexists as te
from thereexists.exports import check
from thereexists.functions.targets import builtin

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def sorter():
    return te.build(builtin("sort", n=4), delta=1 / 8, construction="compact")


@pytest.fixture(scope="module")
def cells(sorter):
    return sorter.grid.centre(sorter.grid.cube(np.arange(sorter.grid.cells)))


def test_onnx_agrees_on_all_cells(sorter, cells, tmp_path):
    done = te.export(sorter, "onnx", tmp_path / "o")
    assert (done["compared"], done["files"]) == (4096, ["model.onnx"])
    session = onnxruntime.InferenceSession(str(tmp_path / "o" / "model.onnx"), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"features": cells.astype(np.float32)})
    assert np.array_equal(found, np.sort(cells, axis=1).astype(np.float32))


def test_hugging_face_agrees_on_all_cells_and_loads_by_itself(sorter, cells, tmp_path):
    from transformers import AutoConfig, AutoModel

    done = te.export(sorter, "hf", tmp_path / "h")
    assert done["compared"] == 4096
    model = AutoModel.from_pretrained(tmp_path / "h", local_files_only=True)
    with torch.no_grad():
        found = model(inputs_embeds=torch.from_numpy(cells).float()).last_hidden_state
    assert np.array_equal(found.numpy(), np.sort(cells, axis=1).astype(np.float32))
    config = AutoConfig.from_pretrained(tmp_path / "h")
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (56, 4, 1)
    assert config.intermediate_size == sorter.network.shape()["r"]
    with pytest.raises(te.ThereExistsError, match="not safe in bfloat16"):
        model.to(torch.bfloat16)(inputs_embeds=torch.zeros(1, 4, 1, dtype=torch.bfloat16))


def test_autocast_changes_no_answer_and_no_gradient(sorter, tmp_path):
    from transformers import AutoModel

    te.export(sorter, "hf", tmp_path / "h")
    model = AutoModel.from_pretrained(tmp_path / "h", local_files_only=True)
    X, readout = torch.tensor([[[0.3], [0.7], [0.1], [0.9]]]), model.network.readout.weight
    wanted = model(inputs_embeds=X).last_hidden_state
    (slope,) = torch.autograd.grad(wanted.sum(), readout)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model(inputs_embeds=X).last_hidden_state
    assert found.dtype == torch.float32
    assert torch.equal(found, wanted)
    assert torch.equal(torch.autograd.grad(found.sum(), readout)[0], slope)


def test_the_code_in_the_docs_loads_the_torch_export(sorter, cells, tmp_path):
    te.export(sorter, "torch", tmp_path / "t")
    text = (Path(__file__).parents[2] / "docs" / "compact.md").read_text(encoding="utf-8")
    code = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "def run(" in block)
    assert "thereexists" not in code
    space: dict = {}
    exec(code, space)  # the documentation's own lines
    found = space["run"](str(tmp_path / "t"), torch.from_numpy(cells).float())
    assert np.array_equal(found.numpy(), np.sort(cells, axis=1).astype(np.float32))


def test_tokens_with_padding_export_too(tmp_path):
    from transformers import AutoModel

    witness = te.memorise([["a", "dog"], ["cat"], ["a", "cat", "a"]], [["pes"], ["to", "je", "kocka"], []])
    for to, dtype in (("onnx", "float32"), ("hf", "bfloat16"), ("torch", "float16")):
        assert te.export(witness, to, tmp_path / to, dtype=dtype)["compared"] == 3
    ids = torch.from_numpy(witness.inputs)
    model = AutoModel.from_pretrained(tmp_path / "hf", local_files_only=True)
    with torch.no_grad():
        found = model(input_ids=ids, attention_mask=(ids > 0).long()).last_hidden_state
    assert np.array_equal(witness.digits.join(found.double().numpy()), witness.outputs)


def test_a_wrong_export_is_never_written(sorter, tmp_path, monkeypatch):
    real = check.compare

    def spoiled(witness, run):
        return real(witness, lambda X: run(X) + 2.0**-10)

    monkeypatch.setattr(check, "compare", spoiled)
    with pytest.raises(te.ThereExistsError, match="does not agree"):
        te.export(sorter, "torch", tmp_path / "e")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_exported_says_why(sorter, tmp_path):
    with pytest.raises(te.ThereExistsError, match="49 narrow layers that need float64"):
        te.export(te.build(builtin("sort", n=2), delta=1 / 4), "onnx", tmp_path / "e")
    with pytest.raises(te.ThereExistsError, match="one of onnx, hf, torch"):
        te.export(sorter, "gguf", tmp_path / "e")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(te.ThereExistsError, match="left alone"):
        te.export(sorter, "torch", tmp_path / "mine")
    witness = te.memorise([["a"]], [["b"]])
    with pytest.raises(te.ThereExistsError, match="float64, float32 and float16"):
        te.export(witness, "onnx", tmp_path / "e", dtype="bfloat16")


def test_an_export_is_replaced_by_the_next(sorter, tmp_path):
    te.export(sorter, "torch", tmp_path / "t")
    te.export(sorter, "torch", tmp_path / "t", dtype="float64")
    assert json.loads((tmp_path / "t" / "config.json").read_text())["dtype"] == "float64"


@pytest.mark.parametrize("name", ["network.py", "model.safetensors", "thereexists_export.json", "config.json"])
def test_an_export_that_somebody_changed_is_left_alone(sorter, tmp_path, name):
    te.export(sorter, "torch", tmp_path / "t")
    (tmp_path / "t" / "__pycache__").mkdir()
    (tmp_path / "t" / "__pycache__" / "network.cpython-312.pyc").write_bytes(b"of Python")
    te.export(sorter, "torch", tmp_path / "t")
    file = tmp_path / "t" / name
    mine = file.read_bytes() + b"# my notes"
    file.write_bytes(mine)
    with pytest.raises(te.ThereExistsError, match=rf"{name}.* left alone. Choose another folder"):
        te.export(sorter, "torch", tmp_path / "t")
    assert file.read_bytes() == mine


def test_an_export_names_no_dtype_that_was_not_proved(tmp_path):
    """All four dtypes are certified in the file; of a file only the one that is exported is proved."""
    from thereexists import program as P

    te.build(P.sort(P.tokens(n=2))).save(tmp_path / "w")
    te.export(tmp_path / "w", "hf", tmp_path / "out", dtype="float32")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["safe_dtypes"] == ["float32"]
