"""Hamiltonian paths by a SAT solver with lazy subtour cuts (CaDiCaL through python-sat, extra ``patterns``).

One variable per arc, plus "k is an end" and "k is a start" (the arcs of a dummy token that closes the path to a
circuit); every token has exactly one arc out and one arc in. A model is a set of circuits. Circuits that miss the dummy
are cut off: at least one arc must leave each of them, and one must enter it. Every cut is implied by "one circuit", so
an unsatisfiable formula proves that no Hamiltonian path exists.

The solver looks at no clock: whoever has a deadline runs this in a process that can be ended (``isolated``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SatOutcome:
    """``path`` when found; otherwise ``proved`` says whether the search was exhaustive."""

    path: np.ndarray | None
    proved: bool
    rounds: int
    cuts: int
    seconds: float


def available() -> bool:
    from importlib.util import find_spec

    return find_spec("pysat") is not None


def hamiltonian_path(
    indptr: np.ndarray, indices: np.ndarray, tell: Callable[[tuple[int, int]], None] = lambda _: None
) -> SatOutcome:
    """A path ``γ`` with ``γ(i) ∈ A_{γ(i+1)}``, row ``k`` of the CSR arrays holding ``A_k``, or a proof of none.

    ``tell`` hears of the rounds and cuts so far.
    """
    from pysat.solvers import Solver

    began = time.perf_counter()
    n = len(indptr) - 1
    tail = np.repeat(np.arange(n), np.diff(indptr))
    keep = tail != indices
    dummy = np.arange(n)
    # Arc variables 1..m: k → j for j ∈ A_k, then k → dummy, then dummy → k.
    tail = np.concatenate([tail[keep], dummy, np.full(n, n)])
    head = np.concatenate([indices[keep], np.full(n, n), dummy])
    m = len(tail)
    rounds = cuts = 0
    with Solver(name="cadical195") as solver:
        free = m + 1
        for side in (tail, head):
            order = np.argsort(side, kind="stable")
            clauses, free = exactly_one(order + 1, np.bincount(side, minlength=n + 1), free)
            solver.append_formula(clauses)
        solver.append_formula(_no_two_circuits(tail, head, n))
        while True:
            tell((rounds, cuts))
            if not solver.solve():
                return SatOutcome(None, True, rounds, cuts, time.perf_counter() - began)
            rounds += 1
            model = solver.get_model() or []
            chosen = np.asarray(model[:m]) > 0
            follow = np.empty(n + 1, np.int64)
            follow[tail[chosen]] = head[chosen]
            label, count = _circuits(follow)
            if count == 1:
                return SatOutcome(_walk(follow, n), False, rounds, cuts, time.perf_counter() - began)
            new = _cuts(tail, head, label, int(label[n]))
            cuts += len(new)
            solver.append_formula(new)


def exactly_one(variables: np.ndarray, counts: np.ndarray, free: int) -> tuple[list[list[int]], int]:
    """Clauses "exactly one of each group", pairwise for small groups, a ladder of fresh variables for others."""
    clauses: list[list[int]] = []
    stop = 0
    for count in counts.tolist():
        group = variables[stop : stop + count].tolist()
        stop += count
        clauses.append(group)
        if count <= 5:
            clauses.extend([-a, -b] for i, a in enumerate(group) for b in group[:i])
            continue
        # ladder: s_i is implied by any of the first i variables; s_i forbids variable i + 1
        ladder = range(free, free + count - 1)
        free += count - 1
        clauses.extend([-v, s] for v, s in zip(group, ladder, strict=False))
        clauses.extend([-s, s + 1] for s in ladder[:-1])
        clauses.extend([-s, -v] for s, v in zip(ladder, group[1:], strict=True))
    return clauses, free


def _no_two_circuits(tail: np.ndarray, head: np.ndarray, n: int) -> list[list[int]]:
    """Forbid ``k → j → k`` at once, when it would not be the whole circuit."""
    if n <= 1:
        return []
    key, mirrored = tail * (n + 1) + head, head * (n + 1) + tail
    order = np.argsort(key)
    position = np.minimum(np.searchsorted(key, mirrored, sorter=order), len(key) - 1)
    partner = order[position]
    pairs = np.flatnonzero((key[partner] == mirrored) & (tail < head))
    return np.stack([-(pairs + 1), -(partner[pairs] + 1)], axis=1).tolist()


def _circuits(follow: np.ndarray) -> tuple[np.ndarray, int]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(follow)
    graph = csr_array((np.ones(n, bool), follow, np.arange(n + 1)), shape=(n, n))
    count, label = connected_components(graph, directed=False)
    return label, int(count)


def _cuts(tail: np.ndarray, head: np.ndarray, label: np.ndarray, dummy: int) -> list[list[int]]:
    """For each circuit without the dummy: some arc leaves it, some arc enters it."""
    crossing = np.flatnonzero(label[tail] != label[head])
    clauses = []
    for side in (label[tail[crossing]], label[head[crossing]]):
        order = np.argsort(side, kind="stable")
        ends = np.cumsum(np.bincount(side, minlength=int(label.max()) + 1))
        groups = np.split(crossing[order] + 1, ends[:-1])
        clauses.extend(group.tolist() for c, group in enumerate(groups) if c != dummy)
    return clauses


def _walk(follow: np.ndarray, n: int) -> np.ndarray:
    """From the dummy along the circuit; arcs point from γ(i+1) to γ(i), so the walk meets the path backwards."""
    step = follow.tolist()
    path, at = np.empty(n, np.int64), step[n]
    for i in range(n - 1, -1, -1):
        path[i] = at
        at = step[at]
    return path
