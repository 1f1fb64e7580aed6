"""Runs a lowered step with the Triton kernels: forward with log-sum-exp, backward from the merged one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thereexists.attention import kernels_backward, kernels_forward, launching, window_backend
from thereexists.attention.call_options import CallOptions
from thereexists.attention.launching import Tape
from thereexists.attention.lower import Entries, Lowered
from thereexists.attention.tiles import Launch, column_runs, key_tiles, launches, row_tiles
from thereexists.attention.window_backend import LOG2E, padded, precision

TAKES = frozenset({"grouped"})  # what the operator need not do in its place
fwd: Any = kernels_forward  # launching a kernel is not the call that its signature describes
bwd: Any = kernels_backward


@dataclass(frozen=True)
class Blocks:
    """Tile sizes and launch settings of one kernel."""

    m: int
    n: int
    warps: int
    stages: int


WHOLE = Blocks(64, 64, 4, 3)  # forward: classes and blocks, whose tiles need no mask
WINDOW = Blocks(64, 64, 4, 3)  # forward: everything else that is tiled
COLUMNS = Blocks(64, 64, 4, 3)  # forward: listed columns without a window
DQ = Blocks(128, 64, 4, 3)
DKDV = Blocks(64, 128, 4, 3)
ENTRIES = Blocks(1, 32, 1, 2)


def _blocks(base: Blocks, q: Tensor, longest: int) -> Blocks:
    """Smaller tiles for float32 (shared memory), wide heads, and short classes."""
    m, n = base.m, base.n
    if q.dtype == torch.float32 or q.shape[-1] > 64:
        m, n = min(m, 64), min(n, 64 if q.dtype != torch.float32 else 32)
    if q.dtype == torch.float32 and q.shape[-1] > 64:
        m, n = min(m, 32), min(n, 32)
    fit = max(16, 1 << (longest - 1).bit_length())
    return Blocks(min(m, fit), min(n, fit), base.warps, base.stages)


class TritonPieces:
    """A lowered step with its tables on one device. Tables depend on tile sizes, so they are made on first use."""

    def __init__(self, lowered: Lowered, device: torch.device):
        self.lowered, self.device = lowered, device
        self.window = lowered.window
        self.launches = launches(lowered)
        self._tables: dict[Any, Tensor] = {}
        self._edges: dict[tuple[Launch, int, int], bool] = {}
        self.entries = _Lists(lowered.entries, device) if lowered.entries is not None else None
        self._transposed: _Lists | None = None
        self.rows = None if lowered.rows is None else self.tensor(lowered.rows)
        self.pieces = len(self.launches) + (self.entries is not None)
        listed = lowered.entries is not None and len(lowered.entries.rows) == lowered.n
        self.every_row = bool(self.launches) or listed  # the tiles of a launch are all rows, with keys or without

    @property
    def recordable(self) -> bool:
        """Whether a plain forward pass is nothing but launches: no rows to be cleared first, no buffers between."""
        return self.every_row and self.rows is None

    def tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, np.int32)).to(self.device)

    def table(self, name: str, launch: Launch, blocks: Blocks) -> Tensor:
        key = (name, launch, blocks.m, blocks.n)
        if key not in self._tables:
            n, causal = self.lowered.n, self.lowered.causal
            if name == "rows":
                made = row_tiles(launch, n, causal, blocks.m, blocks.n)
                edges = bool((made[:, 3] != made[:, 4]).any() or (made[:, 5] != made[:, 6]).any())
                self._edges[launch, blocks.m, blocks.n] = edges
            elif name == "keys":
                assert launch.strip is not None
                made = key_tiles(launch.strip, n, blocks.n)
            else:
                assert launch.columns is not None
                made = column_runs(launch.columns, n, causal, blocks.n)
            self._tables[key] = self.tensor(made)
        return self._tables[key]

    def ends(self, launch: Launch) -> tuple[Tensor, Tensor]:
        """``lo`` and ``hi`` of the launch's strip, or of the strip that its columns leave out."""
        key = ("ends", launch)
        if key not in self._tables:
            strip = launch.strip or launch.outside
            self._tables[key] = self.tensor(np.stack([strip.lo, strip.hi]))
        both = self._tables[key]
        return both[0], both[1]

    def edges(self, launch: Launch, blocks: Blocks) -> bool:
        """Whether some row tile has keys that need a mask."""
        self.table("rows", launch, blocks)
        return self._edges[launch, blocks.m, blocks.n]

    def kind(self, launch: Launch) -> Blocks:
        """The tile sizes that suit the launch."""
        if launch.strip is None or launch.own:
            return COLUMNS
        return WINDOW if launch.columns is not None or self.edges(launch, WHOLE) else WHOLE

    def listed(self, launch: Launch) -> Tensor:
        """One byte a token: is it a listed column?"""
        if not launch.own or launch.columns is None:
            return self.ends(launch)[0]
        key = ("listed", launch)
        if key not in self._tables:
            table = np.zeros(self.lowered.n, np.uint8)
            table[launch.columns.cols] = 1
            self._tables[key] = torch.from_numpy(table).to(self.device)
        return self._tables[key]

    def cols(self, launch: Launch) -> Tensor:
        if launch.columns is None:
            return self.ends(launch)[0]
        key = ("cols", launch)
        if key not in self._tables:
            self._tables[key] = self.tensor(launch.columns.cols)
        return self._tables[key]

    def longest(self, launch: Launch) -> int:
        return -(-self.lowered.n // launch.modulus)

    @property
    def transposed(self) -> _Lists:
        if self._transposed is None:
            assert self.lowered.entries is not None
            self._transposed = _Lists(self.lowered.entries.transposed(), self.device)
        return self._transposed


class _Lists:
    def __init__(self, entries: Entries, device: torch.device):
        def put(array, dtype):
            return torch.from_numpy(np.ascontiguousarray(array, dtype)).to(device)

        self.rows, self.indices = put(entries.rows, np.int32), put(entries.indices, np.int32)
        self.indptr = put(entries.indptr, np.int64 if entries.indptr[-1] >= 2**31 else np.int32)


def _flags(q: Tensor, launch: Launch, options: CallOptions, pieces: TritonPieces, blocks: Blocks) -> dict[str, Any]:
    return {
        "D": q.shape[-1],
        "SKIP": launch.skip,
        "EX_MODULUS": launch.outside.modulus,
        "CAUSAL": pieces.lowered.causal,
        "PAD": options.pad is not None,
        "DROPOUT": options.dropout > 0,
        "PRECISION": precision(q),
        "BLOCK_M": blocks.m,
        "BLOCK_N": blocks.n,
        "BLOCK_D": padded(q.shape[-1]),
        "num_warps": blocks.warps,
        "num_stages": blocks.stages,
    }


def _pad(options: CallOptions, lse: Tensor) -> Tensor:
    """Bytes the kernels can load; without padding any tensor will do, it is not read."""
    return lse if options.pad is None else options.pad.view(torch.uint8)


def _plain_window(pieces: TritonPieces, options: CallOptions) -> tuple[int, int] | None:
    return pieces.window if options.pad is None and options.dropout == 0 else None


def _up(x: int, multiple: int) -> int:
    return -(-x // multiple) * multiple


def _outer(x: Tensor) -> tuple[int, int, int]:
    return x.stride(0), x.stride(1), x.stride(2)


def forward(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, pieces: TritonPieces, options: CallOptions,
    tape: Tape | None = None,
) -> None:  # fmt: skip
    """Fill ``out`` (batch, heads, n, D) and ``lse`` (batch, heads, n, float32, contiguous).

    k and v may have fewer heads, which several query heads share. On the ``tape`` are all launches of ``recordable``
    pieces.
    """
    if (window := _plain_window(pieces, options)) is not None:
        return window_backend.forward(q, k, v, out, lse, window, options.scale, tape)
    b, heads, n, d = q.shape
    programs, group = b * heads, heads // k.shape[1]
    pad = _pad(options, lse)
    scale = options.scale * LOG2E
    noise = (options.seed, options.threshold, options.gain)
    strides = (*_outer(q), *_outer(k), *_outer(v))
    merged = False
    if not pieces.every_row:  # a row that no piece has sees no key: 0, and the logarithm of 0
        out.zero_()
        lse.fill_(-torch.inf)
    numbers = (*strides, *_outer(out), heads, group, n, scale, *noise)
    for part in pieces.launches:
        blocks = _blocks(pieces.kind(part), q, pieces.longest(part))
        tiles = pieces.table("rows", part, blocks)
        tables = (tiles, *pieces.ends(part), pieces.cols(part), pieces.listed(part))
        constants = {
            "MODULUS": part.modulus, "STRIP": part.strip is not None and not part.own,
            "COLUMNS": part.columns is not None, "OWN": part.own, "STEP": part.step,
            "EDGES": pieces.edges(part, blocks), "ACCUMULATE": merged,
            "WHOLE_MASKED": options.pad is not None or part.skip > 0,
            **_flags(q, part, options, pieces, blocks),
        }  # fmt: skip
        args = (q, k, v, out, lse, *tables, pad, *numbers)
        launching.launch(fwd.tiles_forward, (len(tiles), programs), args, constants, tape)
        merged = True
    if pieces.entries is not None:
        lists = pieces.entries
        constants = {
            "D": d, "PAD": options.pad is not None, "DROPOUT": options.dropout > 0, "ACCUMULATE": merged,
            "BLOCK_E": ENTRIES.n, "BLOCK_D": padded(d), "num_warps": ENTRIES.warps, "num_stages": ENTRIES.stages,
        }  # fmt: skip
        args = (q, k, v, out, lse, lists.rows, lists.indptr, lists.indices, pad, *numbers)
        launching.launch(fwd.entries_forward, (len(lists.rows), programs), args, constants, tape)
    if pieces.rows is not None:
        _full_rows(q, k, v, out, lse, pieces, options)


def _full_rows(q, k, v, out, lse, pieces: TritonPieces, options: CallOptions) -> None:
    """Rows that see everything: enough chunks of the keys to fill the device, then one merge of the chunks."""
    assert pieces.rows is not None
    b, heads, n, d = q.shape
    rows = pieces.rows
    count, programs = len(rows), b * heads
    blocks = _blocks(Blocks(64, 64, 4, 2), q, max(count, 16))
    tiles = -(-count // blocks.m)
    chunks = max(1, min(-(-n // 512), 1024 // max(1, tiles * programs)))  # enough programs for the device
    chunk = _up(_up(n, chunks) // chunks, blocks.n)
    chunks = -(-n // chunk)
    o_part = torch.empty(chunks, b, heads, count, d, dtype=torch.float32, device=q.device)
    l_part = torch.empty(chunks, b, heads, count, dtype=torch.float32, device=q.device)
    pad = _pad(options, lse)
    fwd.rows_forward[(chunks * tiles, programs)](
        q, k, v, o_part, l_part, rows, pad, *_outer(q), *_outer(k), *_outer(v),
        heads, heads // k.shape[1], n, count, chunk,
        options.scale * LOG2E, options.seed, options.threshold, options.gain,
        D=d, CAUSAL=pieces.lowered.causal, PAD=options.pad is not None, DROPOUT=options.dropout > 0,
        PRECISION=precision(q),
        BLOCK_M=blocks.m, BLOCK_N=blocks.n, BLOCK_D=padded(d), num_warps=blocks.warps, num_stages=blocks.stages,
    )  # fmt: skip
    fwd.rows_merge[(count, programs)](
        o_part, l_part, out, lse, rows, *_outer(out), heads, n, count, chunks,
        D=d, BLOCK_C=1 << (chunks - 1).bit_length(), BLOCK_D=padded(d), num_warps=4,
    )  # fmt: skip


def backward(
    do: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, pieces: TritonPieces, options: CallOptions
) -> tuple[Tensor, Tensor, Tensor]:
    """dq, dk, dv; of a key head that query heads share, dk and dv are their sum (windows) or one for each of them."""
    if (window := _plain_window(pieces, options)) is not None:
        return window_backend.backward(do, q, k, v, out, lse, window, options.scale)
    b, heads, n, d = q.shape
    programs, group = b * heads, heads // k.shape[1]
    pad = _pad(options, lse)
    scale, final = options.scale * LOG2E, options.scale
    noise = (options.seed, options.threshold, options.gain)
    do = do if do.stride(-1) == 1 else do.contiguous()
    strides = (*_outer(q), *_outer(k), *_outer(v), *_outer(do))
    delta = torch.empty_like(lse)
    bwd.row_dots[(-(-n // 128), programs)](
        do, out, delta, *_outer(do), *_outer(out), heads, n, D=d, BLOCK=128, BLOCK_D=padded(d), num_warps=4
    )
    true = torch.where(lse == -torch.inf, torch.inf, lse)  # an empty row: P = exp(−inf) = 0
    lse = true
    if pieces.rows is not None:  # the other pieces leave these rows alone
        lse = true.index_fill(2, pieces.rows.long(), torch.inf)

    alone = pieces.pieces == 1 and pieces.rows is None
    strips = [launch for launch in pieces.launches if launch.strip is not None]
    direct = alone and not any(launch.columns for launch in pieces.launches)
    if alone:
        dq = torch.empty_like(q) if pieces.every_row else torch.zeros_like(q)
    else:
        dq = _grad(q, bool(pieces.launches))
    if direct:
        dk, dv = (torch.empty_like(q) if strips else torch.zeros_like(q) for _ in range(2))
    else:
        dk, dv = (_grad(q, bool(strips)) for _ in range(2))
    q_seen = kv_seen = False
    for launch in pieces.launches:
        blocks = _blocks(DQ, q, pieces.longest(launch))
        tiles = pieces.table("rows", launch, blocks)
        flags = _flags(q, launch, options, pieces, blocks)
        bwd.tiles_dq[(len(tiles), programs)](
            q, k, v, do, lse, delta, dq, tiles, *pieces.ends(launch), pieces.cols(launch), pad,
            *strides, *_outer(dq), heads, group, n, scale, *noise, final,
            MODULUS=launch.modulus, STRIP=launch.strip is not None, COLUMNS=launch.columns is not None,
            ACCUMULATE=q_seen, **flags,
        )  # fmt: skip
        q_seen = True
        if launch.strip is not None:
            blocks = _blocks(DKDV, q, pieces.longest(launch))
            tiles = pieces.table("keys", launch, blocks)
            flags = _flags(q, launch, options, pieces, blocks)
            del flags["EX_MODULUS"], flags["CAUSAL"]
            bwd.strip_dkdv[(len(tiles), programs)](
                q, k, v, do, lse, delta, dk, dv, tiles, *pieces.ends(launch), pad,
                *strides, *_outer(dk), *_outer(dv), heads, group, n, scale, *noise, final,
                MODULUS=launch.modulus, ACCUMULATE=kv_seen, **flags,
            )  # fmt: skip
            kv_seen = True
    for launch in pieces.launches:  # after the strips, which may overwrite what was there
        if launch.columns is not None:
            blocks = _blocks(Blocks(64, 64, 4, 2), q, n)
            runs = pieces.table("columns", launch, blocks)
            bwd.columns_dkdv[(len(runs), programs)](
                q, k, v, do, lse, delta, dk, dv, runs, *pieces.ends(launch), pieces.cols(launch), pad,
                *strides, heads, group, n, scale, *noise, final, **_flags(q, launch, options, pieces, blocks),
            )  # fmt: skip
    if pieces.entries is not None:
        common = {
            "D": d, "PAD": options.pad is not None, "DROPOUT": options.dropout > 0, "BLOCK_E": ENTRIES.n,
            "BLOCK_D": padded(d), "num_warps": ENTRIES.warps, "num_stages": ENTRIES.stages,
        }  # fmt: skip
        lists = pieces.entries
        bwd.entries_dq[(len(lists.rows), programs)](
            q, k, v, do, lse, delta, dq, lists.rows, lists.indptr, lists.indices, pad,
            *strides, *_outer(dq), heads, group, n, scale, *noise, final, ACCUMULATE=not alone, **common,
        )  # fmt: skip
        lists = pieces.transposed
        bwd.entries_dkdv[(len(lists.rows), programs)](
            q, k, v, do, lse, delta, dk, dv, lists.rows, lists.indptr, lists.indices, pad,
            *strides, *_outer(dk), *_outer(dv), heads, group, n, scale, *noise, final, ACCUMULATE=not alone, **common,
        )  # fmt: skip
    if pieces.rows is not None:
        blocks = _blocks(Blocks(32, 64, 4, 2), q, max(len(pieces.rows), 16))
        bwd.rows_backward[(-(-n // blocks.n), programs)](
            q, k, v, do, true, delta, dq, dk, dv, pieces.rows, pad,
            *strides, heads, group, n, len(pieces.rows), scale, *noise, final,
            D=d, CAUSAL=pieces.lowered.causal, PAD=options.pad is not None, DROPOUT=options.dropout > 0,
            PRECISION=precision(q),
            BLOCK_M=blocks.m, BLOCK_N=blocks.n, BLOCK_D=padded(d), num_warps=blocks.warps, num_stages=blocks.stages,
        )  # fmt: skip
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)


def _grad(x: Tensor, written_first: bool) -> Tensor:
    """A float32 accumulator, contiguous (the atomics address it as such); zeroed unless a launch writes all of it."""
    make = torch.empty if written_first else torch.zeros
    return make(x.shape, dtype=torch.float32, device=x.device)
