"""An implementation that was written into a config by hand: looked at before the model runs.

transformers settles ``attn_implementation`` when a model is built and when it is switched, and shows us the model then
(``hugging_face``). But a model reads the name from its config at every run, and anyone may write there:

- our name, into a model that was not checked: it is checked now, and refused by name if it cannot be driven;
- another name, or a pattern, where the two contradict each other: refused, since the pattern would be dropped.

A switch with ``set_attn_implementation`` away from a pattern warns at once, and is kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from thereexists.attention.asked import KEY, note_configs
from thereexists.attention.driven import NAME, WATCHED, owner_of, refuse_by_source, watch
from thereexists.core.errors import InvalidInput

_SAID = "_thereexists_without"  # the implementation of which the user was told that it does not use the pattern


def told(model: nn.Module, used: str) -> None:
    """Remember, in ``model`` and the models in it, that a warning has said that ``used`` drops the pattern."""
    for module in model.modules():
        if hasattr(module, "set_attn_implementation"):
            setattr(module, _SAID, used)


def needs_a_look(model: Any) -> bool:
    """Cheap, and plain enough for torch.compile, since it is asked before every run."""
    config = getattr(model, "config", None)
    used = getattr(config, "_attn_implementation", None)
    if used == NAME:
        return not hasattr(model, WATCHED)
    return getattr(config, KEY, None) is not None and getattr(model, _SAID, None) != used


@torch.compiler.disable
def look_again(model: nn.Module) -> None:
    """Drive a model that was switched to us by hand, or refuse it; refuse one whose pattern would be dropped."""
    used = getattr(model.config, "_attn_implementation", None)
    if used != NAME:
        raise InvalidInput(
            f"The config of {owner_of(model)} holds a pattern, which attn_implementation={used!r} does not use, and "
            f"the two were put together by hand; call model.set_attn_implementation('{NAME}') to use the pattern, or "
            f"set '{KEY}' to None."
        )
    refuse_by_source(model)
    note_configs(model)
    watch(model)
