"""``sparse_attention(q, k, v, pattern)``: exact attention in which row k looks at the keys of ``pattern`` only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import torch
from torch import Tensor

from thereexists.attention.by_rows import Rows, attention_by_rows
from thereexists.attention.call_options import CallOptions, Changes, Scores, is_number, kind_of
from thereexists.attention.operator import Attention, TransformedAttention, attention_op
from thereexists.attention.plain_call import plain_attention
from thereexists.attention.planned import Weighting, explained, mask_for
from thereexists.attention.ways import backend_has, head_steps
from thereexists.core.constant_result import constant_result
from thereexists.core.errors import InvalidInput
from thereexists.core.fused_attention import fused_attention, transformed
from thereexists.core.numbered import kept, numbered
from thereexists.core.plain_numbers import shown
from thereexists.core.shapes import Bool, Float, Integer
from thereexists.patterns import Pattern, Step

_UNCHANGED = Changes()
_CUDA_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_TYPES = (*_CUDA_TYPES, torch.float64)


class Dropout(NamedTuple):
    """Dropout of attention weights; with a ``seed`` of your own, the same pairs are dropped again.

        te.attention.Dropout(0.1, seed=0)

    Attributes:
        p: the share of weights that are dropped.
        seed: the same one drops the same pairs.
    """

    p: float = 0.0
    seed: int | None = None


class Held(NamedTuple):
    """A pattern as ``torch.compile`` can hold it (as it can a tuple): its number, its tokens, the heads it is for."""

    handle: int
    n: int
    heads: int | None


def sparse_attention(
    q: Float[Tensor, "batch heads rows d"],
    k: Float[Tensor, "batch kv_heads n d"],
    v: Float[Tensor, "batch kv_heads n d_v"],
    pattern: Pattern | Step | Sequence[Pattern | Step],
    *,
    scale: float | None = None,
    key_padding_mask: Bool[Tensor, "batch n"] | None = None,
    lengths: Integer[Tensor, " batch"] | None = None,
    dropout_p: float | Dropout = 0.0,
    **scores: Unpack[Scores],
) -> Any:
    """Softmax attention over ``pattern``, forward and backward exact up to rounding: (batch, heads, rows, d_v).

        q = k = v = torch.randn(1, 2, 64, 8)
        te.attention.sparse_attention(q, k, v, te.patterns.window(n=64, window=4))

    ``pattern`` is a one-step pattern (``p.step(0)``, ``p.union()``, or one with a cycle of 1) or ``p.multihead(h)``;
    or a list of them, one for each sequence of the batch.
    ``scale`` defaults to 1/√d. ``key_padding_mask`` is True at real tokens; ``lengths`` says the same by a number per
    sequence. A row without keys, or whose keys are all padding, gives 0. ``kv_heads`` may divide ``heads`` (grouped
    queries; no key is copied). ``dropout_p`` drops attention weights;
    ``Dropout(p, seed)`` drops the same ones again. With fewer queries than keys the queries are the last rows of the
    pattern: new tokens over a cache.

    ``softcap=c`` makes c·tanh(S/c) of the logits S. ``bias`` is added to them after that: (heads,) numbers m for
    ALiBi, −m·|k − j|, or (heads, 2n − 1), one for each offset j − k from −(n−1) to n−1. ``sinks`` (heads,) is a logit
    of each head that joins the denominator and has no value; it may have a gradient. ``return_lse=True`` returns the
    log-sum-exp of each row too, (batch, heads, rows), the sink in it: −inf where a row has no keys.

    Args:
        q: queries.
        k: keys.
        v: values.
        pattern: which keys a query sees.
        scale: of the logits; default: 1/√d.
        key_padding_mask: True at real tokens.
        lengths: the same as a number per sequence.
        dropout_p: share of weights that are dropped.
        **scores: ``softcap``, ``bias``, ``sinks``, ``return_lse``.

    Returns:
        The output (batch, heads, rows, d_v), and the log-sum-exp if asked for.

    Raises:
        InvalidInput: shapes, dtypes or devices do not fit.
    """
    if not all(isinstance(x, Tensor) for x in (q, k, v)):
        raise InvalidInput(f"q, k and v must be tensors; got {', '.join(map(kind_of, (q, k, v)))}.")
    if not isinstance(dropout_p, Dropout) and not is_number(dropout_p):
        raise InvalidInput(f"'dropout_p' must be a number in [0, 1); got {shown(dropout_p)}.")
    if not q.ndim == k.ndim == v.ndim == 4 or q.is_meta:
        raise InvalidInput(
            "q, k and v must be tensors (batch, heads, n, head_dim) with numbers in them; got "
            f"{', '.join(f'{tuple(x.shape)} on {x.device}' for x in (q, k, v))}."
        )
    if isinstance(pattern, list | tuple):
        how = {"scale": scale, "dropout_p": dropout_p, **scores}
        return _one_each(q, k, v, pattern, padding(k, key_padding_mask, lengths), how)
    if not isinstance(pattern, Pattern | Step):
        raise InvalidInput(
            f"'pattern' must be a pattern or a step of thereexists.patterns; got {type(pattern).__name__}."
        )
    if torch.is_autocast_enabled(q.device.type):
        own = {"key_padding_mask": key_padding_mask, "lengths": lengths, "dropout_p": dropout_p, **scores}
        with torch.autocast(q.device.type, enabled=False):
            return sparse_attention(*in_autocast(q, k, v), pattern, scale=scale, **own)
    if q.is_cuda and not torch.compiler.is_compiling() and q.device.index != torch.cuda.current_device():
        own = {"key_padding_mask": key_padding_mask, "lengths": lengths, "dropout_p": dropout_p, **scores}
        with torch.cuda.device(q.device):  # kernels are launched on the current device
            return sparse_attention(q, k, v, pattern, scale=scale, **own)
    plain = not scores and key_padding_mask is None and lengths is None and dropout_p == 0
    if plain and q.is_cuda and not _looked_on():
        out = plain_attention(q, k, v, pattern, scale)
        if out is not None:
            return out
    heads = sum(pattern.heads) if isinstance(pattern, Pattern) and pattern.heads is not None else None
    dropout = dropout_p if isinstance(dropout_p, Dropout) else Dropout(dropout_p)
    changes = Changes(**scores) if scores else _UNCHANGED
    pad = None if key_padding_mask is None and lengths is None else padding(k, key_padding_mask, lengths)
    if q.ndim == 4 and q.shape[2] < pattern.n:  # no plan for the whole length
        _check(q, k, v, pattern.n, heads, dropout, scale)
        changes.check(q.shape[1], pattern.n)
        out, lse = _by_rows(q, k, v, pattern, scale, pad, dropout, changes)
    else:
        held = Held(pattern.number, pattern.n, heads)
        out, lse = attend_and_sum(q, k, v, held, scale, pad, dropout, changes)
    return (out, lse) if changes.return_lse else out


def _one_each(q: Tensor, k: Tensor, v: Tensor, patterns: Sequence[Any], pad: Tensor | None, how: dict[str, Any]) -> Any:
    """Sequences with patterns of their own; those that share one run together."""
    if len(patterns) != q.shape[0]:
        raise InvalidInput(f"A list of patterns has one for each of {q.shape[0]} sequences; got {len(patterns)}.")
    if how["dropout_p"] != 0 and len(patterns) > 1:
        raise InvalidInput(
            "Dropout does not go with a list of patterns; give one pattern for all sequences, or no dropout."
        )
    if not len(patterns):
        out = torch.matmul(torch.matmul(q, k.mT), v)  # of no sequence
        return (out, out.sum(-1)) if how.get("return_lse") else out
    alike: list[list[int]] = []
    for b, each in enumerate(patterns):
        group = next((members for members in alike if patterns[members[0]] is each), None)
        alike.append([b]) if group is None else group.append(b)
    places = [torch.tensor(members, device=q.device) for members in alike]
    parts = []
    for at in places:
        own = None if pad is None else pad[at]
        parts.append(sparse_attention(q[at], k[at], v[at], patterns[int(at[0])], key_padding_mask=own, **how))
    back = torch.argsort(torch.cat(places))
    if how.get("return_lse"):
        return tuple(torch.cat(each)[back] for each in zip(*parts, strict=True))
    return torch.cat(parts)[back]


def in_autocast(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As torch's own attention takes them: in autocast's type, but for float64. What follows is summed as ever."""
    kind, cast = torch.get_autocast_dtype(q.device.type), (torch.float32, torch.float16, torch.bfloat16)
    q, k, v = (x.to(kind) if x.dtype in cast else x for x in (q, k, v))
    return q, k, v


