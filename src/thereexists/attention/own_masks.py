"""A model's own mask, read as a pattern: windows, chunks and packed sequences are intervals with rising ends.

transformers builds a mask from functions (batch, head, query, key) → Boolean, joined by "and" and "or". The ones it
ships are closures with a name and a few numbers, and each says: row k sees an interval. So do several at once. What is
read here is compared with the function itself at the ends of its intervals before it is believed, once for each set of
numbers: should a version of transformers mean something else by the same name, the function is not understood. A mask
that is not understood (images among text, say) is evaluated pair by pair, by transformers itself, and used as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thereexists.patterns import Step
from thereexists.patterns.intervals import Documents, Meet
from thereexists.patterns.parts import Band, BlockBand, IntervalPart, Rect


@dataclass(frozen=True, eq=False)
class Own:
    """What a model's mask says about positions; padding is another matter."""

    causal: bool = False
    window: int | None = None  # j > k − window
    around: int | None = None  # |j − k| ≤ around
    chunk: int | None = None  # the same chunk, counted from ``skipped[b]``
    skipped: tuple[int, ...] = ()
    documents: Tensor | None = None  # (batch, n), numbers that never fall

    @property
    def plain(self) -> bool:
        return self.window is None and self.around is None and self.chunk is None and self.documents is None

    def groups(self, batch: int, start: int, n: int) -> list[tuple[list[int] | None, Step]]:
        """Which sequences of the batch (None: all) share which step, for the n tokens from ``start`` on."""
        if self.documents is None and len(set(self.skipped)) <= 1:
            return [(None, self.step(n, (start - (self.skipped or (0,))[0]), None))]
        return _apart(self, batch, start, n)

    def step(self, n: int, shift: int, starts: bytes | None) -> Step:
        shift = shift % self.chunk if self.chunk else 0
        return _step(n, self.causal, self.window, self.around, self.chunk, shift, starts)


_uncompiled: Any = torch.compiler.disable


@_uncompiled  # where documents begin is asked in NumPy: a compiled model leaves its graph here
def _apart(own: Own, batch: int, start: int, n: int) -> list[tuple[list[int] | None, Step]]:
    ids = None if own.documents is None else own.documents.cpu().numpy()
    keys = [
        ((own.skipped or (0,) * batch)[b], None if ids is None else _starts(ids[b % len(ids), start : start + n]))
        for b in range(batch)
    ]
    alike: dict[Any, list[int]] = {}
    for b, key in enumerate(keys):
        alike.setdefault(key, []).append(b)
    return [
        (members if len(alike) > 1 else None, own.step(n, start - key[0], key[1])) for key, members in alike.items()
    ]


@lru_cache(maxsize=64)
def _step(
    n: int, causal: bool, window: int | None, around: int | None, chunk: int | None, shift: int, starts: bytes | None
) -> Step:
    """Kept: layers and calls that say the same share the plan."""
    parts: list[IntervalPart] = []
    if window is not None:
        parts.append(Band(1 - window, 0 if causal else n))
    if around is not None:
        parts.append(Band(-around, around))
    if chunk is not None:
        parts.append(BlockBand(chunk, shift=shift))
    if starts is not None:
        parts.append(Documents(np.frombuffer(starts, np.int64)))
    if not parts:
        return Step(n, (Rect(range(n), range(n)),), causal)
    part = parts[0]
    for other in parts[1:]:
        part = Meet(part, other)
    return Step(n, (part,), causal)


def _starts(ids: np.ndarray) -> bytes:
    """Where documents begin."""
    return np.concatenate(([0], np.flatnonzero(np.diff(ids)) + 1)).astype(np.int64).tobytes()


