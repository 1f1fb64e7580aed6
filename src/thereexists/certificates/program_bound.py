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
import torch

from thereexists.certificates.program_execute import CLOSE, Refused, execute
from thereexists.certificates.program_forms import Form, Terms, exact
from thereexists.certificates.program_meaning import Meaning, Meant, is_shorter, meaning_of
from thereexists.model import EmbeddedTransformer
from thereexists.parallel import one_thread
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


@one_thread()  # thousands of small matrix products: threads would only wait for each other
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
    """All lengths that the program is for; a shorter sequence comes with flags, so each length is a case of its own."""
    weights = approximation = 0.0
    splines: list[dict[str, Any]] = []
    assumptions: dict[str, None] = {}
    shorter = is_shorter(program)
    if type(program["n"]) is not int or program["n"] < 1:
        raise Refused(f"A program has at least one token; got n = {program['n']!r}.")
    if network.E is None or network.W_in is None or len(network.E) != program["n"]:  # before any work of that size
        raise Refused(f"The network is not one for {program['n']} tokens.")
    features = [node["settings"].get("d") for node in program["nodes"] if node["operation"] == "tokens"]
    if any(d not in (network.W_in.shape[1], network.W_in.shape[1] - 1) for d in features):
        raise Refused(f"The network reads {network.W_in.shape[1]} features; the program has {features[0]}.")
    if not all(bool(torch.isfinite(w).all()) for w in network.parameters()):
        raise Refused("A weight of the network is not a finite number.")
    for length in range(1 if shorter else program["n"], program["n"] + 1):
        meaning, meant = meaning_of(program, length)
        try:
            weights = max(weights, _distance(meaning, meant, network, shorter))
        except Refused as refused:
            raise Refused(f"{refused} (sequences of {length} tokens)" if shorter else str(refused)) from None
        approximation = max(approximation, float(meant.gap.max()))
        splines, assumptions = meaning.splines, assumptions | dict.fromkeys(meaning.assumptions)
    return Comparison(
        weights * (1 + 2.0**-30),
        approximation,
        tuple(splines),
        tuple(assumptions),
        tuple(meaning.box),
        meaning,
        meant,  # pyright: ignore[reportPossiblyUnbound]
    )


def _distance(meaning: Meaning, meant: Meant, network: EmbeddedTransformer, shorter: bool) -> float:
    """|network − program| in real arithmetic, for one length."""
    terms = meaning.terms
    if network.E is None or len(network.E) != meaning.full or len(network.W_out) != len(meant.forms):
        raise Refused(f"The network is not one for {meaning.full} tokens and {len(meant.forms)} outputs.")
    named = len(terms.labels)
    padding = exact(meaning.box[0][0]) if shorter else None
    outputs, error, strange = execute(terms, network, len(meaning.box), meaning.n, padding)
    worst = 0.0
    for f, (found, wanted) in enumerate(zip(outputs, meant.forms, strict=True)):
        for i, b in enumerate(wanted):
            a, off = found[i], float(error[f, i])
            if a is not b and terms.key(a) != terms.key(b):
                difference = terms.combine([(1, a), (-1, b)])
                away = float(terms.size(difference)) * (1 + 2.0**-50)
                if away > CLOSE * max(float(terms.size(b)), CLOSE):
                    raise Refused(_mismatch(terms, f, i, difference, named, strange))
                off += away
            worst = max(worst, off)
    return worst


def _mismatch(terms: Terms, f: int, i: int, difference: Form, named: int, strange: list[str]) -> str:
    """Which operation of the program is missing, or where the weights do something else."""
    lacking = [terms.labels[t] for t, c in difference.linear.items() if c < 0 and t < named]
    what = f"token {i}, feature {f} of the output is not what the program says"
    what += f": '{lacking[0]}' is missing or wrong" if lacking else ""
    return what + (f"; the first place that no operation accounts for is {strange[0]}" if strange else "")


@one_thread()
def rounding(network: EmbeddedTransformer, box: tuple[tuple[float, float], ...], dtype: str) -> float:
    """Largest |computed − exact| over all outputs. A network for shorter sequences has a flag as its last feature."""
    flagged = network.W_in is not None and network.W_in.shape[1] == len(box) + 1
    box = (*box, (0.0, 1.0)) if flagged else box
    low, high = (np.array([ends[k] for ends in box]) for k in (0, 1))
    return float(rounding_bound(network, low, high, dtype).max())
