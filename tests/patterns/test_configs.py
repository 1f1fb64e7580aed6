"""Patterns read from configs against the attention that ``transformers`` itself computes, for tiny models."""

import json

import numpy as np
import pytest
import torch

from tests.cli.in_process import ran
from thereexists.core.errors import InvalidInput
from thereexists.patterns import check
from thereexists.patterns.configs import FAMILIES, from_config, load_config
from thereexists.patterns.layer_types import DECODERS, ENCODERS, OTHERWISE
from thereexists.patterns.nested_models import NESTED
from thereexists.patterns.unread_models import UNREAD

transformers = pytest.importorskip("transformers")

TINY = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "vocab_size": 32,
}
N = 20
EXPERTS = {
    "num_experts": 2,
    "num_experts_per_tok": 1,
    "moe_intermediate_size": 8,
    "shared_expert_intermediate_size": 8,
}


def attention_masks(config, n):
    """Where the softmax weights of each layer are non-zero, in the real model with random weights."""
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(config).eval()
    ids = torch.randint(3, 30, (1, n))
    with torch.no_grad():
        out = model(ids, output_attentions=True)
    return [(a[0] > 0).any(0).numpy() for a in out.attentions]


CASES = {
    "mistral": lambda: transformers.MistralConfig(**TINY, num_hidden_layers=3, sliding_window=5),
    "mixtral": lambda: transformers.MixtralConfig(
        **TINY, num_hidden_layers=2, sliding_window=4, num_local_experts=2, num_experts_per_tok=1
    ),
    "phi3": lambda: transformers.Phi3Config(
        **{**TINY, "num_key_value_heads": 2}, num_hidden_layers=2, sliding_window=3, pad_token_id=0
    ),
    "starcoder2": lambda: transformers.Starcoder2Config(**TINY, num_hidden_layers=2, sliding_window=6),
    "qwen2": lambda: transformers.Qwen2Config(
        **TINY, num_hidden_layers=4, use_sliding_window=True, sliding_window=4, max_window_layers=2
    ),
    "qwen3": lambda: transformers.Qwen3Config(**TINY, num_hidden_layers=2, use_sliding_window=False),
    "gemma2": lambda: transformers.Gemma2Config(**TINY, num_hidden_layers=4, sliding_window=4),
    "gemma3_text": lambda: transformers.Gemma3TextConfig(**TINY, num_hidden_layers=7, sliding_window=4),
    "cohere2": lambda: transformers.Cohere2Config(**TINY, num_hidden_layers=5, sliding_window=3),
    "olmo3": lambda: transformers.Olmo3Config(**TINY, num_hidden_layers=5, sliding_window=3, pad_token_id=0),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **TINY, num_hidden_layers=3, sliding_window=3, num_local_experts=2, num_experts_per_tok=1
    ),
    "ministral": lambda: transformers.MinistralConfig(
        **TINY, num_hidden_layers=2, sliding_window=3, layer_types=["sliding_attention", "full_attention"]
    ),
    "phimoe": lambda: transformers.PhimoeConfig(
        **TINY, num_hidden_layers=2, sliding_window=3, num_local_experts=2, num_experts_per_tok=1
    ),
    "vaultgemma": lambda: transformers.VaultGemmaConfig(**TINY, num_hidden_layers=3, sliding_window=3),
    "qwen2_moe": lambda: transformers.Qwen2MoeConfig(
        **TINY, **EXPERTS, num_hidden_layers=4, use_sliding_window=True, sliding_window=4, max_window_layers=3
    ),
    "qwen2_moe without its window": lambda: transformers.Qwen2MoeConfig(**TINY, **EXPERTS, num_hidden_layers=2),
    "qwen3_moe": lambda: transformers.Qwen3MoeConfig(
        **TINY, **EXPERTS, num_hidden_layers=2, use_sliding_window=True, sliding_window=4
    ),
    "qwen3_moe without its window": lambda: transformers.Qwen3MoeConfig(**TINY, **EXPERTS, num_hidden_layers=2),
    "qwen3 without its window": lambda: transformers.Qwen3Config(
        **TINY, num_hidden_layers=2, use_sliding_window=False, sliding_window=4, max_window_layers=0
    ),
    "gemma3_text both ways": lambda: transformers.Gemma3TextConfig(
        **TINY, num_hidden_layers=7, sliding_window=6, use_bidirectional_attention=True
    ),
    "gemma3_text both ways, not causal": lambda: transformers.Gemma3TextConfig(
        **TINY, num_hidden_layers=7, sliding_window=6, use_bidirectional_attention=True, is_causal=False
    ),
    "gemma3_text, not causal": lambda: transformers.Gemma3TextConfig(
        **TINY, num_hidden_layers=7, sliding_window=3, is_causal=False
    ),
    "mistral, not causal": lambda: transformers.MistralConfig(
        **TINY, num_hidden_layers=1, sliding_window=3, is_causal=False
    ),
    "mistral without a window": lambda: transformers.MistralConfig(**TINY, num_hidden_layers=1, sliding_window=None),
    "mixtral with layer_types": lambda: transformers.MixtralConfig(
        **TINY,
        num_hidden_layers=2,
        sliding_window=4,
        num_local_experts=2,
        num_experts_per_tok=1,
        layer_types=["full_attention", "sliding_attention"],
    ),
    "gemma4_text": lambda: transformers.Gemma4TextConfig(
        **TINY, num_hidden_layers=3, sliding_window=4, global_head_dim=16, hidden_size_per_layer_input=0
    ),
    "gemma4_unified_text": lambda: transformers.Gemma4UnifiedTextConfig(
        **TINY, num_hidden_layers=3, sliding_window=4, global_head_dim=16
    ),
    "gemma3n_text": lambda: transformers.Gemma3nTextConfig(
        **{**TINY, "num_hidden_layers": 5, "num_kv_shared_layers": 0, "laurel_rank": 4},
        sliding_window=4,
        hidden_size_per_layer_input=4,
        vocab_size_per_layer_input=32,
    ),
    "flint": lambda: transformers.FlintConfig(**TINY, **EXPERTS, num_hidden_layers=4, sliding_window=3, pad_token_id=0),
    "smollm3": lambda: transformers.SmolLM3Config(
        **TINY,
        num_hidden_layers=3,
        use_sliding_window=True,
        sliding_window=3,
        no_rope_layer_interval=2,
        pad_token_id=0,
    ),
    "exaone4": lambda: transformers.Exaone4Config(**TINY, num_hidden_layers=5, sliding_window=3),
    "gpt_neo": lambda: transformers.GPTNeoConfig(
        hidden_size=16,
        num_layers=4,
        num_heads=2,
        vocab_size=32,
        window_size=4,
        attention_types=[[["global", "local"], 2]],
        max_position_embeddings=64,
    ),
    "modernbert": lambda: transformers.ModernBertConfig(
        hidden_size=16,
        intermediate_size=16,
        num_attention_heads=2,
        num_hidden_layers=4,
        vocab_size=32,
        local_attention=6,
        pad_token_id=0,
    ),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("family", CASES)
