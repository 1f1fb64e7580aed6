"""Every family of transformers with layers that do not see everything: what one layer of a tiny model depends on.

python -m tests.patterns.families            # the table: read, refused (why), or another pattern than the model's
"""

import re
import sys
import warnings
from collections import Counter

import numpy as np
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_MAPPING_NAMES

from tests.attention.tiny_models import _TAKEN_BACK, WINDOW, tiny_config
from thereexists.core.errors import ThereExistsError
from thereexists.patterns.configs import from_config

N = 12
FIELDS = ("sliding_window", "attention_chunk_size", "local_attention", "attention_window", "window_size", "block_size")
IMAGES = re.compile(r"vision|swin|sam|vit|audio|speech|ocr|video|clap|tts|mimi_|vits|asr|florence|doclayout|omni")
ALSO = ("longt5", "recurrent_gemma", "doge", "ministral3")  # their window has another name, or is not set by default
# Compared in test_configs: they need longer sequences, or more than one layer.
ELSEWHERE = ("big_bird", "gpt_neo", "led", "longformer", "gemma3n_text", "gemma4_text", "gemma4_unified_text")
ELSEWHERE += ("embedding_gemma2_text",)


def sparse_families():
    """Text families with a window, chunks, or layers of several types; of nested ones only the inner."""
    for kind in sorted(set(CONFIG_MAPPING) & set(MODEL_MAPPING_NAMES)):
        if IMAGES.search(kind) or kind in ("mimi", *ELSEWHERE):
            continue
        try:
            config = CONFIG_MAPPING[kind]().to_dict()
        except Exception:
            continue
        if isinstance(config.get("text_config"), dict):
            continue
        types = set(config.get("layer_types") or [])
        windows = any(isinstance(config.get(name), int) and config[name] for name in FIELDS)
        if types - {"full_attention"} or kind in ALSO or windows:
            yield kind


def one_layer(kind, layer, without=()):
    """A config with one layer, of the given type where layers have types."""
    config = tiny_config(kind, without)
    config.num_hidden_layers = 1
    for name in ("layer_types", "mlp_layer_types"):
        if isinstance(getattr(config, name, None), list):
            setattr(config, name, [layer if name == "layer_types" else getattr(config, name)[0]])
    if "no_rope_layers" in config.to_dict():
        config.no_rope_layers = [int(layer == "chunked_attention")]
    if kind == "ministral3":
        config.sliding_window = WINDOW
    return config


def dependence(config):
    """Whether output k of the model depends on token j: the Jacobian, contracted with random numbers on either side."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        how = {"attn_implementation": "eager", "experts_implementation": "eager"}
        model = transformers.AutoModel.from_config(config, **how).double().eval()
    model = model.get_encoder() if config.is_encoder_decoder else model
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.2)
    held = []
    model.get_input_embeddings().register_forward_hook(lambda *call: held.append(call[-1]))
    out = model(torch.arange(3, 3 + N)[None], use_cache=False).last_hidden_state
    assert out.shape[1] == N
    weights = torch.randn_like(out)
    rows = [torch.autograd.grad((weights * out)[0, k].sum(), held[0], retain_graph=True)[0][0] for k in range(N)]
    return torch.stack(rows).abs().amax(-1).numpy() > 0


def named(kind):
    """The ``architectures`` of a checkpoint of this family: the model with a head, where transformers lists one."""
    head = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind, MODEL_MAPPING_NAMES[kind])
    return [head if isinstance(head, str) else head[0]]


def fates(kind):
    """For each type of layer of a family: read, refused, differs, or not tiny."""
    types = sorted(set(CONFIG_MAPPING[kind]().to_dict().get("layer_types") or [None]), key=str)
    return {layer: _fate(kind, layer) for layer in types}


def _fate(kind, layer):
    last = None
    for without in _TAKEN_BACK:
        try:
            config = one_layer(kind, layer, without)
            seen = dependence(config)
            break
        except Exception as error:
            last = error
    else:
        return f"not tiny: {type(last).__name__}: {str(last)[:80]}"
    try:
        pattern = from_config({**config.to_dict(), "architectures": named(kind)}, n=N)
    except ThereExistsError as error:
        return f"refused: {str(error)[:110]}"
    same = pattern.layers == 1 and np.array_equal(pattern.step(0).mask(), seen)
    return "read" if same else f"differs: {seen.sum()} pairs, {pattern.step(0).connections} read"


if __name__ == "__main__":
    transformers.logging.set_verbosity(50)
    counts = Counter()
    for kind in sys.argv[1:] or sparse_families():
        for layer, found in fates(kind).items():
            counts[found.split(":")[0]] += 1
            print(f"{kind:26} {layer or 'all':30} {found}", flush=True)
    print(dict(counts))
