"""Models whose attention we do not drive are refused by name; those we drive see neither the future nor too much."""

from collections import Counter

import pytest
import torch

transformers = pytest.importorskip("transformers")

from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

import thereexists as te  # noqa: E402
from tests.attention.tiny_models import causal_types, fate  # noqa: E402
from thereexists import patterns as tp  # noqa: E402
from thereexists.attention import by_hand, driven, hugging_face  # noqa: E402
from thereexists.core.errors import InvalidInput  # noqa: E402

te.attention.register_with_transformers()  # another test may have imported us before transformers

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # in DeBERTa's file

# decoders that lost their mask, models that ignored the pattern, models that ended in a KeyError or AttributeError
DECODERS = ["bloom", "xglm", "trocr", "gpt_neox_japanese", "big_bird", "megatron-bert", "rembert", "roformer"]
IGNORING = ["codegen", "openai-gpt", "cpmant", "xlm"]
BREAKING = ["falcon", "gptj", "gpt_neo", "git", "mpt"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [*DECODERS, *IGNORING, *BREAKING])
def test_a_causal_model_with_attention_of_its_own_is_refused_by_name(kind):
    config = CONFIG_MAPPING[kind]()
    refused = pytest.raises(InvalidInput, match=f"model_type '{kind}'.*attn_implementation='eager'")
    with torch.device("meta"), refused:  # of full size, should one ever be built
        transformers.AutoModelForCausalLM.from_config(config, attn_implementation="thereexists")


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama"])
def test_models_that_we_drive(kind):
    """Equal to eager attention, no dependence on the future, and none beyond a pattern."""
    assert fate(kind) == "causal"


SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 50,
    "max_position_embeddings": 32,
}


CONFIGS = {
    "bloom": lambda: transformers.BloomConfig(hidden_size=16, n_layer=1, n_head=2, vocab_size=50),
    "deberta-v2": lambda: transformers.DebertaV2Config(**SMALL),
    "megatron-bert": lambda: transformers.MegatronBertConfig(**SMALL, is_decoder=True),
}


def bypassing(kind, monkeypatch):
    """A model that the first look would have refused."""
    config = CONFIGS[kind]()
    for looks in (hugging_face, by_hand):
        monkeypatch.setattr(looks, "refuse_by_source", lambda model: None)
    return transformers.AutoModel.from_config(config, attn_implementation="thereexists").eval()


@pytest.mark.parametrize("kind", ["bloom", "deberta-v2", "megatron-bert"])
def test_the_second_look_refuses_after_a_run(kind, monkeypatch):
    model = bypassing(kind, monkeypatch)
    with pytest.raises(InvalidInput, match=f"model_type '{kind}'"):
        model(torch.randint(50, (1, 8)))
    model.set_attn_implementation("eager")
    if model.config._attn_implementation != "eager":  # transformers leaves such models as they are
        model.config._attn_implementation = "eager"
    model(torch.randint(50, (1, 8)))  # and nothing is left behind
    assert driven._STACK.running == []


@pytest.mark.parametrize("kind", ["bloom", "megatron-bert"])
def test_the_mask_alone_refuses(kind, monkeypatch):
    for looks in (hugging_face, by_hand):
        monkeypatch.setattr(looks, "watch", lambda model: None)
    model = bypassing(kind, monkeypatch)
    with pytest.raises(InvalidInput, match=f"model_type '{kind}'.*its mask"):
        model(torch.randint(50, (1, 8)))


def test_a_switched_model_is_looked_at():
    model = transformers.AutoModel.from_config(transformers.DebertaV2Config(**SMALL))
    model.set_attn_implementation("thereexists")  # transformers itself warns and leaves it alone
    assert model.config._attn_implementation != "thereexists"
    model.config._attn_implementation = "thereexists"
    with pytest.raises(InvalidInput, match=r"no attention module|model_type 'deberta-v2'"):
        te.attention.use_pattern(model, tp.window(8, 1))
    bert = transformers.AutoModel.from_config(transformers.BertConfig(**SMALL))
    bert.set_attn_implementation("thereexists")
    assert any(driven.WATCHED in module.__dict__ for module in bert.encoder.modules())


