"""Mistral and Phi-3: the same weights under other names, read as Llama, proved, run; and planted faults."""

import pytest
import torch

import thereexists as te
from tests.certificates.llama.forging import copied, forge_json, forge_weights
from thereexists.certificates.llama.layouts import STOCKS
from thereexists.certificates.llama.recall import Recall
from thereexists.exports import export_claim

transformers = pytest.importorskip("transformers")
CLAIM = Recall(tuple("abcd"), tuple("01"), 3)


@pytest.fixture(scope="module")
def stocks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layouts")
    for name in STOCKS:
        export_claim(CLAIM, folder / name, layout=name)
    return folder


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STOCKS)
def test_each_layout_is_proved_and_gives_the_same_logits(stocks, name):
    verdict = te.verify(stocks / name)
    assert verdict.holds, verdict.reasons
    assert STOCKS[name].architecture in verdict.evidence[1].detail
    assert STOCKS[name].architecture in (stocks / name / "README.md").read_text()
    ids = transformers.AutoTokenizer.from_pretrained(stocks / name)("a1b0c1b", return_tensors="pt").input_ids
    for dtype in (torch.float32, torch.bfloat16):
        llama, other = (
            transformers.AutoModelForCausalLM.from_pretrained(stocks / one, dtype=dtype) for one in ("llama", name)
        )
        assert type(other).__name__ == STOCKS[name].architecture
        with torch.no_grad():
            assert torch.equal(other(ids).logits, llama(ids).logits)
        assert other.generate(ids)[0, -2:].tolist() == [9, 2]  # the answer 0, and the end


def turned(w):
    """Keys where queries stand."""
    W = w["model.layers.1.self_attn.qkv_proj.weight"]
    W[:64], W[64:128] = W[64:128].clone(), W[:64].clone()


FAULTS = [
    ("phi3", turned, None, None),
    ("phi3", None, "partial_rotary_factor", 0.5),
    ("phi3", None, "sliding_window", 2),
    ("mistral", None, "sliding_window", 2),
    ("mistral", None, "model_type", "ministral"),
]


@pytest.mark.parametrize(("name", "fault", "field", "value"), FAULTS)
def test_faults_of_a_layout_are_caught(stocks, tmp_path, name, fault, field, value):
    folder = copied(stocks / name, tmp_path / "forged")
    if fault is not None:
        forge_weights(folder, fault)
    else:
        inside = "rope_parameters" if field == "partial_rotary_factor" else None
        forge_json(folder, "config.json", lambda c: (c[inside] if inside else c).update({field: value}))
    assert te.verify(folder).holds is False


def test_a_class_of_tokenizers_with_rules_of_its_own_is_noticed(stocks, monkeypatch):
    """As transformers chooses one for folders of some types: the ids are proved, the text would be misread."""
    other = transformers.Qwen2Tokenizer
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", other.from_pretrained)
    verdict = te.verify(stocks / "llama")
    assert verdict.holds is False
    assert "misreads" in verdict.reasons[-1]


def test_others_are_refused(tmp_path):
    with pytest.raises(te.ThereExistsError, match="llama, mistral, phi3"):
        export_claim(CLAIM, tmp_path / "no", layout="gpt2")
    with pytest.raises(te.ThereExistsError, match="'layout'"):
        te.export(te.memorise([["a"]], [["b"]]), "torch", tmp_path / "no", layout="phi3")
    assert not (tmp_path / "no").exists()
