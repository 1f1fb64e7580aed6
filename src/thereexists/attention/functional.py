"""``sparse_attention(q, k, v, pattern)``: exact attention in which row k looks at the keys of ``pattern`` only."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from thereexists.attention.operator import Attention, Weighting, attention_op, explained, handle_of, known, mask_for
from thereexists.core.constant_result import constant_result
from thereexists.core.errors import InvalidInput
from thereexists.core.fused_attention import fused_attention
from thereexists.core.shapes import Bool, Float, Int
from thereexists.patterns import Pattern, Step

_CUDA_TYPES = (torch.float16, torch.bfloat16, torch.float32)


class Dropout(NamedTuple):
    """Dropout of attention weights; with a ``seed`` of one's own, the same pairs are dropped again."""

    p: float = 0.0
    seed: int | None = None


class Held(NamedTuple):
    """A pattern as ``torch.compile`` can hold it (as it can a tuple): its number, its tokens, the heads it is for."""

    handle: int
    n: int
    heads: int | None


def sparse_attention(
    q: Float[Tensor, "batch heads n d"],
    k: Float[Tensor, "batch kv_heads n d"],
    v: Float[Tensor, "batch kv_heads n d"],
    pattern: Pattern | Step,
    *,
    scale: float | None = None,
    key_padding_mask: Bool[Tensor, "batch n"] | None = None,
    lengths: Int[Tensor, " batch"] | None = None,
    dropout_p: float | Dropout = 0.0,
) -> Float[Tensor, "batch heads n d"]:
    """Softmax attention over ``pattern``, forward and backward exact up to rounding.

    ``pattern`` is a one-step pattern (``p.step(0)``, ``p.union()``, or one with a cycle of 1) or ``p.multihead(h)``.
    ``scale`` defaults to 1/√d. ``key_padding_mask`` is True at real tokens; ``lengths`` says the same by a number per
    sequence. A row without keys, or whose keys are all padding, gives 0. ``kv_heads`` may divide ``heads`` (grouped
    queries). ``dropout_p`` drops attention weights; ``Dropout(p, seed)`` drops the same ones again.
    """
    if not isinstance(pattern, Pattern | Step):
        raise InvalidInput(
            f"'pattern' must be a pattern or a step of thereexists.patterns; got {type(pattern).__name__}."
        )
    noted = getattr(pattern, "_attention_handle", None) if torch.compiler.is_compiling() else None
    handle = noted or handle_of(pattern)
    heads = sum(pattern.heads) if isinstance(pattern, Pattern) and pattern.heads is not None else None
    pad = padding(q, key_padding_mask, lengths)
    dropout = dropout_p if isinstance(dropout_p, Dropout) else Dropout(dropout_p)
    return attend(q, k, v, Held(handle, pattern.n, heads), scale, pad, dropout)


def attend(
    q: Tensor, k: Tensor, v: Tensor, held: Held, scale: float | None, pad: Tensor | None, dropout: Dropout
) -> Tensor:
    """The function behind ``sparse_attention``."""
    (handle, n, heads), (dropout_p, seed) = held, dropout
    if seed is not None and not 0 <= seed < 2**63:
        raise InvalidInput(f"The seed of dropout must be a whole number from 0 to 2^63 - 1; got {seed} instead.")
    _check(q, k, v, n, heads, dropout_p, scale)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if scale <= 0:  # torch's causal kernel hides keys by −∞ before it scales
        q, scale = q * scale, 1.0
    if k.shape[1] != q.shape[1]:
        times = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
    drops = True if dropout_p > 0 else False  # noqa: SIM210  (a plain bool, also while compiling)
    own = pad is not None or (drops and seed is not None)
    whole = None if own else _stock(handle, q.device.type)
    if whole is not None and not (drops and whole == "masked"):  # that kernel would need an n × n buffer
        mask = _stock_mask(handle, q.device.type) if whole == "masked" else None
        return fused_attention(q, k, v, mask, is_causal=whole == "causal", scale=scale, dropout_p=dropout_p)
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
    number = None
    if drops:  # on the CPU, where reading it costs no synchronisation
        number = torch.randint(2**31 - 1, (1,)) if seed is None else torch.tensor([seed])
    if torch.compiler.is_compiling():
        return attention_op(q, k, v, handle, scale, pad, dropout_p, number)[0]
    return Attention.apply(q, k, v, Weighting(handle, scale, pad, dropout_p, number))


