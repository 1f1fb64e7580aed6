"""What a value is in a circuit: rows, digit by digit, from some layer on."""

from __future__ import annotations

from dataclasses import dataclass

from thereexists.certificates.llama.finite import Atom
from thereexists.functions.target import Array


@dataclass(frozen=True)
class Signal:
    """``digits``: rows of each; ``code`` (values, digits); from which layer on gates and heads can read it."""

    digits: tuple[tuple[int, ...], ...]
    code: Array
    gates: int
    heads: int


@dataclass(frozen=True, eq=False)
class Held(Atom):
    """What a signal holds."""

    signal: Signal
