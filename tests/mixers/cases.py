"""Small configurations, one or two for every registered mixer, that the tests of this folder share."""

import torch

from thereexists.mixers import MIXERS, MixerConfig, MixerKind

SMALL = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
    "kernel_size": 5,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "decoder_start_token_id": 2,
    "eos_token_id": 3,
}
CHOICES = {
    "attention": [{}],
    "average": [{}],
    "bproj": [{}],
    "sepconv": [{}],
    "sparse": [
        {"pattern": "strided", "pattern_options": {"stride": 3}, "pattern_config": "multihead"},
        {"pattern": "star"},
        {"pattern": "fixed", "pattern_config": "sequential"},
    ],
    "hybrid": [{"hybrid_blocks": 1}],
}
CASES = [(name, choice) for name in MIXERS for choice in CHOICES[name]]
IDS = ["-".join([name, *(str(v) for v in choice.values() if isinstance(v, str))]) for name, choice in CASES]


def small(name, choice=None, **more):
    return MixerConfig(**{**SMALL, "mixer": name, **(CHOICES[name][0] if choice is None else choice), **more})


def mixer(config, layer=0, seed=0):
    """The mixer of one block in float64, every weight drawn at random, biases too."""
    torch.manual_seed(seed)
    module = MIXERS[config.mixer].build(config, layer).double()
    with torch.no_grad():
        for weight in module.parameters():
            weight.normal_(std=weight.shape[-1] ** -0.5)
    return module.eval()


def sequences(batch=3, n=12, d=16, seed=1):
    return torch.randn(batch, n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def rounding(*depths, scale=1.0, dtype=torch.float64):
    """γ_K = K·u / (1 − K·u), K the number of roundings one after the other on the longest path, times the scale.

    Two orders of the same sums, each right to γ_K, differ by at most 2 γ_K; factors between the steps (LayerNorm,
    softmax) are of order one here, and a mistake would show at order one.
    """
    steps, unit = sum(depths), torch.finfo(dtype).eps / 2
    return 2 * scale * steps * unit / (1 - steps * unit)


__all__ = ["CASES", "CHOICES", "IDS", "SMALL", "MixerKind", "mixer", "rounding", "sequences", "small"]
