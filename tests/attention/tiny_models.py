"""Tiny random models of every causal type that transformers lists, and whether they see the future.

python -m tests.attention.tiny_models            # the table of all types under our attention
"""

import copy
import os
import sys
import warnings
from collections import Counter

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

import thereexists.attention  # registers the name: transformers comes first here
from thereexists import patterns
from thereexists.core.errors import InvalidInput, ThereExistsError

N = 12
NOISE = 1e-6
WINDOW = 4  # shorter than the sequence, so that it shows
WINDOWS = ("sliding_window", "attention_chunk_size", "local_attention")
LARGEST = 3_000_000  # parameters; a type that stays larger than this under SIZES is not tiny

# One set of sizes under the names that the configs of all types use for them.
_SIZES = {
    4: "num_attention_heads num_heads n_head encoder_attention_heads decoder_attention_heads "
    "num_decoder_attention_heads mamba_n_heads",
    2: "num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers num_key_value_heads num_kv_heads "
    "num_experts num_local_experts n_routed_experts moe_num_experts num_decoder_layers num_encoder_layers",
    1: "num_experts_per_tok num_experts_per_token moe_k n_group topk_group n_shared_experts moe_topk top_k_experts",
    8: "head_dim qk_nope_head_dim v_head_dim qk_rope_head_dim kv_lora_rank q_lora_rank dim_head d_kv "
    "kv_channels index_head_dim rotary_dim mamba_head_dim mamba_d_state mamba_chunk_size chunk_size",
    16: "mamba_d_head",
    32: "hidden_size n_embd d_model dim embedding_size intermediate_size ffn_dim n_inner encoder_ffn_dim "
    "decoder_ffn_dim moe_intermediate_size shared_expert_intermediate_size dim_ff d_ff ffn_hidden_size emb_dim "
    "hidden_size_per_layer_input attention_hidden_size intermediate_size_mlp word_embed_proj_dim "
    "cross_attention_hidden_size",
    64: "mamba_d_ssm max_position_embeddings n_positions max_seq_len seq_length n_ctx max_sequence_length",
    50: "vocab_size n_words",
}
SIZES = {name: size for size, names in _SIZES.items() for name in names.split()}
_TAKEN_BACK = (  # whether a type accepts a name is known only by trying; the second try leaves these out
    (),
    ("head_dim",),
    ("head_dim", "num_key_value_heads", "num_kv_heads", "kv_channels"),
    ("q_lora_rank", "rotary_dim", "embedding_size", "dim_head", "cross_attention_hidden_size"),
)
PLAIN = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "is_decoder": True, "use_cache": False}


def causal_types() -> list[str]:
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def tiny_config(kind, without=()):
    config = CONFIG_MAPPING[kind]
    sizes = {k: v for k, v in (SIZES | PLAIN).items() if k not in without}
    nested = {name: dict(sizes) for name in getattr(config, "sub_configs", {}) if "text" in name or "decoder" in name}
    made = config(**sizes, **nested)
    for part in (made, *(getattr(made, name) for name in nested)):
        for name in WINDOWS:
            if isinstance(getattr(part, name, None), int):
                setattr(part, name, WINDOW)
    return made


def tiny_model(kind, implementation="eager", **changes):
    """A model of this type, and nothing else: None when no set of sizes fits it."""
    last = None
    for without in _TAKEN_BACK:
        try:
            config = tiny_config(kind, without)
            for name, value in changes.items():
                setattr(config, name, value)
            with torch.device("meta"):
                size = sum(p.numel() for p in _make(copy.deepcopy(config), "eager").parameters())
            if size > LARGEST:
                return None
            eager = _make(copy.deepcopy(config), "eager").eval()
            with torch.no_grad():
                eager(torch.full((1, N), 7))
        except Exception as error:
            last = error
            continue
        return eager if implementation == "eager" else _make(config, implementation).eval()
    if os.environ.get("SHOW"):
        print(kind, type(last).__name__, str(last)[:150])
    return None


def _make(config, implementation):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.AutoModelForCausalLM.from_config(
            config, attn_implementation=implementation, experts_implementation="eager"
        )


def changes(model, at, changed):
    """How far the logits at ``at`` move when the token at ``changed`` is another one."""
    tokens = torch.arange(10, 10 + N)[None]
    other = tokens.clone()
    other[0, changed] = 40
    with torch.no_grad():
        a, b = (model(t).logits[0, at] for t in (tokens, other))
    return float((a - b).abs().max())


def fate(kind) -> str:
    """What becomes of this type under our attention, in one word, and why.

    The bounds: models are in float64 and differ from each other in the order of sums; a real dependence moves logits
    by far more. Some types compute part of their layers in float32 whatever they are given.
    """
    eager = tiny_model(kind)
    if eager is None:
        return "not tiny"
    try:
        model = tiny_model(kind, "thereexists")
        model.load_state_dict(eager.state_dict())
        eager, model = eager.double(), model.double()
        tokens = torch.arange(10, 10 + N)[None]
        noise = max(NOISE, changes(eager, slice(0, 7), 7))
        if changes(model, slice(0, 7), 7) > noise:
            return "leaks"
        with torch.no_grad():
            if (model(tokens).logits - eager(tokens).logits).abs().max() > noise:
                return "differs from eager attention"
        thereexists.attention.use_pattern(model, lambda n: patterns.window(n, 1))
        try:
            model(tokens)
        except InvalidInput as error:
            if "mask of its own" in str(error):
                return "causal, by a mask of its own"
            raise
        if changes(model, N - 1, 0) > noise:  # two layers, one token back in each
            return "ignores the pattern"
        return "causal"
    except ThereExistsError as error:
        return f"refused: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:80]}"


if __name__ == "__main__":
    counts = Counter()
    for kind in sys.argv[1:] or causal_types():
        found = fate(kind)
        counts[found.split(":")[0]] += 1
        print(f"{kind:32} {found}", flush=True)
    print(dict(counts))
