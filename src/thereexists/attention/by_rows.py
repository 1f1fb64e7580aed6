"""Attention of some rows of a step, block by block of rows, in plain torch operations: right everywhere.

The queries are the last rows of the sequence: all of them, or the new tokens on top of a cache. A block of rows needs
the union of the keys of these rows and nothing else; where that union is an interval, as under a window, it is a view
of the cache. So a decoding step under a window costs what the window costs, whatever the cache holds: the rows are
asked by formula, for these rows only, and no plan for the whole length is made.

Everything that changes logits is a torch operation here (soft cap, bias, sinks, dropout by the rule of the kernels),
so that autograd is right for any of them; a block is computed again in the backward instead of being kept. It is the
way for queries and keys of different lengths, and on CUDA for what the kernels do not know.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from thereexists.attention.call_options import CallOptions, survivors
from thereexists.attention.log_sums import Sums, anchored, beside_sinks
from thereexists.core.fused_attention import fused_attention, transformed
from thereexists.patterns import Step

_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_ROWS = 128  # of a block
_PAIRS = 1 << 24  # of a block, over all heads


@dataclass(frozen=True, eq=False)
class Rows:
    """The last ``count`` rows of a step, or of a mask (batch, 1 or heads, count, n) that stands for one."""

    n: int
    count: int
    step: Step | None = None
    mask: Tensor | None = None

    @property
    def first(self) -> int:
        return self.n - self.count

    def block(self, a: int, b: int, device: torch.device) -> tuple[slice | np.ndarray, Tensor | None]:
        """The keys that rows a … b−1 of these see, and which row sees which; None: each sees all of them."""
        if self.step is None:
            return slice(0, self.n), None if self.mask is None else self.mask[:, :, a:b]
        if b - a == 1 and (one := self.step.row_ends(self.first + a)) is not None:
            if one[0] <= one[1]:
                return slice(one[0], one[1] + 1), None
            return slice(0, 1), torch.zeros(1, 1, dtype=torch.bool, device=device)
        k = np.arange(self.first + a, self.first + b)
        ends = self.step.ends(k)
        if ends is not None:
            lo, hi = ends
            start, stop = int(lo[0]), int(hi[-1]) + 1
            if start >= stop:
                return slice(0, 1), torch.zeros(len(k), 1, dtype=torch.bool, device=device)
            if int(lo[-1]) == start and int(hi[0]) == stop - 1:
                return slice(start, stop), None
            j = np.arange(start, stop)
            keep = (j >= lo[:, None]) & (j <= hi[:, None])
            return slice(start, stop), torch.from_numpy(keep).to(device)
        counts, columns = self.step.entries(k)
        keys, place = np.unique(columns, return_inverse=True)
        if not len(keys):
            return slice(0, 1), torch.zeros(len(k), 1, dtype=torch.bool, device=device)
        keep = np.zeros((len(k), len(keys)), bool)
        keep[np.repeat(np.arange(len(k)), counts), place] = True
        whole = int(keys[-1] - keys[0]) + 1 == len(keys)
        where = slice(int(keys[0]), int(keys[-1]) + 1) if whole else keys
        return where, None if keep.all() else torch.from_numpy(keep).to(device)


def attention_by_rows(
    q: Tensor, k: Tensor, v: Tensor, rows: Rows, options: CallOptions, sinks: Tensor | None, with_lse: bool
) -> tuple[Tensor, Tensor | None]:
    """Output (batch, heads, count, size of a value) and, ``with_lse``, the log-sum-exp with the sink in it."""
    if torch.compiler.is_compiling():  # rows are asked in NumPy: a compiled model leaves its graph here
        from thereexists.attention.uncompiled import run

        return run(q, k, v, rows, options, sinks, with_lse)
    return run_by_rows(q, k, v, rows, options, sinks, with_lse)


def run_by_rows(
    q: Tensor, k: Tensor, v: Tensor, rows: Rows, options: CallOptions, sinks: Tensor | None, with_lse: bool
) -> tuple[Tensor, Tensor | None]:
    free = not transformed()  # torch.func knows no rules for the fused kernels, and follows no checkpoint
    changed = options.cap > 0 or options.bias is not None or sinks is not None or options.dropout > 0 or with_lse
    plain = free and not changed
    if rows.count <= _ROWS:  # decoding: nothing to cut
        block = _Block(rows.first, *rows.block(0, rows.count, q.device), rows.n, options)
        if plain:
            return block.stock(q, k, v), None
        if free and (found := block.flash(q, k, v, sinks)) is not None:
            return found
        if rows.count * block.keys * q.shape[0] * q.shape[1] <= _PAIRS:
            return block.explicit(q, k, v, sinks)
    again = free and torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (q, k, v, sinks))
    outs, lses, a = [], [], 0
    while a < rows.count:
        b = min(a + _ROWS, rows.count)
        block = _Block(rows.first + a, *rows.block(a, b, q.device), rows.n, options)
        most = max(1, _PAIRS // max(1, block.keys * q.shape[0] * q.shape[1]))
        if b - a > most:
            b = a + most
            block = _Block(rows.first + a, *rows.block(a, b, q.device), rows.n, options)
        if plain:
            out, lse = block.stock(q[:, :, a:b], k, v), None
        elif again:
            out, lse = checkpoint(block.explicit, q[:, :, a:b], k, v, sinks, use_reentrant=False)
        else:
            out, lse = block.explicit(q[:, :, a:b], k, v, sinks)
        outs.append(out)
        lses.append(lse)
        a = b
    return torch.cat(outs, dim=2), torch.cat(lses, dim=2) if with_lse else None


@dataclass(frozen=True, eq=False)
class _Block:
    """Rows ``first …`` against the keys at ``where``."""

    first: int
    where: slice | np.ndarray
    keep: Tensor | None  # (rows, keys), or (batch, 1 or heads, rows, keys)
    n: int
    options: CallOptions

    @property
    def keys(self) -> int:
        return self.where.stop - self.where.start if isinstance(self.where, slice) else len(self.where)

    def taken(self, x: Tensor) -> Tensor:
        if isinstance(self.where, slice):
            return x.narrow(2, self.where.start, self.where.stop - self.where.start)
        return x.index_select(2, self._tokens(x.device))

    def seen(self) -> Tensor | None:
        """``keep`` and the padding together."""
        if self.options.pad is None:
            return self.keep
        pad = self.options.pad
        pad = pad[:, self.where] if isinstance(self.where, slice) else pad.index_select(1, self._tokens(pad.device))
        return pad[:, None, None, :] if self.keep is None else self.keep & pad[:, None, None, :]

    def stock(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """torch's own kernel; the queries that share a key head stand below one another, so that no key is copied."""
        k, v, seen = self.taken(k), self.taken(v), self.seen()
        if seen is None and q.shape[1] == k.shape[1]:
            return fused_attention(q, k, v, None, scale=self.options.scale)
        b, h, rows, d = q.shape
        group = h // k.shape[1]
        empty = None
        if seen is not None:
            seen, empty = nobody_without(seen)
        if group > 1:
            q = q.reshape(b, h // group, group * rows, d)
            if seen is not None and (rows > 1 or seen.shape[:-2].numel() > b):  # else it broadcasts
                seen = seen.expand(b, h, rows, -1).reshape(b, h // group, group * rows, k.shape[2])
        out = fused_attention(q, k, v, seen, scale=self.options.scale)
        out = out.reshape(b, h, rows, v.shape[-1]) if group > 1 else out
        return out if empty is None else out.masked_fill(empty[..., None], 0.0)

    def flash(self, q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None) -> tuple[Tensor, Tensor] | None:
        """On the CPU, where nothing is hidden or learned: torch's kernel says its log-sum-exp, and a sink joins it."""
        o = self.options
        if o.cap or o.bias is not None or o.dropout or o.pad is not None or self.keep is not None or q.is_cuda:
            return None
        if torch.is_grad_enabled() or q.shape[-1] != v.shape[-1]:
            return None
        b, h, rows, d = q.shape
        k, v = self.taken(k), self.taken(v)
        q_k_v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q.reshape(b, k.shape[1], -1, d), k, v))
        out, lse = _flash(*q_k_v, 0.0, False, scale=o.scale)  # which asks for entries that lie side by side
        out, lse = out.reshape(q.shape), lse.reshape(b, h, rows)
        if sinks is None:
            return out, lse
        share, sums = beside_sinks(Sums(lse), sinks)
        return (out * share[..., None]).to(q.dtype), sums.lse

    def explicit(self, q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None) -> tuple[Tensor, Tensor]:
        """The definition; a row without keys gives 0."""
        options, kind = self.options, torch.promote_types(q.dtype, torch.float32)
        k, v, seen = self.taken(k).to(kind), self.taken(v).to(kind), self.seen()
        b, h, rows, d = q.shape
        shape = (b, k.shape[1], h // k.shape[1] * rows)  # queries that share a key head
        s = (options.scale * q.to(kind).reshape(*shape, d) @ k.mT).reshape(b, h, rows, k.shape[2])
        if options.cap:
            s = options.cap * torch.tanh(s / options.cap)
        if options.bias is not None:
            bias = self._bias(options.bias, rows)
            s, seen = s + bias, _open(seen, bias)
        sink = torch.full((1, 1), -torch.inf, dtype=kind, device=s.device) if sinks is None else sinks.to(kind)[:, None]
        empty = None
        if seen is not None:
            every, empty = nobody_without(seen)
            s = s.masked_fill(~every, -torch.inf)
            s = s if empty is None else s.masked_fill(empty[..., None], 0.0)  # weights ≤ 1, gradients 0 · 1
        # The largest logit of a row cancels in P; it is a constant for autograd, and no logarithm is rounded with it.
        top = anchored(torch.maximum(s.detach().amax(-1), sink.detach()))
        weight = torch.exp(s - top[..., None])
        total = weight.sum(-1) + torch.exp(sink - top)
        p, lse = weight / total[..., None], top + torch.log(total)
        if empty is not None:
            p, lse = p.masked_fill(empty[..., None], 0.0), torch.where(empty, sink, lse)
        if options.dropout > 0:
            p = p * self._gain(p)
        return (p.reshape(*shape, k.shape[2]) @ v).reshape(b, h, rows, v.shape[-1]).to(q.dtype), lse

    def _tokens(self, device: torch.device) -> Tensor:
        if isinstance(self.where, slice):
            return torch.arange(self.where.start, self.where.stop, device=device)
        return torch.from_numpy(self.where).to(device)

    def _bias(self, table: Tensor, rows: int) -> Tensor:
        row = torch.arange(self.first, self.first + rows, device=table.device)[:, None]
        return table[:, self._tokens(table.device)[None, :] - row + self.n - 1]  # (heads, rows, keys)

    def _gain(self, p: Tensor) -> Tensor:
        """What dropout multiplies each weight by."""
        b, h, rows, _ = p.shape
        row = np.arange(self.first, self.first + rows)[:, None]
        col = np.arange(self.where.start, self.where.stop) if isinstance(self.where, slice) else self.where
        kept = np.empty((b * h, rows, self.keys), bool)
        for i in range(b * h):
            kept[i] = survivors(self.options.seed, self.options.threshold, i, row, col[None, :])
        return self.options.gain * torch.from_numpy(kept).view(p.shape).to(p.device, p.dtype)


def _open(seen: Tensor | None, bias: Tensor) -> Tensor | None:
    """A bias of −∞ hides a pair as a pattern does: a row with no other key is one without keys."""
    closed = bias == -torch.inf
    if not transformed() and not bool(closed.any()):
        return seen
    return ~closed if seen is None else seen & ~closed


def nobody_without(seen: Tensor) -> tuple[Tensor, Tensor | None]:
    """Rows without keys see everything, so that no softmax is over nothing; and which rows these are."""
    empty = ~seen.any(-1)
    if not transformed() and not bool(empty.any()):
        return seen, None
    return seen | empty[..., None], empty
