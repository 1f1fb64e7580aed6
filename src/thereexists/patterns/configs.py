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

from thereexists.errors import InvalidInput
from thereexists.patterns.library import bigbird, longformer
from thereexists.patterns.parts import Band, BlockBand, Rect
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step

Config = dict[str, Any]


def load_config(path: str | Path, n: int | None = None, globals: int = 1, seed: int | None = None) -> Pattern:
    """The pattern of a ``config.json`` (or of the folder that holds it); see ``from_config``."""
    path = Path(path)
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not valid JSON ({error}).") from None
    if not isinstance(config, dict):
        raise InvalidInput(f"{path} must hold one JSON object, a model config; it holds a {type(config).__name__}.")
    return from_config(config, n, globals, seed)


def from_config(config: Config, n: int | None = None, globals: int = 1, seed: int | None = None) -> Pattern:
    """The pattern of a model config, as a dictionary.

    ``n`` defaults to ``max_position_embeddings``. ``globals`` is the number of leading global tokens of Longformer and
    LED, which their configs leave to the caller. BigBird's random blocks exist in training only: ``seed`` adds them.
    """
    config = _text_part(config)
    family = config.get("model_type")
    if family not in FAMILIES:
        raise InvalidInput(
            f"The config's model_type {family!r} is not one whose attention pattern is known here. "
            f"Known: {', '.join(sorted(FAMILIES))}. Build the pattern with te.patterns.from_mask or from_csr instead."
        )
    n = _positive(config, "max_position_embeddings", "max_encoder_position_embeddings") if n is None else n
    if n < 1:
        raise InvalidInput(f"'n' must be a positive integer; got {n}.")
    steps = FAMILIES[family](config, n, globals, seed)
    cycle = next(p for p in range(1, len(steps) + 1) if all(a is b for a, b in zip(steps[p:], steps, strict=False)))
    parameters = {"model_type": family, "layers": len(steps)}
    return Pattern(family, tuple(steps[:cycle]), parameters, layers=len(steps))


def _text_part(config: Config) -> Config:
    """Multimodal configs nest the language model's."""
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) and "layer_types" not in config and "model_type" in inner else config


def _layers(config: Config) -> int:
    return _positive(config, "num_hidden_layers", "num_layers", "encoder_layers")


def _positive(config: Config, *names: str) -> int:
    for name in names:
        if name in config:
            value = config[name]
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInput(f"'{name}' in the config must be a positive integer; got {value!r}.")
            return value
    raise InvalidInput(f"The config of a {config.get('model_type')!r} model needs '{names[0]}', which is missing.")


def _build(config: Config, n: int, kinds: list[str], window: int | None, causal: bool) -> list[Step]:
    """One step per layer; layers of the same kind share one step object."""
    made: dict[str, Step] = {}
    for kind in kinds:
        if kind in made:
            continue
        if kind == "full_attention":
            part = Rect(range(n), range(n))
        elif kind == "sliding_attention":
            # transformers counts the token itself in a causal window, and each side apart in a two-sided one
            reach = _window(window)
            part = Band(1 - reach, 0) if causal else Band(-reach, reach)
        elif kind == "chunked_attention":
            part = BlockBand(_positive(config, "attention_chunk_size"))
        else:
            raise InvalidInput(
                f"Layer type {kind!r} has no fixed attention pattern (or is unknown here); "
                "known: full_attention, sliding_attention, chunked_attention."
            )
        made[kind] = Step(n, (part,), causal)
    return [made[kind] for kind in kinds]


def _window(window: int | None) -> int:
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise InvalidInput(f"A sliding layer needs a window that is a positive integer; the config has {window!r}.")
    return window


