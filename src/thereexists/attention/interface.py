"""The two functions that transformers calls for ``attn_implementation="thereexists"``: the attention, and its mask.

Which keys a query sees comes from the pattern that was given (``chosen``) or from the model's own mask
(``own_masks``), never from both: a pattern for a model that has windows of its own is refused. How it weighs them comes
with the call: the scale, a soft cap (Gemma 2), a sink (gpt-oss). Anything else that a model hands over is refused.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from thereexists.attention.by_rows import Rows, attention_by_rows, nobody_without
from thereexists.attention.call_options import CallOptions
from thereexists.attention.chosen import asks_for_a_pattern, pattern_of
from thereexists.attention.driven import NAME, is_cross, owner_of, owner_of_config, ran
from thereexists.attention.functional import sparse_attention
from thereexists.attention.own_masks import Own, read
from thereexists.attention.pattern_mask import PatternMask
from thereexists.core.errors import InvalidInput
from thereexists.core.fused_attention import fused_attention

# What models pass on beside the tensors and does not change which keys a query sees, or how it weighs them: what to
# return, how to count a loss, whether to cache, and positions, which rotate queries and keys before we see them.
# Anything else could (position_bias, indices, block_indices, cu_seq_lens_q, …), and is refused.
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
    scores = {"softcap": kwargs.pop("softcap", None), "sinks": kwargs.pop("s_aux", None)}
    scores = {name: given for name, given in scores.items() if given is not None}
    mask, pad = (
        (attention_mask, attention_mask.padding) if isinstance(attention_mask, PatternMask) else (None, attention_mask)
    )
    if pad is not None and pad.ndim != 2:
        _refuse_pairs(module, pad, kwargs.get("sliding_window") is not None)
    windowed = mask is not None  # the window is in the mask, and only there
    for name, given in kwargs.items():
        if given is not None and name not in _HARMLESS and not (windowed and name == "sliding_window"):
            raise InvalidInput(
                f"'{NAME}' attention has no '{name}', which {owner_of(module)} uses; load it with "
                "attn_implementation='eager'."
            )
    causal = bool(getattr(module, "is_causal", False) if is_causal is None else is_causal)
    cross, patterned = is_cross(module), asks_for_a_pattern(module)
    if mask is not None:  # it knows better than the module, as a mask does in eager attention
        causal = mask.causal
        if not cross and (causal or not mask.plain):
            _refuse_other_sizes(module, mask, query.shape[2], key.shape[2])
        if causal and not cross:
            key, value = (x[:, :, : mask.keys] for x in (key, value))  # the rest of the cache is empty
    q_len, n = query.shape[2], key.shape[2]
    pad = None if pad is None else pad.to(query.device, torch.bool)
    if patterned and mask is not None and not cross and (not mask.plain or mask.start):
        _refuse_both(module)
    if not causal and q_len != n and not cross and patterned:
        raise InvalidInput(
            f"{owner_of(module)} attends from {q_len} tokens to {n} without being causal: with a cache (give "
            "use_cache=False), or to another sequence. A pattern over one sequence says nothing about that; set the "
            "pattern of that part to 'dense', or load it with attn_implementation='eager'."
        )
    scale = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
    how = {"scale": scale, "dropout_p": dropout, **scores}
    if cross and mask is not None and not mask.plain:
        raise InvalidInput(f"{owner_of(module)} has a mask of its own for another sequence; load it with 'eager'.")
    if mask is not None and mask.pairs is not None:
        out = _over_pairs(query, key, value, mask.pairs, None, how)
    elif cross or (not causal and q_len != n):
        out = _over_pairs(query, key, value, None, pad, how)
    elif patterned or mask is None or mask.plain:
        pattern = pattern_of(module, n, query.shape[1], causal)
        out = sparse_attention(query, key, value, pattern, key_padding_mask=pad, **how)
    else:
        out = _over_own(query, key, value, mask, pad, how)
    return out.transpose(1, 2).contiguous(), None


def _refuse_pairs(module: nn.Module, mask: Tensor, windowed: bool) -> NoReturn:
    """A mask of pairs, where padding is wanted; a pattern in its place is nothing for a model with windows."""
    instead = (
        "Give padding alone, or load the model with attn_implementation='eager' for a custom mask."
        if windowed
        else "Give the pattern with config.thereexists_pattern or use_pattern instead of a custom mask."
    )
    raise InvalidInput(
        f"'{NAME}' attention takes padding as a mask (batch, n); {owner_of(module)} gave one of shape "
        f"{tuple(mask.shape)}. {instead}"
    )


def _refuse_other_sizes(module: nn.Module, mask: PatternMask, q_len: int, n: int) -> None:
    """A mask says where its keys stand only for as many of them as it was made for: others may be any tokens."""
    if (q_len, n) != (mask.rows, mask.held):
        raise InvalidInput(
            f"{owner_of(module)} attends from {q_len} tokens to {n} with a mask for {mask.rows} and {mask.held}, so "
            "which tokens are meant is not known: its cache gives other keys than it announced (with a window of one "
            "token transformers' own does). Give use_cache=False."
        )


def _refuse_both(module: nn.Module) -> NoReturn:
    """A mask of the model's own, which says where its queries stand, and a pattern."""
    raise InvalidInput(
        f"{owner_of(module)} asks for a mask of its own (a sliding window, packed sequences or blocks), which is "
        "not combined with a pattern. Use the pattern in a model with full attention, and none in this one."
    )


