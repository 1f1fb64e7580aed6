"""Dense model types, against the attention weights of tiny models that transformers builds."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from tests.cli.in_process import ran  # noqa: E402
from thereexists.core.errors import InvalidInput  # noqa: E402
from thereexists.patterns.configs import OFFSET, from_config  # noqa: E402
from thereexists.patterns.dense_models import BOTH_WAYS, CAUSAL, MAY_DECODE  # noqa: E402

N = 8
SIZES = {
    **dict.fromkeys(("hidden_size", "intermediate_size", "d_model", "d_ff", "embedding_size", "n_inner", "dim"), 16),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "ffn_dim", "hidden_dim", "word_embed_proj_dim"), 16),
    **dict.fromkeys(("num_hidden_layers", "encoder_layers", "decoder_layers", "num_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "num_heads", "n_heads", "n_layers"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "num_experts_per_tok"), 2),
    **dict.fromkeys(("d_kv", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), 8),
    **{"moe_intermediate_size": 8, "head_dim": 8, "n_routed_experts": 4, "n_group": 1, "topk_group": 1},
    **{"first_k_dense_replace": 1, "rotary_dim": 4, "vocab_size": 50, "max_position_embeddings": 32, "max_seq_len": 32},
    **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
}


def tiny(family, **more):
    config = transformers.AutoConfig.for_model(family)
    for name, size in {**SIZES, **more}.items():
        if hasattr(config, name) and getattr(type(config), name, None).__class__ is not property:
            setattr(config, name, size)
    return config


def seen(config):
    """Which token attends to which, in every layer; of an encoder-decoder, in the encoder."""
    model = transformers.AutoModel.from_config(config, attn_implementation="eager").eval()
    model = model.encoder if config.is_encoder_decoder else model
    with torch.no_grad():
        weights = model(input_ids=torch.arange(3, 3 + N)[None], output_attentions=True).attentions
    return [each[0].amax(0) > 0 for each in weights]


CASES = [(name, {}) for name in (*CAUSAL, *BOTH_WAYS)] + [(name, {"is_decoder": True}) for name in MAY_DECODE]


@pytest.mark.sampled(11)
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by DeBERTa and GPTBigCode
@pytest.mark.parametrize(("family", "more"), CASES, ids=[" ".join((name, *more)) for name, more in CASES])
def test_every_layer_of_a_dense_type(family, more):
    config = tiny(family, **more)
    pattern = from_config(config.to_dict(), n=N)
    layers = seen(config)
    assert pattern.layers == len(layers) == 2
    assert all(torch.equal(layer, torch.from_numpy(pattern.steps[0].mask())) for layer in layers)


def test_switches_that_not_all_types_read_are_refused():
    turned = (("llama", "is_causal", False), ("bert", "is_causal", True), ("t5", "is_decoder", True))
    for family, switch, value in turned:
        with pytest.raises(InvalidInput, match=f"'{switch}'"):
            from_config({"model_type": family, "num_hidden_layers": 2, switch: value}, n=N)


@pytest.mark.parametrize("family", [*OFFSET, "bert", "opt", "bart"])
@pytest.mark.parametrize("padding", [1, 3])
def test_the_length_is_the_most_tokens_that_the_model_reads(family, padding):
    """4098 positions of Longformer are for 4096 tokens: the first two have no token."""
    config = tiny(family, pad_token_id=padding, attention_window=[4, 4], max_position_embeddings=12)
    n = from_config(config.to_dict()).n
    model = transformers.AutoModel.from_config(config).eval()
    model = model.encoder if config.is_encoder_decoder else model
    with torch.no_grad():
        model(input_ids=torch.full((1, n), 5))
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=torch.full((1, n + 1), 5))


def test_longformer_has_4096_tokens():
    config = {"model_type": "longformer", "num_hidden_layers": 2, "max_position_embeddings": 4098}
    assert from_config(config).n == 4096
    assert from_config(config, n=100).n == 100
    for wrong, words in (({"pad_token_id": None}, "'pad_token_id'"), ({"pad_token_id": 5000}, "no room for any")):
        with pytest.raises(InvalidInput, match=words):
            from_config(config | wrong)


def test_a_decoder_is_told_what_its_tokens_see(tmp_path):
    (tmp_path / "llama.json").write_text('{"model_type": "llama", "num_hidden_layers": 4}')
    done = ran("pattern check llama.json", cwd=tmp_path)
    assert done.code == 2
    assert "--n" in done.stderr
    done = ran("pattern check llama.json --n 16", cwd=tmp_path)
    assert "causal: token k sees {0..k} after 1 layer" in done.stdout
    (tmp_path / "mistral.json").write_text('{"model_type": "mistral", "num_hidden_layers": 9, "sliding_window": 16}')
    done = ran("pattern check mistral.json --n 128", cwd=tmp_path)
    assert "causal: token k sees {0..k} after 9 layers" in done.stdout
    assert "not universal" not in done.stdout.splitlines()[0]


def test_files_that_transformers_reads_otherwise_are_refused():
    mistral = {"model_type": "mistral", "num_hidden_layers": 2, "sliding_window": None}
    for value in (None, 0, 1, "yes"):
        with pytest.raises(InvalidInput, match="'is_causal' in the config must be true or false"):
            from_config(mistral | {"is_causal": value}, n=N)
    assert not from_config(mistral | {"is_causal": False}, n=N).causal
    with pytest.raises(InvalidInput, match="number of layers in several ways"):
        from_config({"model_type": "mpt", "n_layers": 4, "num_layers": 2}, n=N)
