"""Any ``transformers`` model over a pattern: ``attn_implementation="thereexists"``.

    import transformers, thereexists.attention          # in this order it registers the name
    te.attention.register_with_transformers()           # needed only where transformers was imported afterwards
    config.thereexists_pattern = {"name": "strided", "stride": 32, "config": "union"}
    model = AutoModel.from_config(config, attn_implementation="thereexists")
    te.attention.use_pattern(model, pattern)            # or a pattern object, or a function n -> pattern

The pattern is saved with the model, as a record in its config.json; of a function only its name is, and a loaded model
asks for it. A model whose attention does not go through transformers' registry is refused by name (``driven``).
Without a pattern in any of its configs the model attends to everything; one on the config of a whole model holds for
all its parts (``asked``). ``config`` is *sequential* (layer t uses step t, the default), *union* or *multihead*. In a
decoder the pattern's causal version is used. With a cache the new tokens use the last rows of the pattern of the whole
length. Cross-attention stays dense: a pattern relates the tokens of one sequence.
"""

from __future__ import annotations

import math
import warnings
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn

from thereexists.attention.asked import hand_down, implementations, note_configs
from thereexists.attention.by_hand import look_again, needs_a_look, told
from thereexists.attention.chosen import Source, asks_for_a_pattern, pattern_of, spec_of, to_store
from thereexists.attention.driven import (
    NAME,
    is_attention,
    is_cross,
    owner_of,
    owner_of_config,
    ran,
    refuse_by_source,
    watch,
)
from thereexists.attention.functional import sparse_attention
from thereexists.attention.pattern_mask import PatternMask
from thereexists.attention.ways import head_steps
from thereexists.core.errors import InvalidInput
from thereexists.core.fused_attention import fused_attention
from thereexists.patterns import Pattern, Step

# What models pass on beside the tensors and does not change which keys a query sees, or how it weighs them: what to
# return, how to count a loss, whether to cache, and positions, which rotate queries and keys before we see them.
# Anything else could (softcap, s_aux, position_bias, indices, block_indices, cu_seq_lens_q, …), and is refused.
_HARMLESS = frozenset(
    [
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "return_dict",
        "num_items_in_batch",
        "logits_to_keep",
        "use_cache",
        "cache_position",
        "position_ids",
        "deterministic",
    ]
)