def test_steps_equal_the_masks_that_transformers_builds(family, tmp_path):
    config = CASES[family]()
    config.to_json_file(tmp_path / "config.json", use_diff=False)
    pattern = load_config(tmp_path, n=N)
    real = attention_masks(config, N)
    assert pattern.layers == len(real)
    for t, mask in enumerate(real):
        assert np.array_equal(pattern.step(t % pattern.cycle).mask(), mask), (family, t)


def test_two_sided_attention_is_not_called_causal():
    """Its proof of "not universal" was one about another model."""
    assert check(from_config(CASES["gemma3_text both ways"]().to_dict(), n=N)).universal is True
    assert check(from_config(CASES["gemma3_text"]().to_dict(), n=N)).universal is False


@pytest.mark.parametrize("decoder", [False, True])
def test_bigbird_with_full_attention_is_causal_as_a_decoder(decoder):
    config = transformers.BigBirdConfig(
        hidden_size=8,
        intermediate_size=8,
        num_attention_heads=1,
        num_hidden_layers=1,
        vocab_size=32,
        attention_type="original_full",
        is_decoder=decoder,
    )
    model = transformers.BigBirdModel(config, add_pooling_layer=False).eval()
    assert np.array_equal(dependence(model, 6, 8), from_config(config.to_dict(), n=6).step(0).mask())


