"""Sizes of the stock network of an automaton, and where everything stands in its residual stream.

Row 0 is the constant C = 2^12, row 1 marks the first token, row 2 a token that is an answer, then the map of a position
(``own``) and the states of the map that it fetches (``fetched``), each a bit of 0 or 1. d_model is a power of four, so
that RMSNorm, which divides by about C/√d, divides by a power of two (see ``certificates/llama/rounding.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thereexists.certificates.automaton_maps import Maps
from thereexists.certificates.llama.format import Shape
from thereexists.certificates.llama.gates import Rows
from thereexists.certificates.llama.tokens import vocabulary_of
from thereexists.core.errors import CannotBuild

CONSTANT = 2.0**12
HEAD = 64
THETA, EPS = 1e6, 1e-6
LARGEST_MODEL = 4096
MOST = 1 << 16  # symbols: at later positions float32 angles are too coarse


@dataclass(frozen=True)
class Layout:
    """The shape of the network, its rows, and n."""

    maps: Maps
    n: int
    shape: Shape
    rows: Rows

    @classmethod
    def of(cls, maps: Maps, n: int) -> Layout:
        rows, d = Rows.of(maps), HEAD
        while d < rows.fetched.stop:
            d *= 4
        if d > LARGEST_MODEL:
            raise CannotBuild(
                f"The maps take {rows.fetched.stop:,} rows; a stock checkpoint has at most {LARGEST_MODEL:,}. Fewer "
                "states help most."
            )
        if n > MOST:
            raise CannotBuild(f"A stock checkpoint takes at most {MOST:,} symbols, in float32 angles; n is {n:,}.")
        key_heads = 1
        while key_heads * HEAD < maps.fetched:
            key_heads *= 2
        width = 2 * maps.product_count() + maps.own + maps.fetched
        layers = max(1, (n - 1).bit_length())
        tokens = len(vocabulary_of(maps.automaton))
        return cls(maps, n, Shape(d, width, layers, d // HEAD, key_heads, HEAD, tokens, n + 2), rows)

    @property
    def top(self) -> float:
        """What RMSNorm makes of the constant: √d."""
        return float(self.shape.d_model**0.5)

    @property
    def bit(self) -> float:
        """What it makes of a 1."""
        return self.top / CONSTANT


def plan_llama(witness: Any) -> dict[str, Any]:
    """Layers, sizes and parameters of the checkpoint of an automaton's witness, before it is written."""
    shape = Layout.of((stored := witness.lowerable()).maps, stored.n).shape
    return {**vars(shape), "parameters": shape.parameters, "rope_theta": THETA}
