"""Products on a range: a·b = ((t·a + b)² − (t·a − b)²)/(4t), both squares by splines.

A linear spline through the squares at the multiples of h is above the square by at most h²/4 (h²·2/8) and never below.
So the difference of two such splines is off by at most h²/4, and the product by own = h²/(16t). t is a power of two
that makes t·a about as wide as b. Two feed-forward outputs, one half block; the sum over both is free.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.lowering import Atoms, Form
from thereexists.constructions.program.primitives.base import Primitive
from thereexists.constructions.program.primitives.hinges import through


def _multiply(atoms: Atoms, node: Value, arguments: list[list[Form]]) -> list[Form]:
    s, t = node.settings, node.settings["balance"]
    out = []
    for a, b in zip(*arguments, strict=True):
        plus = through(atoms, a * t + b, s["plus"], s["plus"] ** 2, "multiply")
        minus = through(atoms, a * t - b, s["minus"], s["minus"] ** 2, "multiply")
        out.append((plus - minus) * (Fraction(1, 4) / Fraction(t)))
    return out


def _carry(settings: dict[str, Any], errors: list[float]) -> float:
    """|a'b' − ab| ≤ |b|·e_a + |a|·e_b + e_a·e_b, and the product's own error."""
    e_a, e_b = errors
    return settings["size_b"] * e_a + settings["size_a"] * e_b + e_a * e_b + settings["own"]


TABLE = {"multiply": Primitive(lambda a, b, **_: a * b, _multiply, _carry)}
