"""Why a pattern has no Hamiltonian path: four kinds of certificate, each small and easy to check.

Write ``k → j`` for "k attends to j" in the union over the steps. A path ``γ`` reads ``γ(n) → γ(n−1) → … → γ(1)``.

- **Incomparable pair** ``(u, v)``: neither token reaches the other. On a path, the later one reaches the earlier one.
  Such a pair exists exactly when the strongly connected components cannot be lined up, each leading to the next.
- **Unmatched set** ``X``: the tokens of ``X`` attend, apart from themselves, to at most ``|X| − 2`` tokens. On a path
  all but one token of ``X`` have a predecessor of their own among those (Hall's condition with one token to spare).
- **Scattered** and **dangling** tokens, whichever way they look: ``toughness`` has the proofs and finds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from time import perf_counter

import numpy as np

from thereexists.patterns.parts import Band, Offsets, Residue, ranges
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step


@dataclass(frozen=True)
class Incomparable:
    """Two tokens neither of which reaches the other."""

    u: int
    v: int

    def sentence(self) -> str:
        return f"tokens {self.u} and {self.v} never see each other, in either direction and at any depth"


@dataclass(frozen=True, eq=False)
class Unmatched:
    """Tokens that attend, apart from themselves, to at most two fewer tokens than they are."""

    tokens: np.ndarray
    neighbours: np.ndarray

    def sentence(self) -> str:
        return f"{len(self.tokens)} tokens attend, apart from themselves, to only {len(self.neighbours)} tokens"


@dataclass(frozen=True, eq=False)
class Scattered:
    """Tokens without which the others fall into ``parts`` parts, at least two more than they are."""

    tokens: np.ndarray
    parts: int

    def sentence(self) -> str:
        k = len(self.tokens)
        which = f"token {int(self.tokens[0])}" if k == 1 else f"{k:,} tokens"
        return f"without {which} the others fall into {self.parts:,} parts, and a path into {k + 1:,} at most"


@dataclass(frozen=True, eq=False)
class Dangling:
    """Three sets, no two with a common token, each joined to one outside token at most: each holds an end of a path."""

    sets: tuple[np.ndarray, np.ndarray, np.ndarray]

    def sentence(self) -> str:
        sizes = ", ".join(f"{len(tokens):,}" for tokens in self.sets)
        some = ", ".join(str(int(tokens[0])) for tokens in self.sets)
        return (
            f"three sets of {sizes} tokens (with {some}), each joined to the rest by one token, would each need one of "
            "the path's two ends"
        )


@dataclass(frozen=True)
class Exhausted:
    """A SAT solver refuted "one circuit"; there is no short certificate, only the search itself."""

    cuts: int

    def sentence(self) -> str:
        return f"exhaustive search: CaDiCaL refuted the path formula with {self.cuts} subtour cuts"


Obstruction = Incomparable | Unmatched | Scattered | Dangling | Exhausted


def closure(step: Step, start: int, backwards: bool = False, seconds: float = 3.0) -> np.ndarray | None:
    """Everything that ``start`` reaches (or that reaches it), by O(n) set images; None when that takes too long."""
    began = perf_counter()
    move = step.preimage if backwards else step.image
    reached = np.zeros(step.n, bool)
    reached[start] = True
    while perf_counter() - began < seconds:
        grown = reached | move(reached)
        if (grown == reached).all():
            return reached
        reached = grown
    return None


def causal_gap(step: Step) -> Incomparable | None:
    """For a causal step: a token k that k + 1 does not attend to.

    k never sees k + 1, and k + 1 could only reach k directly: whatever lies between them is one of the two.
    """
    k = np.arange(step.n - 1)
    missing = np.flatnonzero(~np.asarray(step.contains(k + 1, k), bool))
    return Incomparable(int(missing[0]), int(missing[0]) + 1) if len(missing) else None


def common_divisor(step: Step) -> int:
    """A number g that divides every ``j − k`` in the step, as far as the formulas show it; 1 says nothing."""
    g = 0
    for part in step.parts:
        if isinstance(part, Band) and part.lo == part.hi:
            g = gcd(g, part.lo)
        elif isinstance(part, Residue):
            g = gcd(g, part.modulus)
        elif isinstance(part, Offsets):
            g = gcd(g, *part.offsets)
        else:
            return 1
    return g


def separated_from_first(step: Step, seconds: float = 3.0) -> Incomparable | None:
    """An incomparable pair that contains token 0, by a common divisor or two closures; needs no list of edges."""
    if step.n > 1 and common_divisor(step) != 1:
        return Incomparable(0, 1)
    reached = closure(step, 0, seconds=seconds)
    if reached is None or reached.all():
        return None
    other = int(np.argmin(reached))
    back = closure(step, other, seconds=seconds)
    return None if back is None or back[0] else Incomparable(0, other)


def incomparable_pair(indptr: np.ndarray, indices: np.ndarray) -> Incomparable | None:
    """An incomparable pair from the strongly connected components, or None when they line up.

    Peel off components that no token left attends to. Two at the same time are incomparable: a walk from one to the
    other would enter the second one from a component that is left.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(indptr) - 1
    graph = csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n))
    count, label = connected_components(graph, directed=True, connection="strong")
    if count == 1:
        return None
    tail = label[np.repeat(np.arange(n), np.diff(indptr))]
    head = label[indices]
    edge = np.unique(tail[tail != head].astype(np.int64) * count + head[tail != head])
    tail, head = edge // count, edge % count
    member = np.empty(count, np.int64)
    member[label] = np.arange(n)
    waiting = np.bincount(head, minlength=count)
    stops = np.cumsum(np.bincount(tail, minlength=count))
    ready = np.flatnonzero(waiting == 0)
    while len(ready) == 1:
        c = int(ready[0])
        heads = head[stops[c - 1] if c else 0 : stops[c]]
        waiting[heads] -= 1
        ready = heads[waiting[heads] == 0]
    return Incomparable(int(member[ready[0]]), int(member[ready[1]])) if len(ready) > 1 else None