def test_files_that_transformers_reads_in_two_ways_are_refused():
    mixed = {**CASES["mistral"]().to_dict(), "layer_types": ["full_attention", "sliding_attention", "full_attention"]}
    with pytest.raises(InvalidInput, match="in two ways"):
        from_config(mixed, n=N)
    assert from_config({**mixed, "layer_types": ["sliding_attention"] * 3}, n=N).cycle == 1
    assert from_config({**mixed, "model_type": "ministral"}, n=N).cycle == 2
    two_sided = {**CASES["gemma2"]().to_dict(), "use_bidirectional_attention": True}
    with pytest.raises(InvalidInput, match="causal in some"):
        from_config(two_sided, n=N)
    text = CASES["gemma3_text both ways"]().to_dict()
    with pytest.raises(InvalidInput, match="causal in some"):
        from_config({"model_type": "gemma3", "text_config": text}, n=N)


def test_only_the_text_config_of_a_larger_model_is_read():
    text = CASES["gemma3_text"]().to_dict()
    want = [step.connections for step in from_config(text, n=N).steps]
    stray = {"layer_types": ["full_attention"] * len(text["layer_types"]), "sliding_window": 3, "num_hidden_layers": 1}
    for larger in ("gemma3", "llava", "a model of tomorrow"):
        read = from_config({"model_type": larger, **stray, "text_config": text}, n=N)
        assert [step.connections for step in read.steps] == want


@pytest.mark.parametrize("family", ["bert", "mistral", "llama"])
def test_a_text_config_in_a_model_that_has_none(family):
    with pytest.raises(InvalidInput, match="no use for the 'text_config'"):
        from_config({"model_type": family, "text_config": CASES["mistral"]().to_dict()}, n=N)


@pytest.mark.parametrize("nested", [{}, {"text_config": {"sliding_window": 4}}, {"text_config": [1]}])
def test_a_larger_model_without_its_text_config(nested):
    """transformers would fill it with the family's defaults, whatever stands beside it."""
    with pytest.raises(InvalidInput, match="text_config"):
        from_config({"model_type": "gemma3", "layer_types": ["full_attention"], "num_hidden_layers": 1, **nested}, n=N)


@pytest.mark.slow
def test_the_models_with_a_text_config_are_those_of_transformers():
    mapping = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    found = {name for name in mapping if "text_config" in (mapping[name].sub_configs or {})}
    assert found == NESTED
    assert not found & set(FAMILIES)


def test_a_mistral_file_without_a_word_about_its_window():
    config = CASES["mistral"]().to_dict()
    del config["sliding_window"]
    assert from_config(config, n=5000).step(0).connections == 4096 * 5000 - 4096 * 4095 // 2


@pytest.mark.parametrize(
    "family",
    [
        "gemma2",
        "gemma3_text",
        "gemma3n_text",
        "gemma4_text",
        "cohere2",
        "exaone4",
        "gpt_oss",
        "qwen2",
        "qwen2_moe",
        "modernbert",
        "olmo3",
        "vaultgemma",
    ],
)
def test_files_from_before_layer_types_give_the_same_pattern(family):
    config = CASES[family]().to_dict()
    explicit = from_config(config, n=N)
    config.pop("layer_types")
    assert np.array_equal(from_config(config, n=N).mask(), explicit.mask())


