"""``torch.func.vmap`` of the operators: a dimension more of the batch, or one call after the other.

Sequences of a batch do not look at each other, so that what is mapped can join the batch. Not so what a batch has in
common: sinks, whose gradient is a sum over the batch, a bias and the seed of dropout; there the calls are made in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Rule = Callable[..., tuple[tuple[Any, ...], tuple[int | None, ...]]]
_DEFAULTS = (None, 0.0, None, False)  # sinks, cap, bias, whole: torch leaves out what ends a call and is not given


def rule_of(operator: Callable[..., tuple[Tensor, ...]], handle: int) -> Rule:
    """Of an operator whose first ``handle`` arguments are tensors of a batch; then come the pattern's number, scale,
    padding, dropout, seed and the four of ``_DEFAULTS``.
    """
    pad, dropout, seed, sinks, bias = (handle + i for i in (2, 3, 4, 5, 7))

    def mapped(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> Any:
        size, left_out = info.batch_size, handle + 9 - len(given)
        given += _DEFAULTS[len(_DEFAULTS) - left_out :]
        in_dims += (None,) * left_out
        front = [x if at is None else x.movedim(at, 0) for x, at in zip(given, in_dims, strict=True)]
        if given[dropout] > 0 or given[sinks] is not None or given[bias] is not None:
            calls = [[x if at is None else x[i] for x, at in zip(front, in_dims, strict=True)] for i in range(size)]
            if given[dropout] > 0 and in_dims[seed] is None and info.randomness == "different":
                for i, call in enumerate(calls):
                    call[seed] = given[seed] + i
            outs = tuple(torch.stack(each) for each in zip(*(operator(*call) for call in calls), strict=True))
            return outs, (0,) * len(outs)
        for i in (*range(handle), pad):
            if isinstance(front[i], Tensor):
                each = front[i] if in_dims[i] is not None else front[i].expand(size, *front[i].shape)
                front[i] = each.flatten(0, 1).contiguous()
        outs = operator(*front)
        places = tuple(0 if x.ndim > 1 else None for x in outs)  # the gradient of sinks that are not there is empty
        whole = (x if at is None else x.unflatten(0, (size, -1)) for x, at in zip(outs, places, strict=True))
        return tuple(whole), places

    return mapped
