"""Is this pattern universal? Assumption 1 of paper B, condition by condition, each answer with its evidence.

Theorem (B): if (1) every token attends to itself, (2) the union of the steps has a Hamiltonian path, (3) the receptive
depth s is finite, and the probability map satisfies Assumption 2, then the sparse Transformers ``ST^{2,1,4}`` with
this pattern approximate every continuous function on a compact domain.

The conditions are *sufficient*. ``universal`` is True when they hold; False only when some token can never see some
other one, because then the output at k cannot depend on the input at j at all; None in between.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.notebook import InNotebook
from thereexists.core.plain_numbers import seconds_from, seed_from
from thereexists.core.plain_text import brief
from thereexists.core.verdict import Verdict
from thereexists.patterns.depth import receptive_depth
from thereexists.patterns.depth_result import DepthResult
from thereexists.patterns.obstructions import Dangling, Incomparable, Scattered, Unmatched
from thereexists.patterns.paths import PathResult, edge_steps, find_path
from thereexists.patterns.pattern import Pattern


@dataclass(frozen=True, eq=False)
class PatternVerdict(InNotebook):
    """The answer of ``check``.

        verdict = te.patterns.check(te.patterns.star(n=16))
        verdict.universal, verdict.depth, verdict.reasons

    ``path`` is ``γ`` (``path[i] ∈ ∪_l A^l_{path[i+1]}``), ``edge_steps[i]`` the step that carries the edge from
    ``path[i+1]`` to ``path[i]``, ``depth`` is s (``S^1`` uses ``step(0)``). ``field_depth`` is the number of blocks
    after which the receptive field is full; it differs from s for *multihead*, whose blocks use all steps at once.
    ``field_result`` answers that question, for a causal pattern with ``{0..k}`` as the field to fill.

    Args:
        pattern: what was judged.
        universal: True, False, or None for undecided.
        reasons: in words.
        self_loops: whether every token sees itself.
        path_result: the Hamiltonian path, or why there is none.
        edge_steps: the step of each edge of the path.
        depth_result: the receptive depth.
        field_depth: blocks until every field is full.
        field_result: how that was found.
        causal: whether it was judged as a causal pattern.
        seconds: how long it took.
    """

    pattern: Pattern
    universal: bool | None
    reasons: tuple[str, ...]
    self_loops: Verdict
    path_result: PathResult
    edge_steps: np.ndarray | None
    depth_result: DepthResult
    field_depth: int | None
    field_result: DepthResult
    causal: Verdict | None
    seconds: float

    def __repr__(self) -> str:
        answer = "undecided" if self.universal is None else "universal" if self.universal else "not universal"
        return brief(f"PatternVerdict: {self.pattern.name}, n = {self.pattern.n:,}: {answer}", *self.reasons)

    @property
    def path(self) -> np.ndarray | None:
        return self.path_result.path

    @property
    def depth(self) -> int | None:
        return self.depth_result.depth

    @property
    def full_within_layers(self) -> bool | None:
        """For a pattern read from a model: whether its own number of layers fills the receptive field.

        For a causal model the field to fill is ``{0..k}``.
        """
        layers = self.pattern.layers
        if layers is None:
            return None
        found = self.field_result
        if found.depth is not None:
            return found.depth <= layers
        if found.upper is not None and found.upper <= layers:
            return True
        return False if found.never or found.never_full or found.lower > layers else None

    def to_json(self, path_limit: int = 64) -> dict[str, Any]:
        """The documented JSON object; a path longer than ``path_limit`` is given by its rule or its two ends."""
        p, found, depth = self.pattern, self.path_result, self.depth_result
        route: dict[str, Any] = {"status": found.status, "method": found.effort}
        if found.path is not None:
            short = len(found.path) <= path_limit
            route |= {"rule": found.rule, "path": found.path if short else None}
            if not short and found.rule is None:
                route |= {"path_begins": found.path[:8], "path_ends": found.path[-8:]}
        if found.obstruction is not None:
            route["certificate"] = _certificate(found.obstruction, path_limit)
        return {
            "name": p.name,
            "n": p.n,
            "parameters": dict(p.parameters),
            "config": p.config,
            "cycle": p.cycle,
            "connections": list(p.connections),
            "sparsity": p.sparsity,
            "self_loops": self.self_loops.holds,
            "token_without_itself": self.self_loops.evidence,
            "hamiltonian_path": route,
            "receptive_depth": self.depth,
            "field_depth": self.field_depth,
            "depth_bounds": [depth.lower, depth.upper],
            "depth_method": depth.method,
            "farthest_pair": depth.pair,
            "never_connected": depth.never,
            "never_full": depth.never_full,
            "layers": p.layers,
            "full_within_layers": self.full_within_layers,
            "universal": self.universal,
            "reasons": list(self.reasons),
            "causal": None if self.causal is None else _causal_json(self.causal),
            "seconds": round(self.seconds, 4),
        }


def check(pattern: Pattern, seconds: float | int = 60.0, seed: int = 0) -> PatternVerdict:
    """Is a Transformer with this pattern universal? Assumption 1 of the theorem, condition by condition.

        te.patterns.check(te.patterns.strided(n=1024, stride=32)).universal  # True

    Args:
        pattern: from the library (``te.patterns.strided`` …), ``from_mask``, ``load_npz`` or ``load_config``.
        seconds: bounds all searches, for the depth and then for a Hamiltonian path.
        seed: of the latter.

    Returns:
        A verdict: ``universal`` is True, False or None (undecided); ``reasons``; ``path`` and ``depth`` as evidence.

    Raises:
        InvalidInput: ``seconds`` or ``seed`` is not what it must be.
    """
    if not isinstance(pattern, Pattern):
        raise InvalidInput(
            f"check() takes a Pattern, such as te.patterns.strided(n=64, stride=8); got {type(pattern).__name__}. "
            "Use te.patterns.from_csr or te.patterns.from_mask for arrays."
        )
    seconds, began = seconds_from(seconds), time.perf_counter()
    seed_from(seed)
    loops = _self_loops(pattern)
    depth = receptive_depth(pattern, seconds=seconds / 4)
    # A block of *multihead* uses all steps at once, so its field grows by the union, which may fill it where the steps
    # in turn take longer or never do.
    field = depth if pattern.heads is None else receptive_depth(pattern.union(), seconds=seconds / 8)
    in_turn = receptive_depth(pattern, True, seconds / 8) if pattern.causal else None
    to_fill = field if in_turn is None else in_turn
    if in_turn is not None and pattern.heads is not None:
        to_fill = receptive_depth(pattern.union(), True, seconds / 8)
    route = find_path(pattern, max(began + seconds - time.perf_counter(), 0.0), seed)
    universal, reasons = _conclude(pattern, loops, route, depth)
    if "assumed" in pattern.parameters:  # of a model whose type is not known
        reasons += (f"assumed: {pattern.parameters['assumed']}",)
    return PatternVerdict(
        pattern=pattern,
        universal=universal,
        reasons=reasons,
        self_loops=loops,
        path_result=route,
        edge_steps=None if route.path is None else edge_steps(pattern, route.path),
        depth_result=depth,
        field_depth=field.depth,
        field_result=to_fill,
        causal=None if in_turn is None else _causal(pattern, loops, in_turn, to_fill),
        seconds=time.perf_counter() - began,
    )


def _self_loops(pattern: Pattern) -> Verdict:
    for l, step in enumerate(pattern.steps):
        if not step.self_loops.all():
            k = int(np.argmin(step.self_loops))
            return Verdict(False, (f"token {k} does not attend to itself in step {l}",), (l, k))
    return Verdict(True, ("every token attends to itself in every step",))


def _conclude(
    pattern: Pattern, loops: Verdict, route: PathResult, depth: DepthResult
) -> tuple[bool | None, tuple[str, ...]]:
    reasons = [f"(1) {loops.reasons[0]}"]
    if route.status == "found":
        reasons.append(f"(2) Hamiltonian path: {route.rule or route.effort}")
    elif route.obstruction is not None:
        reasons.append(f"(2) no Hamiltonian path: {route.obstruction.sentence()}")
    else:
        reasons.append(f"(2) Hamiltonian path undecided: {route.effort}")
    if depth.depth is not None:
        farthest = f"; token {depth.pair[0]} does not see token {depth.pair[1]} earlier" if depth.pair else ""
        reasons.append(f"(3) receptive depth {depth.depth}{farthest}")
    elif depth.never:
        reasons.append(f"(3) token {depth.never[0]} never sees token {depth.never[1]}, at any depth")
    elif depth.never_full:
        turns = "" if pattern.heads is None else ", one step per block"
        reasons.append(f"(3) no depth fills every token's set{turns}: {depth.never_full}")
    elif depth.upper is not None:
        reasons.append(f"(3) receptive depth at least {depth.lower} and at most {depth.upper}")
    else:
        reasons.append(f"(3) receptive depth undecided, at least {depth.lower} ({depth.method})")
    apart = depth.never or (isinstance(route.obstruction, Incomparable) and (route.obstruction.u, route.obstruction.v))
    if apart:
        reasons.append(
            f"not universal: the output at token {apart[0]} cannot depend on the input at token {apart[1]}, whatever "
            "the weights"
        )
        return False, tuple(reasons)
    finite = depth.depth is not None or depth.upper is not None
    heads_ok = pattern.heads is None or min(pattern.heads) >= 2
    if loops.holds and route.status == "found" and finite:
        if heads_ok:
            reasons.append("universal by the theorem, for every probability map that satisfies Assumption 2")
            return True, tuple(reasons)
        reasons.append("undecided: the theorem needs two heads on each step; give multihead more heads")
        return None, tuple(reasons)
    word = "undecided" if loops.holds and route.status != "impossible" else "the sufficient conditions fail"
    reasons.append(f"{word}: this does not prove that the pattern is not universal")
    return None, tuple(reasons)


def _causal(pattern: Pattern, loops: Verdict, depth: DepthResult, field: DepthResult) -> Verdict:
    """For causal functions: does some depth s give ``S_k^s = {0..k}`` for all k? With self-loops iff k + 1 sees k.

    ``depth`` answers that for the steps in turn, ``field`` for blocks as they are, which use all steps in *multihead*.

    False has two reasons: a pair that never connects (a proof that not even causal functions are in reach), or sets
    that are never all full at one depth, which residual connections may make up for.
    """
    label = "not covered by the theorem, whose functions look both ways"
    if depth.depth is not None:
        only = "" if loops.holds else "; not at every later depth, because some step lacks self-loops"
        return Verdict(True, (f"token k sees exactly {{0..k}} after {depth.depth} steps{only} ({label})",), depth)
    if depth.never:
        k, j = depth.never
        return Verdict(False, (f"token {k} never sees token {j}, so not even causal functions ({label})",), depth)
    if pattern.heads is not None and field.depth is not None:
        all_at_once = f"token k sees exactly {{0..k}} after {field.depth} blocks, every block using all steps"
        return Verdict(True, (f"{all_at_once} ({label})",), field)
    if depth.never_full and (pattern.heads is None or field.never_full):
        why = "the residual connection may carry what is missing, so this excludes no causal function"
        return Verdict(False, (f"at no depth do all tokens see {{0..k}}: {depth.never_full}; {why} ({label})",), depth)
    if depth.upper is not None:
        return Verdict(True, (f"token k sees {{0..k}} after {depth.lower} to {depth.upper} steps ({label})",), depth)
    return Verdict(None, (f"undecided: {depth.method} ({label})",), depth)


def _causal_json(verdict: Verdict) -> dict[str, Any]:
    depth: DepthResult = verdict.evidence
    return {
        "sees_all_earlier_tokens": verdict.holds,
        "depth": depth.depth,
        "depth_bounds": [depth.lower, depth.upper],
        "farthest_pair": depth.pair,
        "never_connected": depth.never,
        "never_full": depth.never_full,
        "covered_by_theorem": False,
        "reasons": list(verdict.reasons),
    }


def _certificate(obstruction: Any, limit: int) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": type(obstruction).__name__.lower(), "reason": obstruction.sentence()}
    if isinstance(obstruction, Incomparable):
        out["tokens"] = [obstruction.u, obstruction.v]
    elif isinstance(obstruction, Unmatched):
        out |= {"tokens": obstruction.tokens[:limit], "size": len(obstruction.tokens)}
        out |= {"neighbours": obstruction.neighbours[:limit], "neighbours_size": len(obstruction.neighbours)}
    elif isinstance(obstruction, Scattered):
        out |= {"tokens": obstruction.tokens[:limit], "size": len(obstruction.tokens), "parts": obstruction.parts}
    elif isinstance(obstruction, Dangling):
        out |= {"sets": [tokens[:limit] for tokens in obstruction.sets]}
    return out
