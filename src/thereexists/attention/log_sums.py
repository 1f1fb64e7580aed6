"""The log-sum-exp of a row as two numbers, so that weights sum to 1 whatever the size of the logits.

A weight is P = e^(S − L) with L = top + log Σ e^(S − top), top the largest logit. Rounded to float32, L loses the
logarithm: around 10⁹ the numbers lie 64 apart, and n equal keys got the weight 1 each instead of 1/n. So L is kept as
``lse``, the rounded sum, and ``lost``, what rounding took from it:

    P = e^((S − lse) − lost) = e^(S − lse) · e^(−lost).

S − lse is exact where it decides (two numbers within a factor of 2 of one another: Sterbenz), and |lost| is at most
the logarithm. A row without keys has lse = −∞ and lost = 0.
"""

from __future__ import annotations

import torch
from torch import Tensor


def anchored(top: Tensor) -> Tensor:
    """What a logit is compared with: 0 for a row that weighs nothing, where e^(−∞ − 0) is the share of each."""
    return top.masked_fill(top == -torch.inf, 0.0)


def in_two(top: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
    """``lse`` and ``lost`` of top + rest, where |rest| is small or top is −∞."""
    lse = top + rest
    return lse, torch.where(torch.isfinite(top), rest - (lse - top), 0.0)


def merged(
    lse: Tensor, lost: Tensor, other: Tensor, its: Tensor | float
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """The shares that two parts of a row have in the whole, and the whole's ``lse`` and ``lost``."""
    top = torch.maximum(lse, other)
    anchor = anchored(top)
    one, two = torch.exp((lse - anchor) + lost), torch.exp((other - anchor) + its)
    total = one + two
    whole = in_two(top, torch.log(total))
    total = total.masked_fill(total == 0, 1.0)
    return one / total, two / total, whole


def beside_sinks(lse: Tensor, lost: Tensor | None, sinks: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """The share that the keys of a row keep when its sink joins, and what ``lse`` and ``lost`` are then."""
    sinks = sinks.to(lse.dtype)[:, None]
    if lost is None:  # it is not known here: fewer operations do
        share = torch.sigmoid(anchored(lse) - sinks).masked_fill(lse == -torch.inf, 0.0)
        return share, torch.logaddexp(lse, sinks), None
    share, _, whole = merged(lse, lost, sinks, 0.0)
    return share, *whole