def test_a_family_that_nobody_has_heard_of():
    """``layer_types`` say it all, once somebody says that the model is a decoder; anything else is refused."""
    tomorrow = {
        "model_type": "of_tomorrow",
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention", "full_attention", "chunked_attention"],
        "sliding_window": 3,
        "attention_chunk_size": 4,
        "architectures": ["TomorrowForCausalLM"],
    }
    pattern = from_config(tomorrow, n=N)
    k, j = np.arange(N)[:, None], np.arange(N)[None, :]
    wanted = [(j > k - 3), np.ones((N, N), bool), k // 4 == j // 4]
    for step, want in zip(pattern.steps, wanted, strict=True):
        assert np.array_equal(step.mask(), want & (j <= k))
    both = {**tomorrow, "is_causal": False, "layer_types": ["sliding_attention"] * 3}
    assert np.array_equal(from_config(both, n=N).step(0).mask(), abs(j - k) <= 3)
    refused = {
        "look ahead": {"architectures": ["TomorrowModel"]},
        "as 'attention_window'": {"attention_window": 7},
        "both ways": {"use_bidirectional_attention": True},
        "linear_attention": {"layer_types": ["full_attention", "linear_attention", "full_attention"]},
        "each of the 3": {"layer_types": ["full_attention"]},
        "needs a window": {"sliding_window": None},
        "attention_chunk_size": {"attention_chunk_size": 0},
        "an encoder with a decoder": {"is_encoder_decoder": True},
    }
    for message, change in refused.items():
        with pytest.raises(InvalidInput, match=message):
            from_config({**tomorrow, **change}, n=N)


@pytest.mark.slow
def test_every_family_of_transformers_that_does_not_see_everything(capsys):
    """Each is read as its Jacobian is, or refused; the refused ones are printed, and stand in the docs."""
    from pathlib import Path

    from tests.patterns.families import fates, sparse_families

    found = {kind: fates(kind) for kind in sparse_families()}
    whats = {(kind, layer): what for kind, layers in found.items() for layer, what in layers.items()}
    assert not {place: what for place, what in whats.items() if what.startswith("differs")}
    read = sorted(kind for kind, layers in found.items() if set(layers.values()) == {"read"})
    others = sorted(set(found) - set(read))
    with capsys.disabled():
        print(f"\n{len(read)} families read; not read or not compared: {', '.join(others)}")
    assert len(read) >= 25
    page = (Path(__file__).parents[2] / "docs" / "patterns.md").read_text()
    assert not [kind for kind in others if f"`{kind}`" not in page]


def test_llama4_chunks():
    config = transformers.Llama4TextConfig(
        **TINY,
        num_hidden_layers=4,
        attention_chunk_size=6,
        intermediate_size_mlp=16,
        num_local_experts=1,
        pad_token_id=0,
        max_position_embeddings=64,
    )
    pattern = from_config(config.to_dict(), n=N)
    from transformers.masking_utils import create_causal_mask, create_chunked_causal_mask

    config._attn_implementation = "eager"
    arguments = {
        "config": config,
        "inputs_embeds": torch.zeros(1, N, 16),
        "attention_mask": None,
        "past_key_values": None,
        "position_ids": torch.arange(N)[None],
    }
    masks = {
        "chunked_attention": create_chunked_causal_mask(**arguments),
        "full_attention": create_causal_mask(**arguments),
    }
    for t, kind in enumerate(config.layer_types):
        assert np.array_equal(pattern.step(t % pattern.cycle).mask(), (masks[kind][0, 0] == 0).numpy())


def dependence(model, n, d, **inputs):
    """Whether output k depends on input j: non-zero blocks of the Jacobian with respect to the embeddings."""
    torch.manual_seed(1)
    x = torch.randn(1, n, d)
    jacobian = torch.autograd.functional.jacobian(lambda e: model(inputs_embeds=e, **inputs)[0], x)
    return (jacobian[0, :, :, 0].abs().amax(dim=(1, 3)) > 0).numpy()


@pytest.mark.parametrize("layers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_longformer_depends_on_exactly_the_receptive_field(layers):
    n = 24
    config = transformers.LongformerConfig(
        hidden_size=8,
        intermediate_size=8,
        num_attention_heads=1,
        num_hidden_layers=layers,
        vocab_size=32,
        attention_window=[4] * layers,
        max_position_embeddings=64,
        pad_token_id=1,
    )
    torch.manual_seed(0)
    model = transformers.LongformerModel(config, add_pooling_layer=False).eval()
    flags = torch.zeros(1, n, dtype=torch.long)
    flags[:, 0] = 1
    pattern = from_config(config.to_dict(), n=n)
    seen = np.eye(n, dtype=bool)
    for t in range(layers):
        seen = (pattern.step(t % pattern.cycle).mask().astype(int) @ seen) > 0
    ones = torch.ones(1, n, dtype=torch.long)
    assert np.array_equal(dependence(model, n, 8, attention_mask=ones, global_attention_mask=flags), seen)


@pytest.mark.slow
def test_bigbird_attends_to_its_blocks():
    n = 48
    config = transformers.BigBirdConfig(
        hidden_size=8,
        intermediate_size=8,
        num_attention_heads=1,
        num_hidden_layers=1,
        vocab_size=32,
        block_size=4,
        num_random_blocks=1,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    model = transformers.BigBirdModel(config, add_pooling_layer=False).eval()
    pattern = from_config(config.to_dict(), n=n)
    assert np.array_equal(dependence(model, n, 8), pattern.step(0).mask())
    with pytest.raises(InvalidInput, match="multiple"):
        from_config(config.to_dict(), n=n + 1)
    with pytest.raises(InvalidInput, match="full attention"):
        from_config(config.to_dict(), n=28)


def test_verdicts_within_the_models_own_layers():
    v = check(from_config(CASES["mistral"]().to_dict(), n=100))
    assert (v.universal, v.causal.holds) == (False, True)
    assert (v.causal.evidence.depth, v.full_within_layers) == (25, False)  # 99 tokens back, 4 a layer, 3 layers
    v = check(from_config(CASES["gemma2"]().to_dict(), n=100))
    assert (v.universal, v.causal.evidence.depth, v.full_within_layers) == (False, 2, True)
    v = check(from_config(CASES["modernbert"]().to_dict(), n=1000))
    assert (v.universal, v.depth, v.full_within_layers) == (True, 1, True)  # its first layer is global
    deep = {**transformers.LongformerConfig().to_dict(), "attention_window": 4, "num_hidden_layers": 3}
    assert check(from_config(deep, n=64, globals=0)).full_within_layers is False
    assert check(from_config(deep, n=64, globals=1)).full_within_layers is True


def test_default_length_is_the_models_own():
    assert from_config(CASES["gpt_neo"]().to_dict()).n == 64


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "reformer"}, "not one whose attention pattern is known"),
        ({}, "model_type None"),
        ({"model_type": "mistral", "max_position_embeddings": 8}, "num_hidden_layers"),
        ({"model_type": "mistral", "num_hidden_layers": 2}, "max_position_embeddings"),
        ({"model_type": "mistral", "num_hidden_layers": 2, "max_position_embeddings": -1}, "positive integer"),
        (
            {
                "model_type": "gemma2",
                "num_hidden_layers": 2,
                "max_position_embeddings": 8,
                "layer_types": ["full_attention"],
            },
            "each of the 2 layers",
        ),
        (
            {"model_type": "gemma2", "num_hidden_layers": 1, "max_position_embeddings": 8, "layer_types": ["mamba"]},
            "no fixed attention pattern",
        ),
        ({"model_type": "gemma2", "num_hidden_layers": 1, "max_position_embeddings": 8}, "needs a window"),
        (
            {
                "model_type": "gpt_neo",
                "max_position_embeddings": 8,
                "attention_types": [[["global"], 2]],
                "attention_layers": ["local", "local"],
            },
            "must name the same layers",
        ),
        ({"model_type": "longt5", "num_layers": 2, "n_positions": 8, "is_decoder": True}, "decoder is dense"),
        ({"model_type": "gpt_neo", "max_position_embeddings": 8}, "attention_types"),
        ({"model_type": "longformer", "num_hidden_layers": 1, "attention_window": 3}, "max_position_embeddings"),
    ],
)
def test_bad_configs_are_named(config, message):
    with pytest.raises(InvalidInput, match=message):
        from_config(config)


