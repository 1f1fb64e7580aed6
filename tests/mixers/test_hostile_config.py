"""A config.json of a stranger: every field of exactly its kind, and none that builds for hours; one sentence each."""

import json

import pytest
import torch

from thereexists.core.errors import InvalidInput
from thereexists.mixers import MixerConfig, MixerForMaskedLM
from thereexists.mixers.load import load_model

SMALL = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "max_position_embeddings": 16,
}
HOSTILE = [
    {"norm_first": "no"},
    {"norm_first": 1},
    {"is_decoder": "false"},
    {"sparse_prediction": []},
    {"tie_word_embeddings": None},
    {"hidden_dropout_prob": "0.1"},
    {"hidden_dropout_prob": 1.5},
    {"attention_probs_dropout_prob": float("nan")},
    {"classifier_dropout": True},
    {"layer_norm_eps": "x"},
    {"layer_norm_eps": -1.0},
    {"initializer_range": 1e300},
    {"hidden_size": 8.0},
    {"hidden_act": "no such"},
    {"hidden_act": ["gelu"]},
    {"mixer": ["attention"]},
    {"mixer": None},
    {"pooling": {}},
    {"pattern_config": []},
    {"pad_token_id": 20},
    {"pad_token_id": -1},
    {"pad_token_id": "0"},
    {"eos_token_id": 2.5},
    {"num_hidden_layers": 10**30},
    {"num_decoder_layers": 10**9},
    {"max_position_embeddings": 10**30, "mixer": "sparse", "pattern": "axial"},
    {"kernel_size": 10**30 + 1},
    {"vocab_size": 10**30},
    {"dtype": 1.5},
    {"dtype": "nan"},
    {"dtype": "union"},
    {"mixer": "sparse", "pattern": "strided", "pattern_options": {"stride": 3, "mirror": "no"}},
    {"mixer": "sparse", "pattern": "strided", "pattern_options": {"stride": 3.0}},
    {"mixer": "sparse", "pattern": "strided", "pattern_options": {"stride": True}},
    {"mixer": "sparse", "pattern": ["strided"]},
]


@pytest.mark.parametrize("changed", HOSTILE, ids=lambda fields: json.dumps(fields)[:60])
def test_a_field_of_another_kind_is_refused(changed):
    with pytest.raises(InvalidInput) as refusal:
        MixerConfig(**{**SMALL, **changed})
    assert len(str(refusal.value)) < 600


def test_right_fields_are_taken_as_before():
    config = MixerConfig(**SMALL, hidden_dropout_prob=0, pad_token_id=None, dtype="bfloat16", hidden_act="relu")
    assert MixerConfig(**config.to_dict()).hidden_dropout_prob == 0


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    MixerForMaskedLM(MixerConfig(**SMALL)).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    "changed",
    [{"attn_implementation": "no such"}, {"quantization_config": 2}, {"base_model_tp_plan": "x"}, {"mixer": []}],
    ids=lambda fields: next(iter(fields)),
)
def test_what_transformers_itself_reads_is_refused_in_one_sentence_too(saved, changed):
    file = saved / "config.json"
    before = file.read_text()
    file.write_text(json.dumps({**json.loads(before), **changed}))
    try:
        with pytest.raises(InvalidInput):
            load_model(saved, MixerForMaskedLM)
    finally:
        file.write_text(before)


def test_a_model_that_returns_tuples_runs(saved):
    """``return_dict`` false in a config.json is a wish of the caller, not of the model's own parts."""
    model = load_model(saved, MixerForMaskedLM)
    model.config.return_dict = False
    out = model(torch.zeros(1, 4, dtype=torch.long))
    logits = out[0] if isinstance(out, tuple) else out.logits
    assert logits.shape == (1, 4, 20)
