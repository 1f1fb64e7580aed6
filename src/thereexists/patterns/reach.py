"""What whoever designs a model asks next: how many layers, which pairs come last, what would one more token change?

    r = te.patterns.reach(te.patterns.check(te.patterns.window(n=4096, window=64)))
    r.layers, r.last, r.sink, r.hub

The layers are the verdict's. The pairs that come last are those that one layer less does not connect: counted exactly
where rows are intervals or n is small, otherwise for a few tokens, and then said so. A *sink* is a token that all
attend to; a *global token* also attends to all. Either is added to every step as token 0, and the depth is
asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from thereexists.core.plain_numbers import seconds_from
from thereexists.patterns.check import PatternVerdict
from thereexists.patterns.depth import receptive_depth
from thereexists.patterns.depth_result import DepthResult
from thereexists.patterns.depth_without_loops import MOST_TOKENS, _times
from thereexists.patterns.parts import Rect, as_causal_part
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step

TARGETS = 32


@dataclass(frozen=True)
class LastPairs:
    """``count`` of ``asked`` pairs ``(k, j)``, in which k sees j only in the last layer; the first few of them.

    ``targets``: how many tokens j were asked about; all n of them when the count is exact.
    """

    count: int
    asked: int
    targets: int
    examples: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Change:
    """What a token added to every step costs, over all steps, and the depth with it."""

    connections: int
    depth: DepthResult


@dataclass(frozen=True, eq=False)
class Reach:
    """The answers; ``last`` is None where one layer is enough or no number of layers is known.

        te.patterns.reach(te.patterns.check(te.patterns.window(n=16, window=2))).layers

    ``hub`` is None for a causal pattern, in which a global token sees no more than a sink does.

    Args:
        n: how many tokens.
        layers: until every token has seen all, None if never.
        last: the pairs that are last to meet.
        sink: what a sink would change.
        hub: what a global token would change.
    """

    n: int
    layers: DepthResult
    last: LastPairs | None
    sink: Change
    hub: Change | None

    def sentences(self) -> tuple[str, ...]:
        lines = [f"layers until the receptive field is full: {layers(self.layers)}"]
        if self.last is not None:
            some = ", ".join(f"{k} sees {j}" for k, j in self.last.examples)
            which = "" if self.last.targets == self.n else f" (asked about {self.last.targets} tokens)"
            lines.append(f"last to come: {self.last.count:,} of {self.last.asked:,} pairs{which}, such as {some}")
        lines.append(f"with a sink, token 0 (+{self.sink.connections:,} connections): {layers(self.sink.depth)}")
        if self.hub is not None:
            lines.append(f"with one global token (+{self.hub.connections:,} connections): {layers(self.hub.depth)}")
        return tuple(lines)

    def to_json(self) -> dict[str, Any]:
        last = self.last
        return {
            "layers": self.layers.depth,
            "last_pairs": None if last is None else {**vars(last), "examples": [list(pair) for pair in last.examples]},
            "with_a_sink": _json(self.sink),
            "with_a_global_token": None if self.hub is None else _json(self.hub),
        }


def layers(found: DepthResult) -> str:
    """The depth in a word or two."""
    if found.depth is not None:
        return str(found.depth)
    if found.never or found.never_full:
        return "never"
    return f"{found.lower} to {found.upper}" if found.upper is not None else f"at least {found.lower}"


def reach(verdict: PatternVerdict, seconds: float = 4.0) -> Reach:
    """The answers for a pattern that was checked, in about ``seconds``.

        te.patterns.reach(te.patterns.check(te.patterns.window(n=16, window=2)))

    Args:
        verdict: what ``te.patterns.check`` said.
        seconds: how long it may take, about.

    Returns:
        How far information goes, and what one more token would change.
    """
    seconds = seconds_from(seconds)
    causal = verdict.causal is not None
    pattern = verdict.pattern if verdict.pattern.heads is None else verdict.pattern.union()
    found = verdict.field_result
    known = found.depth is not None and found.depth > 1
    every_token, first = range(pattern.n), range(1)
    sink = [Rect(every_token, first)]
    return Reach(
        n=pattern.n,
        layers=found,
        last=last_pairs(pattern, causal, found, seconds / 4) if known else None,
        sink=_with(pattern, causal, sink, seconds / 3),
        hub=None if causal else _with(pattern, causal, [*sink, Rect(first, every_token)], seconds / 3),
    )


def _with(pattern: Pattern, causal: bool, parts: list[Rect], seconds: float) -> Change:
    more = Pattern(pattern.name, tuple(_added(step, parts) for step in pattern.steps))
    return Change(sum(more.connections) - sum(pattern.connections), receptive_depth(more, causal, seconds))


def _added(step: Step, parts: list[Rect]) -> Step:
    """The step with these parts too. A causal flag would cut them where they look ahead: it is written out instead.

    (A causal pattern is asked about a sink only, which nobody has to look ahead for.)
    """
    if not step.causal or all(part.cols[-1] <= part.rows[0] for part in parts):
        return replace(step, parts=(*step.parts, *parts))
    return Step(step.n, (*(as_causal_part(part, step.n) for part in step.parts), *parts))


def last_pairs(pattern: Pattern, causal: bool, found: DepthResult, seconds: float) -> LastPairs | None:
    """The pairs that ``found.depth − 1`` layers leave out."""
    n, before = pattern.n, (found.depth or 1) - 1
    ends = [step.interval_rows() for step in pattern.steps]
    if all(end is not None for end in ends):
        k = np.arange(n)
        low = _composed([end[0] for end in ends if end is not None], before)
        high = _composed([end[1] for end in ends if end is not None], before)
        left, right = low, (0 * k if causal else n - 1 - high)
        count = int(left.sum() + right.sum())
        some = _farthest(n, count, lambda k, j: (j < left[k]) | (n - 1 - j < right[k]))
        return LastPairs(count, _asked(n, n, causal), n, some)
    if n <= MOST_TOKENS:
        missing = ~_power(pattern, before) & (np.tri(n, dtype=bool) if causal else True)
        count = int(missing.sum())
        return LastPairs(count, _asked(n, n, causal), n, _farthest(n, count, lambda k, j: missing[k, j]))
    return _sampled(pattern, causal, found, before, seconds)


def _farthest(n: int, count: int, late: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple[tuple[int, int], ...]:
    """Three of the ``count`` late pairs: those that are farthest apart first, and of these those that look back.

    Between intervals with ascending ends the late pairs fill the corners, so the first few distances have them all.
    """
    some: list[tuple[int, int]] = []
    for distance in range(n - 1, -1, -1):
        if len(some) >= min(3, count):
            break
        k = np.arange(n - 1, distance - 1, -1)
        some += [(int(a), int(a) - distance) for a in k[late(k, k - distance)]]
        k = np.arange(n - distance)
        some += [(int(a), int(a) + distance) for a in k[late(k, k + distance)]] if distance else []
    return tuple(some[:3])


def _asked(n: int, targets: int, causal: bool) -> int:
    return n * (n + 1) // 2 if causal else n * targets


def _composed(ends: Sequence[np.ndarray], t: int) -> np.ndarray:
    """``E_1(E_2(… E_t(k)))`` with the steps in turn: where the row of ``S_k^t`` ends, its rows being intervals."""
    k = np.arange(len(ends[0]))
    cycle, out = k, k
    for end in ends:
        cycle = cycle[end]
    for end in ends[: t % len(ends)]:
        out = out[end]
    whole = t // len(ends)
    while whole:
        if whole & 1:
            out = cycle[out]
        cycle, whole = cycle[cycle], whole >> 1
    return out


def _power(pattern: Pattern, t: int) -> np.ndarray:
    """``S^t`` as a Boolean matrix."""
    masks = pattern.mask()
    cycle = out = np.eye(pattern.n, dtype=bool)
    for mask in masks:
        cycle = _times(mask, cycle)
    whole = t // pattern.cycle
    while whole:
        out = _times(cycle, out) if whole & 1 else out
        cycle, whole = _times(cycle, cycle), whole >> 1
    for mask in masks[: t % pattern.cycle]:
        out = _times(mask, out)
    return out


def _sampled(pattern: Pattern, causal: bool, found: DepthResult, before: int, seconds: float) -> LastPairs | None:
    """Grow "who sees j" for some tokens j, the one of the farthest pair first, as long as there is time."""
    n, deadline = pattern.n, perf_counter() + seconds
    drawn = np.random.default_rng(0).choice(n, min(TARGETS, n), replace=False).tolist()
    count = asked = targets = 0
    some: list[tuple[int, int]] = []
    chosen: list[int] = [*([found.pair[1]] if found.pair else []), *map(int, drawn)]
    for j in dict.fromkeys(chosen):
        seers = np.zeros(n, bool)
        seers[j] = True
        for t in range(before):
            if perf_counter() > deadline:
                return LastPairs(count, asked, targets, tuple(some)) if targets else None
            seers = pattern.steps[t % pattern.cycle].preimage(seers)
        late = np.flatnonzero(~seers[j if causal else 0 :]) + (j if causal else 0)
        count, asked, targets = count + len(late), asked + (n - j if causal else n), targets + 1
        some = (some + [(int(k), j) for k in late[:2]])[:3]
    return LastPairs(count, asked, targets, tuple(some))


def _json(change: Change) -> dict[str, Any]:
    found = change.depth
    return {
        "connections_added": change.connections,
        "layers": found.depth,
        "bounds": [found.lower, found.upper],
        "never": bool(found.never or found.never_full),
    }