def test_bad_files_are_named(tmp_path):
    with pytest.raises(InvalidInput, match="no file"):
        load_config(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InvalidInput, match="not valid JSON"):
        load_config(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps([1]))
    with pytest.raises(InvalidInput, match="one JSON object"):
        load_config(tmp_path)
    assert len(FAMILIES) >= 15


@pytest.mark.parametrize("family", OTHERWISE)
def test_families_whose_layers_are_not_what_their_types_say_are_refused(family):
    config = {"model_type": family, "num_hidden_layers": 2, "layer_types": ["full_attention"] * 2, "is_causal": True}
    with pytest.raises(InvalidInput, match=f"Nothing shows that the layers of a '{family}' model"):
        from_config(config, n=8)


def test_each_type_of_transformers_is_in_one_list():
    """A type in none would be believed; one in two would be read in one way and refused in the other."""
    lists = (FAMILIES, NESTED, DECODERS, ENCODERS, OTHERWISE, UNREAD)
    named = [kind for kinds in lists for kind in kinds]
    assert len(named) == len(set(named))
    assert set(named) == set(
        transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES
    )  # not what others registered


def test_types_that_do_not_look_at_layer_types_are_refused():
    """transformers builds an ArceeForCausalLM from this very file, and each of its tokens sees all before it."""
    types = ["sliding_attention"] * 2
    config = transformers.ArceeConfig(**TINY, num_hidden_layers=2, sliding_window=3, layer_types=types)
    assert np.array_equal(attention_masks(config, N)[1], np.tri(N, dtype=bool))
    told = config.to_dict() | {"architectures": ["ArceeForCausalLM"]}
    for file in (told, {"model_type": "llava", "text_config": told}):
        with pytest.raises(InvalidInput, match="Nothing shows that the layers of a 'arcee' model"):
            from_config(file, n=N)
    for family in sorted(UNREAD | NESTED):
        for file in (told | {"model_type": family}, {"text_config": told | {"model_type": family}}):
            with pytest.raises(InvalidInput, match=f"a '{family}' model|A '{family}' model"):
                from_config(file, n=N)
        if family in UNREAD:  # it does not look at a text_config either
            with pytest.raises(InvalidInput, match="no use for the 'text_config'"):
                from_config({"model_type": family, "text_config": CASES["mistral"]().to_dict()}, n=N)


