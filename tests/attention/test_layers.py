"""Layer t uses step t, whether or not a model numbers its attention modules; unknown arguments are refused."""

import copy
import subprocess
import sys

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from tests.attention.layered import CONFIGS, CYCLE, LAYERS, SIZES, N, albert, tiny  # noqa: E402
from thereexists.attention import hugging_face  # noqa: E402
from thereexists.core.errors import InvalidInput  # noqa: E402


def dependence(model):
    """``out[k, j]``: the output at token k moves when token j is another one; one batch of N + 1 sequences."""
    tokens = torch.arange(10, 10 + N).repeat(N + 1, 1)
    tokens[range(N), range(N)] = 50
    with torch.no_grad():
        out = model(input_ids=tokens).last_hidden_state
    return ((out[:N] - out[N]).abs().amax(-1).T > 1e-9).numpy()


def expected(pattern, layers=LAYERS):
    """The product of the steps, the last layer first, and the token itself through the residual connections."""
    out = np.eye(N, dtype=np.int64)
    for t in range(layers):
        out = (pattern.steps[t % pattern.cycle].mask() | np.eye(N, dtype=bool)).astype(np.int64) @ out
    return out > 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", CONFIGS)
def test_layer_t_uses_step_t(kind):
    model = tiny(CONFIGS[kind]())
    model = model.encoder if kind == "bart" else model
    assert np.array_equal(dependence(model), expected(CYCLE))
    assert not np.array_equal(expected(CYCLE), np.linalg.matrix_power(CYCLE.steps[0].mask() + 0, LAYERS) > 0)


def test_the_decoder_of_an_encoder_decoder_counts_for_itself():
    model = tiny(CONFIGS["bart"]())
    numbers = [
        [layer.self_attn._thereexists_layer for layer in stack.layers] for stack in (model.encoder, model.decoder)
    ]
    assert numbers == [[0, 1, 2], [0, 1, 2]]


def test_a_clip_model_numbers_its_towers_apart():
    sizes = {k: v for k, v in SIZES.items() if k not in ("vocab_size", "max_position_embeddings")}
    text = SIZES | {"bos_token_id": 1, "eos_token_id": 2}
    config = transformers.CLIPConfig(text_config=text, vision_config=sizes | {"image_size": 8, "patch_size": 4})
    model = transformers.AutoModel.from_config(config, attn_implementation="thereexists")
    for tower in (model.text_model, model.vision_model):
        assert [layer.self_attn._thereexists_layer for layer in tower.encoder.layers] == [0, 1, 2]


def test_one_module_in_several_layers_is_refused_where_layers_differ():
    with pytest.raises(InvalidInput, match=r"model_type 'albert'.*one attention module in several layers.*'cycle'"):
        dependence(tiny(albert()))
    with pytest.raises(InvalidInput, match="several layers"):
        dependence(tiny(albert(num_hidden_groups=2)))
    union = CYCLE.union()
    assert np.array_equal(dependence(tiny(albert(), union)), expected(union))
    assert np.array_equal(dependence(tiny(albert(num_hidden_layers=1))), expected(CYCLE, 1))
    three = tiny(albert(num_hidden_groups=LAYERS))
    assert np.array_equal(dependence(three), expected(CYCLE))


