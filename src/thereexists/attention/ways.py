"""How a pattern will be run: per group of heads the cheapest exact way, from its symbolic form, and why.

Five ways, all exact: ``dense`` (stock attention, the pattern hides nothing), ``pieces`` (see ``lower``), ``listed``
(all entries through the gather kernel) and ``masked`` (stock attention with an n × n mask; only where the mask is no
larger than a fixed multiple of the connections, or tiny), and ``rows`` (``by_rows``: some rows only, or what a backend
does not know). The costs are rough rates: they rank, they do not predict.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import numpy as np

from thereexists.attention.lower import Entries, Lowered, Strip, lower
from thereexists.core.constant_result import constant_result
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.plain_text import brief
from thereexists.core.rounded_figures import rounded_up
from thereexists.patterns import Pattern, Step
from thereexists.patterns.step import _chunks

_NARROW = 16  # on the CPU, windows and column lists up to this many keys join the listed entries
_MASK_PER_CONNECTION = 16
_SMALL_MASK = 1 << 22
_MOST_LISTED = 1 << 29
_BACKENDS = {"cpu": "cpu_backend", "cuda": "triton_backend"}
_HEADS = 12  # estimates are for this many heads of size 64


@dataclass(frozen=True)
class Rates:
    """Seconds per pair of one head of size 64, and per launch."""

    dense: float
    masked: float
    tiled: float
    listed: float
    serial: float  # one listed entry after the other: a long row runs on one warp
    launch: float
    tile: int  # rows and keys are rounded up to tiles of this size


RATES = {
    "cpu": Rates(dense=4e-9, masked=5e-9, tiled=6.5e-9, listed=25e-9, serial=0.0, launch=3e-5, tile=32),
    "cuda": Rates(dense=5.5e-13, masked=2.5e-12, tiled=1.2e-12, listed=2.7e-11, serial=1e-8, launch=1.5e-5, tile=64),
}


@dataclass(frozen=True, eq=False)
class HeadWay:
    """The way chosen for one step, the estimates it was chosen by, and the pieces."""

    step: Step
    heads: tuple[int, int] | None  # first head, last head + 1; None: all
    way: str  # dense, pieces, listed, masked, rows
    estimates: dict[str, float]
    lowered: Lowered
    why: str = ""  # where no estimate decided
    by: str = ""  # whose kernels, where they are not ours

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        return tuple(describe(self.lowered)) if self.way in ("pieces", "listed") else ()


@dataclass(frozen=True, eq=False)
class Explanation:
    """What ``explain`` returns; printed, it is the whole report.

        print(te.attention.explain(te.patterns.window(n=1024, window=16)))

    Args:
        name: of the pattern.
        n: how many tokens.
        device: where it would run.
        heads: how each group of heads is run.
    """

    name: str
    n: int
    device: str
    heads: tuple[HeadWay, ...]

    @property
    def ways(self) -> tuple[str, ...]:
        return tuple(head.way for head in self.heads)

    def to_json(self) -> dict[str, Any]:
        return {
            "pattern": self.name,
            "n": self.n,
            "device": self.device,
            "heads": [
                {
                    "heads": None if h.heads is None else list(h.heads),
                    "way": h.way,
                    "connections": h.step.connections,
                    "pieces": list(h.pieces),
                    "estimated_ms": {way: 1e3 * cost for way, cost in h.estimates.items()},
                    **({"why": h.why} if h.why else {}),
                    **({"by": h.by} if h.by else {}),
                }
                for h in self.heads
            ],
        }

    def __repr__(self) -> str:
        groups = [f"{_who(h)}: {h.way}, {h.step.connections:,} connections" for h in self.heads]
        return brief(f"Explanation: {self.name}, n = {self.n:,}, on {self.device}", *groups)

    def __str__(self) -> str:
        lines = [f"{self.name}, n = {self.n:,}, on {self.device}"]
        for h in self.heads:
            share = h.step.connections / self.n**2
            lines.append(f"  {_who(h)}: {_WAYS[h.way]}")
            lines.append(f"    {h.step.connections:,} connections, {rounded_up(share, 3)} of the pairs")
            lines.extend(f"    · {piece}" for piece in h.pieces)
            lines.extend([f"    {h.by}"] if h.by else [])
            ranked = sorted(h.estimates.items(), key=lambda item: item[1])
            costs = ", ".join(f"{way} {1e3 * cost:.3g} ms" for way, cost in ranked)
            lines.append(
                f"    because {h.why or 'estimates for 12 heads of size 64 are'}{f': {costs}' if costs else ''}"
            )
        return "\n".join(lines)


def _who(head: HeadWay) -> str:
    return "all heads" if head.heads is None else f"heads {head.heads[0]}–{head.heads[1] - 1}"


_WAYS = {
    "dense": "stock dense attention; the pattern hides nothing",
    "pieces": "pieces, merged by log-sum-exp, every key once",
    "listed": "every entry listed, through the gather kernel",
    "rows": "blocks of rows against the keys that they see, in torch's own operations",
    "masked": "stock dense attention with a mask; the pattern is too dense, or too small, for anything else to win",
}


def explain(
    pattern: Pattern | Step,
    device: str = "cpu",
    padded: bool = False,
    dropout: bool = False,
    *,
    queries: int | None = None,
    changed: Iterable[str] = (),
) -> Explanation:
    """How attention over a one-step or multihead pattern will be run on ``device`` (``cpu`` or ``cuda``), and why.

        te.attention.explain(te.patterns.window(n=1024, window=16))

    ``queries``: how many there are, where they are the last rows only. ``changed``: what the call gives of ``softcap``,
    ``bias``, ``sinks`` and ``return_lse``.

    Args:
        pattern: of one step, or multihead.
        device: ``cpu`` or ``cuda``.
        padded: whether some keys are padding.
        dropout: whether weights are dropped.
        queries: how many there are, where they are the last rows only.
        changed: which of ``softcap``, ``bias``, ``sinks`` and ``return_lse`` the call gives.

    Returns:
        The way, and why.

    Raises:
        InvalidInput: it is not such a pattern, or there is no such device.
    """
    if device not in RATES:
        raise InvalidInput(f"Attention runs on the devices {', '.join(RATES)}; got '{device}'.")
    unknown = set(changed) - {"softcap", "bias", "sinks", "return_lse"}
    if unknown:
        raise InvalidInput(f"'changed' may name softcap, bias, sinks and return_lse; got {', '.join(sorted(unknown))}.")
    steps = head_steps(pattern)
    name = pattern.name if isinstance(pattern, Pattern) else "step"
    if why := _why_rows(device, pattern.n, queries, set(changed)):
        nothing = Lowered(pattern.n, False)
        return Explanation(name, pattern.n, device, tuple(HeadWay(s, h, "rows", {}, nothing, why) for h, s in steps))
    # Stock calls have neither our treatment of empty rows (padding, or a step alone may have them), nor our dropout,
    # nor a log-sum-exp, nor logits that are changed.
    own = padded or dropout or bool(set(changed))
    heads = tuple(_way_of(step, span, device, own or not step.degrees.all(), dropout) for span, step in steps)
    return Explanation(name, pattern.n, device, heads)


def _why_rows(device: str, n: int, queries: int | None, changed: set[str]) -> str:
    """Why a call is run by rows; nothing where it is not."""
    if queries is not None and queries < n:
        return f"the {queries:,} queries are the last rows only, and no plan for the whole length is made"
    missing = [name for name in ("bias", "softcap") if name in changed and not backend_has(device, name)]
    return f"the {device} kernels have no {' and no '.join(missing)}" if missing else ""


@constant_result
def backend_has(device: str, name: str) -> bool:
    """Whether the backend of a device does it itself: ``grouped``, ``softcap``, ``bias``, or says what is ``lost``."""
    return name in _taken(device)


@cache
def _taken(device: str) -> frozenset[str]:
    try:
        backend = import_module(f"thereexists.attention.{_BACKENDS[device]}")
    except ImportError:
        return frozenset()
    return getattr(backend, "TAKES", frozenset())


def head_steps(pattern: Pattern | Step) -> list[tuple[tuple[int, int] | None, Step]]:
    """Which heads use which step; a pattern with several steps in a row is not one attention layer."""
    if isinstance(pattern, Step):
        return [(None, pattern)]
    if not isinstance(pattern, Pattern):
        raise InvalidInput(
            f"'pattern' must be a pattern or a step of thereexists.patterns; got {type(pattern).__name__}."
        )
    if pattern.heads is None:
        if pattern.cycle > 1:
            raise InvalidInput(
                f"'{pattern.name}' has {pattern.cycle} steps, and one attention layer uses one: give pattern.step(l), "
                "pattern.union() or pattern.multihead(heads)."
            )
        return [(None, pattern.steps[0])]
    last = np.cumsum(pattern.heads).tolist()
    spans = [(b - count, b) for b, count in zip(last, pattern.heads, strict=True)]
    return list(zip(spans, pattern.steps, strict=True))


def _way_of(step: Step, span: tuple[int, int] | None, device: str, own: bool, dropout: bool) -> HeadWay:
    """The cheapest way; ``own`` rules out the stock calls."""
    rates, n, connections = RATES[device], step.n, step.connections
    lowered = lower(step, _NARROW if device == "cpu" else 0)
    only_listed = not lowered.strips and lowered.columns is None and lowered.rows is None
    estimates: dict[str, float] = {}
    if lowered.dense and not own:
        estimates["dense"] = rates.dense * _HEADS * connections + rates.launch
    if not only_listed and not (device == "cpu" and dropout):  # the CPU's flash kernel has no dropout
        estimates["pieces"] = _cost(lowered, rates)
    if connections <= _MOST_LISTED and (own or not lowered.dense):
        longest = int(step.degrees.max())
        estimates["listed"] = rates.listed * _HEADS * connections + rates.serial * longest + rates.launch
    affordable = n * n <= max(_MASK_PER_CONNECTION * connections, _SMALL_MASK) and n * n <= 1 << 31
    if affordable and not own and not lowered.dense:
        estimates["masked"] = rates.masked * _HEADS * n * n + rates.launch
    if not estimates:
        raise CannotBuild(
            f"This call would have to list all {connections:,} connections (for dropout on the CPU, or rows without "
            f"structure), more than {_MOST_LISTED:,}; leave out attention dropout, or run on a GPU."
        )
    way = min(estimates, key=lambda w: estimates[w])
    if way == "listed" and not only_listed:
        lowered = list_everything(step)
    by = _by_cudnn(lowered) if device == "cuda" and way == "pieces" and not dropout else ""
    return HeadWay(step, span, way, estimates, lowered, by=by)


def _by_cudnn(lowered: Lowered) -> str:
    """What cuDNN does of a window, or would do if its package were there; nothing for other patterns."""
    from thereexists.attention import cudnn_windows

    if lowered.window is None or not cudnn_windows.wins(lowered.window, 128):
        return ""
    narrow = "" if cudnn_windows.wins(lowered.window, 64) else " and heads above 64"
    if not cudnn_windows.installed():
        return f"faster with cuDNN's kernels on recent GPUs (16 bits{narrow}): pip install 'thereexists[cuda]'"
    return f"by cuDNN's kernels, which are faster here: 16 bits{narrow}, from the second call of a shape on"


def list_everything(step: Step) -> Lowered:
    """All entries of the step as one piece."""
    columns = np.concatenate([step.entries(rows)[1].astype(np.int32) for rows in _chunks(step.degrees)])
    indptr = np.concatenate(([0], np.cumsum(step.degrees)))
    return Lowered(step.n, step.causal, entries=Entries(np.arange(step.n), indptr, columns))


def _cost(lowered: Lowered, rates: Rates) -> float:
    tile, n = rates.tile, lowered.n
    pairs, listed, launches = 0.0, 0, 0
    for strip in lowered.strips:
        length = -(-n // strip.modulus)
        widening = tile if length > tile else 0
        rounded = -(-length // tile) * tile / length  # a short class still fills a tile
        pairs += (strip.pairs + widening * n) * rounded
        launches += 1
    if lowered.columns is not None:
        c = lowered.columns
        pairs += float((np.diff(c.starts) * (-(-np.diff(c.pointer) // tile) * tile)).sum())
        launches += 1
    if lowered.rows is not None:
        pairs += max(len(lowered.rows), 16) * n
        launches += 4
    if lowered.entries is not None:
        listed += len(lowered.entries.indices)
        launches += 1
    return _HEADS * (rates.tiled * pairs + rates.listed * listed) + rates.launch * launches


def describe(lowered: Lowered) -> list[str]:
    """One line per piece."""
    out = [_describe_strip(strip, lowered) for strip in lowered.strips]
    if lowered.columns is not None:
        c = lowered.columns
        runs = len(c.starts) - 1
        minus = ", minus those the pieces above have" if lowered.strips else ""
        whose = "shared by all rows" if runs == 1 else f"of {runs:,} runs of rows"
        out.append(f"columns: {len(c.cols):,} keys {whose}, small dense attention{minus}")
    if lowered.entries is not None:
        e = lowered.entries
        out.append(f"entries: {len(e.indices):,} listed connections of {len(e.rows):,} rows, gathered")
    if lowered.rows is not None:
        out.append(f"rows: {len(lowered.rows):,} tokens that see all; dense, and left out of the pieces above")
    return out


def _describe_strip(strip: Strip, lowered: Lowered) -> str:
    widest = int(((strip.hi - strip.lo) // strip.modulus + 1).max())
    skips = f", without the keys ≡ (mod {strip.skip}) that the first piece has" if strip.skip else ""
    if lowered.dense:
        return "everything: dense attention in tiles"
    if strip.modulus == 1:
        return f"window: up to {widest:,} neighbouring keys per row, in tiles{skips}"
    whole = widest >= -(-lowered.n // strip.modulus)
    kind = "residue classes" if whole else "dilated window: inside the residue classes"
    return f"{kind} mod {strip.modulus}: dense attention on a permuted view, up to {widest:,} keys per row{skips}"
