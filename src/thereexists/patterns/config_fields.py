"""What the readers of model configs share: numbers that must be there, and one step for each type of layer."""

from __future__ import annotations

from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.patterns.parts import Band, BlockBand, Rect
from thereexists.patterns.step import Step

Config = dict[str, Any]
MOST_LAYERS = 10_000
LAYERS = ("num_hidden_layers", "num_layers", "encoder_layers", "n_layer", "n_layers")


def layer_count(config: Config) -> int:
    count = positive(config, *LAYERS)
    if count > MOST_LAYERS:
        raise InvalidInput(f"The config states {count:,} layers; a model has at most {MOST_LAYERS:,}.")
    return count


def positive(config: Config, *names: str) -> int:
    for name in names:
        if name in config:
            value = config[name]
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInput(f"'{name}' in the config must be a positive integer; got {value!r}.")
            return value
    raise InvalidInput(f"The config of a {config.get('model_type')!r} model needs '{names[0]}', which is missing.")


def build_layers(config: Config, n: int, kinds: list[str], window: int | None, causal: bool) -> list[Step]:
    """One step per layer; layers of the same kind share one step object."""
    made: dict[str, Step] = {}
    for kind in kinds:
        if kind in made:
            continue
        if kind == "full_attention":
            part = Rect(range(n), range(n))
        elif kind == "sliding_attention":
            # transformers counts the token itself in a causal window, and each side apart in a two-sided one
            part = Band(1 - window_size(window), 0) if causal else Band(-window_size(window, 0), window_size(window, 0))
        elif kind == "chunked_attention":
            part = BlockBand(positive(config, "attention_chunk_size"))
        else:
            raise InvalidInput(
                f"Layer type {kind!r} has no fixed attention pattern (or is unknown here); "
                "known: full_attention, sliding_attention, chunked_attention."
            )
        made[kind] = Step(n, (part,), causal)
    return [made[kind] for kind in kinds]


def is_causal(config: Config) -> bool:
    """transformers takes null and 0 for false; a file that means it says so."""
    causal = config.get("is_causal", True)
    if type(causal) is not bool:
        raise InvalidInput(f"'is_causal' in the config must be true or false; got {causal!r}.")
    return causal


def window_size(window: int | None, least: int = 1) -> int:
    if isinstance(window, bool) or not isinstance(window, int) or window < least:
        raise InvalidInput(f"A sliding layer needs a window that is a positive integer; the config has {window!r}.")
    return window
