"""Condition 2 of Assumption 1: a Hamiltonian path in the union of the steps, or a reason why there is none.

Cheapest first: closed forms (an order of the tokens given by a rule, checked on all n − 1 edges), then components,
matchings and cut tokens that prove impossibility, then rotations, then sets that hold too many parts together, then
circuits joined by exchanges, then more rotations, then the SAT solver, then *undecided* with the effort stated. What
can take long runs in a process that is ended when the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from thereexists.core.plain_numbers import seconds_from
from thereexists.patterns import isolated, obstructions, sat, toughness
from thereexists.patterns.isolated import Tell
from thereexists.patterns.neighbourhood import Neighbourhood
from thereexists.patterns.obstructions import Exhausted, Obstruction
from thereexists.patterns.parts import BlockBand, Residue
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step, _chunks

MOST_EDGES = 60_000_000  # beyond this no list of edges is made
MOST_SAT_EDGES = 1_500_000
FEW_EDGES = 200_000  # components and matching take no time worth a process of its own
FEW_TOKENS = 12  # nor does any search among so few: there are fewer than 2^12 circuits to cut off
ROTATIONS = 0.25, 10.0  # their share of the time, and the most seconds
SPARSE_DEGREE = 12  # the solver first sees a random subgraph with this many arcs per token


@dataclass(frozen=True, eq=False)
class PathResult:
    """``status`` is ``found``, ``impossible`` or ``undecided``; ``rule`` names a closed form; ``effort``: in words."""

    status: str
    path: np.ndarray | None = None
    rule: str | None = None
    obstruction: Obstruction | None = None
    effort: str = ""


def rules(pattern: Pattern) -> Iterator[tuple[str, np.ndarray]]:
    """Orders of the tokens that often work, with the rule in words."""
    n = pattern.n
    k = np.arange(n)
    yield "γ(i) = i", k
    yield "γ(i) = n − 1 − i", k[::-1].copy()
    parts = [part for step in pattern.steps for part in step.parts]
    widths = {p.size for p in parts if isinstance(p, BlockBand)} | {p.modulus for p in parts if isinstance(p, Residue)}
    for width in sorted(w for w in widths if 1 < w < n):
        row, column = k // width, k % width
        last = np.minimum(width, n - row * width) - 1  # the last row may be short
        yield (
            f"snake: rows of {width} tokens, odd rows backwards",
            row * width + np.where(row % 2 == 1, last - column, column),
        )
        column, row = np.divmod(np.arange(width * -(-n // width)), -(-n // width))
        height = row.max() + 1
        for words, order in (
            (f"columns modulo {width}", row * width + column),
            (
                f"snake: columns modulo {width}, odd columns backwards",
                np.where(column % 2 == 1, height - 1 - row, row) * width + column,
            ),
        ):
            yield words, order[order < n]
    for shape in sorted({p.shape for p in parts if isinstance(p, Neighbourhood)}):
        yield f"snake through a grid of {' × '.join(map(str, shape))}", _snake(shape)
    if n & (n - 1) == 0:
        yield "Gray code: γ(i) = i XOR ⌊i/2⌋", k ^ (k >> 1)


def _snake(shape: tuple[int, ...]) -> np.ndarray:
    """All tokens of a grid, each beside the one before: every second line, plane, … is run through backwards."""
    order = np.zeros(1, np.int64)
    for side in reversed(shape):
        lines = np.arange(side)[:, None] * len(order) + order
        lines[1::2] = lines[1::2, ::-1].copy()
        order = lines.ravel()
    return order


def find_path(pattern: Pattern, seconds: float | int = 60.0, seed: int = 0) -> PathResult:
    """A path, a certificate that there is none, or *undecided* after ``seconds`` of search."""
    seconds = seconds_from(seconds)
    deadline = time.perf_counter() + seconds
    for rule, order in rules(pattern):
        if np.asarray(contained(pattern, order[1:], order[:-1])).all():
            return PathResult("found", order, rule, effort="closed form")
    union = pattern.union_step()
    if pattern.causal:
        gap = obstructions.causal_gap(union)
        return PathResult("impossible", obstruction=gap, effort="a causal pattern's only possible path is 0, 1, …, n−1")
    apart = obstructions.separated_from_first(union, min(3.0, seconds / 4))
    if apart is not None:
        return PathResult("impossible", obstruction=apart, effort="closures of two tokens")
    if union.connections > MOST_EDGES:
        return PathResult("undecided", effort=f"closed forms; {union.connections:,} edges are too many to list")
    edges = _edges(union, deadline)
    if edges is None:
        return PathResult("undecided", effort=f"closed forms; no time to list {union.connections:,} edges")
    if len(edges[1]) <= FEW_EDGES:
        found = _obstruction(*edges)
        if found is not None:
            return found
    if pattern.n <= FEW_TOKENS and sat.available():
        found = _by_sat(sat.hamiltonian_path(*edges))
        return found if found.status == "found" else _scattered(*edges, seed) or found
    return _search(*edges, deadline, seed)


def _edges(step: Step, deadline: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Row pointers and columns of the step, or None when the time is over."""
    columns = []
    for rows in _chunks(step.degrees):
        if time.perf_counter() > deadline:
            return None
        columns.append(step.entries(rows)[1])
    return np.concatenate(([0], np.cumsum(step.degrees))), np.concatenate(columns)


def _obstruction(indptr: np.ndarray, indices: np.ndarray) -> PathResult | None:
    found = obstructions.incomparable_pair(indptr, indices) or obstructions.unmatched_set(indptr, indices)
    if found is not None:
        return PathResult("impossible", obstruction=found, effort="components and matching")
    # No two are incomparable, so every token is joined to every other by some walk, as the search for cut tokens needs.
    found = toughness.weak_token(indptr, indices)
    return None if found is None else PathResult("impossible", obstruction=found, effort="cut tokens")


