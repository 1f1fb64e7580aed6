"""What every operation of the table is: an interpreter, a lowering and a Lipschitz constant.

The interpreter of an operation is the obvious numpy and shares nothing with its lowering: the contract suite compares
the two. It takes arrays (batch, length, d), length ≤ n. Given bounds on the errors of the arguments, in the maximum
norm, ``carry`` bounds what becomes of them, and adds the operation's own error if it has one.

``carry`` works its figures (slopes, sizes, own errors) out of what defines the operation and of the ranges of its
arguments, each time: none of them is a setting, so that no file can state one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.lowering import Atoms, Form

Lowering = Callable[[Atoms, Value, list[list[Form]]], list[Form]]
Ends = tuple[float, float]
Ranges = Callable[[Value], Ends]  # an interval that a value stays in; worked out when it is asked for


@dataclass(frozen=True)
class Primitive:
    interpret: Callable[..., Any]  # (arrays (batch, length, d) of the arguments, settings) -> (batch, length, d)
    lower: Lowering
    carry: Callable[[Value, list[float], Ranges], float]


def one(node: Value, errors: list[float], ranges: Ranges) -> float:
    """A Lipschitz constant of 1."""
    return max(errors, default=0.0)
