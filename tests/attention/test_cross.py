"""Cross-attention stays dense, also where source and target have the same number of tokens."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

import thereexists as te  # noqa: E402
from thereexists import patterns as tp  # noqa: E402

te.attention.register_with_transformers()  # another test may have imported us before transformers

N = 10
SIZES = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "vocab_size": 50,
    "max_position_embeddings": 32,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
WHISPER = {"num_mel_bins": 4, "max_source_positions": N, "max_target_positions": 32}
CONFIGS = {
    "bart": lambda: transformers.BartConfig(**SIZES),
    "marian": lambda: transformers.MarianConfig(**SIZES),
    "pegasus": lambda: transformers.PegasusConfig(**SIZES),
    "mbart": lambda: transformers.MBartConfig(**SIZES),
    "m2m_100": lambda: transformers.M2M100Config(**SIZES),
    "whisper": lambda: transformers.WhisperConfig(**SIZES, **WHISPER),
}
FEW_ROUNDINGS = 2.0**-40  # float64, one layer


def pair(kind):
    made = []
    for implementation in ("thereexists", "eager"):
        torch.manual_seed(0)
        made.append(transformers.AutoModel.from_config(CONFIGS[kind](), attn_implementation=implementation))
    made[1].load_state_dict(made[0].state_dict())
    return [model.double().eval() for model in made]


def alone(n):
    """The pattern in which every token sees itself only."""
    return tp.from_rows([[k] for k in range(n)])


def source(kind):
    torch.manual_seed(1)
    if kind == "whisper":
        return {"input_features": torch.randn(1, 4, 2 * N, dtype=torch.float64)}
    return {"input_ids": torch.randint(3, 50, (1, N))}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_pattern_leaves_cross_attention_alone(kind):
    """Under a pattern in which nobody sees but himself, self-attention is the identity on values, and only
    cross-attention mixes tokens: with eager attention under that mask for self-attention, the models are equal."""
    ours, eager = pair(kind)
    te.attention.use_pattern(ours, alone)
    own = torch.full((N, N), -torch.inf, dtype=torch.float64).fill_diagonal_(0.0)[None, None]
    for path, module in eager.named_modules():
        if path.endswith("self_attn"):

            def forward(*args, _forward=module.forward, **kwargs):
                return _forward(*args, **{**kwargs, "attention_mask": own})

            module.forward = forward
    target = torch.randint(3, 50, (1, N))
    with torch.no_grad():
        mine = ours(**source(kind), decoder_input_ids=target).last_hidden_state
        theirs = eager(**source(kind), decoder_input_ids=target).last_hidden_state
    assert (mine - theirs).abs().max() <= FEW_ROUNDINGS


def test_cross_attention_sees_every_source_token():
    """The plain question, without another model: does each target token depend on each source token?"""
    ours, _ = pair("bart")
    te.attention.use_pattern(ours, alone)
    states = torch.randn(1, N, 16, dtype=torch.float64)
    target = torch.randint(3, 50, (1, N))

    def decode(states):
        return ours.decoder(input_ids=target, encoder_hidden_states=states).last_hidden_state

    jacobian = torch.autograd.functional.jacobian(decode, states)[0, :, :, 0]  # (target, d, source, d)
    assert (jacobian.abs().amax(dim=(1, 3)) > 0).all()


def test_padding_in_the_source():
    ours, eager = pair("marian")
    mask = torch.ones(1, N, dtype=torch.long)
    mask[0, 6:] = 0
    target = torch.randint(3, 50, (1, N))
    with torch.no_grad():
        found = [m(**source("marian"), attention_mask=mask, decoder_input_ids=target)[0] for m in (ours, eager)]
    assert (found[0] - found[1]).abs().max() <= FEW_ROUNDINGS