@pytest.mark.slow
def test_compiled_models_number_and_refuse_alike():
    """In a process of its own: the type checks of the tests cannot be traced."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.attention.compiled_layers"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused", "packed", "patterned", "parts"]


def test_layers_computed_again_in_the_backward_keep_their_numbers():
    grads = []
    for again in (False, True):
        model = tiny(CONFIGS["distilbert"]()).train()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        if again:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        model(torch.arange(10, 10 + N)[None]).last_hidden_state.square().sum().backward()
        grads.append(model.transformer.layer[1].attention.q_lin.weight.grad)
    assert grads[0].abs().max() > 0
    assert (grads[0] - grads[1]).abs().max() <= 1e-9 * grads[0].abs().max()


def test_a_module_outside_every_model_needs_a_number():
    from transformers.models.distilbert.modeling_distilbert import DistilBertSelfAttention

    config = CONFIGS["distilbert"]()
    config._attn_implementation, config.thereexists_pattern = "thereexists", {"name": "strided", "stride": 4}
    alone = DistilBertSelfAttention(config).eval()
    with pytest.raises(InvalidInput, match="does not number its attention modules"):
        alone(torch.zeros(1, N, 16))
    config.thereexists_pattern = {"name": "strided", "stride": 4, "config": "union"}
    alone(torch.zeros(1, N, 16))


# ---- arguments -------------------------------------------------------------------------------------------------

M3 = {
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_experts_per_tok": 2,
    "num_local_experts": 2,
    "dense_intermediate_size": 16,
    "shared_intermediate_size": 16,
    "rotary_dim": 8,
    "index_n_heads": 2,
    "index_head_dim": 8,
    "index_block_size": 4,
    "index_topk_blocks": 2,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def test_a_model_that_chooses_its_own_keys_is_refused():
    """MiniMax-M3 hands the blocks that its indexer chose to the interface; its full layers hand None."""
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if "minimax_m3_vl_text" not in known:
        pytest.skip("this transformers has no MiniMax-M3")
    tokens = torch.arange(10, 10 + N)[None]
    for kind, refused in (("minimax_m3_sparse", True), ("full_attention", False)):
        config = known["minimax_m3_vl_text"](**SIZES, **M3, layer_types=[kind] * LAYERS)
        model = transformers.AutoModel.from_config(copy.deepcopy(config), attn_implementation="thereexists").eval()
        if not refused:
            model(input_ids=tokens, use_cache=False)
            continue
        with pytest.raises(InvalidInput, match=r"no 'block_indices'.*minimax_m3_vl_text.*'eager'"):
            model(input_ids=tokens, use_cache=False)


@pytest.mark.parametrize(
    "name",
    [
        "position_bias",
        "indices",
        "block_indices",
        "sliding_window",
        "cu_seq_lens_q",
        "cu_seq_lens_k",
        "max_length_q",
        "max_length_k",
        "seq_idx",
        "sinks",
        "of_tomorrow",
    ],
)
def test_arguments_that_we_do_not_know_are_refused_by_name(name):
    model = tiny(CONFIGS["bert"](), CYCLE.union())
    module, x = model.encoder.layer[0].attention.self, torch.zeros(1, 2, N, 8, dtype=torch.float64)
    for value in (torch.zeros(1), 0, False, 2.5):
        with pytest.raises(InvalidInput, match=f"no '{name}'"):
            hugging_face.attention_forward(module, x, x, x, None, **{name: value})
    hugging_face.attention_forward(module, x, x, x, None, **{name: None})


def test_arguments_that_change_nothing_pass():
    model = tiny(CONFIGS["llama"]())
    tokens = torch.arange(10, 10 + N)[None]
    with torch.no_grad():
        plain = model(tokens).last_hidden_state
        for given in (
            {"output_attentions": True},
            {"output_hidden_states": True, "return_dict": True},
            {"use_cache": True, "position_ids": torch.arange(N)[None]},
            {"num_items_in_batch": torch.tensor(3)},
        ):
            assert torch.equal(model(tokens, **given).last_hidden_state, plain)


@pytest.mark.parametrize(
    "source", [5, 2.5, ["star"], True, {"name": "strided", "stride": {}}, {"name": "dilated", "dilation": [[2]]}]
)
def test_a_config_that_holds_no_pattern_is_refused(source):
    config = CONFIGS["bert"]()
    config.thereexists_pattern = source
    model = transformers.AutoModel.from_config(config, attn_implementation="thereexists").eval()
    with pytest.raises(InvalidInput, match="must be"):
        model(torch.arange(N)[None])
