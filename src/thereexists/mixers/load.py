"""Checkpoints: load one for a task, and refuse those of another mixer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.core.json_files import MOST_BYTES, parse_json
from thereexists.core.regular_files import read_regular
from thereexists.mixers.config import MixerConfig


def load_model(path: str | Path, task_class: type[Any], mixer: str | None = None, **overrides: Any) -> Any:
    """The checkpoint in the folder ``path`` as a ``task_class``, for example ``MixerForSequenceClassification``.

        te.mixers.load_model("runs/a", te.mixers.MixerForMaskedLM)

    ``mixer``: what it has to be; another one is refused. ``overrides`` go to ``from_pretrained`` (``num_labels`` …).
    The weights of a new task (head, classifier, pooler) may be missing, and are then random; no others may. Only local
    files are read.

    Args:
        path: the folder of a checkpoint.
        task_class: of the model.
        mixer: which one it has to be.
        **overrides: of ``from_pretrained``.

    Returns:
        The model.

    Raises:
        InvalidInput: there is no checkpoint, or it is of another mixer.
    """
    saved = saved_config(path)
    _refuse(path, saved["mixer"], mixer)
    if not any(Path(path).glob("*.safetensors")):
        raise InvalidInput(f"{path} holds a config.json but no weights (*.safetensors); give a finished checkpoint.")
    try:
        model, loading = task_class.from_pretrained(
            str(path), local_files_only=True, output_loading_info=True, **overrides
        )
    except (SafetensorError, OSError) as error:
        raise InvalidInput(f"The weights in {path} cannot be read: {error}. Use an earlier checkpoint.") from error
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        if isinstance(error, ThereExistsError):
            raise
        why = (str(error).splitlines() or [""])[0][:200]
        raise InvalidInput(f"transformers cannot read the checkpoint in {path} ({why}); restore its config.") from error
    except RuntimeError as error:
        if "mismatched" not in str(error):
            raise
        sizes = ", ".join(overrides) or "the configuration"
        raise InvalidInput(
            f"The weights in {path} have other sizes than {sizes} asks for; leave them as saved."
        ) from error
    lost = sorted(key for key in loading["missing_keys"] if not _is_of_a_task(key))
    if lost:
        raise InvalidInput(
            f"The checkpoint in {path} is not a {task_class.__name__}: it lacks {len(lost)} weights, such as {lost[0]}."
        )
    return model


def _is_of_a_task(key: str) -> bool:
    """Weights that a new task starts from scratch: prediction head, classifier, pooler."""
    return key.startswith(("head.", "classifier.")) or "pooler." in key


def saved_config(path: str | Path) -> dict[str, Any]:
    """The ``config.json`` of a checkpoint of this library.

        te.mixers.saved_config("runs/a")

    Args:
        path: the folder of a checkpoint.

    Returns:
        Its fields.

    Raises:
        InvalidInput: there is no checkpoint of this library.
    """
    file = Path(path) / "config.json"
    if not file.is_file():
        raise InvalidInput(f"There is no checkpoint in {path}: it must be a folder with a config.json.")
    saved = parse_json(read_regular(file, MOST_BYTES, InvalidInput), str(file), InvalidInput, "valid JSON")
    kind = saved.get("model_type") if isinstance(saved, dict) else None
    if kind != MixerConfig.model_type:
        wanted = MixerConfig.model_type
        raise InvalidInput(f"{path} holds a model of type {repr(kind)[:60]}; wanted is one of type {wanted!r}.")
    mixer = saved.get("mixer", "attention")
    if not isinstance(mixer, str):
        raise InvalidInput(f"The 'mixer' in {file} must be a name; got {repr(mixer)[:60]}.")
    return {"mixer": "attention", **saved}


def refuse_another_mixer(path: Any, config: Any, mixer: str | None) -> None:
    """``from_pretrained`` with a ``config`` or ``mixer`` that is not the checkpoint's: its weights would be random."""
    wanted = mixer if mixer is not None else config.mixer if isinstance(config, MixerConfig) else None
    if wanted is not None and path is not None and Path(path).is_dir():
        _refuse(path, saved_config(path)["mixer"], wanted)


def _refuse(path: Any, found: str, wanted: str | None) -> None:
    if wanted is not None and found != wanted:
        raise InvalidInput(
            f"The checkpoint in {path} has the mixer '{found}', not '{wanted}': the weights of one do not fit the "
            f"other. Ask for '{found}', or train a model with '{wanted}'."
        )
