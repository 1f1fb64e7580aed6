"""Tiny models that bring windows, chunks, sinks or caps of their own, under our attention and under eager attention."""

import copy

import torch
import transformers

import thereexists.attention  # registers the name: transformers comes first here

thereexists.attention.register_with_transformers()

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "vocab_size": 50,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
ALL = {"sliding_window": 4}
MIXED = {**ALL, "layer_types": ["sliding_attention", "full_attention"]}
LATE = {**ALL, "use_sliding_window": True, "max_window_layers": 1}
HEADS, EXPERTS = {"head_dim": 8}, {"num_local_experts": 2, "num_experts_per_tok": 1}
CHUNKS = {"layer_types": ["chunked_attention", "full_attention"], "attention_chunk_size": 4, "no_rope_layers": [1, 0]}

MODELS = {  # config class and what is not in SIZES
    "mistral": ("MistralConfig", ALL),
    "mixtral": ("MixtralConfig", ALL | EXPERTS),
    "gemma2": ("Gemma2Config", MIXED | HEADS | {"attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 8}),
    "gemma3": ("Gemma3TextConfig", MIXED | HEADS | {"query_pre_attn_scalar": 8}),
    "gemma4": (
        "Gemma4TextConfig",
        MIXED | HEADS | {"global_head_dim": 16, "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 50},
    ),
    "qwen2": ("Qwen2Config", LATE),
    "qwen3": ("Qwen3Config", LATE | HEADS),
    "phi3": ("Phi3Config", ALL),
    "olmo3": ("Olmo3Config", MIXED),
    "cohere2": ("Cohere2Config", MIXED),
    "gpt_oss": ("GptOssConfig", MIXED | HEADS | EXPERTS),
    "modernbert": ("ModernBertConfig", {"local_attention": 8, "global_attn_every_n_layers": 2}),
    "llama4": ("Llama4TextConfig", CHUNKS | HEADS | EXPERTS | {"intermediate_size_mlp": 40}),
}
DECODERS = [kind for kind in MODELS if kind != "modernbert"]


def windowed(kind):
    """The same weights twice: ours, eager. Large enough that logits are about 1, so that a wrong key shows."""
    name, more = MODELS[kind]
    sizes = {k: v for k, v in SIZES.items() if kind != "modernbert" or k != "num_key_value_heads"}
    config = getattr(transformers, name)(**sizes, **more)
    auto = transformers.AutoModelForCausalLM if kind in DECODERS else transformers.AutoModelForMaskedLM
    models = []
    for implementation in ("thereexists", "eager"):
        how = {"attn_implementation": implementation, "experts_implementation": "eager"}
        model = auto.from_config(copy.deepcopy(config), **how).eval()
        generator = torch.Generator().manual_seed(5)
        for parameter in model.parameters():
            parameter.data.normal_(0, 0.25, generator=generator)
        models.append(model)
    return models


def bound(logits):
    """Ours and eager differ in the order of float32 sums: 2⁻²⁴ a step, some dozens of steps a layer, norms between."""
    return 2.0**-18 * max(1.0, float(logits.detach().abs().max()))
