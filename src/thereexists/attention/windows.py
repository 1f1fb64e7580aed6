"""A strip as a few calls of dense attention on strided views, for the CPU.

One call covers ``chunks`` blocks of ``rows`` rows each, spaced ``step`` tokens apart, that look alike: block c has rows
``first + c·step + i·modulus`` and keys ``key + c·step + w·modulus``, and the same mask over (rows, keys). Interior
chunks of a window all look alike; a residue class is one block per class; only the ends of a window differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thereexists.attention.lower import Strip

_WHOLE = 1024  # a causal class longer than this is cut into chunks when it needs an explicit mask


@dataclass(frozen=True, eq=False)
class Call:
    """One batch of dense attention problems; see the module's docstring."""

    modulus: int
    first: int
    step: int
    chunks: int
    rows: int
    key: int
    keys: int
    mask: Tensor | None = None  # (rows, keys), None = everything
    causal: bool = False  # rows = keys and a triangular mask

    def take_rows(self, x: Tensor, c0: int = 0, c1: int | None = None) -> Tensor:
        """(g, n, …) → (g, chunks, rows, …), a view."""
        return _view(x, self.first, self.step, self.modulus, self.rows, c0, self.chunks if c1 is None else c1)

    def take_keys(self, x: Tensor, c0: int = 0, c1: int | None = None) -> Tensor:
        return _view(x, self.key, self.step, self.modulus, self.keys, c0, self.chunks if c1 is None else c1)

    def add_keys(self, x: Tensor, update: Tensor, c0: int = 0, c1: int | None = None) -> None:
        """``take_keys(x) += update``, though the chunks' keys overlap: piece by piece of what never does."""
        c1 = self.chunks if c1 is None else c1
        apart = self.step // self.modulus if self.step % self.modulus == 0 and self.chunks > 1 else self.keys
        for w in range(0, self.keys, max(apart, 1)):
            here = min(apart, self.keys - w)
            view = _view(x, self.key + w * self.modulus, self.step, self.modulus, here, c0, c1)
            view.add_(update[:, :, w : w + here])

    @property
    def pairs(self) -> int:
        return self.chunks * self.rows * self.keys

    @property
    def tokens(self) -> tuple[Tensor, Tensor]:
        """Rows and keys of the first chunk; the others are as far apart."""
        row = torch.arange(self.first, self.first + self.rows * self.modulus, self.modulus)
        return row, torch.arange(self.key, self.key + self.keys * self.modulus, self.modulus)


def _view(x: Tensor, first: int, step: int, modulus: int, size: int, c0: int, c1: int) -> Tensor:
    s = x.stride(1)
    shape = (x.shape[0], c1 - c0, size, *x.shape[2:])
    stride = (x.stride(0), step * s, modulus * s, *x.stride()[2:])
    return x.as_strided(shape, stride, x.storage_offset() + (first + c0 * step) * s)


def calls(strip: Strip, n: int, explicit: bool = False, short: bool = False) -> list[Call]:
    """The calls that cover the strip; ``explicit``: causal triangles must become masks (padding joins them).

    ``short``: no call has more than ``_WHOLE`` rows, since its logits will be in memory.
    """
    out: list[Call] = []
    m = min(strip.modulus, n)
    lengths = (n - 1 - np.arange(m)) // strip.modulus + 1
    for length in np.unique(lengths):
        classes = np.flatnonzero(lengths == length)  # consecutive: the longer classes come first
        shape = _whole_class(strip, classes, int(length))
        if shape is not None and not (explicit and (shape or short) and length > _WHOLE):
            size, r = int(length), int(classes[0])
            triangle = torch.ones(size, size, dtype=torch.bool).tril() if explicit and shape else None
            out.append(Call(strip.modulus, r, 1, len(classes), size, r, size, triangle, shape and not explicit))
            continue
        for r in classes:
            out.extend(_chunked(strip, int(r), int(length)))
    return out


def _whole_class(strip: Strip, classes: np.ndarray, length: int) -> bool | None:
    """False: these rows see their whole class; True: its causal half; None: neither."""
    if strip.skip:
        return None
    k = np.concatenate([np.arange(r, r + length * strip.modulus, strip.modulus) for r in classes])
    if not (strip.lo[k] <= k % strip.modulus).all():
        return None
    last = k % strip.modulus + (length - 1) * strip.modulus
    if (strip.hi[k] >= last).all():
        return False
    return True if ((strip.hi[k] >= k) & (strip.hi[k] < k + strip.modulus)).all() else None


def _chunked(strip: Strip, r: int, length: int) -> Iterator[Call]:
    m = strip.modulus
    lo = np.clip(-((r - strip.lo[r::m]) // m), 0, length)  # positions along the class
    hi = np.clip((strip.hi[r::m] - r) // m, -1, length - 1)
    rows = chunk_rows(lo, hi)
    alike: dict[bytes, list[int]] = {}
    starts = np.arange(0, length, rows)
    for a in starts:
        stop = min(a + rows, length)
        relative = np.concatenate([lo[a:stop] - a, hi[a:stop] - a])
        alike.setdefault(relative.tobytes(), []).append(int(a))
    for members in alike.values():
        a = members[0]
        stop = min(a + rows, length)
        key0, key1 = int(lo[a]), int(hi[stop - 1]) + 1
        if key1 <= key0:
            continue
        i, j = np.arange(a, stop)[:, None], np.arange(key0, key1)[None, :]
        keep = (j >= lo[a:stop, None]) & (j <= hi[a:stop, None])
        if strip.skip:
            keep &= ((j - i) * m) % strip.skip != 0
        if not keep.any():
            continue
        mask = None if keep.all() else torch.from_numpy(keep)
        for first, step, count in _progressions(members, rows):
            yield Call(m, r + first * m, step * m, count, stop - a, r + (first - a + key0) * m, key1 - key0, mask)


def chunk_rows(lo: np.ndarray, hi: np.ndarray) -> int:
    """Rows of a chunk: whole blocks where rows come in blocks, else a quarter of the window (a fifth is wasted)."""
    same = np.flatnonzero((np.diff(lo) != 0) | (np.diff(hi) != 0)) + 1  # where the interval moves
    runs = np.diff(np.concatenate(([0], same, [len(lo)])))
    if len(runs) > 1 and 16 <= runs[0] <= 512 and (runs[:-1] == runs[0]).all() and runs[-1] <= runs[0]:
        return int(runs[0])
    width = int(np.maximum(hi - lo + 1, 0).max())
    return max(32, min(128, 1 << (max(width // 4, 1) - 1).bit_length()))


def _progressions(members: list[int], rows: int) -> Iterator[tuple[int, int, int]]:
    """Split ascending starts into arithmetic progressions: (first, step, count)."""
    i = 0
    while i < len(members):
        step, j = rows, i + 1
        if j < len(members):
            step = members[j] - members[i]
            while j < len(members) and members[j] - members[j - 1] == step:
                j += 1
        yield members[i], step, j - i
        i = j
