"""Any ``transformers`` model over a pattern: ``attn_implementation="thereexists"``.

    import transformers, thereexists.attention          # in this order it registers the name
    te.attention.register_with_transformers()           # needed only where transformers was imported afterwards
    config.thereexists_pattern = {"name": "strided", "stride": 32, "config": "union"}
    model = AutoModel.from_config(config, attn_implementation="thereexists")
    te.attention.use_pattern(model, pattern)            # or a pattern object, or a function n -> pattern

The pattern is saved with the model, as a record in its config.json; of a function only its name is, and a loaded model
asks for it. A model whose attention does not go through transformers' registry is refused by name (``driven``).
Without a pattern in any of its configs the model attends as its own mask says (``own_masks``): to everything, or to
windows, chunks and packed sequences. A pattern on the config of a whole model holds for all its parts (``asked``).
``config`` is *sequential* (layer t uses step t, the default), *union* or *multihead*. In a decoder the pattern's causal
version is used. With a cache the new tokens use the last rows of the pattern of the whole length. Cross-attention stays
dense: a pattern relates the tokens of one sequence.
"""

from __future__ import annotations

import warnings
from functools import wraps
from typing import Any

from torch import nn

from thereexists.attention.asked import hand_down, implementations, note_configs
from thereexists.attention.by_hand import look_again, needs_a_look, told
from thereexists.attention.chosen import Source, spec_of, to_store
from thereexists.attention.driven import NAME, is_attention, refuse_by_source, watch
from thereexists.attention.interface import attention_forward, mask_of_the_pattern
from thereexists.core.errors import InvalidInput
from thereexists.patterns import Step


def register_with_transformers() -> None:
    """Let transformers know ``attn_implementation="thereexists"``; harmless when repeated.

        te.attention.register_with_transformers()

    The attention function and its mask function go into its two registries. Importing ``thereexists.attention`` after
    transformers does this by itself; call it where transformers was imported afterwards.
    """
    from transformers.configuration_utils import PretrainedConfig
    from transformers.masking_utils import AttentionMaskInterface
    from transformers.modeling_utils import AttentionInterface, PreTrainedModel

    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, mask_of_the_pattern)
    _look_at_every_model(PreTrainedModel)
    _hand_patterns_down(PretrainedConfig)


def _hand_patterns_down(base: Any) -> None:
    """``AutoModelForCausalLM`` builds the text part of some models alone, from the config inside the whole one."""
    if hasattr(base, "_thereexists_handed_down"):
        return
    find = base.get_text_config

    @wraps(find)
    def get_text_config(self, *args, **kwargs):
        part = find(self, *args, **kwargs)
        hand_down(self, part)
        return part

    base.get_text_config, base._thereexists_handed_down = get_text_config, True


def _look_at_every_model(base: Any) -> None:
    """Let transformers' base class show us each model that is built for, or switched to, our implementation.

    No registry tells which model uses an entry, so three methods are wrapped: the one that settles the implementation,
    which runs before a model's parts exist and again when it is switched, the one that ends its construction, and the
    call, before which a config may have been changed by hand (``by_hand``).
    """
    if hasattr(base, "_thereexists_looked_at"):
        return
    settle, finish, call = base.get_correct_attn_implementation, base.post_init, base.__call__

    @wraps(settle)
    def get_correct_attn_implementation(self, requested_attention=None, is_init_check=False):
        patterned = getattr(self.config, "thereexists_pattern", None) is not None
        used = settle(self, NAME if requested_attention is None and patterned else requested_attention, is_init_check)
        if used == NAME:
            refuse_by_source(self)
            if not is_init_check:
                note_configs(self)
                watch(self)
        elif patterned:
            warnings.warn(
                f"The config of {type(self).__name__} holds a pattern, which attn_implementation={used!r} does not "
                f"use; load it with attn_implementation='{NAME}'.",
                stacklevel=2,
            )
            told(self, used)
        _note_implementation(self.config, used)
        return used

    @wraps(finish)
    def post_init(self, *args, **kwargs):
        finish(self, *args, **kwargs)
        if getattr(self.config, "sub_configs", None) or NAME in implementations(self.config):
            note_configs(self)  # of a model of several, a part may be switched later
        if self.config._attn_implementation == NAME:
            watch(self)

    @wraps(call)
    def __call__(self, *args, **kwargs):
        if needs_a_look(self):
            look_again(self)
        return call(self, *args, **kwargs)

    base.get_correct_attn_implementation, base.post_init = get_correct_attn_implementation, post_init
    base.__call__ = __call__
    base._thereexists_looked_at = True


def use_pattern(model: nn.Module, pattern: Source | str | dict[str, Any]) -> nn.Module:
    """Let every self-attention of ``model`` use ``pattern``: an object, a function n → pattern, or a name and sizes.

        te.attention.use_pattern(model, te.patterns.window(n=1024, window=16))

    The pattern is also written into the model's config, and so comes back with ``from_pretrained``. A function cannot
    be written down: the config then says that there was one, and a loaded model asks for it.

    Args:
        model: of transformers.
        pattern: a pattern, a function n → pattern, or a name and sizes.

    Returns:
        The model itself.

    Raises:
        InvalidInput: it has no self-attention that can be replaced, or the pattern is not one.
    """
    if isinstance(pattern, str | dict):
        spec_of(pattern)
    if isinstance(pattern, Step):
        raise InvalidInput("'use_pattern' takes a pattern, not one of its steps; give pattern.union() or the like.")
    modules = [module for module in model.modules() if is_attention(module)]
    if not modules:
        raise InvalidInput(
            f"{type(model).__name__} has no attention module that transformers' AttentionInterface would call; "
            "use te.attention.SparseAttention in a model of your own."
        )
    config = getattr(model, "config", None)
    used = getattr(config, "_attn_implementation", None)
    if used != NAME:
        raise InvalidInput(
            f"The model runs with attn_implementation={used!r} and would not use the pattern; load it with "
            f"attn_implementation='{NAME}', or call model.set_attn_implementation('{NAME}')."
        )
    refuse_by_source(model)
    note_configs(model)
    watch(model)
    stored = to_store(pattern)
    for module in modules:
        module._thereexists_pattern = pattern  # type: ignore[assignment]
    for each in (config, *(getattr(module, "config", None) for module in modules)):
        if each is not None:
            each.thereexists_pattern = stored
    _note_implementation(config, NAME)
    return model


def _note_implementation(config: Any, used: str) -> None:
    """Write the implementation beside the pattern: transformers drops it from config.json otherwise.

    A process without thereexists then refuses to load the model, instead of running it without its pattern.
    """
    if used == NAME and getattr(config, "thereexists_pattern", None) is not None:
        config.attn_implementation = NAME
    elif getattr(config, "attn_implementation", None) == NAME:
        del config.attn_implementation