def read(mask_function: Any) -> Own | None:
    """What the function says; None where it is not understood."""
    own = Own()
    for leaf in _leaves(mask_function):
        name, values = _named(leaf), _held(leaf)
        if name == "causal_mask_function":
            own = replace(own, causal=True)
        elif name == "sliding_window_overlay" and _number(values, "sliding_window") and own.window is None:
            own = replace(own, window=values["sliding_window"])
        elif name == "sliding_window_bidirectional_overlay" and _number(values, "sliding_window", 0):
            own = replace(own, around=values["sliding_window"])
        elif name == "chunked_overlay" and _number(values, "chunk_size") and values["left_padding"].ndim == 1:
            own = replace(own, chunk=values["chunk_size"], skipped=tuple(values["left_padding"].tolist()))
        elif name == "packed_sequence_mask_function":
            rise = _rises(values["packed_sequence_mask"])
            if rise is None or (rise and not _means(leaf, name, values)):
                return None
            own = replace(own, documents=values["packed_sequence_mask"]) if rise else own
            continue
        elif name != "bidirectional_mask_function":
            return None
        if not _means(leaf, name, values):
            return None
    return own


def _leaves(function: Any) -> Iterator[Any]:
    """The functions that are joined by "and"; another closure is one itself."""
    inner = _held(function).get("mask_functions") if _named(function) == "and_masks" else None
    if inner is None:
        yield function
        return
    for each in inner:
        yield from _leaves(each)


def _named(function: Any) -> str:
    """The name of a function of transformers' masking_utils, or of the function there that made it."""
    if getattr(function, "__module__", None) != "transformers.masking_utils":
        return ""
    return getattr(function, "__qualname__", "").partition(".")[0]


def _held(function: Any) -> dict[str, Any]:
    cells = getattr(function, "__closure__", None) or ()
    return (
        dict(zip(function.__code__.co_freevars, (cell.cell_contents for cell in cells), strict=True)) if cells else {}
    )


def _number(values: dict[str, Any], name: str, least: int = 1) -> bool:
    return type(values.get(name)) is int and values[name] >= least


@_uncompiled  # a compiled model hands over documents whether there are several or not: here it leaves its graph
def _rises(ids: Tensor) -> bool | None:
    """Whether the numbers of documents rise, so that there are several; None where they fall: a document is one piece
    of the sequence.
    """
    steps = ids.long().diff(dim=-1)
    return None if ids.ndim != 2 or bool((steps < 0).any()) else bool((steps > 0).any())


_BELIEVED: set[tuple[Any, ...]] = set()  # (code, numbers) of functions that were compared with what is read


def _means(function: Any, name: str, values: dict[str, Any]) -> bool:
    """Whether the function says what its name does, at the pairs where that changes."""
    numbers = tuple(x for x in values.values() if isinstance(x, int))
    if (function.__code__, numbers) in _BELIEVED:
        return True
    held = next((x.device for x in values.values() if isinstance(x, Tensor)), torch.device("cpu"))
    with held:  # tensors that are made here lie where those of the function do
        same = _says(function, name, values, numbers[0] if numbers else 1)
    if same and len(_BELIEVED) < 1 << 12:
        _BELIEVED.add((function.__code__, numbers))
    return same


def _says(function: Any, name: str, values: dict[str, Any], w: int) -> bool:
    step = torch.tensor([0, 1, 2, w - 1, w, w + 1, 2 * w])
    zero, at = torch.zeros((), dtype=torch.long), 4 * w + 3
    if name == "chunked_overlay":
        at = int(values["left_padding"][0]) + 5 * w
        k, j = (at + torch.tensor([-1, 0, 1, w - 1]))[:, None], at + torch.cat((-step, step))
        want = (k - at) // w == (j - at) // w
    elif name == "packed_sequence_mask_function":
        ids = values["packed_sequence_mask"]
        k, j = torch.arange(1, ids.shape[1]), torch.arange(ids.shape[1] - 1)
        want = ids[0, 1:] == ids[0, :-1]
    else:
        k, j = torch.tensor(at), at + torch.cat((-step, step))
        want = {
            "causal_mask_function": j <= k,
            "bidirectional_mask_function": torch.ones_like(j, dtype=torch.bool),
            "sliding_window_overlay": j > k - w,
            "sliding_window_bidirectional_overlay": (j - k).abs() <= w,
        }[name]
    return torch.equal(function(zero, zero, k, j).expand_as(want), want)
