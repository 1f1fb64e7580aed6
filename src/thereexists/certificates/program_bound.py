"""|network − program| in the sup norm, over the whole box, from the weights and the saved program alone.

    |network in dtype − program|  ≤  rounding + weights + approximation

``approximation``: the program with its splines against the ideal program (``program_meaning.py``); ``weights``: the
network in real arithmetic, with its one-hot heads, against the program with its splines, by running the weights
symbolically (``program_execute.py``); ``rounding``: the network in the dtype against itself in real arithmetic
(``program/rounding.py``, which reads weights and the box, and nothing of the compiler).
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.certificates.program_execute import CLOSE, Refused, execute
from thereexists.certificates.program_forms import Form, Terms
from thereexists.certificates.program_meaning import Meaning, Meant, meaning_of
from thereexists.model import EmbeddedTransformer
from thereexists.program.rounding import rounding_bound


@dataclass(frozen=True)
class Comparison:
    """The network's weights against the program, in real arithmetic."""

    weights: float
    approximation: float
    splines: tuple[dict[str, Any], ...]
    assumptions: tuple[str, ...]
    box: tuple[tuple[float, float], ...]
    meaning: Meaning
    meant: Meant

    @property
    def terms(self) -> int:
        return len(self.meaning.terms.labels)


def compare(program: dict[str, Any], network: EmbeddedTransformer) -> Comparison:
    """Bounds on the two parts that are not rounding; refuses weights that do not compute the program."""
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of small objects, none of them in a cycle
    try:
        return _compare(program, network)
    finally:
        if collecting:
            gc.enable()


def _compare(program: dict[str, Any], network: EmbeddedTransformer) -> Comparison:
    meaning, meant = meaning_of(program)
    if network.E is None or len(network.E) != meaning.n or len(network.W_out) != len(meant.forms):
        raise Refused(
            f"The network has other sizes than the program, {meaning.n} tokens and {len(meant.forms)} outputs."
        )
    named = len(meaning.terms.labels)
    outputs, error, strange = execute(meaning.terms, network, len(meaning.box))
    worst = 0.0
    for f, (found, wanted) in enumerate(zip(outputs, meant.forms, strict=True)):
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            off = float(error[f, i])
            if a is not b and meaning.terms.key(a) != meaning.terms.key(b):
                difference = meaning.terms.combine([(1, a), (-1, b)])
                away = float(meaning.terms.size(difference)) * (1 + 2.0**-50)
                if away > CLOSE * max(float(meaning.terms.size(b)), CLOSE):
                    raise Refused(_mismatch(meaning.terms, f, i, difference, named, strange))
                off += away
            worst = max(worst, off)
    return Comparison(
        worst * (1 + 2.0**-30), float(meant.gap.max()), tuple(meaning.splines), tuple(meaning.assumptions),
        tuple(meaning.box), meaning, meant,
    )  # fmt: skip


def _mismatch(terms: Terms, f: int, i: int, difference: Form, named: int, strange: list[str]) -> str:
    """Which operation of the program is missing, or where the weights do something else."""
    lacking = [terms.labels[t] for t, c in difference.linear.items() if c < 0 and t < named]
    what = f"token {i}, feature {f} of the output is not what the program says"
    what += f": '{lacking[0]}' is missing or wrong" if lacking else ""
    return what + (f"; the first place that no operation accounts for is {strange[0]}" if strange else "")


def rounding(network: EmbeddedTransformer, box: tuple[tuple[float, float], ...], dtype: str) -> float:
    """Largest |computed − exact| over all outputs."""
    low, high = (np.array([ends[k] for ends in box]) for k in (0, 1))
    return float(rounding_bound(network, low, high, dtype).max())
