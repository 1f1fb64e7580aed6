"""What a question about the receptive depth is answered with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DepthResult:
    """``depth``; ``pair = (k, j)`` with ``j ∉ S_k^{depth−1}``.

    When ``never`` is set, k never sees j at any depth, residual connections included. When ``never_full`` is set, it
    says why no depth fills all sets at once, though no pair is known to stay apart. When only bounds are known,
    ``depth`` is None, and ``lower ≤ s ≤ upper`` (``upper`` None: not known).
    """

    depth: int | None
    method: str
    pair: tuple[int, int] | None = None
    never: tuple[int, int] | None = None
    lower: int = 1
    upper: int | None = None
    never_full: str | None = None
