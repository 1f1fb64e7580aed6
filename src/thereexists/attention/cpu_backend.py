"""Runs a lowered step on the CPU: PyTorch's flash kernel on strided views, and a Numba kernel for listed entries.

The kernel returns the log-sum-exp and takes it back for the backward, so that pieces are merged exactly: forward by
log-sum-exp, backward with the merged output and log-sum-exp in every piece (see ``docs/attention.md``). Logits with a
soft cap or a bias are computed in the open (``open_logits``), call by call of the same views.

What rounding takes from a log-sum-exp is kept beside it as ``lost`` (``log_sums``). A backward kernel that takes
``lse`` alone computes e^(S − lse) = P·e^lost; as gradients are linear in that of the output, do·e^(−lost) in the place
of do makes all of them right.

Query heads that share a key head run one after the other, on the same keys: key head h serves the query heads
h·group … h·group + group − 1, so that the r-th of each group are the heads r, r + group, …, which are a view.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from thereexists.attention.call_options import CallOptions
from thereexists.attention.log_sums import Sums, merge
from thereexists.attention.lower import Columns, Lowered
from thereexists.attention.open_logits import Change, open_attention, open_backward
from thereexists.attention.windows import Call, calls

TAKES = frozenset({"grouped", "softcap", "bias", "lost"})  # what the operator need not do in its place

_MASKED_PAIRS = 1 << 23  # pairs of one call that needs a mask per chunk
_COLUMN_ROWS = 2048
_KEPT_PAIRS = 1 << 24  # masks of columns are kept up to this size in all
_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


@dataclass(frozen=True, eq=False)
class Mask:
    """An additive mask that broadcasts to (g, chunks, rows, keys), and the rows it leaves without a key."""

    additive: Tensor
    empty: Tensor | None  # (…, chunks, rows)

    @staticmethod
    def of(keep: Tensor, dtype: torch.dtype) -> Mask:
        """From a Boolean (…, rows, keys) with leading axes to make it four."""
        keep = keep[(None,) * (4 - keep.ndim)]
        empty = ~keep.any(-1)
        additive = torch.zeros(keep.shape, dtype=dtype).masked_fill_(~keep, -torch.inf)
        return Mask(additive, empty if bool(empty.any()) else None)


@dataclass(frozen=True, eq=False)
class Softmax:
    """How one dense call turns scores into weights."""

    scale: float
    mask: Mask | None = None
    causal: bool = False
    change: Change | None = None  # of the logits

    @property
    def kernel(self) -> dict[str, Any]:
        return {"attn_mask": None if self.mask is None else self.mask.additive, "scale": self.scale}


def _attend(q, k, v, softmax: Softmax) -> tuple[Tensor, Tensor, Tensor]:
    """One dense call: output, ``lse``, ``lost``. The kernel says nothing of the last, and 0 of a row without keys."""
    if softmax.change is not None:
        return open_attention(q, k, v, softmax.scale, softmax.kernel["attn_mask"], softmax.change)
    o, l = _flash(q, k, v, 0.0, softmax.causal, **softmax.kernel)
    empty = None if softmax.mask is None else softmax.mask.empty
    return o, (l if empty is None else l.masked_fill(empty, -torch.inf)), torch.zeros_like(l)


def _attend_backward(do, q, k, v, out, sums: list[Tensor], softmax: Softmax):
    lse, lost = sums
    if softmax.change is not None:
        mask = softmax.kernel["attn_mask"]
        return open_backward(do, q, k, v, out, lse, lost, (softmax.scale, mask, softmax.change))
    return _flash_backward(do, q, k, v, out, lse.contiguous(), 0.0, softmax.causal, **softmax.kernel)


class CpuPieces:
    """A lowered step with its calls prepared."""

    def __init__(self, lowered: Lowered):
        self.lowered = lowered
        self.calls = [calls(strip, lowered.n) for strip in lowered.strips]
        self._explicit: dict[bool, list[list[Call]]] = {}
        self._masks: dict[tuple[Call, torch.dtype], Mask] = {}
        self.rows = None if lowered.rows is None else torch.from_numpy(lowered.rows)
        self.columns = None if lowered.columns is None else _ColumnBlocks(lowered)

    def strip_calls(self, padded: bool, short: bool) -> list[list[Call]]:
        """``padded``: masks join; ``short``: logits will be in memory."""
        if not padded and not short:
            return self.calls
        if short not in self._explicit:
            self._explicit[short] = [calls(strip, self.lowered.n, True, short) for strip in self.lowered.strips]
        return self._explicit[short]

    def mask(self, call: Call, dtype: torch.dtype) -> Mask | None:
        if call.mask is None:
            return None
        key = (call, dtype)
        if key not in self._masks:
            self._masks[key] = Mask.of(call.mask, dtype)
        return self._masks[key]


class _ColumnBlocks:
    """Blocks of rows with the columns they share, and the mask that leaves out what the strips have."""

    def __init__(self, lowered: Lowered):
        assert lowered.columns is not None
        self.lowered, self.columns = lowered, lowered.columns
        self.cols = torch.from_numpy(lowered.columns.cols).long()
        self.ends = [(s.modulus, torch.from_numpy(s.lo), torch.from_numpy(s.hi)) for s in lowered.strips]
        self._kept: dict[tuple[int, torch.dtype], Mask | None] = {}
        self._keep = lowered.columns.pairs <= _KEPT_PAIRS

    def blocks(self) -> Iterator[tuple[int, int, Tensor]]:
        c: Columns = self.columns
        for g in range(len(c.starts) - 1):
            cols = self.cols[c.pointer[g] : c.pointer[g + 1]]
            for r0 in range(int(c.starts[g]), int(c.starts[g + 1]), _COLUMN_ROWS):
                r1 = min(r0 + _COLUMN_ROWS, int(c.starts[g + 1]))
                here = cols[: int(torch.searchsorted(cols, r1 - 1, right=True))] if self.lowered.causal else cols
                if len(here):
                    yield r0, r1, here

    def mask(self, r0: int, r1: int, cols: Tensor, pad: Tensor | None, dtype: torch.dtype) -> Mask | None:
        """The mask over (rows, cols), None when everything counts; kept for the next call where small."""
        if pad is None and (r0, dtype) in self._kept:
            return self._kept[r0, dtype]
        keep = self._pairs(r0, r1, cols)
        if pad is not None:
            keep = pad[cols][None, :].expand(r1 - r0, -1) if keep is None else keep & pad[cols][None, :]
        mask = None if keep is None or bool(keep.all()) else Mask.of(keep, dtype)
        if pad is None and self._keep:
            self._kept[r0, dtype] = mask
        return mask

    def _pairs(self, r0: int, r1: int, cols: Tensor) -> Tensor | None:
        keep, row, col = None, torch.arange(r0, r1)[:, None], cols[None, :]
        if self.lowered.causal and int(cols[-1]) > r0:
            keep = col <= row
        for modulus, lo, hi in self.ends:
            held = (col >= lo[r0:r1, None]) & (col <= hi[r0:r1, None])
            held = held & ((col - row) % modulus == 0) if modulus > 1 else held
            keep = ~held if keep is None else keep & ~held
        return keep


def forward(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, pieces: CpuPieces, options: CallOptions
) -> Tensor:
    """Fill ``out`` (batch, heads, n, D) and ``lse`` (batch, heads, n), and return what rounding took from ``lse``; the
    heads of k and v may be fewer.

    torch's kernel takes a query that holds no number for one without keys. So such a query is replaced, which tells
    whether the row has keys, and if it has, the row is made of what the query is made of.
    """
    if not bool(torch.isfinite(q).all()):
        bad = ~torch.isfinite(q).all(-1)
        lost = forward(torch.nan_to_num(q, 0.0, 0.0, 0.0), k, v, out, lse, pieces, options)
        bad &= lse != -torch.inf
        out[bad], lse[bad] = torch.nan, torch.nan
        return lost
    group, lost = q.shape[1] // k.shape[1], torch.zeros_like(lse)
    for r in range(group):
        mine = slice(r, None, group)
        sums = [lse, lost] if group == 1 else [x[:, mine].contiguous() for x in (lse, lost)]
        parts = _flat(options.pad is not None, q[:, mine], k, v, out[:, mine], *sums)
        for index, (q3, k3, v3, out3, lse3, lost3) in enumerate(parts):
            part = _Part(pieces, options, index, index * group * q3.shape[0] + r, group)
            _forward(q3, k3, v3, out3, (lse3, lost3), part)
        if group > 1:
            lse[:, mine], lost[:, mine] = sums
    return lost


@dataclass(frozen=True, eq=False)
class _Part:
    """What is run at once: a sequence with padding of its own, or (without padding) the whole batch."""

    pieces: CpuPieces
    options: CallOptions
    index: int
    head0: int  # number of the first head, counted through batch and heads
    group: int  # the next head has the number head0 + group

    @property
    def pad(self) -> Tensor | None:
        return None if self.options.pad is None else self.options.pad[self.index]

    @property
    def opened(self) -> bool:
        """Whether logits are computed in the open."""
        return self.options.cap > 0 or self.options.bias is not None

    @property
    def bias(self) -> Tensor | None:
        """(heads, 2n − 1), of the heads at hand."""
        return None if self.options.bias is None else self.options.bias[self.head0 % self.group :: self.group]

    def softmax(self, mask: Mask | None, causal: bool, row: Tensor, key: Tensor, many: int) -> Softmax:
        """Of the pairs of the tokens ``row`` and ``key``, for ``many`` heads of some sequences."""
        if not self.opened:
            return Softmax(self.options.scale, mask, causal)
        bias, n = self.bias, self.pieces.lowered.n
        if bias is not None:
            bias = bias[:, key[None, :] - row[:, None] + n - 1].repeat(many // len(bias), 1, 1)[:, None]
        return Softmax(self.options.scale, mask, causal, Change(self.options.cap, bias))

    def listed(self, kind: Any) -> tuple[Any, ...]:
        """Padding, scale, cap and bias as the kernels of listed entries take them."""
        import numpy as np

        pad = np.ones(self.pieces.lowered.n, np.uint8) if self.pad is None else self.pad.to(torch.uint8).numpy()
        bias = np.zeros((1, 1), kind) if self.bias is None else self.bias.contiguous().numpy().astype(kind, copy=False)
        return pad, kind(self.options.scale), kind(self.options.cap), self.bias is not None, bias


def _forward(q, k, v, out, sums: tuple[Tensor, Tensor], part: _Part) -> None:
    """Fill ``out`` and ``sums``, the two numbers of each log-sum-exp; the second are zeros until then."""
    (lse, lost), pieces, options, pad = sums, part.pieces, part.options, part.pad
    entries = pieces.lowered.entries
    every_row_listed = entries is not None and len(entries.rows) == q.shape[1]
    only_entries = not pieces.calls and pieces.columns is None and every_row_listed
    wide = out if out.dtype in (torch.float32, torch.float64) and out.is_contiguous() else torch.empty(
        out.shape, dtype=lse.dtype
    )  # fmt: skip
    if not only_entries:  # a row that no piece has sees no key: 0, and the logarithm of 0
        wide.zero_()
        lse.fill_(-torch.inf)
    fresh = True
    for strip in pieces.strip_calls(pad is not None, part.opened):
        for call in strip:
            for c0, c1, mask in _slices(call, part, q):
                views = call.take_rows(q, c0, c1), call.take_keys(k, c0, c1), call.take_keys(v, c0, c1)
                piece = _attend(*views, part.softmax(mask, call.causal, *call.tokens, len(q)))
                merge([call.take_rows(x, c0, c1) for x in (wide, lse, lost)], piece, fresh)
        fresh = False
    if pieces.columns is not None:
        for r0, r1, cols in pieces.columns.blocks():
            mask = pieces.columns.mask(r0, r1, cols, pad, q.dtype)
            softmax = part.softmax(mask, False, torch.arange(r0, r1), cols, len(q))
            piece = _attend(q[:, None, r0:r1], k[:, None, cols], v[:, None, cols], softmax)
            merge([x[:, None, r0:r1] for x in (wide, lse, lost)], piece, fresh)
        fresh = False
    if entries is not None:
        kind = _work(lse)
        _numba().entries_forward(
            *(x.detach().to(lse.dtype).contiguous().numpy() for x in (q, k, v)),
            *(x.numpy() for x in (wide, lse, lost)), *_lists(entries), *part.listed(kind), not fresh,
            *_noise(options, kind), part.head0, part.group,
        )  # fmt: skip
    if pieces.rows is not None:
        rows = pieces.rows
        mask = _row_mask(pieces.lowered.causal, rows, pad, q)
        softmax = part.softmax(mask, False, rows, torch.arange(k.shape[1]), len(q))
        piece = _attend(q[:, None, rows], k[:, None], v[:, None], softmax)
        for x, new in zip((wide, lse, lost), piece, strict=True):
            x[:, rows] = new[:, 0].to(x.dtype)
    if wide is not out:
        out.copy_(wide)


def backward(
    do: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, sums: Sums, pieces: CpuPieces, options: CallOptions
) -> tuple[Tensor, Tensor, Tensor]:
    lse, lost = sums.lse, torch.zeros_like(sums.lse) if sums.lost is None else sums.lost
    do = (do.to(lse.dtype) * torch.exp(-lost)[..., None]).to(do.dtype)
    dq, dk, dv = (torch.zeros(x.shape, dtype=lse.dtype) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    for r in range(group):
        mine = slice(r, None, group)
        own = dq if group == 1 else torch.zeros(k.shape, dtype=lse.dtype)
        rows = (x if group == 1 else x[:, mine] for x in (q, out, lse, lost, do))
        parts = _flat(options.pad is not None, *rows, k, v, own, dk, dv)
        for index, (q3, o3, lse3, lost3, g3, k3, v3, *grads3) in enumerate(parts):
            part = _Part(pieces, options, index, index * group * q3.shape[0] + r, group)
            _backward(g3, q3, k3, v3, o3, (lse3, lost3), grads3, part)
        if group > 1:
            dq[:, mine] = own
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)


def _backward(do, q, k, v, out, sums: tuple[Tensor, Tensor], grads: list[Tensor], part: _Part) -> None:
    """Add to ``grads``, of q, k and v."""
    (lse, lost), (dq, dk, dv), pieces, options, pad = sums, grads, part.pieces, part.options, part.pad
    true = torch.where(lse == -torch.inf, torch.inf, lse)  # an empty row: P = exp(−inf) = 0
    lse = true
    if pieces.rows is not None:  # the other pieces leave these rows alone
        lse = true.index_fill(1, pieces.rows, torch.inf)
    for strip in pieces.strip_calls(pad is not None, part.opened):
        for call in strip:
            for c0, c1, mask in _slices(call, part, q):
                keys = call.take_keys(k, c0, c1), call.take_keys(v, c0, c1)
                g, rows, o, *known = [call.take_rows(x, c0, c1) for x in (do, q, out, lse, lost)]
                softmax = part.softmax(mask, call.causal, *call.tokens, len(q))
                gq, gk, gv = _attend_backward(g, rows, *keys, o, known, softmax)
                call.take_rows(dq, c0, c1).add_(gq)
                call.add_keys(dk, gk, c0, c1)
                call.add_keys(dv, gv, c0, c1)
    if pieces.columns is not None:
        for r0, r1, cols in pieces.columns.blocks():
            mask = pieces.columns.mask(r0, r1, cols, pad, q.dtype)
            g, rows, o, *known = [x[:, None, r0:r1] for x in (do, q, out, lse, lost)]
            keys = k[:, None, cols], v[:, None, cols]
            softmax = part.softmax(mask, False, torch.arange(r0, r1), cols, len(q))
            gq, gk, gv = _attend_backward(g, rows, *keys, o, known, softmax)
            dq[:, r0:r1].add_(gq[:, 0])
            dk.index_add_(1, cols, gk[:, 0].to(dk.dtype))
            dv.index_add_(1, cols, gv[:, 0].to(dv.dtype))
    entries = pieces.lowered.entries
    if entries is not None:
        kind = _work(lse)
        delta = (do.to(lse.dtype) * out.to(lse.dtype)).sum(-1)
        _numba().entries_backward(
            *(x.detach().to(lse.dtype).contiguous().numpy() for x in (do, q, k, v, lse, lost, delta)),
            dq.numpy(), dk.numpy(), dv.numpy(), *_lists(entries), *part.listed(kind),
            *_noise(options, kind), part.head0, part.group,
        )  # fmt: skip
    if pieces.rows is not None:
        rows = pieces.rows
        mask = _row_mask(pieces.lowered.causal, rows, pad, q)
        g, own, o, *known = [x[:, None, rows] for x in (do, q, out, true, lost)]
        softmax = part.softmax(mask, False, rows, torch.arange(k.shape[1]), len(q))
        gq, gk, gv = _attend_backward(g, own, k[:, None], v[:, None], o, known, softmax)
        dq[:, rows] += gq[:, 0].to(dq.dtype)
        dk.add_(gk[:, 0])
        dv.add_(gv[:, 0])


# ---- parts of a call ---------------------------------------------------------------------------------------------


def _slices(call: Call, part: _Part, q: Tensor):
    """(first chunk, last chunk + 1, mask); padding makes the mask differ from chunk to chunk."""
    if part.pad is None and not part.opened:
        yield 0, call.chunks, part.pieces.mask(call, q.dtype)
        return
    count = max(1, _MASKED_PAIRS // max(1, call.rows * call.keys * (len(q) if part.opened else 1)))
    for c0 in range(0, call.chunks, count):
        c1 = min(c0 + count, call.chunks)
        if part.pad is None:
            yield c0, c1, part.pieces.mask(call, q.dtype)
            continue
        keep = call.take_keys(part.pad[None], c0, c1)[:, :, None].expand(-1, -1, call.rows, -1)
        yield c0, c1, Mask.of(keep if call.mask is None else keep & call.mask, q.dtype)


def _row_mask(causal: bool, rows: Tensor, pad: Tensor | None, q: Tensor) -> Mask | None:
    n = q.shape[1]
    keep = torch.arange(n)[None, :] <= rows[:, None] if causal else None
    if pad is not None:
        keep = pad[None, :].expand(len(rows), n) if keep is None else keep & pad[None, :]
    return None if keep is None else Mask.of(keep, q.dtype)


# ---- shapes and types -----------------------------------------------------------------------------------------


def _flat(one_by_one: bool, *tensors: Tensor) -> list[list[Tensor]]:
    """(batch, heads, n, …) → one list of (batch·heads, n, …) views, or one list per batch item where no view exists."""
    b, heads = tensors[0].shape[:2]
    if not one_by_one and all(b == 1 or x.stride(0) == heads * x.stride(1) for x in tensors):
        return [[x.reshape(b * heads, *x.shape[2:]) for x in tensors]]
    return [[x[i] for x in tensors] for i in range(b)]


def _work(lse: Tensor):
    import numpy as np

    return np.float64 if lse.dtype == torch.float64 else np.float32


def _numba() -> Any:
    """The compiled kernels, keeping to the number of threads that PyTorch was given."""
    from thereexists.attention import entries_numba

    entries_numba.set_threads(torch.get_num_threads())
    return entries_numba


def _lists(entries):
    return entries.rows, entries.indptr, entries.indices


def _noise(options: CallOptions, kind):
    import numpy as np

    seed, threshold = np.uint64(options.seed & (2**64 - 1)), np.uint64(options.threshold)
    return options.dropout > 0, seed, threshold, kind(options.gain)
