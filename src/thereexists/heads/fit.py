"""The main path: target in, verified head out. Every method only *proposes*; ``verify`` alone decides."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

from thereexists.core.devices import as_device
from thereexists.core.errors import InvalidInput
from thereexists.core.neutral import neutral
from thereexists.core.plain_numbers import seed_from, whole
from thereexists.heads.bound import theorem_hidden_size
from thereexists.heads.head import Head
from thereexists.heads.matrix import AttentionMatrix, as_matrix
from thereexists.heads.precision import dtype_needed
from thereexists.heads.verify import DTYPES, Arithmetic, Verification, check_tolerances, verify

Found = TypeVar("Found")
METHODS = ("auto", "projection", "corrected", "moments", "convex", "descent")
EFFORTS = ("quick", "thorough", "exhaustive")
MOST_RETRIES = 1_000_000  # more draws than anybody waits for
MOST_HIDDEN = 1 << 14  # W_Q and W_K have half its square each


@dataclass(frozen=True)
class FitOptions:
    """What was asked. ``hidden_size`` fixes ``d``; without it the smallest working one is searched.

        te.heads.fit(A, eps1=1e-4, seed=1)

    Args:
        eps1: the leakage that is allowed.
        eps2: the relative error of a ratio that is allowed.
        method: ``auto``, or one by name.
        hidden_size: d, or None for the smallest that works.
        dtype: that the head must hold in.
        seed: of what is random.
        retries: draws at each size.
        factoring: of the projection.
        effort: ``quick`` or more.
        device: where it is searched.
    """

    eps1: float = 1e-3
    eps2: float = 1e-2
    method: str = "auto"
    hidden_size: int | None = None
    dtype: str = "float64"
    seed: int = 0
    retries: int = 3
    factoring: str = "signs"
    effort: str = "quick"
    device: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", seed_from(self.seed))
        object.__setattr__(self, "retries", whole(self.retries, "'retries'", 1, MOST_RETRIES))
        if self.hidden_size is not None:
            object.__setattr__(self, "hidden_size", whole(self.hidden_size, "The hidden size", 2, MOST_HIDDEN))


@dataclass(frozen=True, eq=False)
class Proposal:
    """A head that some method proposes, and what the verifier said about it."""

    method: str
    X: torch.Tensor
    W_Q: torch.Tensor
    W_K: torch.Tensor
    seed: int
    settings: dict[str, Any]
    verification: Verification
    words: torch.Tensor | None = None

    @property
    def hidden_size(self) -> int:
        return self.X.shape[1]


@neutral()
def fit(A: Any, **options: Any) -> Head:
    """Find inputs ``X`` on which a fixed head attends like ``A`` (``scipy.sparse``, or an ``AttentionMatrix``).

        head = te.heads.fit(A, eps1=1e-3, eps2=1e-2)
        head.X, head.W_Q, head.W_K, head.hidden_size, head.verdict

    Args:
        A: the attention matrix that is wanted.
        **options: ``eps1``, the largest allowed ratio of a zero to a non-zero; ``eps2``, the allowed relative error of
            ratios of non-zeros; ``method``; ``hidden_size``; ``dtype``, which the head must survive; ``seed``;
            ``retries``; ``factoring``; ``effort``; ``device``.

    Returns:
        The smallest head that was found, every row verified.

    Raises:
        InvalidInput: ``A`` or an option is not what it must be.
        CannotBuild: no head was found that keeps ``eps1`` and ``eps2``.
    """
    started = time.perf_counter()
    chosen = FitOptions(**options)
    target = as_matrix(A)
    proposal = propose(target, chosen)
    theorem = theorem_hidden_size(target.length, target.k, target.gamma, chosen.eps1, chosen.eps2)
    v = proposal.verification
    if proposal.words is None:
        needed = dtype_needed(proposal.X, proposal.W_Q, proposal.W_K, target, v, chosen.eps1, chosen.eps2)
    else:
        needed = proposal.settings["dtype_needed"]
    return Head(
        proposal.X,
        proposal.W_Q,
        proposal.W_K,
        target,
        proposal.method,
        chosen.eps1,
        chosen.eps2,
        chosen.seed,
        v,
        theorem,
        needed,
        time.perf_counter() - started,
        {"requested": chosen.method, "dtype": chosen.dtype, **proposal.settings},
        proposal.words,
    )


def propose(target: AttentionMatrix, options: FitOptions) -> Proposal:
    from thereexists.heads import methods

    _check(options)

    table: dict[str, Callable[[AttentionMatrix, FitOptions], Proposal]] = {
        "auto": methods.auto,
        "projection": methods.projection,
        "corrected": methods.corrected,
        "moments": methods.moments,
        "convex": methods.convex,
        "descent": methods.descent,
    }
    return table[options.method](target, options)


def check_proposal(
    target: AttentionMatrix,
    options: FitOptions,
    method: str,
    queries: np.ndarray,
    keys: np.ndarray,
    seed: int,
    settings: dict[str, Any],
    rows: np.ndarray | None = None,
) -> Proposal:
    """Queries and keys side by side in ``X``, with the fixed selecting weights; verified in the dtype asked for."""
    m = keys.shape[1]
    X = torch.from_numpy(np.concatenate([queries, keys], axis=1))
    one, nil = torch.eye(m, dtype=torch.float64), torch.zeros(m, m, dtype=torch.float64)
    W_Q, W_K = torch.cat([one, nil]), torch.cat([nil, one])
    return Proposal(method, X, W_Q, W_K, seed, settings, run_check(X, W_Q, W_K, target, options, rows))


def run_check(
    X: torch.Tensor,
    W_Q: torch.Tensor,
    W_K: torch.Tensor,
    target: AttentionMatrix,
    options: FitOptions,
    rows: np.ndarray | None = None,
) -> Verification:
    arithmetic = Arithmetic(options.dtype, options.device)
    return verify(X, W_Q, W_K, target, eps1=options.eps1, eps2=options.eps2, arithmetic=arithmetic, rows=rows)


def smallest_width(
    attempt: Callable[[int], Found | None], guess: int, largest: int, resolution: float = 0.02
) -> Found | None:
    """Gallop from ``guess`` to the first width that works, then bisect. Success is not monotone in the width for random
    draws, so this finds *a* boundary: the result works, and the last width tried below it did not."""
    width, failed, found = max(1, min(guess, largest)), 0, None
    while found is None:
        found = attempt(width)
        if found is None:
            failed = width
            if width >= largest:
                return None
            width = min(largest, max(width + 1, width * 3 // 2))
    works = width
    if failed == 0:  # the guess worked at once: gallop down
        while works > 1:
            lower = max(1, works * 2 // 3)
            smaller = attempt(lower)
            if smaller is None:
                failed = lower
                break
            works, found = lower, smaller
    while works - failed > max(1, int(resolution * works)):
        middle = (works + failed) // 2
        smaller = attempt(middle)
        if smaller is None:
            failed = middle
        else:
            works, found = middle, smaller
    return found


def _check(options: FitOptions) -> None:
    check_tolerances(options.eps1, options.eps2)
    for name, value, allowed in (
        ("method", options.method, METHODS),
        ("dtype", options.dtype, tuple(DTYPES)),
        ("effort", options.effort, EFFORTS),
    ):
        if value not in allowed:
            raise InvalidInput(f"The {name} must be one of {', '.join(allowed)}. Got {value!r}.")
    if options.method == "moments" and options.hidden_size is not None:
        raise InvalidInput("The method 'moments' finds its hidden size itself: leave the hidden size out.")
    as_device(options.device)
