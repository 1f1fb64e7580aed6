"""Sizes of the stock network of a circuit, and where everything stands in its residual stream.

Row 0 is the constant C = 2^12, row 1 marks the first token, row 2 a token that is an answer, then the bits of the
circuit, each 0 or 1. d_model is a power of four, so that RMSNorm, which divides by about C/√d, divides by a power of
two (see ``certificates/llama/rounding.py``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from thereexists.certificates.llama.circuit import BITS, Circuit, CircuitLayer
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.format import Shape
from thereexists.certificates.llama.rounding import DTYPES, REFUSED
from thereexists.core.errors import CannotBuild

CONSTANT = 2.0**12
HEAD = 64
THETA, EPS = 1e6, 1e-6
LARGEST_MODEL = 4096
MOST = 1 << 16  # symbols: at later positions float32 angles are too coarse


@dataclass(frozen=True)
class Layout:
    """The shape of the network, and its circuit."""

    circuit: Circuit
    shape: Shape

    @classmethod
    def of(cls, claim: Claim) -> Layout:
        circuit, d = claim.circuit(), HEAD
        while d < BITS + circuit.rows:
            d *= 4
        if d > LARGEST_MODEL:
            raise CannotBuild(
                f"The bits take {BITS + circuit.rows:,} rows; a stock checkpoint has at most {LARGEST_MODEL:,}. Fewer "
                "states help most."
            )
        if circuit.reach > MOST + 1:
            raise CannotBuild(f"A stock checkpoint takes at most {MOST:,} symbols; {circuit.reach - 1:,} are wanted.")
        values = max(int(fetched(layer)[1].max(initial=-1)) + 1 for layer in circuit.layers)
        key_heads = 1
        while key_heads * HEAD < values:
            key_heads *= 2
        offsets = max(1, *(len(np.unique(layer.offset)) for layer in circuit.layers))
        group = (
            1 << (offsets - 1).bit_length()
        )  # a power of two: the loader wants d_model to be a multiple of the heads
        heads = key_heads * max(group, d // HEAD // key_heads)
        width = max(1, *(2 * len(np.unique(sets_of(layer))) + len(layer.cleared) for layer in circuit.layers))
        sizes = (d, width, len(circuit.layers), heads, key_heads, HEAD, len(claim.vocabulary), circuit.reach + 2)
        return cls(circuit, Shape(*sizes))

    @property
    def top(self) -> float:
        """What RMSNorm makes of the constant: √d."""
        return float(self.shape.d_model**0.5)

    @property
    def bit(self) -> float:
        """What it makes of a 1."""
        return self.top / CONSTANT


def sets_of(layer: CircuitLayer) -> np.ndarray:
    """For each row that is made, the number of the set of rows that it is made of: equal sets are one."""
    return np.unique(layer.reads, axis=0, return_inverse=True)[1].reshape(-1)


def fetched(layer: CircuitLayer) -> tuple[np.ndarray, np.ndarray]:
    """The target rows, and for each the number of its value, the sum of its source rows: equal sums are one value."""
    target, place = np.unique(layer.target, return_inverse=True)
    summed = np.zeros((len(target), int(layer.source.max(initial=0)) + 1), dtype=bool)
    summed[place, layer.source] = True
    packed, first, value = np.unique(np.packbits(summed, axis=1), axis=0, return_index=True, return_inverse=True)[:3]
    order = np.empty(len(packed), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(packed))  # in the order of the rows
    return target, order[value.reshape(-1)]


class Fetch(NamedTuple):
    """For each thing that a layer fetches: the ``head``, which of its key head's numbers (``slot``), both (f,)."""

    head: np.ndarray
    slot: np.ndarray


def fetches(shape: Shape, layer: CircuitLayer) -> Fetch:
    """Of each group of heads one looks each distance back; a target row's value is a number of one group."""
    target, value = fetched(layer)
    slot = value[np.searchsorted(target, layer.target)]
    which = np.unique(layer.offset, return_inverse=True)[1].reshape(-1)
    return Fetch(slot // shape.head_size * (shape.heads // shape.key_heads) + which, slot)


class Units(NamedTuple):
    """Hidden units of a layer: ``made`` (k, 2), the two of each row that is made; ``cleared``, one of each."""

    made: np.ndarray
    cleared: np.ndarray


def units(layer: CircuitLayer) -> Units:
    """First one unit for every set of rows, then its second one, then those that remove rows."""
    which = sets_of(layer)
    sets = len(np.unique(which))
    return Units(np.column_stack([which, which + sets]), 2 * sets + np.arange(len(layer.cleared)))


def refuse(dtype: str) -> None:
    """No checkpoint in a dtype in which nothing is proved."""
    if dtype not in DTYPES:
        why = REFUSED.get(dtype, "stock checkpoints are run in float32 and bfloat16")
        raise CannotBuild(f"No stock Llama checkpoint in {dtype}: {why}.")


def as_json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
