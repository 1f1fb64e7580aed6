"""The log-sum-exp of a row as two numbers, so that weights sum to 1 whatever the size of the logits.

A weight is P = e^(S − L) with L = top + log Σ e^(S − top), top the largest logit. Rounded to float32, L loses the
logarithm: around 10⁹ the numbers lie 64 apart, and n equal keys got the weight 1 each instead of 1/n. So L is kept as
``lse``, the rounded sum, and ``lost``, what rounding took from it:

    P = e^((S − lse) − lost) = e^(S − lse) · e^(−lost).

S − lse is exact where it decides (two numbers within a factor of 2 of one another: Sterbenz), and |lost| is at most
the logarithm. A row without keys has lse = −∞ and lost = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Sums(NamedTuple):
    """Of every row; ``lost`` is None where the kernels do not say it."""

    lse: Tensor
    lost: Tensor | None = None

    def of(self, heads: slice) -> Sums:
        lost = None if self.lost is None else self.lost[:, heads].contiguous()
        return Sums(self.lse[:, heads].contiguous(), lost)

    def weight(self, logit: Tensor) -> Tensor:
        """What a logit (…, rows) weighs in each row."""
        above = logit - anchored(self.lse)
        return torch.exp(above if self.lost is None else above - self.lost)


def anchored(top: Tensor) -> Tensor:
    """What a logit is compared with: 0 for a row that weighs nothing, where e^(−∞ − 0) is the share of each."""
    return top.masked_fill(top == -torch.inf, 0.0)


def in_two(top: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
    """``lse`` and ``lost`` of top + rest, where |rest| is small or top is −∞."""
    lse = top + rest
    return lse, torch.where(torch.isfinite(top), rest - (lse - top), 0.0)


def merge(running: list[Tensor], piece: tuple[Tensor, Tensor, Tensor], fresh: bool) -> None:
    """Merge a piece's rows (output, ``lse``, ``lost``) into the running ones. Both empty: the shares are 0, not NaN."""
    if not fresh:
        (out, *sums), (o, *own) = running, piece
        mine, its, whole = merged(*sums, *own)
        piece = out.mul_(mine[..., None]).addcmul_(o.to(out.dtype), its[..., None]), *whole
    for x, new in zip(running, piece, strict=True):
        x.copy_(new)


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


def beside_sinks(sums: Sums, sinks: Tensor) -> tuple[Tensor, Sums]:
    """The share that the keys of a row keep when its sink joins, and the sums with it."""
    lse, lost = sums
    sinks = sinks.to(lse.dtype)[:, None]
    if lost is None:  # fewer operations do
        share = torch.sigmoid(anchored(lse) - sinks).masked_fill(lse == -torch.inf, 0.0)
        return share, Sums(torch.logaddexp(lse, sinks))
    share, _, whole = merged(lse, lost, sinks, 0.0)
    return share, Sums(*whole)
