"""Running a planned attention: forward, backward and second derivatives, each as its parts say (``ways.py``).

A plan for the tensors' device is made on first use and kept with the pattern.

What a backend does not do itself is done here, around it. A *sink* s is a piece without keys: L' = log(e^L + e^s) and
o' = o·e^(L − L') (``log_sums``), and the backward of the pieces runs with o' and L' as it runs with any merged pair;
its own gradient is −Σ P_s·D with P_s = e^(s − L'). A gradient g of L itself adds P_j·g to dS_j, which is what D − g in
place of D = ⟨do, o⟩ does; a column more does that: values 0, do = g, o = −1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from thereexists.attention.call_options import CallOptions
from thereexists.attention.log_sums import Sums, beside_sinks
from thereexists.attention.ways import Explanation, HeadWay, backend_has, explain, head_steps
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.fused_attention import autograd_on, fused_attention
from thereexists.core.numbered import numbered
from thereexists.patterns import Pattern, Step


def explained(
    pattern: Pattern | Step, device: torch.device, padded: bool = False, dropout: bool = False
) -> Explanation:
    """How it will be run, worked out once for each device and kind of call."""
    kept = pattern.__dict__.setdefault("_of_this_process_plans", {})  # a copy plans anew
    key = (device.type, padded, dropout)
    if key not in kept:
        if device.type not in ("cpu", "cuda"):
            raise InvalidInput(f"Sparse attention runs on cpu and cuda; the tensors are on '{device.type}'.")
        kept[key] = explain(pattern, device.type, padded, dropout)
    return kept[key]


def pieces_for(head: HeadWay, device: torch.device) -> Any:
    """The pieces with their tables on ``device``."""
    kept = head.__dict__.setdefault("_on_device", {})
    if device not in kept:
        if device.type == "cuda":
            try:
                from thereexists.attention.triton_backend import TritonPieces
            except ImportError as error:
                raise CannotBuild(
                    "Sparse attention on CUDA runs through Triton, which is not installed; pip install triton."
                ) from error
            kept[device] = TritonPieces(head.lowered, device)
        else:
            from thereexists.attention.cpu_backend import CpuPieces

            kept[device] = CpuPieces(head.lowered)
    return kept[device]


def mask_for(head: HeadWay, device: torch.device) -> Tensor | None:
    """The n × n mask of a head that is ``masked``; None for ``dense``."""
    if head.way == "dense":
        return None
    kept = head.__dict__.setdefault("_masks", {})
    if device not in kept:
        kept[device] = torch.from_numpy(head.step.mask()).to(device)
    return kept[device]


def stock_attention(q: Tensor, k: Tensor, v: Tensor, head: HeadWay, scale: float, dropout: float = 0.0) -> Tensor:
    mask = mask_for(head, q.device)
    causal = mask is None and head.step.causal
    return fused_attention(q, k, v, mask, is_causal=causal, scale=scale, dropout_p=dropout)


def _spans(p: Explanation, heads: int) -> list[tuple[HeadWay, slice]]:
    return [(h, slice(0, heads) if h.heads is None else slice(*h.heads)) for h in p.heads]


def _backend(device: torch.device) -> Any:
    if device.type == "cuda":
        from thereexists.attention import triton_backend

        return triton_backend
    from thereexists.attention import cpu_backend

    return cpu_backend


@dataclass(frozen=True)
class Weighting:
    """Which pairs a call weighs, and how: all that it has besides its tensors. The ops list the same, one by one."""

    handle: int  # the number of the pattern
    scale: float
    pad: Tensor | None = None  # (batch, n), True = a real token
    dropout: float = 0.0
    seed: Tensor | None = None
    sinks: Tensor | None = None  # (heads,)
    cap: float = 0.0
    bias: Tensor | None = None  # (heads, 2n − 1)
    whole: bool = False  # the log-sum-exp is wanted, so that no head may be left to a stock kernel

    def bare(self) -> Weighting:
        """Without its tensors, which autograd keeps."""
        return replace(self, pad=None, seed=None, sinks=None, bias=None)

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        return self.pad, self.seed, self.sinks, self.bias

    def holding(self, pad, seed, sinks, bias) -> Weighting:
        return replace(self, pad=pad, seed=seed, sinks=sinks, bias=bias)

    @property
    def pattern(self) -> Pattern | Step:
        return numbered(self.handle)

    def explained(self, device: torch.device) -> Explanation:
        own = self.pad is not None or self.whole or self.sinks is not None or self.cap > 0 or self.bias is not None
        return explained(self.pattern, device, own, self.dropout > 0)

    def options(self, span: slice) -> CallOptions:
        """Groups of heads get seeds of their own, so that two heads never drop the same pairs."""
        seed = 0 if self.seed is None else int(self.seed.item()) + (span.start << 40)
        bias = None if self.bias is None else self.bias[span]
        return CallOptions(self.scale, self.pad, self.dropout, seed, self.cap, bias)


def run_forward(q: Tensor, k: Tensor, v: Tensor, how: Weighting) -> tuple[Tensor, Sums]:
    """The output and the log-sum-exp."""
    p = how.explained(q.device)
    out = torch.empty_like(q)
    lse = torch.empty(q.shape[:3], dtype=torch.float64 if q.dtype == torch.float64 else torch.float32, device=q.device)
    lost = torch.zeros_like(lse) if backend_has(q.device.type, "lost") else None
    for head, span in _spans(p, q.shape[1]):
        qs, (ks, vs) = q[:, span], _keys_of(span, q, k, v)
        if head.way in ("dense", "masked"):
            out[:, span] = stock_attention(qs, *_for_each(qs, ks, vs), head, how.scale)
            continue
        options = how.options(span)
        if not backend_has(q.device.type, "grouped"):
            ks, vs = _for_each(qs, ks, vs)
        whole = len(p.heads) == 1
        own = lse if whole else torch.empty_like(lse[:, span], memory_format=torch.contiguous_format)
        found = _backend(q.device).forward(qs, ks, vs, out[:, span], own, pieces_for(head, q.device), options)
        if lost is not None:
            lost[:, span] = found
        if not whole:
            lse[:, span] = own
    sums = Sums(lse, lost)
    if how.sinks is not None:
        share, sums = beside_sinks(sums, how.sinks)
        out.mul_(share[..., None])
    return out, sums


def run_backward(
    do: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, sums: Sums, how: Weighting
) -> tuple[Tensor, Tensor, Tensor]:
    p = how.explained(q.device)
    parts = []
    for head, span in _spans(p, q.shape[1]):
        qs, gs, (ks, vs) = q[:, span], do[:, span], _keys_of(span, q, k, v)
        served = ks.shape[1]
        if head.way in ("dense", "masked"):
            with autograd_on():
                a, b, c = (x.detach().requires_grad_() for x in (qs, *_for_each(qs, ks, vs)))
                grads = torch.autograd.grad(stock_attention(a, b, c, head, how.scale), (a, b, c), gs)
        else:
            if not backend_has(q.device.type, "grouped"):
                ks, vs = _for_each(qs, ks, vs)
            pieces, options, own = pieces_for(head, q.device), how.options(span), sums.of(span)
            known = own if backend_has(q.device.type, "lost") else own.lse
            grads = _backend(q.device).backward(gs, qs, ks, vs, out[:, span], known, pieces, options)
        parts.append((grads[0], *(summed(x, served) for x in grads[1:])))
    if len(parts) == 1:
        return parts[0]
    dqs, dks, dvs = zip(*parts, strict=True)
    return torch.cat(dqs, dim=1), _of_all(dks, p, q, k), _of_all(dvs, p, q, v)


def run_sinks_backward(do: Tensor, given: Tensor | None, out: Tensor, sums: Sums, sinks: Tensor) -> Tensor:
    """The gradient of the sinks, for gradients of the output and (``given``) of the log-sum-exp."""
    kind = sums.lse.dtype
    delta = (do.to(kind) * out.to(kind)).sum(-1)
    delta = delta if given is None else delta - given
    return -(sums.weight(sinks.to(kind)[:, None]) * delta).sum((0, 2)).to(sinks.dtype)


def run_backward_of_both(do, given, q, k, v, out, sums: Sums, how: Weighting) -> tuple[Tensor, Tensor, Tensor]:
    """``run_backward`` where the log-sum-exp has a gradient, too: ``given`` (batch, heads, n)."""
    if given is None:
        return run_backward(do, q, k, v, out, sums, how)
    kind = sums.lse.dtype
    wide = [x.to(kind) for x in (q, k, v)]
    qw, kw, vw = (torch.nn.functional.pad(x, (0, 1)) for x in wide)
    dow = torch.cat((do.to(kind), given[..., None].to(kind)), -1)
    ow = torch.nn.functional.pad(out.to(kind), (0, 1), value=-1.0)
    grads = run_backward(dow, qw, kw, vw, ow, sums, how)
    return tuple(g[..., :-1].to(x.dtype) for g, x in zip(grads, (q, k, v), strict=True))  # type: ignore[return-value]


# ---- key heads that several query heads share --------------------------------------------------------------------


def _keys_of(span: slice, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The key heads of the query heads in ``span``: a view where whole groups are in it."""
    group = q.shape[1] // k.shape[1]
    if span.start % group == 0 and span.stop % group == 0:
        mine = slice(span.start // group, span.stop // group)
        return k[:, mine], v[:, mine]
    which = torch.arange(span.start, span.stop, device=k.device) // group
    return k[:, which], v[:, which]


def _of_all(grads: tuple[Tensor, ...], p: Explanation, q: Tensor, k: Tensor) -> Tensor:
    """The gradient of all key heads from those of each group of query heads, which may share a key head."""
    if sum(grad.shape[1] for grad in grads) == k.shape[1]:
        return torch.cat(grads, dim=1)
    total, group = torch.zeros_like(k), q.shape[1] // k.shape[1]
    for grad, (_, span) in zip(grads, _spans(p, q.shape[1]), strict=True):
        which = torch.arange(span.start, span.stop, device=k.device) // group
        total.index_add_(1, which if grad.shape[1] == len(which) else which[::group], grad)
    return total


def _for_each(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values once for each query head."""
    group = q.shape[1] // k.shape[1]
    return (k, v) if group == 1 else (k.repeat_interleave(group, 1), v.repeat_interleave(group, 1))


def summed(grad: Tensor, heads: int) -> Tensor:
    """The gradient of a key head is the sum of those of its copies."""
    return grad if grad.shape[1] == heads else grad.unflatten(1, (heads, -1)).sum(2)


def run_second_order(
    given: tuple[Tensor | None, ...], tensors: tuple[Tensor | None, ...], how: Weighting
) -> tuple[Tensor | None, ...]:
    """The gradients of ``AttentionBackward`` (of do, dlse, q, k, v, sinks), for gradients ``given`` of its results."""
    from thereexists.attention.second_order import second_order

    return second_order(given, tensors, head_steps(how.pattern), how.options)