def _over_own(q: Tensor, k: Tensor, v: Tensor, mask: PatternMask, pad: Tensor | None, how: dict[str, Any]) -> Tensor:
    """Each group of sequences over its own step: chunks count from the first real token, packings differ."""
    groups = mask.own.groups(mask.batch, mask.start, k.shape[2])
    if len(groups) == 1:
        return sparse_attention(q, k, v, groups[0][1], key_padding_mask=pad, **how)
    out = q.new_empty(*q.shape[:3], v.shape[-1])
    for members, step in groups:
        mine = torch.tensor(members, device=q.device)
        own = None if pad is None else pad[mine]
        out = out.index_copy(0, mine, sparse_attention(q[mine], k[mine], v[mine], step, key_padding_mask=own, **how))
    return out


def _over_pairs(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, pad: Tensor | None, how: dict[str, Any]
) -> Tensor:
    """Everything, or the pairs of a mask (batch, 1, rows, keys)."""
    if how["dropout_p"] > 0 and "softcap" not in how and "sinks" not in how:  # torch drops pairs by itself, and faster
        seen, empty = (mask if pad is None else pad[:, None, None, :]), None
        if seen is not None:
            seen, empty = nobody_without(seen)
        out = fused_attention(q, k, v, seen, enable_gqa=q.shape[1] != k.shape[1], **how)
        return out if empty is None else out.masked_fill(empty[..., None], 0.0)
    seed = int(torch.randint(2**31 - 1, (1,))) if how["dropout_p"] > 0 else 0
    options = CallOptions(how["scale"], pad, how["dropout_p"], seed, how.get("softcap") or 0.0)
    rows = Rows(k.shape[2], q.shape[2], mask=mask)
    return attention_by_rows(q, k, v, rows, options, how.get("sinks"), False)[0]


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
    """The mask function: what the model says about positions, and its padding, for our attention to read.

    Queries stand at ``q_offset …``. A causal query sees nothing behind the last of them, where a cache of fixed size
    (StaticCache) has empty places: those keys do not belong to the sequence, which has q_offset + q_length tokens
    whatever the size of the cache. Of these a cache may have dropped the first ``kv_offset``.
    """
    import transformers.masking_utils as masking_utils

    if isinstance(attention_mask, PatternMask):  # made already, in ``generate``
        return attention_mask
    plain = {masking_utils.causal_mask_function: _CAUSAL, masking_utils.bidirectional_mask_function: _BOTH_WAYS}
    own = plain.get(mask_function) or read(mask_function)
    first, start, owner = int(q_offset), int(kv_offset), owner_of_config(config)
    if own is None or (not own.causal and not own.plain and q_length != kv_length):  # not understood: pair by pair
        asked = {"q_offset": q_offset, "kv_offset": kv_offset, "mask_function": mask_function}
        kept = {name: kwargs[name] for name in ("use_vmap", "device") if name in kwargs}
        pairs = masking_utils.sdpa_mask(
            batch_size, q_length, kv_length, attention_mask=attention_mask, allow_is_causal_skip=False, **asked, **kept
        )
        return PatternMask(owner, _BOTH_WAYS, batch_size, q_length, kv_length, kv_length, start, None, pairs)
    keys = first + q_length - start if own.causal else kv_length
    if keys > kv_length:
        raise InvalidInput(
            f"{owner} got {q_length} tokens at place {first} and a cache of {kv_length} from place {start} on; use a "
            "cache that holds the whole sequence, such as the default DynamicCache."
        )
    padding = None
    if attention_mask is not None:
        given = attention_mask[:, start : start + keys].bool()
        unmentioned = keys - given.shape[1]  # transformers hides these
        if unmentioned or not bool(given.all()):
            padding = torch.nn.functional.pad(given, (0, unmentioned))
    return PatternMask(owner, own, batch_size, q_length, keys, kv_length, start, padding)


_CAUSAL, _BOTH_WAYS = Own(causal=True), Own()
