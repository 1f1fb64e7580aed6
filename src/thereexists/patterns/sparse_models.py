"""Models with a sparse pattern of their own, from their ``config.json``: GPT-Neo, Longformer, BigBird, LongT5."""

from __future__ import annotations

from thereexists.core.errors import InvalidInput
from thereexists.patterns.config_fields import MOST_LAYERS, Config, build_layers, layer_count, window_size
from thereexists.patterns.library import bigbird, longformer
from thereexists.patterns.parts import Rect
from thereexists.patterns.step import Step


def gpt_neo_steps(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    names = {"global": "full_attention", "local": "sliding_attention"}
    try:
        if sum(len(group) * times for group, times in config["attention_types"]) > MOST_LAYERS:
            raise InvalidInput(f"'attention_types' names more than {MOST_LAYERS:,} layers; a model has fewer.")
        named = [kind for group, times in config["attention_types"] for _ in range(times) for kind in group]
        kinds = [names[kind] for kind in named]
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError):
        raise InvalidInput("A gpt_neo config needs 'attention_types', such as [[['global', 'local'], 12]].") from None
    if config.get("attention_layers", named) != named:  # transformers saves both, and computes by this one
        raise InvalidInput("'attention_types' and 'attention_layers' must name the same layers; keep the right one.")
    if "num_layers" in config and config["num_layers"] != len(kinds):
        raise InvalidInput(f"'attention_types' must name each of the {config['num_layers']} layers; got {len(kinds)}.")
    return build_layers(config, n, kinds, config.get("window_size", 256), causal=True)


def longformer_steps(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    """``attention_window`` counts both sides, one number or one per layer."""
    windows = config.get("attention_window", 512)
    windows = [windows] * layer_count(config) if isinstance(windows, int) else windows
    if not isinstance(windows, list) or len(windows) != layer_count(config):
        raise InvalidInput(f"'attention_window' must be one number or one for each layer; got {windows!r}.")
    for w in windows:
        if not isinstance(w, int) or w < 2 or w % 2:
            raise InvalidInput(f"'attention_window' must hold positive even integers; got {w!r}.")
    made = {w: longformer(n, w // 2, globals).steps[0] for w in set(windows)}
    return [made[w] for w in windows]


def bigbird_steps(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    count, block = layer_count(config), config.get("block_size", 64)
    if config.get("attention_type", "block_sparse") == "original_full" or config.get("add_cross_attention"):
        # only here does transformers look at is_decoder: a decoder with blocks is not causal
        return [Step(n, (Rect(range(n), range(n)),), causal=bool(config.get("is_decoder")))] * count
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


def longt5_steps(config: Config, n: int, globals: int, seed: int | None) -> list[Step]:
    """The encoder: ``local_radius`` tokens to either side."""
    if config.get("is_decoder"):
        raise InvalidInput("A LongT5 decoder is dense, whatever its 'local_radius': only the encoder is read.")
    if config.get("encoder_attention_type", "local") != "local":
        raise InvalidInput(
            "LongT5 with 'transient-global' attention also sees averages of blocks, which are not tokens."
        )
    reach = window_size(config.get("local_radius", 127), 0)
    return build_layers(config, n, ["sliding_attention"] * layer_count(config), reach, causal=False)
