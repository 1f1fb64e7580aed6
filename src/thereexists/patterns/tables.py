"""``contains`` for torch tensors: what a part stores as arrays becomes tensors once, before anything is traced.

FlexAttention compiles a ``mask_mod`` into its kernel. Inside, a tensor may be indexed, but not made: no
``torch.from_numpy``, no assignment, no move between devices. So ``on_device`` makes the tensors and returns a function
that only computes with them: formulas and a few look-ups. Few, because the compiler writes every use of a value out
again: a bisection of r rounds, whose ends are used three times a round, becomes about 3^r loads and never compiles.
Bisections serve tensors that are not traced, and parts that have no table of a bearable size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from thereexists.core.errors import InvalidInput
from thereexists.patterns.intervals import Documents, Meet
from thereexists.patterns.parts import CausalPart, Explicit, Part, Rect, Tokens
from thereexists.patterns.rectangles import RectUnion

if TYPE_CHECKING:
    from thereexists.patterns.step import Step

MOST_CELLS = 1 << 26  # of a table

Contains = Callable[[Any, Any], Any]


def on_device(part: Part, device: torch.device | str, n: int) -> Contains:
    """``part.contains`` for tensors on ``device``, among n tokens."""
    if isinstance(part, CausalPart):
        return _and_not_later(on_device(part.part, device, n))
    if isinstance(part, Meet):
        one, other = on_device(part.one, device, n), on_device(part.other, device, n)
        return lambda k, j: one(k, j) & other(k, j)
    if isinstance(part, Documents):
        number = _tensor(part.number(np.arange(n)), device)
        return lambda k, j: number[k] == number[j]
    if isinstance(part, Rect):
        rows, cols = membership(part.rows, device), membership(part.cols, device)
        return lambda k, j: rows(k) & cols(j)
    if isinstance(part, Explicit):
        return _listed(part, device)
    if isinstance(part, RectUnion):
        return _intervals(part, device)
    return part.contains


def step_on_device(step: Step, device: torch.device | str) -> Contains:
    """``step.contains`` for tensors on ``device``."""
    parts = [on_device(part, device, step.n) for part in step.united]

    def contains(k: Any, j: Any) -> Any:
        found = parts[0](k, j)
        for part in parts[1:]:
            found = found | part(k, j)
        return found

    return _and_not_later(contains) if step.causal else contains


def steps_on_devices(steps: list[Step], device: torch.device | str | None) -> Callable[[Any], list[Contains]]:
    """For each step its ``contains``, chosen by the tensor's kind of device: the one named, or the CPU and the GPU."""
    here = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])] if device is None else [device]
    made = {torch.device(d).type: [step_on_device(step, d) for step in steps] for d in here}

    def choose(x: Tensor) -> list[Contains]:
        kind = x.device.type
        if kind not in made:
            raise InvalidInput(
                f"This mask_mod was made for {', '.join(made)}; got a tensor on {kind}. Give mask_mod(device='{kind}')."
            )
        return made[kind]

    return choose


def _and_not_later(contains: Contains) -> Contains:
    return lambda k, j: contains(k, j) & (j <= k)


def membership(tokens: Tokens, device: torch.device | str) -> Callable[[Any], Any]:
    if isinstance(tokens, range):  # in plain numbers: a tracer does not look into a range
        start, stop, step = tokens.start, tokens.stop, tokens.step
        if step == 1:
            return lambda x: (x >= start) & (x < stop)
        return lambda x: (x >= start) & (x < stop) & ((x - start) % step == 0)
    table = torch.zeros(int(tokens[-1]) + 2 if len(tokens) else 1, dtype=torch.bool)
    table[torch.from_numpy(np.asarray(tokens, np.int64))] = True
    table, top = table.to(device), len(table) - 1  # the last place stands for everything beyond
    return lambda x: table[x.clamp(max=top)]


