"""Which pattern was a module asked to use? Its own config's, or that of a model around it; never silently none.

A model of several models (CLIP, LLaVA, an encoder with a decoder) has a config for each part inside a config for the
whole, and an attention module knows only the config of its part. So each module notes the configs around it, innermost
first, when its model is built or switched. Then, at every forward:

- one pattern in these configs, or the same one in several: it is used;
- two that differ: refused, since either of them would be dropped;
- none here, and one in another part of the model: refused, since nothing says that this part is dense;
- none anywhere in the model: None, which the caller documents as dense attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from thereexists.core.errors import InvalidInput

KEY = "thereexists_pattern"


def pattern_asked(module: nn.Module) -> Any:
    """What the configs of ``module`` and of the models around it say; None where all are silent."""
    configs = _distinct((getattr(module, "config", None), *getattr(module, "_thereexists_around", ())))
    given = [config for config in configs if getattr(config, KEY, None) is not None]
    if given:
        asked = getattr(given[0], KEY)
        for config in given[1:]:
            other = getattr(config, KEY)
            if other is not asked and not _known_equal(module, asked, other):
                raise InvalidInput(
                    f"{type(config).__name__} and {type(given[0]).__name__} inside it ask for different patterns; set "
                    f"'{KEY}' of one of them to None, or call te.attention.use_pattern(model, pattern)."
                )
        return asked
    elsewhere = next((c for c in _tree(configs[-1]) if getattr(c, KEY, None) is not None), None) if configs else None
    if elsewhere is not None:
        raise InvalidInput(
            f"The part of the model with the config {type(configs[0]).__name__} has no pattern, while "
            f"{type(elsewhere).__name__} has one; set '{KEY}' of that config too, 'dense' for full attention, or only "
            f"that of {type(configs[-1]).__name__}, which holds for all parts."
        )
    return None


def note_configs(model: nn.Module) -> None:
    """Note in every module below ``model`` that has a config or attends, which configs are around it."""
    _note(model, ())


def hand_down(whole: Any, part: Any) -> None:
    """The pattern of a whole is that of a part which is taken out of it, if the part does not name its own."""
    asked = getattr(whole, KEY, None)
    if asked is not None and part is not whole and getattr(part, KEY, None) is None:
        setattr(part, KEY, asked)


def implementations(config: Any) -> set[Any]:
    """The attention implementations of a config and of the configs in it."""
    return {getattr(each, "_attn_implementation", None) for each in _tree(config)}


def _note(module: nn.Module, around: tuple[Any, ...]) -> None:
    if hasattr(module, "set_attn_implementation"):  # a whole model
        around = _distinct((getattr(module, "config", None), *around))
    elif around:
        # A part that is looked at again by itself stays inside what was noted before.
        known = getattr(module, "_thereexists_around", ())
        place = next((i for i, config in enumerate(known) if config is around[-1]), len(known))
        module._thereexists_around = (*around, *known[place + 1 :])  # type: ignore[assignment]
    for child in module.children():
        _note(child, around)


def _tree(config: Any) -> Iterator[Any]:
    yield config
    for name in getattr(config, "sub_configs", None) or ():
        if (inner := getattr(config, name, None)) is not None:
            yield from _tree(inner)
    for name in ("encoder", "decoder"):  # EncoderDecoderConfig and its kind do not list theirs everywhere
        inner = getattr(config, name, None)
        if name not in (getattr(config, "sub_configs", None) or ()) and hasattr(inner, "model_type"):
            yield from _tree(inner)


def _distinct(configs: tuple[Any, ...]) -> tuple[Any, ...]:
    kept: list[Any] = []
    for config in configs:
        if config is not None and all(config is not other for other in kept):
            kept.append(config)
    return tuple(kept)


def _known_equal(module: nn.Module, one: Any, other: Any) -> bool:
    """Whether two records are equal; asked once for each pair, since a stored pattern may list many tokens."""
    known = getattr(module, "_thereexists_equal", None)
    if known is None or known[0] is not one or known[1] is not other:
        known = (one, other, one == other)
        module._thereexists_equal = known  # type: ignore[assignment]
    return bool(known[2])