def _scattered(indptr: np.ndarray, indices: np.ndarray, seed: int) -> PathResult | None:
    found = toughness.weak_set(indptr, indices, seed)
    return None if found is None else PathResult("impossible", obstruction=found, effort="toughness")


def _search(indptr: np.ndarray, indices: np.ndarray, deadline: float, seed: int) -> PathResult:
    """First everything on the graph, or on a random subgraph of a dense one; then the solver on the dense one."""
    here, n = "thereexists.patterns.paths", len(indptr) - 1
    dense = len(indices) > n * (SPARSE_DEGREE + 1) * 1.5  # a path in a subgraph is a path
    left = deadline - time.perf_counter()
    left = left / 2 if dense else left
    first = isolated.call(here, "_decide", (indptr, indices, dense, seed, left), left)
    if first.finished and (first.value.status != "undecided" or not dense):
        return first.value
    tried, told = "closed forms, components, matching, rotations, toughness, patching", first.told
    if dense and sat.available() and len(indices) <= MOST_SAT_EDGES:
        second = isolated.call(here, "_decide_by_sat", (indptr, indices), deadline - time.perf_counter())
        if second.finished:
            return second.value
        first, told = second, second.told or told
    effort = f"; {told}" if told else ""
    if first.finished:  # and undecided
        return first.value
    return PathResult("undecided", effort=f"{tried}{effort}; {first.why}")


def _decide(indptr: np.ndarray, indices: np.ndarray, dense: bool, seed: int, seconds: float, tell: Tell) -> PathResult:
    """Matching, rotations, toughness, patching and the solver, in a process that may be ended at any time."""
    n = len(indptr) - 1
    if len(indices) > FEW_EDGES:
        found = _obstruction(indptr, indices)
        if found is not None:
            return found
    tried = "closed forms, components, matching, toughness"
    found = _rotated(indptr, indices, 0.0, seed)  # one attempt
    found = found or _scattered(indptr, indices, seed) or _patched(indptr, indices, seed)
    found = found or _rotated(indptr, indices, min(ROTATIONS[0] * seconds, ROTATIONS[1]), seed + 1)
    if found is not None:
        return found
    tried += ", rotations, patching" if find_spec("numba") is not None else ""
    if not sat.available():
        return PathResult("undecided", effort=f"{tried}; no SAT solver: pip install 'thereexists[patterns]'")
    if dense:
        indptr, indices = _subgraph(indptr, indices, SPARSE_DEGREE, seed)
    if len(indices) > MOST_SAT_EDGES:
        return PathResult("undecided", effort=f"{tried}; {len(indices):,} edges are too many for the SAT solver")
    found = _decide_by_sat(indptr, indices, tell)
    if dense and found.status == "found":
        return replace(found, effort=f"{found.effort} on {SPARSE_DEGREE} arcs per token")
    if dense:  # no path in the subgraph says nothing about the graph
        return PathResult("undecided", effort=f"{tried}; SAT on {SPARSE_DEGREE} of the arcs of each of {n} tokens")
    return found


def _rotated(indptr: np.ndarray, indices: np.ndarray, seconds: float, seed: int) -> PathResult | None:
    if find_spec("numba") is None:
        return None
    from thereexists.patterns.rotations import rotated_path

    path = rotated_path(indptr, indices, seconds, seed)
    return None if path is None else PathResult("found", path, effort="rotations and extensions (Pósa)")


def _patched(indptr: np.ndarray, indices: np.ndarray, seed: int) -> PathResult | None:
    if find_spec("numba") is None:
        return None
    from thereexists.patterns.patching import patched_path

    path = patched_path(indptr, indices, max(4, min(64, 20_000_000 // len(indices))), seed)
    return None if path is None else PathResult("found", path, effort="circuits of a matching, joined by exchanges")


def _decide_by_sat(indptr: np.ndarray, indices: np.ndarray, tell: Tell) -> PathResult:
    return _by_sat(
        sat.hamiltonian_path(indptr, indices, lambda now: tell(f"SAT, {now[0]} rounds, {now[1]} cuts so far"))
    )


def _by_sat(outcome: sat.SatOutcome) -> PathResult:
    if outcome.path is not None:
        return PathResult("found", outcome.path, effort=f"SAT, {outcome.rounds} rounds, {outcome.cuts} cuts")
    return PathResult("impossible", obstruction=Exhausted(outcome.cuts), effort=f"SAT, {outcome.rounds} rounds")


def _subgraph(indptr: np.ndarray, indices: np.ndarray, degree: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """At most ``degree`` arcs per token, drawn at random, besides the token itself."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    keep = row != indices
    row, column = row[keep], indices[keep]
    order = np.lexsort((rng.random(len(row)), row))
    counts = np.bincount(row, minlength=len(indptr) - 1)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = np.sort(order[rank < degree])
    starts = np.concatenate(([0], np.cumsum(np.minimum(counts, degree))))
    return starts, column[chosen]


def contained(pattern: Pattern, k: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Elementwise ``j ∈ ∪_l A_k^l``."""
    found = np.zeros(len(k), bool)
    for step in pattern.steps:
        found |= step.contains(k, j)
    return found


def edge_steps(pattern: Pattern, path: np.ndarray) -> np.ndarray:
    """For each edge ``(path[i], path[i+1])`` the first step l with ``path[i] ∈ A^l_{path[i+1]}``."""
    out = np.full(len(path) - 1, -1, np.int64)
    for l in range(pattern.cycle - 1, -1, -1):
        out[np.asarray(pattern.steps[l].contains(path[1:], path[:-1]), bool)] = l
    return out