def _by_layer_types(
    default: Callable[[Config, int], list[str]],
) -> Callable[[Config, int, int, int | None], list[Step]]:
    """Causal models: ``layer_types`` when the file has it, the family's own rule when it was written before that."""

    def steps(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
        count = _layers(config)
        kinds = config.get("layer_types") or default(config, count)
        if len(kinds) != count:
            raise InvalidInput(f"'layer_types' must name each of the {count} layers; it has {len(kinds)} entries.")
        return _build(config, n, kinds, config.get("sliding_window"), causal=True)

    return steps


def _all_sliding(config: Config, count: int) -> list[str]:
    return ["sliding_attention" if config.get("sliding_window") else "full_attention"] * count


def _full_every(period: int) -> Callable[[Config, int], list[str]]:
    """Layers ``period``, 2·``period``, … (from 1) are full, the others slide."""

    def kinds(config: Config, count: int) -> list[str]:
        every = config.get("sliding_window_pattern", period)
        return ["sliding_attention" if (i + 1) % every else "full_attention" for i in range(count)]

    return kinds


def _qwen2(config: Config, count: int) -> list[str]:
    """Sliding only where ``use_sliding_window`` is set, from layer ``max_window_layers`` on."""
    first = config.get("max_window_layers", 28) if config.get("use_sliding_window") else count
    first = first if config.get("sliding_window") is not None else count
    return ["sliding_attention" if i >= first else "full_attention" for i in range(count)]


def _llama4(config: Config, count: int) -> list[str]:
    interval = config.get("no_rope_layer_interval", 4)
    rope = config.get("no_rope_layers") or [int((i + 1) % interval != 0) for i in range(count)]
    return ["chunked_attention" if uses else "full_attention" for uses in rope]


def _gpt_neo(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    names = {"global": "full_attention", "local": "sliding_attention"}
    try:
        kinds = [names[kind] for group, times in config["attention_types"] for _ in range(times) for kind in group]
    except (KeyError, TypeError, ValueError):
        raise InvalidInput("A gpt_neo config needs 'attention_types', such as [[['global', 'local'], 12]].") from None
    return _build(config, n, kinds, config.get("window_size", 256), causal=True)


def _modernbert(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    count, every = _layers(config), config.get("global_attn_every_n_layers", 3)
    kinds = config.get("layer_types") or ["sliding_attention" if i % every else "full_attention" for i in range(count)]
    return _build(config, n, kinds, config.get("local_attention", 128) // 2, causal=False)


def _longformer(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    """``attention_window`` counts both sides, one number or one per layer."""
    windows = config.get("attention_window", 512)
    windows = [windows] * _layers(config) if isinstance(windows, int) else windows
    for w in windows:
        if not isinstance(w, int) or w < 2 or w % 2:
            raise InvalidInput(f"'attention_window' must hold positive even integers; got {w!r}.")
    made = {w: longformer(n, w // 2, globals).steps[0] for w in set(windows)}
    return [made[w] for w in windows]


def _bigbird(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    count, block = _layers(config), config.get("block_size", 64)
    if config.get("attention_type", "block_sparse") == "original_full":
        return [Step(n, (Rect(range(n), range(n)),))] * count
    if n % block:
        raise InvalidInput(f"BigBird pads to a multiple of its block_size {block}; got n = {n}. Choose a multiple.")
    most = (5 + 2 * config.get("num_random_blocks", 3)) * block
    if n <= most:
        raise InvalidInput(
            f"BigBird switches to full attention up to n = {most} for this config; got n = {n}. Choose a larger n."
        )
    if seed is None:
        return [bigbird(n, block, 0).steps[0]] * count
    return [bigbird(n, block, config.get("num_random_blocks", 3), seed + t).steps[0] for t in range(count)]


FAMILIES: dict[str, Callable[[Config, int, int, int | None], list[Step]]] = {
    **{
        name: _by_layer_types(_all_sliding)
        for name in ("mistral", "mixtral", "ministral", "phi3", "phimoe", "starcoder2")
    },
    **{name: _by_layer_types(_qwen2) for name in ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe")},
    **{name: _by_layer_types(_full_every(2)) for name in ("gemma2", "vaultgemma", "gpt_oss")},
    **{name: _by_layer_types(_full_every(6)) for name in ("gemma3", "gemma3_text")},
    **{name: _by_layer_types(_full_every(4)) for name in ("cohere2", "olmo3")},
    "llama4_text": _by_layer_types(_llama4),
    "gpt_neo": _gpt_neo,
    "modernbert": _modernbert,
    "longformer": _longformer,
    "led": _longformer,
    "big_bird": _bigbird,
}
