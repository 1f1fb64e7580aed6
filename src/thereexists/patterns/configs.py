"""Patterns from the ``config.json`` of models in the ``transformers`` package; needs nothing but the file.

Layer t of the model uses step t: the cycle is the shortest one that reproduces the model's own sequence of layers, and
``pattern.layers`` records how many there are, so that a verdict can say whether the receptive field is full *within*
them. What is mapped is the attention pattern at inference on one sequence without padding.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.core.regular_files import read_regular
from thereexists.patterns.config_fields import (
    LAYERS,
    MOST_LAYERS,
    Config,
    build_layers,
    is_causal,
    layer_count,
    positive,
    window_size,
)
from thereexists.patterns.dense_models import BOTH_WAYS, CAUSAL, dense_steps
from thereexists.patterns.layer_types import DECODERS, ENCODERS, OTHERWISE, generic_steps
from thereexists.patterns.nested_models import NESTED
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.sparse_models import bigbird_steps, gpt_neo_steps, longformer_steps, longt5_steps
from thereexists.patterns.step import MOST_TOKENS, Step
from thereexists.patterns.unread_models import UNREAD

OFFSET = ("longformer", "roberta", "xlm-roberta", "camembert", "mpnet")  # positions begin after the padding's own
GLOBALS, SEEDED = ("longformer", "led"), ("big_bird",)  # whose configs leave global tokens, and random blocks, open
MOST_BYTES = 16 << 20


def load_config(path: str | Path, n: int | None = None, globals: int | None = None, seed: int | None = None) -> Pattern:
    """The pattern of a ``config.json`` (or of the folder that holds it); see ``from_config``."""
    path = Path(path)
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    try:
        config = json.loads(read_regular(path, MOST_BYTES, InvalidInput).decode("utf-8"))
    except InvalidInput:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not valid JSON ({error}).") from None
    if not isinstance(config, dict):
        raise InvalidInput(f"{path} must hold one JSON object, a model config; it holds a {type(config).__name__}.")
    return from_config(config, n, globals, seed)


def from_config(config: Config, n: int | None = None, globals: int | None = None, seed: int | None = None) -> Pattern:
    """The pattern of a model config, as a dictionary.

    ``n`` defaults to ``max_position_embeddings``, less the rows of it that no token has. ``globals`` is the number of
    leading global tokens of Longformer and LED, which their configs leave to the caller, by default 1. BigBird's
    random blocks exist in training only: ``seed`` adds them. Other models have neither.
    """
    outer, config = config, _text_part(config)
    family = config.get("model_type")
    if config is not outer and config.get("use_bidirectional_attention"):
        raise InvalidInput(
            "'use_bidirectional_attention' in the text_config of a larger model is causal in some attention "
            "implementations of transformers and not in others; check the text_config as a model of its own."
        )
    if not isinstance(family, str) or (family not in FAMILIES and "layer_types" not in config):
        raise InvalidInput(
            f"The config's model_type {family!r} is not one whose attention pattern is known here, and it has no "
            f"'layer_types'. Known: {', '.join(sorted(FAMILIES))}. Use te.patterns.from_mask or from_csr instead."
        )
    for name, value, having in (("globals", globals, GLOBALS), ("seed", seed, SEEDED)):
        if value is not None and family not in having:
            raise InvalidInput(f"'{name}' is for {' and '.join(having)}; a {family!r} model has no use for it.")
    n = _length(config) if n is None else n
    if not 1 <= n <= MOST_TOKENS:
        raise InvalidInput(f"'n' must be a whole number from 1 to {MOST_TOKENS:,}; got {n}; choose one with --n.")
    try:
        if family in FAMILIES:
            steps = FAMILIES[family](config, n, 1 if globals is None else globals, seed)
        else:
            steps = generic_steps(config, n)
    except InvalidInput:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise InvalidInput(f"The config of this {family!r} model is malformed: {error}.") from error
    if not steps:
        raise InvalidInput(f"The config of this {family!r} model names no layer; a model has at least one.")
    if len(steps) > MOST_LAYERS:
        raise InvalidInput(f"The config names {len(steps):,} layers; a model has at most {MOST_LAYERS:,}.")
    cycle = next(p for p in range(1, len(steps) + 1) if all(a is b for a, b in zip(steps[p:], steps, strict=False)))
    parameters = {"model_type": family, "layers": len(steps)}
    unknown = [repr(part.get("model_type")) for part in (outer, config) if not is_known(part.get("model_type"))]
    if unknown:
        believed = unknown[-1] if outer is config else " in ".join(unknown[::-1])
        parameters["assumed"] = (
            f"the layers are what the file's 'layer_types' or 'text_config' say; the model type {believed} is not "
            "known here, and nothing was compared with its code"
        )
        family += " (type not known)"
    return Pattern(family, tuple(steps[:cycle]), parameters, layers=len(steps))


def is_known(model_type: object) -> bool:
    """Whether transformers had this type when the lists were made; what a file says of another is only believed."""
    lists = (FAMILIES, NESTED, DECODERS, ENCODERS, OTHERWISE, UNREAD)
    return isinstance(model_type, str) and any(model_type in known for known in lists)


def _length(config: Config) -> int:
    names = ("max_position_embeddings", "max_encoder_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    if not any(name in config for name in names):
        family = config.get("model_type")
        raise InvalidInput(f"The config of this {family!r} model has no '{names[0]}'; give the length with --n.")
    return positive(config, *names) - _rows_of_no_token(config)


def _rows_of_no_token(config: Config) -> int:
    """The first token of the RoBERTa family has the position pad_token_id + 1: 4098 embeddings are for 4096 tokens.

    (transformers, ``create_position_ids_from_input_ids``; MPNet has the 1 of RoBERTa's vocabulary in its code.)
    """
    family = config.get("model_type")
    if family not in OFFSET:
        return 0
    padding = 1 if family == "mpnet" else config.get("pad_token_id", 1)
    if isinstance(padding, bool) or not isinstance(padding, int) or padding < 0:
        raise InvalidInput(
            f"'pad_token_id' in the config of this {family!r} model must be a whole number from 0, for positions are "
            f"counted from it; got {padding!r}; correct it, or give the length with --n."
        )
    rows, most = padding + 1, config["max_position_embeddings"]
    if most <= rows:
        raise InvalidInput(
            f"'max_position_embeddings' of this {family!r} model is {most}, and {rows} of them are before the first "
            "token: there is no room for any; correct it, or give the length with --n."
        )
    return rows


def _text_part(config: Config) -> Config:
    """Multimodal configs nest the language model's; nothing beside it is about that."""
    family, inner = config.get("model_type"), config.get("text_config")
    if inner is None:
        if isinstance(family, str) and family in NESTED:
            raise InvalidInput(f"A {family!r} model has its layers in 'text_config', and this config has none; add it.")
        return config
    if is_known(family) and family not in NESTED:
        raise InvalidInput(
            f"A {family!r} model has no use for the 'text_config' in its config; remove that, or name the larger model."
        )
    if not isinstance(inner, dict) or not isinstance(inner.get("model_type"), str):
        raise InvalidInput(f"The 'text_config' of this {family!r} model names no model_type; add the language model's.")
    return inner


def _steps(kinds_of: Callable[[Config, int], list[str]]) -> Callable[[Config, int, int, int | None], list[Step]]:
    """A decoder whose layers have the kinds that ``kinds_of`` names; causal unless ``is_causal`` is false.

    ``is_causal`` is transformers' own switch for all of them (masking_utils): it makes full layers see everything and
    a window of w reach w tokens to either side.
    """

    def steps(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
        kinds = kinds_of(config, layer_count(config))
        causal = is_causal(config)
        if not causal and "chunked_attention" in kinds:
            raise InvalidInput("Chunked layers with 'is_causal': false have no pattern that is known here.")
        return build_layers(config, n, kinds, config.get("sliding_window"), causal)

    return steps


def _listed(default: Callable[[Config, int], list[str]]) -> Callable[[Config, int], list[str]]:
    """``layer_types`` when the file has it, the family's own rule when it was written before that."""

    def kinds(config: Config, count: int) -> list[str]:
        found = config.get("layer_types") or default(config, count)
        if not isinstance(found, list) or len(found) != count:
            raise InvalidInput(f"'layer_types' must name each of the {count} layers; it has {_count(found)} entries.")
        return found

    return kinds


def _count(found: Any) -> int:
    return len(found) if isinstance(found, list | str) else 0


def _all_sliding(config: Config, count: int) -> list[str]:
    """Every layer slides when there is a window; these families have no ``layer_types``, and ignore it in a file."""
    return ["full_attention" if config.get("sliding_window") is None else "sliding_attention"] * count


def _mistral(config: Config, count: int) -> list[str]:
    """transformers' MistralModel ignores ``layer_types``; AutoModel takes such a file for Ministral, and follows."""
    kinds = _all_sliding(config, count)
    if config.get("layer_types") not in (None, kinds):
        raise InvalidInput(
            "transformers reads a mistral config with 'layer_types' in two ways: MistralModel ignores them, AutoModel "
            "takes the file for a ministral model and follows them. Set 'model_type' to 'ministral', or remove "
            "'layer_types', to say which is meant."
        )
    return kinds


def _with_default_window(steps: Callable[..., list[Step]]) -> Callable[[Config, int, int, int | None], list[Step]]:
    """Mistral: a file without ``sliding_window`` means 4096; null means none."""

    def filled(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
        return steps({"sliding_window": 4096, **config}, n, globals, seed)

    return filled


def _full_every(period: int, named: bool = False) -> Callable[[Config, int], list[str]]:
    """Layers ``period``, 2·``period``, … (from 1) are full, the others slide; ``named``: a file may say the period."""

    def kinds(config: Config, count: int) -> list[str]:
        every = period
        if named and "sliding_window_pattern" in config:
            every = positive(config, "sliding_window_pattern")
        return ["sliding_attention" if (i + 1) % every else "full_attention" for i in range(count)]

    return kinds


def _window_switched(steps: Callable[..., list[Step]]) -> Callable[[Config, int, int, int | None], list[Step]]:
    """Qwen: the window, 4096 unless the file has one, counts only where ``use_sliding_window`` is set."""

    def switched(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
        window = config.get("sliding_window", 4096) if config.get("use_sliding_window") else None
        return steps({**config, "sliding_window": window}, n, globals, seed)

    return switched


def _late_sliding(config: Config, count: int) -> list[str]:
    """Qwen 2 and 3: layers slide from ``max_window_layers`` on."""
    first = count if config.get("sliding_window") is None else config.get("max_window_layers", 28)
    return ["sliding_attention" if i >= first else "full_attention" for i in range(count)]


def _every_other_early(config: Config, count: int) -> list[str]:
    """Qwen 2 MoE: every other layer slides, before ``max_window_layers``."""
    last = 0 if config.get("sliding_window") is None else config.get("max_window_layers", 28)
    return ["sliding_attention" if i % 2 == 0 and i < last else "full_attention" for i in range(count)]


def _gemma2(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    """With ``use_bidirectional_attention`` eager attention stays causal and flash attention does not."""
    if config.get("use_bidirectional_attention"):
        raise InvalidInput(
            "Gemma 2 with 'use_bidirectional_attention' is causal in some attention implementations of transformers "
            "and not in others; set it to false and give 'is_causal' instead."
        )
    return _steps(_listed(_full_every(2)))(config, n, globals, seed)


def _gemma3(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    """With ``use_bidirectional_attention`` full layers see everything, and a window of w reaches ⌊w/2⌋ to either side.

    transformers turns w into ⌊w/2⌋ + 1 when it reads the file, and a token sees those at a distance below that; with
    ``is_causal`` false as well, those at a distance up to that.
    """
    every = _listed(_full_every(6, named=True))
    if not config.get("use_bidirectional_attention"):
        return _steps(every)(config, n, globals, seed)
    kinds = every(config, layer_count(config))
    reach = window_size(config.get("sliding_window", 4096)) // 2 + (not is_causal(config))
    return build_layers(config, n, kinds, reach, causal=False)


def _llama4(config: Config, count: int) -> list[str]:
    interval = config.get("no_rope_layer_interval", 4)
    rope = config.get("no_rope_layers") or [int((i + 1) % interval != 0) for i in range(count)]
    return ["chunked_attention" if uses else "full_attention" for uses in rope]


def _full_first(config: Config, count: int) -> list[str]:
    """ModernBERT: layers 0, e, 2e, … are full, the others slide."""
    every = config.get("global_attn_every_n_layers", 3)
    return ["sliding_attention" if i % every else "full_attention" for i in range(count)]


def _modernbert(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    kinds = _listed(_full_first)(config, layer_count(config))
    reach = config["sliding_window"] if "sliding_window" in config else config.get("local_attention", 128) // 2
    return build_layers(config, n, kinds, reach, causal=False)


def _gemma4(config: Config, count: int) -> list[str]:
    """The last layer is full, whatever the file says."""
    if config.get("use_bidirectional_attention") not in (None, False, "vision"):
        raise InvalidInput("Gemma 4 with 'use_bidirectional_attention' has no pattern that is known here.")
    return [*_listed(_full_every(6))(config, count)[:-1], "full_attention"]


def _modernbert_decoder(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    """Half of ``local_attention``, the token included, unless the file has a ``sliding_window``."""
    window = config["sliding_window"] if "sliding_window" in config else config.get("local_attention", 128) // 2
    return _steps(_listed(_full_first))({**config, "sliding_window": window}, n, globals, seed)


def _dense(family: str) -> Callable[[Config, int, int, int | None], list[Step]]:
    def steps(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
        stated = {name: config[name] for name in LAYERS if name in config}
        if len(set(map(str, stated.values()))) > 1:
            raise InvalidInput(f"The config states its number of layers in several ways: {stated}; keep the right one.")
        return dense_steps(family, config, n, layer_count(config))

    return steps


FAMILIES: dict[str, Callable[[Config, int, int, int | None], list[Step]]] = {
    **{name: _steps(_all_sliding) for name in ("mixtral", "ministral3", "phi3", "phimoe", "starcoder2")},
    "mistral": _with_default_window(_steps(_mistral)),
    "ministral": _with_default_window(_steps(_listed(_all_sliding))),
    **{name: _window_switched(_steps(_listed(_late_sliding))) for name in ("qwen2", "qwen3")},
    "qwen2_moe": _window_switched(_steps(_listed(_every_other_early))),
    "qwen3_moe": _window_switched(_steps(_all_sliding)),
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    **{name: _steps(_listed(_full_every(2))) for name in ("vaultgemma", "gpt_oss")},
    "cohere2": _steps(_listed(_full_every(4, named=True))),
    "olmo3": _steps(_listed(_full_every(4))),
    **{name: _steps(_gemma4) for name in ("gemma4_text", "gemma4_unified_text")},
    "gemma3n_text": _steps(_listed(_full_every(5))),
    "exaone4": _steps(_listed(_full_every(4, named=True))),
    "modernbert-decoder": _modernbert_decoder,
    "longt5": longt5_steps,
    "openai_privacy_filter": lambda config, *rest: _steps(_all_sliding)({**config, "is_causal": False}, *rest),
    "llama4_text": _steps(_listed(_llama4)),
    "gpt_neo": gpt_neo_steps,
    "modernbert": _modernbert,
    "longformer": longformer_steps,
    "led": longformer_steps,
    "big_bird": bigbird_steps,
    **{name: _dense(name) for name in (*CAUSAL, *BOTH_WAYS)},
}