def test_a_verdict_about_a_type_that_is_not_known_says_so(tmp_path):
    types = {"layer_types": ["sliding_attention"] * 2, "sliding_window": 3, "num_hidden_layers": 2}
    file = {"model_type": "of_tomorrow", "architectures": ["TomorrowForCausalLM"], **types}
    known = CASES["mistral"]().to_dict()
    outer = {"model_type": "larger_of_tomorrow", "text_config": known}
    for name, config in (("text", file), ("larger", outer), ("both", outer | {"text_config": file}), ("known", known)):
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
        for asked in ("", " --config union", " --json") if name == "text" else ("",):
            said = ran(f"pattern check {name}.json --n 16{asked}", cwd=tmp_path).stdout
            assert (name == "known") != ("(type not known)" in said and "assumed: the layers are what" in said), said
            assert (name in ("larger", "both")) == ("'larger_of_tomorrow'" in said)
            assert (name in ("text", "both")) == ("'of_tomorrow'" in said)


def test_smollm3_slides_only_with_its_switch():
    config = CASES["smollm3"]().to_dict()
    for off in ({"use_sliding_window": False}, {"use_sliding_window": None}):
        with pytest.raises(InvalidInput, match="no 'use_sliding_window'"):
            from_config(config | off, n=N)
    del config["use_sliding_window"]
    with pytest.raises(InvalidInput, match="no 'use_sliding_window'"):
        from_config(config, n=N)
    assert from_config(config | {"layer_types": ["full_attention"] * 3}, n=N).step(0).connections == N * (N + 1) // 2


def test_chunks_in_a_type_that_has_none():
    with pytest.raises(InvalidInput, match="Chunked layers in a 'cwm' model"):
        from_config(
            {
                "model_type": "cwm",
                "num_hidden_layers": 1,
                "layer_types": ["chunked_attention"],
                "attention_chunk_size": 4,
            },
            n=N,
        )


def test_encoders_do_not_look_at_is_causal_and_one_ends_with_a_full_layer():
    """As their models in transformers: EmbeddingGemma 2 makes its last layer full."""
    for family in ENCODERS:
        config = {"model_type": family, "num_hidden_layers": 2, "layer_types": ["sliding_attention"] * 2}
        pattern = from_config(config | {"sliding_window": 2, "is_causal": True}, n=8)
        assert pattern.step(0).mask()[0, 1]
        assert pattern.steps[-1].mask().all() == (family == "embedding_gemma2_text")


def test_embedding_gemma_2_slides_but_for_its_last_layer():
    given = {"sliding_window": 4, "layer_types": ["sliding_attention"] * 3, "num_hidden_layers": 3}
    config = transformers.AutoConfig.for_model("embedding_gemma2_text", **TINY, **given, pad_token_id=0)
    assert config.layer_types == ["sliding_attention", "sliding_attention", "full_attention"]
    model = transformers.AutoModel.from_config(config, attn_implementation="eager").eval()
    seen = model(torch.arange(3, 3 + N)[None], output_attentions=True).attentions
    pattern = from_config({**config.to_dict(), **given}, n=N)
    for layer, step in zip(seen, pattern.steps, strict=True):
        assert np.array_equal(layer[0].amax(0).numpy(force=True) > 0, step.mask())
