"""Models of the transformers package over a pattern, against their own eager attention."""

import copy

import pytest
import torch

transformers = pytest.importorskip("transformers")

import thereexists as te  # noqa: E402
from thereexists import patterns as tp  # noqa: E402
from thereexists.core.errors import InvalidInput  # noqa: E402

te.attention.register_with_transformers()  # another test may have imported us before transformers

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "vocab_size": 50,
    "max_position_embeddings": 64,
}
BERT = transformers.BertConfig(**SIZES, attention_probs_dropout_prob=0.0)
LLAMA = transformers.LlamaConfig(**SIZES, num_key_value_heads=2)
# Ours and eager differ in the order of sums only. Llama's eager softmax is float32 whatever the model is: 2⁻²³ a step,
# through two layers of norm-preserving blocks.
BOUNDS = {"bert": 2.0**-45, "llama": 2.0**-18}


def pair(config, **fields):
    """The same weights under our attention and under eager attention."""
    torch.manual_seed(0)
    assert te.attention is not None
    ours, eager = copy.deepcopy(config), copy.deepcopy(config)
    for name, value in fields.items():
        setattr(ours, name, value)
    model = transformers.AutoModel.from_config(ours, attn_implementation="thereexists").double().eval()
    reference = transformers.AutoModel.from_config(eager, attn_implementation="eager").double().eval()
    reference.load_state_dict(model.state_dict())
    return model, reference


@pytest.mark.parametrize("config", [BERT, LLAMA], ids=["bert", "llama"])
def test_the_dense_pattern_is_eager_attention(config):
    model, eager = pair(config)
    tokens = torch.randint(50, (2, 21))
    mask = torch.ones(2, 21, dtype=torch.long)
    mask[0, 13:] = 0
    with torch.no_grad():
        plain = (model(tokens)[0] - eager(tokens)[0]).abs().max()
        padded = (model(tokens, attention_mask=mask)[0] - eager(tokens, attention_mask=mask)[0]).abs()
    bound = BOUNDS[config.model_type]
    assert plain <= bound
    assert max(padded[0, :13].max(), padded[1].max()) <= bound


@pytest.mark.parametrize("config", [BERT, LLAMA], ids=["bert", "llama"])
@pytest.mark.parametrize("how", ["sequential", "union", "multihead"])
def test_a_sparse_model_is_eager_attention_under_the_pattern_as_a_mask(config, how):
    spec = {"name": "strided", "stride": 4, "config": how}
    model, eager = pair(config, thereexists_pattern=spec)
    n, causal = 21, config.model_type == "llama"
    pattern = tp.strided(n, 4).as_causal() if causal else tp.strided(n, 4)
    steps = {
        "sequential": [[pattern.step(0)] * 4, [pattern.step(1)] * 4],
        "union": [[pattern.union_step()] * 4] * 2,
        "multihead": [[pattern.step(0)] * 2 + [pattern.step(1)] * 2] * 2,
    }[how]
    _mask_layers(eager, [torch.stack([torch.from_numpy(s.mask()) for s in heads]) for heads in steps])
    tokens = torch.randint(50, (2, n))
    with torch.no_grad():
        assert (model(tokens)[0] - eager(tokens)[0]).abs().max() <= BOUNDS[config.model_type]


def _mask_layers(model, masks):
    """Give every attention module its own additive mask (heads, n, n)."""
    modules = [m for m in model.modules() if hasattr(m, "is_causal")]
    for module, mask in zip(modules, masks, strict=True):
        additive = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)[None]

        def forward(*args, _forward=module.forward, _additive=additive, **kwargs):
            return _forward(*args, **{**kwargs, "attention_mask": _additive})

        module.forward = forward


def test_generation_with_a_cache_equals_generation_without():
    config = copy.deepcopy(LLAMA)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="thereexists").double().eval()
    te.attention.use_pattern(model, lambda n: tp.strided(n, 4).union())
    tokens = torch.randint(50, (1, 9))
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    assert torch.equal(
        model.generate(tokens, use_cache=True, **options), model.generate(tokens, use_cache=False, **options)
    )


def test_a_sparse_model_trains():
    config = copy.deepcopy(BERT)
    config.thereexists_pattern = "star"
    config.attention_probs_dropout_prob = 0.1
    model = transformers.AutoModel.from_config(config, attn_implementation="thereexists")
    model(torch.randint(50, (2, 16)))[0].square().mean().backward()
    gradients = [p.grad for name, p in model.named_parameters() if "query" in name]
    assert all(g is not None and g.abs().max() > 0 for g in gradients)


def test_a_pattern_of_a_downloaded_config_is_bounded_before_it_is_built(monkeypatch):
    monkeypatch.setattr(tp.Step, "__init__", lambda *args, **kwargs: pytest.fail("a pattern was built"))
    for how in ("sequential", "union", "multihead"):
        model, _ = pair(BERT, thereexists_pattern={"name": "alternating", "period": 10**9, "config": how})
        with pytest.raises(InvalidInput, match="pairs to list"):
            model(torch.randint(50, (1, 8)))


def test_what_is_refused():
    model, _ = pair(BERT, thereexists_pattern={"name": "strided", "config": "nonsense"})
    with pytest.raises(InvalidInput, match="sequential, union or multihead"):
        model(torch.randint(50, (1, 8)))
    model, _ = pair(BERT)
    te.attention.use_pattern(model, tp.window(9, 2))
    with pytest.raises(InvalidInput, match="function of n"):
        model(torch.randint(50, (1, 8)))
    with pytest.raises(InvalidInput, match="custom mask"):
        model(torch.randint(50, (1, 9)), attention_mask=torch.zeros(1, 1, 9, 9, dtype=torch.float64))
    with pytest.raises(InvalidInput, match="no attention module"):
        te.attention.use_pattern(torch.nn.Linear(2, 2), tp.window(9, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "import transformers, thereexists.attention",
        "import thereexists.attention as a, transformers; a.register_with_transformers()",
    ],
)
def test_the_name_is_registered(code, fresh):
    known = "import transformers.modeling_utils as m, sys; sys.exit('thereexists' not in m.ALL_ATTENTION_FUNCTIONS)"
    assert fresh("-c", f"{code}; {known}").returncode == 0


def test_nothing_of_ours_watches_imports(fresh):
    code = (
        "import sys; before = list(sys.meta_path); import thereexists.attention; thereexists.attention.explain; "
        "sys.exit(sys.meta_path != before or 'transformers' in sys.modules)"
    )
    assert fresh("-c", code).returncode == 0


def test_a_cache_without_a_causal_mask_does_not_drop_the_pattern():
    """What the rows of new tokens are is not known then: refused, where it was dense without a word."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.LlamaConfig(**sizes, vocab_size=50, max_position_embeddings=32, is_causal=False)
    config.thereexists_pattern = {"name": "strided", "stride": 4, "config": "union"}
    model = transformers.AutoModel.from_config(config, attn_implementation="thereexists").eval()
    tokens = torch.arange(3, 19)[None]
    with torch.no_grad():
        cache = model(tokens[:, :12], use_cache=True).past_key_values
        with pytest.raises(InvalidInput, match="without being causal"):
            model(tokens[:, 12:], past_key_values=cache)
    model.config.thereexists_pattern = "dense"
    with torch.no_grad():
        cache = model(tokens[:, :12], use_cache=True).past_key_values
        model(tokens[:, 12:], past_key_values=cache)