@constant_result
def _stock(handle: int, device: str) -> str | None:
    """``dense``, ``causal`` or ``masked`` when one stock call does everything, so that its own autograd can be used."""
    first, *others = explained(known(handle), torch.device(device)).heads
    if others or first.way not in ("dense", "masked"):
        return None
    return "causal" if first.way == "dense" and first.step.causal else first.way


@constant_result
def _stock_mask(handle: int, device: str) -> Tensor | None:
    where = torch.device(device)
    return mask_for(explained(known(handle), where).heads[0], where)


def padding(q: Tensor, mask: Tensor | None, lengths: Tensor | None) -> Tensor | None:
    b, n = q.shape[0], q.shape[2]
    if lengths is not None:
        if mask is not None:
            raise InvalidInput("Give 'key_padding_mask' or 'lengths', not both; they say the same thing.")
        if not isinstance(lengths, Tensor) or lengths.is_floating_point() or lengths.is_complex():
            raise InvalidInput(f"'lengths' must be a tensor of integers; got {lengths!r}.")
        if lengths.shape != (b,):
            raise InvalidInput(
                f"'lengths' must hold one number for each of the {b} sequences; got {tuple(lengths.shape)}."
            )
        mask = torch.arange(n, device=q.device)[None, :] < lengths.to(q.device)[:, None]
    if mask is None:
        return None
    if mask.shape != (b, n) or mask.dtype != torch.bool:
        raise InvalidInput(
            f"'key_padding_mask' must be a Boolean tensor ({b}, {n}), True at real tokens; "
            f"got {mask.dtype} {tuple(mask.shape)}."
        )
    return mask.to(q.device).contiguous()


def _check(q: Tensor, k: Tensor, v: Tensor, n: int, heads: int | None, dropout_p: float, scale: float | None) -> None:
    if q.ndim != 4 or k.ndim != 4 or k.shape != v.shape:
        raise InvalidInput(
            "q, k and v must be (batch, heads, n, head_dim), k and v alike; "
            f"got {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}."
        )
    if (q.shape[0], q.shape[2], q.shape[3]) != (k.shape[0], k.shape[2], k.shape[3]):
        raise InvalidInput(f"q and k must agree in batch, length and head_dim; got {tuple(q.shape)}, {tuple(k.shape)}.")
    if min(q.shape[1], k.shape[1], q.shape[3]) < 1:
        raise InvalidInput(f"q and k need at least one head of size 1; got {tuple(q.shape)}, {tuple(k.shape)}.")
    if scale is not None and not math.isfinite(scale):
        raise InvalidInput(f"'scale' must be a finite number; got {scale}.")
    if q.shape[1] % k.shape[1]:
        raise InvalidInput(f"The {q.shape[1]} query heads must be a multiple of the {k.shape[1]} key heads.")
    if q.shape[2] != n:
        raise InvalidInput(
            f"The pattern has {n} tokens; got a sequence of {q.shape[2]}. Build the pattern for that length, "
            "or pad and give 'lengths'."
        )
    if heads is not None and heads != q.shape[1]:
        raise InvalidInput(f"The pattern is made for {heads} heads; got {q.shape[1]}.")
    if not (q.dtype == k.dtype == v.dtype) or not q.dtype.is_floating_point:
        raise InvalidInput(f"q, k and v must have one floating-point type; got {q.dtype}, {k.dtype}, {v.dtype}.")
    if not q.device == k.device == v.device:
        raise InvalidInput(f"q, k and v must be on one device; got {q.device}, {k.device}, {v.device}.")
    if q.device.type == "cuda" and q.dtype not in _CUDA_TYPES:
        raise InvalidInput(
            f"On CUDA the kernels take float16, bfloat16 and float32; got {q.dtype}. Use the CPU for it."
        )
    if q.device.type == "cuda" and q.shape[-1] > 256:
        raise InvalidInput(f"On CUDA the kernels take head_dim up to 256; got {q.shape[-1]}.")
    if not 0 <= dropout_p < 1:
        raise InvalidInput(f"'dropout_p' must lie in [0, 1); got {dropout_p}.")