def attend(
    q: Tensor, k: Tensor, v: Tensor, held: Held, scale: float | None, pad: Tensor | None, dropout: Dropout
) -> Tensor:
    """The function behind ``SparseAttention``."""
    return attend_and_sum(q, k, v, held, scale, pad, dropout, Changes())[0]


def attend_and_sum(
    q: Tensor, k: Tensor, v: Tensor, held: Held, scale: float | None, pad: Tensor | None, dropout: Dropout,
    changes: Changes,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Output, and the log-sum-exp where it was asked for."""
    if torch.is_autocast_enabled(q.device.type):
        with torch.autocast(q.device.type, enabled=False):
            return attend_and_sum(*in_autocast(q, k, v), held, scale, pad, dropout, changes)
    (handle, n, heads), (dropout_p, seed) = held, dropout
    _check(q, k, v, n, heads, dropout, scale)
    changes.check(q.shape[1], n)
    if q.device.type == "cuda" and not _in_kernels(q, v, changes):
        return _by_rows(q, k, v, numbered(handle), scale, pad, dropout, changes)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if scale <= 0:  # torch's causal kernel hides keys by −∞ before it scales
        q, scale = q * scale, 1.0
    drops = True if dropout_p > 0 else False  # noqa: SIM210  (a plain bool, also while compiling)
    own = pad is not None or (drops and seed is not None) or not changes.plain
    whole = None if own or transformed() else _stock(handle, q.device.type)
    if whole is not None and not (drops and whole == "masked"):  # that kernel would need an n × n buffer
        mask = _stock_mask(handle, q.device.type) if whole == "masked" else None
        shared = {"enable_gqa": True} if k.shape[1] != q.shape[1] else {}  # never a symbol, also while compiling
        options = {"scale": scale, "dropout_p": dropout_p, **shared}
        return fused_attention(q, k, v, mask, is_causal=whole == "causal", **options), None
    size = v.shape[-1]
    if size != q.shape[-1]:  # columns of zeros change no logit and no value
        most = max(size, q.shape[-1])
        q, k, v = (torch.nn.functional.pad(x, (0, most - x.shape[-1])) for x in (q, k, v))
    q, k, v = (x if x.stride(-1) == 1 and n * x.stride(2) < 2**31 else x.contiguous() for x in (q, k, v))
    number = None
    if drops:  # on the CPU, where reading it costs no synchronisation
        number = torch.randint(2**31 - 1, (1,)) if seed is None else torch.tensor([seed])
    sinks, cap, bias, wanted = changes.sinks, changes.softcap or 0.0, changes.table(q, n), changes.return_lse
    if _looked_on():
        op = TransformedAttention.apply
        if torch.compiler.is_compiling():
            op, handle = attention_op, kept(handle)
        out, lse, _ = op(q, k, v, handle, scale, pad, dropout_p, number, sinks, cap, bias, wanted)
    else:
        how = Weighting(handle, scale, pad, dropout_p, number, sinks, cap, bias, wanted)
        out, lse = Attention.apply(q, k, v, sinks, how)
    return out if size == out.shape[-1] else out[..., :size], lse if wanted else None


def _looked_on() -> bool:
    """Whether a compiler, ``torch.func`` or forward mode follows, and asks for functions of plain arguments."""
    return torch.compiler.is_compiling() or transformed()


def _in_kernels(q: Tensor, v: Tensor, changes: Changes) -> bool:
    """Whether the CUDA kernels do this call; the others run by blocks of rows, in torch's own operations."""
    asked = [name for name, given in (("softcap", changes.softcap), ("bias", changes.bias)) if given is not None]
    taken = all(backend_has(q.device.type, name) for name in asked)
    return taken and max(q.shape[-1], v.shape[-1]) <= 256 and q.dtype in _CUDA_TYPES


def _by_rows(
    q: Tensor, k: Tensor, v: Tensor, pattern: Pattern | Step, scale: float | None, pad: Tensor | None,
    dropout: Dropout, changes: Changes,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    seed = 0
    if dropout.p > 0:
        seed = int(torch.randint(2**31 - 1, (1,))) if dropout.seed is None else dropout.seed
    bias = changes.table(q, pattern.n)
    group, outs = q.shape[1] // k.shape[1], []
    for span, step in head_steps(pattern):
        rows = Rows(pattern.n, q.shape[2], step)
        how = CallOptions(scale, pad, dropout.p, seed, changes.softcap or 0.0, bias)
        if span is None:
            return attention_by_rows(q, k, v, rows, how, changes.sinks, changes.return_lse)
        mine = slice(*span)
        which = torch.arange(*span, device=k.device) // group
        how = replace(how, seed=seed + (mine.start << 40), bias=None if bias is None else bias[mine])
        sinks = None if changes.sinks is None else changes.sinks[mine]
        outs.append(attention_by_rows(q[:, mine], k[:, which], v[:, which], rows, how, sinks, changes.return_lse))
    out, lse = zip(*outs, strict=True)
    return torch.cat(out, dim=1), torch.cat(lse, dim=1) if changes.return_lse else None


@constant_result
def _stock(handle: int, device: str) -> str | None:
    """``dense``, ``causal`` or ``masked`` when one stock call does everything, so that its own autograd can be used."""
    first, *others = explained(numbered(handle), torch.device(device)).heads
    if others or first.way not in ("dense", "masked"):
        return None
    return "causal" if first.way == "dense" and first.step.causal else first.way


@constant_result
def _stock_mask(handle: int, device: str) -> Tensor | None:
    where = torch.device(device)
    return mask_for(explained(numbered(handle), where).heads[0], where)


def padding(k: Tensor, mask: Tensor | None, lengths: Tensor | None) -> Tensor | None:
    if mask is None and lengths is None:
        return None
    b, n = k.shape[0], k.shape[2]
    if lengths is not None:
        if mask is not None:
            raise InvalidInput("Give 'key_padding_mask' or 'lengths', not both; they say the same thing.")
        if not isinstance(lengths, Tensor) or lengths.is_floating_point() or lengths.is_complex():
            raise InvalidInput(f"'lengths' must be a tensor of integers; got {lengths!r}.")
        if lengths.shape != (b,):
            raise InvalidInput(
                f"'lengths' must hold one number for each of the {b} sequences; got {tuple(lengths.shape)}."
            )
        lengths = lengths.to(torch.int64)  # in small integers n itself is another number
        mask = torch.arange(n, device=k.device)[None, :] < lengths.to(k.device)[:, None]
        looked_at = not lengths.is_cuda and not _looked_on()  # elsewhere it would wait
        if looked_at and not bool(((lengths >= 0) & (lengths <= n)).all()):
            raise InvalidInput(f"'lengths' must lie between 0 and the {n} tokens; got {lengths.tolist()}.")
    if not isinstance(mask, Tensor):
        raise InvalidInput(f"'key_padding_mask' must be a Boolean tensor ({b}, {n}); got {kind_of(mask)}.")
    if mask.shape != (b, n) or mask.dtype != torch.bool:
        raise InvalidInput(
            f"'key_padding_mask' must be a Boolean tensor ({b}, {n}), True at real tokens; "
            f"got {mask.dtype} {tuple(mask.shape)}."
        )
    return mask.to(k.device).contiguous()


def _check(q: Tensor, k: Tensor, v: Tensor, n: int, heads: int | None, dropout: Dropout, scale: float | None) -> None:
    a, b, c = tuple(q.shape), tuple(k.shape), tuple(v.shape)
    if not len(a) == len(b) == len(c) == 4 or b[:3] != c[:3]:
        raise InvalidInput(
            f"q, k and v must be (batch, heads, n, head_dim), and k and v may differ in head_dim only; got {a}, {b}, "
            f"{c}."
        )
    if a[0] != b[0] or a[3] != b[3] or not 1 <= a[2] <= b[2]:
        raise InvalidInput(
            "q and k must agree in batch and head_dim, and there must be as many keys as queries or more, the queries "
            f"being the last rows; got {a}, {b}."
        )
    if min(a[1], b[1], a[3], c[3]) < 1:
        raise InvalidInput(f"q and k need at least one head of size 1; got {a}, {b}.")
    if scale is not None and not is_number(scale):
        raise InvalidInput(f"'scale' must be a finite number; got {scale!r}.")
    if a[1] % b[1]:
        raise InvalidInput(f"The {a[1]} query heads must be a multiple of the {b[1]} key heads.")
    if b[2] != n:
        raise InvalidInput(
            f"The pattern has {n} tokens; got a sequence of {b[2]}. Build the pattern for that length, "
            "or pad and give 'lengths'."
        )
    if heads is not None and heads != a[1]:
        raise InvalidInput(f"The pattern is made for {heads} heads; got {a[1]}.")
    if not (q.dtype == k.dtype == v.dtype) or q.dtype not in _TYPES:
        raise InvalidInput(
            f"q, k and v must have one floating-point type, of 16 bits at least; got {q.dtype}, {k.dtype}, {v.dtype}."
        )
    if not q.device == k.device == v.device:
        raise InvalidInput(f"q, k and v must be on one device; got {q.device}, {k.device}, {v.device}.")
    if not is_number(dropout.p) or not 0 <= dropout.p < 1:
        raise InvalidInput(f"'dropout_p' must be a number in [0, 1); got {dropout.p!r}.")
    if dropout.seed is not None and not (isinstance(dropout.seed, int) and 0 <= dropout.seed < 2**63):
        raise InvalidInput(f"The seed of dropout must be a whole number from 0 to 2^63 - 1; got {dropout.seed!r}.")