def register_with_transformers() -> None:
    """Let transformers know ``attn_implementation="thereexists"``; harmless when repeated.

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

    The pattern is also written into the model's config, and so comes back with ``from_pretrained``. A function cannot
    be written down: the config then says that there was one, and a loaded model asks for it.
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


def attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: PatternMask | Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """The function that transformers calls: (batch, heads, n, d) in, (batch, n, heads, d) out."""
    ran(module)
    for name, given in kwargs.items():
        if given is not None and name not in _HARMLESS:
            raise InvalidInput(
                f"'{NAME}' attention has no '{name}', which {owner_of(module)} uses; load it with "
                "attn_implementation='eager'."
            )
    causal = bool(getattr(module, "is_causal", False) if is_causal is None else is_causal)
    pad = attention_mask.padding if isinstance(attention_mask, PatternMask) else attention_mask
    if isinstance(attention_mask, PatternMask):  # it knows better than the module, as a mask does in eager attention
        causal = attention_mask.causal
        if causal and attention_mask.rows == query.shape[2] and attention_mask.keys < key.shape[2]:
            key, value = (x[:, :, : attention_mask.keys] for x in (key, value))  # the rest of the cache is empty
    if pad is not None and pad.ndim != 2:
        raise InvalidInput(
            f"'{NAME}' attention takes padding as a mask (batch, n); {owner_of(module)} gave one of shape "
            f"{tuple(pad.shape)}. Give the pattern with config.thereexists_pattern or use_pattern instead of a "
            "custom mask."
        )
    if value.shape[-1] != key.shape[-1]:
        raise InvalidInput(
            f"'{NAME}' attention needs values of the size of the keys; {owner_of(module)} has {value.shape[-1]} and "
            f"{key.shape[-1]}. Load it with attn_implementation='eager'."
        )
    q_len, n = query.shape[2], key.shape[2]
    scale = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
    pad = None if pad is None else pad.to(query.device, torch.bool)
    if not causal and q_len != n and not is_cross(module) and asks_for_a_pattern(module):
        raise InvalidInput(
            f"{owner_of(module)} attends from {q_len} tokens to {n} without being causal: with a cache (give "
            "use_cache=False), or to another sequence. A pattern over one sequence does not say what that is; set the "
            "pattern of that part to 'dense', or load it with attn_implementation='eager'."
        )
    if is_cross(module) or (not causal and q_len != n):
        mask = None if pad is None else pad[:, None, None, :]
        out = _dense(query, key, value, mask, scale, dropout)
    elif q_len == n:
        pattern = pattern_of(module, n, query.shape[1], causal)
        out = sparse_attention(query, key, value, pattern, scale=scale, key_padding_mask=pad, dropout_p=dropout)
    else:
        mask = _last_rows(pattern_of(module, n, query.shape[1], causal), n - q_len, query)
        mask = mask if pad is None else mask & pad[:, None, None, :]
        out = _dense(query, key, value, mask, scale, dropout)
    return out.transpose(1, 2).contiguous(), None


def mask_of_the_pattern(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: int = 0,
    mask_function: Any = None,
    attention_mask: PatternMask | Tensor | None = None,
    config: Any = None,
    **kwargs: Any,
) -> PatternMask:
    """The mask function: sparsity comes from the pattern, so that causality and padding are left to pass on.

    Queries stand at ``q_offset …``. A causal query sees nothing behind the last of them, where a cache of fixed size
    (StaticCache) has empty places: those keys do not belong to the sequence, and the pattern has q_offset + q_length
    tokens whatever the size of the cache.
    """
    from transformers import masking_utils

    if isinstance(attention_mask, PatternMask):  # made already, in ``generate``
        return attention_mask
    plain = {masking_utils.causal_mask_function: True, masking_utils.bidirectional_mask_function: False}
    if mask_function not in plain or kv_offset:
        raise InvalidInput(
            f"{owner_of_config(config)} asks for a mask of its own (a sliding window, packed sequences or blocks), "
            f"which is not combined with a pattern. Give the whole pattern to a model with full attention, or do not "
            f"use '{NAME}'."
        )
    causal, first = plain[mask_function], int(q_offset)
    keys = first + q_length if causal else kv_length
    if keys > kv_length:
        raise InvalidInput(
            f"{owner_of_config(config)} got {q_length} tokens at place {first} and a cache of {kv_length}; use a "
            "cache that holds the whole sequence, such as the default DynamicCache."
        )
    padding = None
    if attention_mask is not None and not bool(attention_mask.all()):
        padding = attention_mask[:, :keys].bool()
        padding = torch.nn.functional.pad(
            padding, (0, keys - padding.shape[1])
        )  # as transformers: unmentioned is hidden
    return PatternMask(owner_of_config(config), causal, batch_size, q_length, keys, first, padding)


def _note_implementation(config: Any, used: str) -> None:
    """Write the implementation beside the pattern: transformers drops it from config.json otherwise.

    A process without thereexists then refuses to load the model, instead of running it without its pattern.
    """
    if used == NAME and getattr(config, "thereexists_pattern", None) is not None:
        config.attn_implementation = NAME
    elif getattr(config, "attn_implementation", None) == NAME:
        del config.attn_implementation


def _last_rows(pattern: Pattern | Step, first: int, query: Tensor) -> Tensor:
    """Rows ``first …`` of the pattern as a mask (1, heads or 1, rows, n): rows × n, never n × n."""
    heads, n = query.shape[1], pattern.n
    row = torch.arange(first, n, device=query.device)[:, None]
    col = torch.arange(n, device=query.device)[None, :]
    masks = []
    for span, step in head_steps(pattern):
        mask = step.contains(row.expand(-1, n), col.expand(len(row), -1))
        masks.append(mask.expand(1 if span is None else span[1] - span[0], -1, -1))
    return torch.cat(masks)[None] if len(masks) > 1 else masks[0][None].expand(1, heads, -1, -1)


def _dense(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, dropout: float) -> Tensor:
    return fused_attention(q, k, v, mask, scale=scale, dropout_p=dropout, enable_gqa=q.shape[1] != k.shape[1])
