"""Models of three layers, and a pattern whose steps tell which of them stood in which layer."""

import torch
import transformers

import thereexists as te
from thereexists.patterns.parts import Band, Offsets
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step

te.attention.register_with_transformers()  # another test may have imported us before transformers

N, LAYERS = 24, 3
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 80,
    "max_position_embeddings": 32,
}
SHORT = {"dim": 16, "n_layers": LAYERS, "n_heads": 2, "hidden_dim": 16, "vocab_size": 80, "max_position_embeddings": 32}
BART = {
    "d_model": 16,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "vocab_size": 80,
    "max_position_embeddings": 32,
}
CONFIGS = {
    "bert": lambda: transformers.BertConfig(**SIZES),
    "distilbert": lambda: transformers.DistilBertConfig(**SHORT),
    "splinter": lambda: transformers.SplinterConfig(**SIZES),
    "nomic_bert": lambda: transformers.AutoConfig.for_model("nomic_bert", **SIZES),
    "clip_text_model": lambda: transformers.CLIPTextConfig(**SIZES, bos_token_id=1, eos_token_id=2),
    "bart": lambda: transformers.BartConfig(**BART),
    "llama": lambda: transformers.LlamaConfig(**SIZES, num_key_value_heads=2),
}
# One step of each kind: what a token depends on after three layers tells which step stood in which layer.
CYCLE = Pattern("cycle", tuple(Step(N, (part,)) for part in (Band(-1, 0), Offsets((-5, 0)), Band(0, 0))))


def tiny(config, pattern=CYCLE):
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(config, attn_implementation="thereexists").double().eval()
    te.attention.use_pattern(model, pattern)
    return model


def albert(**changes):
    return transformers.AlbertConfig(**SIZES | changes, embedding_size=16)