def unmatched_set(indptr: np.ndarray, indices: np.ndarray) -> Unmatched | None:
    """A Hall violator from a maximum matching of tokens with tokens they attend to (Hopcroft–Karp), or None."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    n = len(indptr) - 1
    row = np.repeat(np.arange(n), np.diff(indptr))
    keep = row != indices
    columns = indices[keep]
    starts = np.concatenate(([0], np.cumsum(np.bincount(row[keep], minlength=n))))
    graph = csr_array((np.ones(len(columns), np.int8), columns, starts), shape=(n, n))
    partner = maximum_bipartite_matching(graph, perm_type="column")  # partner[k]: the token matched with row k
    alone = np.flatnonzero(partner < 0)
    if len(alone) < 2:
        return None
    seer_of = np.full(n, -1)
    seer_of[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    # Koenig: rows reachable from an unmatched row by alternating walks; all their neighbours are matched among them.
    inside, neighbour, frontier = np.zeros(n, bool), np.zeros(n, bool), alone
    inside[alone] = True
    while len(frontier):
        seen = np.unique(columns[ranges(starts[frontier], starts[frontier + 1] - starts[frontier])[1]])
        seen = seen[~neighbour[seen]]
        neighbour[seen] = True
        frontier = seer_of[seen]
        frontier = frontier[~inside[frontier]]
        inside[frontier] = True
    return Unmatched(np.flatnonzero(inside), np.flatnonzero(neighbour))


def connectivity(pattern: Pattern, seconds: float = 3.0) -> tuple[tuple[int, int] | None, bool]:
    """``((k, j), True)``: token k never sees token j at any depth; ``(None, True)``: all tokens see all at last;
    ``(None, False)``: not settled in the time given.

    Every token counts as seeing itself, because the residual connection carries it.
    """
    step = pattern.union_step()
    if step.n > 1 and common_divisor(step) != 1:
        return (0, 1), True
    k = np.arange(step.n - 1)
    if np.asarray(step.contains(k, k + 1)).all() and np.asarray(step.contains(k + 1, k)).all():
        return None, True  # every token sees both neighbours
    settled = True
    for backwards in (False, True):
        reached = closure(step, 0, backwards, seconds)
        if reached is None:
            settled = False
        elif not reached.all():
            missing = int(np.argmin(reached))
            return ((missing, 0) if backwards else (0, missing)), True
    return None, settled
