"""How each method looks for its smallest hidden size; ``auto`` takes the smallest of what the dtype carries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.heads import convex as convex_rows
from thereexists.heads import corrected as corrected_rows
from thereexists.heads import projection as paper
from thereexists.heads.descent import LONGEST, Search, descend
from thereexists.heads.fit import FitOptions, Proposal, check_proposal, run_check, smallest_width
from thereexists.heads.matrix import AttentionMatrix
from thereexists.heads.moments import circle_heads, place_on_moments

# restarts, steps of Adam, steps of Levenberg–Marquardt
DESCENT_EFFORT = {
    "quick": Search(6, 1500, 100),
    "thorough": Search(4, 3000, 400),
    "exhaustive": Search(16, 20000, 3000),
}
SAMPLE = 128  # rows looked at before a whole draw is built and verified


def projection(target: AttentionMatrix, options: FitOptions) -> Proposal:
    """The paper's: draws until one is verified; the search ends at the trivial ``X = [B, I]``, ``d = 2L``."""
    L = target.length
    sample = _sample(L, options.seed)

    def attempt(m: int) -> Proposal | None:
        for draw in range(options.retries):
            seed = options.seed + draw
            queries, keys = paper.project(
                target, m, eps1=options.eps1, eps2=options.eps2, seed=seed, factoring=options.factoring
            )
            settings = {"factoring": options.factoring, "draws": draw + 1}
            first = check_proposal(target, options, "projection", queries, keys, seed, settings, sample)
            if first.verification.verdict.holds:
                full = check_proposal(target, options, "projection", queries, keys, seed, settings)
                if full.verification.verdict.holds:
                    return full
        return None

    if options.hidden_size is not None:
        return _only(attempt(options.hidden_size // 2), "projection", options)
    found = smallest_width(attempt, 8, L - 1) if L > 1 else None
    if found is None:
        queries, keys = paper.trivial(target, options.eps1, options.eps2)
        found = check_proposal(target, options, "projection", queries, keys, options.seed, {"factoring": "trivial"})
    return found


def corrected(target: AttentionMatrix, options: FitOptions) -> Proposal:
    return _random_keys(target, options, "corrected")


def convex(target: AttentionMatrix, options: FitOptions) -> Proposal:
    return _random_keys(target, options, "convex")


def _random_keys(target: AttentionMatrix, options: FitOptions, method: str, largest: int | None = None) -> Proposal:
    """Random keys, and queries that are exact on the support; the sample decides whether the rest is worth solving."""
    L = target.length
    sample = _sample(L, options.seed)

    def solve(keys: np.ndarray, rows: np.ndarray | None):
        if method == "convex":
            return convex_rows.convex_queries(target, keys, eps1=options.eps1, rows=rows)
        return corrected_rows.correct(target, keys, eps1=options.eps1, rows=rows)

    def attempt(m: int) -> Proposal | None:
        for draw in range(options.retries):
            seed = options.seed + draw
            keys = corrected_rows.random_keys(L, m, seed)
            if sample is not None and len(solve(keys, sample).failed):
                continue
            solved = solve(keys, None)
            if len(solved.failed):
                continue
            settings: dict[str, object] = {"draws": draw + 1}
            if isinstance(solved, convex_rows.ConvexRows):
                settings |= {"rounds": solved.rounds, "duality_gap": solved.gap}
            proposal = check_proposal(target, options, method, solved.queries, keys, seed, settings)
            if proposal.verification.verdict.holds:
                return proposal
        return None

    if options.hidden_size is not None:
        return _only(attempt(options.hidden_size // 2), method, options)
    k = target.k_row
    guess = int((1.5 if method == "convex" else 3.0) * k * np.log(L + 1)) + 4
    found = smallest_width(attempt, guess, largest or max(guess, 8 * guess, L))
    if found is None:
        upto = "" if largest is None else f" of width up to {largest}"
        raise CannotBuild(
            f"The method {method!r} found no head{upto} for this target in {options.dtype}; allow a larger one, "
            "another dtype or another method."
        )
    return found


def moments(target: AttentionMatrix, options: FitOptions) -> Proposal:
    """One circle; if the dtype does not carry it and no size was given, extended precision on the same circle."""
    first = _moments(target, options, 1)
    if first.verification.verdict.holds or options.dtype != "float64":
        return first
    from thereexists.heads.moments_exact import extended_moments

    return extended_moments(target, options)


def _moments(target: AttentionMatrix, options: FitOptions, scales: int) -> Proposal:
    """The first head that the dtype carries, else the last one tried."""
    if scales == 1:
        candidates = circle_heads(target, eps1=options.eps1, seed=options.seed)
    else:
        candidates = [place_on_moments(target, eps1=options.eps1, scales=scales, seed=options.seed)]
    proposal = None
    for head in candidates:
        settings = {"scales": head.scales, "degree": head.degree, "dynamic_range": head.dynamic_range}
        proposal = check_proposal(target, options, "moments", head.queries, head.keys, options.seed, settings)
        if proposal.verification.verdict.holds:
            return proposal
    if proposal is None:
        raise CannotBuild("The moments method found no place for the tokens; use another method.")
    return proposal


def descent(target: AttentionMatrix, options: FitOptions, start: int | None = None) -> Proposal:
    """Given ``hidden_size``: one search there. Without: downwards from ``4k`` until a size fails."""
    search = DESCENT_EFFORT[options.effort]

    def attempt(d: int) -> Proposal | None:
        tolerances = {"eps1": options.eps1, "eps2": options.eps2}
        X, W_Q, W_K = descend(target, d, **tolerances, search=search, seed=options.seed, device=options.device)
        settings = {
            "restarts": search.restarts,
            "steps": search.steps,
            "polish": search.polish,
            "effort": options.effort,
        }
        checked = run_check(X, W_Q, W_K, target, options)
        return Proposal("descent", X, W_Q, W_K, options.seed, settings, checked) if checked.verdict.holds else None

    if options.hidden_size is not None:
        return _only(attempt(options.hidden_size), "descent", options)
    best: Proposal | None = None
    d = start or 4 * target.k_row
    while d >= 2:
        found = attempt(d)
        if found is None:
            break
        best, d = found, d - 1
    return _only(best, "descent", replace(options, hidden_size=d))


def auto(target: AttentionMatrix, options: FitOptions) -> Proposal:
    """The smallest hidden size that the dtype carries, among the methods that are cheap enough at this length."""
    L = target.length
    found = [p for p in (_quietly(_trivial, target, options) if L <= 64 else None,) if p]
    for scales in (1, 2, 3):
        p = _moments(target, options, scales) if target.k_row <= 12 // scales * 2 else None
        if p is not None and p.verification.verdict.holds:
            found.append(p)
            break
    if L <= 512 or not found:
        room = min((p.hidden_size for p in found), default=2 * max(L, 2)) // 2
        better = _quietly(_random_keys, target, options, "convex", room)
        if better is None and not found:
            better = _quietly(_random_keys, target, options, "corrected")
        found += [better] if better else []
    if options.effort != "quick" and L <= LONGEST and options.dtype in ("float32", "float64"):
        start = min((p.hidden_size for p in found), default=4 * target.k_row + 1) - 1
        better = _quietly(descent, target, options, start) if start >= 2 else None
        found += [better] if better else []
    if options.hidden_size is not None:
        found = [p for p in found if p.hidden_size <= (options.hidden_size or 0)]
    if not found:
        raise CannotBuild(
            f"No method found a head for this target in {options.dtype}"
            + (f" with hidden size at most {options.hidden_size}" if options.hidden_size else "")
            + ". That proves nothing about other heads; try dtype float64, method 'moments' (multiprecision), "
            "or effort 'thorough'."
        )
    return min(found, key=lambda p: p.hidden_size)


def _trivial(target: AttentionMatrix, options: FitOptions) -> Proposal:
    queries, keys = paper.trivial(target, options.eps1, options.eps2)
    return _only(
        check_proposal(target, options, "projection", queries, keys, options.seed, {"factoring": "trivial"}),
        "projection",
        options,
    )


def _quietly(build, *arguments) -> Proposal | None:
    try:
        proposal = build(*arguments)
    except CannotBuild:
        return None
    return proposal if proposal.verification.verdict.holds else None


def _only(found: Proposal | None, method: str, options: FitOptions) -> Proposal:
    if found is None or not found.verification.verdict.holds:
        raise CannotBuild(
            f"The method {method!r} found no head of hidden size {options.hidden_size} in {options.retries} draws "
            f"(dtype {options.dtype}). That is not a proof that none exists; ask for a larger hidden size, leave "
            "it out to search for the smallest, or try another method."
        )
    return found


def _sample(length: int, seed: int) -> np.ndarray | None:
    if length <= 4 * SAMPLE:
        return None
    return np.sort(np.random.default_rng(seed).choice(length, SAMPLE, replace=False))