@pytest.mark.parametrize("pattern", [None, "window"])
@pytest.mark.parametrize("kind", ["bloom", "deberta-v2"])
def test_a_name_set_by_hand_is_refused_where_we_do_not_drive(kind, pattern):
    """transformers sees nothing of it: DeBERTa would ignore the pattern, and Bloom fail somewhere inside."""
    model = transformers.AutoModel.from_config(CONFIGS[kind]()).eval()
    model.config.thereexists_pattern = pattern
    for name in ("_attn_implementation", "_attn_implementation_internal"):
        setattr(model.config, name, "thereexists")
        with pytest.raises(InvalidInput, match=f"model_type '{kind}'.*never asks the interface"):
            model(torch.randint(50, (1, 8)))


def test_a_name_set_by_hand_drives_a_model_that_can_be_driven():
    torch.manual_seed(0)
    model = transformers.AutoModelForMaskedLM.from_config(transformers.BertConfig(**SMALL)).eval()
    tokens = torch.randint(50, (1, 8))
    full = model(tokens).logits
    model.config.thereexists_pattern = {"name": "window", "window": 1}
    with pytest.raises(InvalidInput, match=r"BertForMaskedLM.*holds a pattern.*by hand"):
        model(tokens)  # the pattern would be dropped
    model.config._attn_implementation = "thereexists"
    sparse = model(tokens).logits
    assert not torch.equal(sparse, full)
    assert all(driven.WATCHED in m.__dict__ for m in model.modules() if driven.is_attention(m) or m is model)
    model.bert.encoder.layer[0].attention.self.forward = lambda states, *args, **kwargs: (states, None)
    with pytest.raises(InvalidInput, match="BertSelfAttention ran without"):
        model(tokens)


def test_another_name_set_by_hand_does_not_drop_a_pattern():
    config = transformers.BertConfig(**SMALL, thereexists_pattern={"name": "window", "window": 1})
    model = transformers.AutoModelForMaskedLM.from_config(config, attn_implementation="thereexists").eval()
    tokens = torch.randint(50, (1, 8))
    model(tokens)
    model.config._attn_implementation = "eager"
    with pytest.raises(InvalidInput, match=r"attn_implementation='eager' does not use.*by hand"):
        model(tokens)
    model.config._attn_implementation = "sdpa"
    with pytest.warns(UserWarning, match="does not use"):
        model.set_attn_implementation("eager")
    model(tokens)  # the user has been told
    model.config._attn_implementation = "sdpa"
    with pytest.raises(InvalidInput, match="by hand"):
        model(tokens)


def test_an_error_inside_a_model_leaves_no_trace():
    model = transformers.AutoModel.from_config(transformers.BertConfig(**SMALL), attn_implementation="thereexists")
    te.attention.use_pattern(model, tp.window(8, 1))
    with pytest.raises(InvalidInput, match="8 tokens"):
        model(torch.randint(50, (1, 9)))
    assert driven._STACK.running == []
    model(torch.randint(50, (1, 8)))


def test_a_layer_that_is_not_ours_among_layers_that_are():
    """The planted fault: one layer of a good model computes its attention itself."""
    model = transformers.AutoModel.from_config(transformers.BertConfig(**SMALL), attn_implementation="thereexists")
    own = model.encoder.layer[0].attention.self
    own.forward = lambda hidden_states, *args, **kwargs: (hidden_states, None)
    with pytest.raises(InvalidInput, match="BertSelfAttention ran without"):
        model.eval()(torch.randint(50, (1, 8)))


@pytest.mark.slow
def test_no_causal_type_of_transformers_sees_the_future():
    """The whole list: every type that builds from tiny sizes is driven and causal, or refused by a sentence of ours."""
    found = {kind: fate(kind) for kind in causal_types()}
    counts = Counter(what.split(":")[0].split(",")[0] for what in found.values())
    assert set(counts) <= {"causal", "refused", "not tiny"}, found
    assert counts["causal"] >= 60, counts
    assert sum("a mask of its own" in what for what in found.values()) >= 15, found
