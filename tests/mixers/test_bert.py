"""With the attention mixer the model is BERT, and at base size the models have the poster's numbers of parameters."""

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel

from tests.mixers.cases import rounding
from thereexists.core.errors import InvalidInput
from thereexists.mixers import (
    MixerForMaskedLM,
    MixerModel,
    from_bert,
    mixer_config,
    model_parameters,
    state_from_bert,
)

POSTER = {"average": 88.3e6, "bproj": 90.0e6, "sepconv": 102.5e6, "attention": 109.5e6}
SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 20,
}


@pytest.mark.parametrize(("mixer", "count"), POSTER.items())
def test_parameters_at_base_size_are_the_posters(mixer, count):
    config = mixer_config("base", mixer)
    with torch.device("meta"):
        counted = sum(p.numel() for p in MixerModel(config).parameters())
    assert counted == model_parameters(config)
    assert abs(counted - count) <= 0.3e6


def test_attention_at_base_size_has_exactly_the_parameters_of_bert_base():
    with torch.device("meta"):
        theirs = sum(p.numel() for p in BertModel(BertConfig()).parameters())
    assert model_parameters(mixer_config("base")) == theirs


@pytest.mark.parametrize("size", ["tiny", "mini"])
def test_the_small_sizes_are_the_published_ones(size):
    """BERT-tiny has 4.4M parameters, BERT-mini 11.2M."""
    assert round(model_parameters(mixer_config(size)) / 1e6, 1) == {"tiny": 4.4, "mini": 11.2}[size]


def bert(kind, dtype, seed=0):
    """Every weight away from its initial value, so that none can be swapped or forgotten without a difference."""
    torch.manual_seed(seed)
    model = kind(BertConfig(**{**SIZES, "attn_implementation": "eager"})).to(dtype).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    return model


def inputs(padded):
    torch.manual_seed(1)
    ids, types = torch.randint(1, 60, (3, 15)), torch.randint(0, 2, (3, 15))
    mask = torch.ones_like(ids)
    if padded:
        mask[0, 9:] = 0
        mask[1, 14:] = 0
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}


def tolerance(dtype, scale):
    """Roundings on the longest path: for each block four projections of width d, the feed-forward, two sums over n, the
    scores, and some twenty pointwise ones; the embeddings, the head."""
    d, m, n = 32, 48, 15
    return rounding(3 * (5 * d + m + 2 * n + 20), 3 * d, scale=scale, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("padded", [False, True])
def test_the_encoder_is_bert(dtype, padded):
    theirs = bert(BertModel, dtype)
    ours = from_bert(theirs)
    assert isinstance(ours, MixerModel)
    with torch.no_grad():
        expected, got = theirs(**inputs(padded)), ours(**inputs(padded))
    for name in ("last_hidden_state", "pooler_output"):
        bound = tolerance(dtype, float(expected[name].abs().max()))
        assert float((got[name] - expected[name]).abs().max()) <= bound


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("padded", [False, True])
def test_masked_language_model_is_bert(dtype, padded):
    theirs = bert(BertForMaskedLM, dtype)
    ours = from_bert(theirs)
    assert isinstance(ours, MixerForMaskedLM)
    labels = torch.randint(0, 60, (3, 15), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected, got = theirs(**inputs(padded), labels=labels), ours(**inputs(padded), labels=labels)
    bound = tolerance(dtype, float(expected.logits.abs().max()))
    assert float((got.logits - expected.logits).abs().max()) <= bound
    assert abs(float(got.loss) - float(expected.loss)) <= 2 * bound + rounding(
        60, 45, scale=float(got.loss), dtype=dtype
    )


@pytest.mark.parametrize("planted", ["query", "value", "mixer_norm", "up"])
def test_the_comparison_notices_a_wrong_weight(planted):
    theirs = bert(BertModel, torch.float64)
    ours = from_bert(theirs)
    with torch.no_grad():
        block = ours.encoder.layer[1]
        faults = {
            "query": block.mixer.qkv.weight[:32],
            "value": block.mixer.qkv.bias[64:],
            "mixer_norm": block.mixer_norm.bias,
            "up": block.up.weight,
        }
        faults[planted][0] += 0.01
        expected, got = theirs(**inputs(True)), ours(**inputs(True))
    error = float((got.last_hidden_state - expected.last_hidden_state).abs().max())
    assert error > tolerance(torch.float64, float(expected.last_hidden_state.abs().max()))


def test_training_gradients_are_berts():
    theirs = bert(BertForMaskedLM, torch.float64)
    ours = from_bert(theirs)
    labels = inputs(False)["input_ids"]
    for model in (theirs, ours):
        model(**inputs(True), labels=labels).loss.backward()
    gradients = state_from_bert({name: p.grad for name, p in theirs.named_parameters()})
    mine = dict(ours.named_parameters())
    gradients.pop("head.decoder.weight", None)  # tied: the word embeddings have it
    assert gradients
    for name, gradient in gradients.items():
        bound = 2 * tolerance(torch.float64, 1 + float(gradient.abs().max()))  # there and back
        assert float((mine[name].grad - gradient).abs().max()) <= bound, name


def test_from_bert_takes_an_encoder_only():
    config = BertConfig(**SIZES)
    with pytest.raises(InvalidInput, match="takes a BertModel or a BertForMaskedLM; got a BertForSequenceClassif"):
        from_bert(BertForSequenceClassification(config))
    with pytest.raises(InvalidInput, match="takes an encoder"):
        from_bert(BertModel(BertConfig(**SIZES, is_decoder=True)))


def test_an_incomplete_state_is_refused():
    state = bert(BertModel, torch.float32).state_dict()
    state.pop("encoder.layer.1.attention.self.key.weight")
    with pytest.raises(InvalidInput, match="incomplete"):
        state_from_bert(state)