def _listed(part: Explicit, device: torch.device | str) -> Contains:
    """Row ``k`` is a hash table without collisions: its columns differ modulo ``size[k]``, so one look-up answers."""
    size = _moduli(part)
    if int(size.sum()) > MOST_CELLS:
        return bisected_rows(part, device)
    begin = np.cumsum(size) - size
    row = np.repeat(np.arange(len(size)), np.diff(part.indptr))
    cells = np.full(int(size.sum()), -1)
    cells[begin[row] + part.indices % size[row]] = part.indices
    modulus, start, table = _tensor(size, device), _tensor(begin, device), _tensor(cells, device)
    return lambda k, j: table[start[k] + j % modulus[k]] == j


def _moduli(part: Explicit) -> np.ndarray:
    """For each row a number modulo which its columns differ, tried upwards; the last column plus one always does."""
    counts = np.diff(part.indptr)
    row = np.repeat(np.arange(len(counts)), counts)
    size, most = np.maximum(counts, 1), np.ones(len(counts), np.int64)
    np.maximum.at(most, row, part.indices + 1)
    while True:
        place = (row << 32) + part.indices % size[row]  # tokens are fewer than 2^31, rows too
        order = np.argsort(place, kind="stable")
        clash = np.unique(row[order[1:]][place[order][1:] == place[order][:-1]])
        if not len(clash):
            return size
        size[clash] = np.minimum(size[clash] + size[clash] // 4 + 1, most[clash])


def _intervals(part: RectUnion, device: torch.device | str) -> Contains:
    """Cut the columns at every end of an interval: a class then has all of a segment or nothing of it."""
    if not len(part.first):
        return lambda k, j: (j == k) & (j != k)  # no token sees any
    edges = np.unique(np.concatenate(([0], part.first, part.last + 1)))
    classes, segments = len(part.pointer) - 1, len(edges)
    if classes * segments > MOST_CELLS:
        return bisected_intervals(part, device)
    owner = np.repeat(np.arange(classes), np.diff(part.pointer))
    grid = np.zeros((classes, segments + 1), np.int64)
    grid[owner, np.searchsorted(edges, part.first)] += 1
    grid[owner, np.searchsorted(edges, part.last + 1)] -= 1
    inside = torch.from_numpy(np.cumsum(grid, axis=1)[:, :segments].ravel() > 0).to(device)
    begin = _tensor(part.group * segments, device)
    segment = _tensor(np.searchsorted(edges, np.arange(part.n), "right") - 1, device)
    return lambda k, j: inside[begin[k] + segment[j]]


def bisected_rows(part: Explicit, device: torch.device | str) -> Contains:
    """Bisection inside row ``k``."""
    if not len(part.indices):
        return lambda k, j: (j == k) & (j != k)  # no token sees any
    indptr, indices = _tensor(part.indptr, device), _tensor(part.indices, device)
    rounds, top = int(np.diff(part.indptr).max()).bit_length(), len(part.indices) - 1

    def contains(k: Any, j: Any) -> Any:
        end = indptr[k + 1]
        at = _first_at_least(indices, indptr[k], end, j, rounds, top)
        return (at < end) & (indices[at.clamp(max=top)] == j)

    return contains


def bisected_intervals(part: RectUnion, device: torch.device | str) -> Contains:
    """Bisection among the intervals of the row's class: the first that ends at ``j`` or later must begin by then."""
    if not len(part.first):
        return lambda k, j: (j == k) & (j != k)
    group, pointer = _tensor(part.group, device), _tensor(part.pointer, device)
    first, last = _tensor(part.first, device), _tensor(part.last, device)
    rounds, top = int(np.diff(part.pointer).max()).bit_length(), len(part.first) - 1

    def contains(k: Any, j: Any) -> Any:
        g = group[k]
        end = pointer[g + 1]
        at = _first_at_least(last, pointer[g], end, j, rounds, top)
        return (at < end) & (first[at.clamp(max=top)] <= j)

    return contains


def _first_at_least(values: Tensor, low: Any, high: Any, x: Any, rounds: int, top: int) -> Any:
    """The first place in ``[low, high)`` with a value ≥ x, or ``high``; no control flow depends on the data."""
    for _ in range(rounds):
        middle = (low + high) // 2
        right = (low < high) & (values[middle.clamp(max=top)] < x)
        low, high = torch.where(right, middle + 1, low), torch.where(right, high, torch.minimum(middle, high))
    return low


def _tensor(array: np.ndarray, device: torch.device | str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, np.int64)).to(device)
