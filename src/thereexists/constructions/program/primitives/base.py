"""What every operation of the table is: an interpreter, a lowering and a Lipschitz constant.

The interpreter of an operation is the obvious numpy and shares nothing with its lowering: the contract suite compares
the two. It takes arrays (batch, length, d), length ≤ n. Given bounds on the errors of the arguments, in the maximum
norm, ``carry`` bounds what becomes of them, and adds the operation's own error if it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.lowering import Atoms, Form

Lowering = Callable[[Atoms, Value, list[list[Form]]], list[Form]]


@dataclass(frozen=True)
class Primitive:
    interpret: Callable[..., Any]  # (arrays (batch, length, d) of the arguments, settings) -> (batch, length, d)
    lower: Lowering
    carry: Callable[[dict[str, Any], list[float]], float]


def one(_: dict[str, Any], errors: list[float]) -> float:
    """A Lipschitz constant of 1."""
    return max(errors, default=0.0)
