"""Any ``transformers`` model over a pattern: ``attn_implementation="thereexists"``.

    import thereexists.attention                        # registers the name, whether transformers comes before or after
    config.thereexists_pattern = {"name": "strided", "stride": 32, "config": "union"}     # saved with the model
    model = AutoModel.from_config(config, attn_implementation="thereexists")
    te.attention.use_pattern(model, pattern)            # or a pattern object, or a function n -> pattern

Without a pattern the model attends to everything. ``config`` is *sequential* (layer t uses step t, the default),
*union* or *multihead*. In a decoder the pattern's causal version is used. With a cache the new tokens use the last rows
of the pattern of the whole length. Cross-attention stays dense: a pattern relates the tokens of one sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from thereexists.attention.functional import sparse_attention
from thereexists.attention.plan import head_steps
from thereexists.errors import InvalidInput
from thereexists.fused_attention import fused_attention
from thereexists.patterns import Pattern, Step
from thereexists.patterns import build as build_pattern

NAME = "thereexists"
Source = Pattern | Callable[[int], Pattern]
_REFUSED = ("softcap", "s_aux", "position_bias")  # terms inside the softmax that the kernels do not have


def register() -> None:
    """Enter the attention function and its mask function into transformers' registries; harmless when repeated."""
    from transformers.masking_utils import AttentionMaskInterface
    from transformers.modeling_utils import AttentionInterface

    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, padding_only)


def use_pattern(model: nn.Module, pattern: Source | str | dict[str, Any]) -> nn.Module:
    """Let every self-attention of ``model`` use ``pattern``: an object, a function n → pattern, or a name and sizes."""
    if isinstance(pattern, str | dict):
        _spec(pattern)
    if isinstance(pattern, Step):
        raise InvalidInput("'use_pattern' takes a pattern, not one of its steps; give pattern.union() or the like.")
    found = False
    for module in model.modules():
        if hasattr(module, "is_causal"):
            module._thereexists_pattern = pattern  # type: ignore[assignment]
            found = True
    if not found:
        raise InvalidInput(
            f"{type(model).__name__} has no attention module that transformers' AttentionInterface would call; "
            "use te.attention.SparseAttention in a model of your own."
        )
    used = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if used != NAME:
        raise InvalidInput(
            f"The model runs with attn_implementation={used!r} and would not use the pattern; load it with "
            f"attn_implementation='{NAME}', or call model.set_attn_implementation('{NAME}')."
        )
    return model


def attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """The function that transformers calls: (batch, heads, n, d) in, (batch, n, heads, d) out."""
    for name in _REFUSED:
        if kwargs.get(name) is not None:
            raise InvalidInput(f"'{NAME}' attention has no '{name}'; load this model with attn_implementation='eager'.")
    if attention_mask is not None and attention_mask.ndim != 2:
        raise InvalidInput(
            f"'{NAME}' attention takes padding as a mask (batch, n); got one of shape {tuple(attention_mask.shape)}. "
            "Give the pattern with config.thereexists_pattern or use_pattern instead of a custom mask."
        )
    causal = bool(getattr(module, "is_causal", False) if is_causal is None else is_causal)
    q_len, n = query.shape[2], key.shape[2]
    scale = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
    cross = "Cross" in type(module).__name__ or (not causal and q_len != n)
    pad = None if attention_mask is None else attention_mask.bool()
    if cross:
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


def padding_only(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    mask_function: Any = None,
    attention_mask: Tensor | None = None,
    **kwargs: Any,
) -> Tensor | None:
    """The mask function: causality and sparsity come from the pattern, so that only padding is left to pass on."""
    from transformers import masking_utils

    plain = [getattr(masking_utils, f"{kind}_mask_function", None) for kind in ("causal", "bidirectional")]
    if mask_function is not None and mask_function not in plain:
        raise InvalidInput(
            "This model asks for a mask of its own (a sliding window, packed sequences or blocks), which is not "
            f"combined with a pattern. Give the whole pattern to a model with full attention, or do not use '{NAME}'."
        )
    if q_length != kv_length and int(q_offset) + q_length != kv_length and int(q_offset) > 0:
        raise InvalidInput("A cache with empty places (StaticCache) hides the length; use the default DynamicCache.")
    if attention_mask is None:
        return None
    attention_mask = attention_mask[:, -kv_length:].bool()
    return None if bool(attention_mask.all()) else attention_mask


def pattern_of(module: nn.Module, n: int, heads: int, causal: bool) -> Pattern | Step:
    """What this module attends to at length n."""
    source = getattr(module, "_thereexists_pattern", None)
    source = getattr(getattr(module, "config", None), "thereexists_pattern", None) if source is None else source
    layer = getattr(module, "layer_idx", None) or 0
    if source is None:
        source = "dense"
    if isinstance(source, str | dict):
        return _from_spec(_spec(source), n, heads, causal, layer)
    return _from_source(source, n, causal, layer)


def _spec(source: str | dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    spec = {"name": source} if isinstance(source, str) else dict(source)
    config = spec.setdefault("config", "sequential")
    if "name" not in spec or config not in ("sequential", "union", "multihead"):
        raise InvalidInput(
            "'thereexists_pattern' must be a pattern's name or a dictionary with 'name', its sizes and 'config' "
            f"(sequential, union or multihead); got {source!r}."
        )
    return tuple(sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in spec.items()))


@lru_cache(maxsize=256)
def _from_spec(spec: tuple[tuple[str, Any], ...], n: int, heads: int, causal: bool, layer: int) -> Pattern | Step:
    sizes = dict(spec)
    name, config = sizes.pop("name"), sizes.pop("config")
    pattern = _whole(name, tuple(sizes.items()), n, causal)
    if config == "union":
        return _union(pattern)
    if config == "multihead" and pattern.cycle > 1:
        return pattern.multihead(heads)
    return pattern.step(layer % pattern.cycle)


@lru_cache(maxsize=64)
def _whole(name: str, sizes: tuple[tuple[str, Any], ...], n: int, causal: bool) -> Pattern:
    pattern = build_pattern(name, n, **dict(sizes))
    return pattern.as_causal() if causal and not pattern.causal else pattern


@lru_cache(maxsize=64)
def _union(pattern: Pattern) -> Step:
    return pattern.union_step()  # layers share it, and with it the plan


@lru_cache(maxsize=64)
def _from_source(source: Source, n: int, causal: bool, layer: int) -> Pattern | Step:
    pattern = _called(source, n, causal)
    if pattern.heads is not None:
        return pattern
    return pattern.step(layer % pattern.cycle)


@lru_cache(maxsize=64)
def _called(source: Source, n: int, causal: bool) -> Pattern:
    pattern = source if isinstance(source, Pattern) else source(n)
    if pattern.n != n:
        raise InvalidInput(
            f"'{pattern.name}' has {pattern.n} tokens and the model got {n}; give use_pattern a function of n, such as "
            "lambda n: te.patterns.strided(n, 32)."
        )
    return pattern.as_causal() if causal and not pattern.causal else pattern


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
