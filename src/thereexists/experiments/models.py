"""From the ``model`` part of the settings to a mixer configuration, and from a saved run back to its parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thereexists.core.errors import InvalidInput
from thereexists.experiments.settings import Settings

if TYPE_CHECKING:
    from thereexists.mixers import MixerConfig


def build_config(settings: Settings, **fields: Any) -> MixerConfig:
    """The configuration that the settings describe; ``fields`` are what the task knows (vocabulary, labels)."""
    from thereexists.mixers import mixer_config

    model = dict(settings.model)
    size, mixer = model.pop("size", "mini"), model.pop("mixer", "attention")
    return mixer_config(size, mixer, **{"max_position_embeddings": settings.length, **fields, **model})


def saved_config(folder: Path, settings: Settings) -> dict[str, Any]:
    """The ``config.json`` of a trained run; a mixer that the settings also name must be the same one."""
    from thereexists.experiments.files import read_json

    if not (folder / "config.json").is_file() or not (folder / "model.safetensors").is_file():
        raise InvalidInput(f"There is no trained run at {folder} (no config.json and model.safetensors there).")
    config = read_json(folder / "config.json")
    for name in ("mixer", "pattern", "pattern_config"):
        wanted = settings.model.get(name)
        if wanted is not None and config.get(name) != wanted:
            raise InvalidInput(
                f"{folder} was trained with {name} {config.get(name)!r}, and {wanted!r} is asked for; leave --{name} "
                "out, or start from a run that has it."
            )
    return config


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Reading and writing weights without the bars and hints of transformers."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
