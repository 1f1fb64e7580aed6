"""|network − program| in the sup norm, over the whole box, from the weights and the saved program alone.

    |network in dtype − program|  ≤  rounding + weights + approximation

``approximation``: the program with its splines against the ideal program (``program_meaning.py``); ``weights``: the
network in real arithmetic, with its one-hot heads, against the program with its splines, by running the weights
symbolically (``program_execute.py``); ``rounding``: the network in the dtype against itself in real arithmetic
(``arithmetic/rounding.py``, which reads weights and the box, and nothing of the compiler).

There are three outcomes: *proved*; *not proved*, when the weights could not be followed, with the operation at which
that happened; and *refuted*, when they could not and an input shows why.
"""

from __future__ import annotations

import gc
import math
import secrets
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from thereexists.arithmetic.rounding import rounding_bound
from thereexists.arithmetic.simplest import simplest
from thereexists.certificates.program_execute import execute
from thereexists.certificates.program_forms import Allowance, Form, Terms, exact
from thereexists.certificates.program_limits import allowance
from thereexists.certificates.program_meaning import Meaning, Meant, is_shorter, meaning_of
from thereexists.certificates.program_nearest import CLOSE, distance
from thereexists.certificates.program_trial import try_out
from thereexists.core.errors import NotProved, ThereExistsError
from thereexists.model import EmbeddedTransformer
from thereexists.parallel import one_thread


class Refuted(ThereExistsError):
    """The weights do not compute the program: there is an input on which they differ by more than they may."""


class NotFollowed(NotProved):
    """Which length of the program it was that could not be followed."""

    def __init__(self, message: str, meaning: Meaning, meant: Meant) -> None:
        super().__init__(message)
        self.meaning, self.meant = meaning, meant


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
    another: tuple[Meaning, Meant] | None = None  # of a shorter length, if there are any

    @property
    def terms(self) -> int:
        return len(self.meaning.terms.labels)


@one_thread()  # thousands of small matrix products: threads would only wait for each other
def compare(program: dict[str, Any], network: EmbeddedTransformer) -> Comparison:
    """Bounds on the two parts that are not rounding; ``NotProved`` if the weights cannot be followed."""
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of small objects, none of them in a cycle
    try:
        return _compare(program, network)
    except (OverflowError, ZeroDivisionError, RecursionError) as error:
        raise NotProved(f"A number came up that is too large to be followed ({type(error).__name__}).") from error
    finally:
        if collecting:
            gc.enable()


def _compare(program: dict[str, Any], network: EmbeddedTransformer) -> Comparison:
    """All lengths that the program is for; a shorter sequence comes with flags, so each length is a case of its own."""
    weights = approximation = 0.0
    splines: list[dict[str, Any]] = []
    another = None
    tried = 1 + secrets.randbelow(program["n"])  # a length besides the full one, for random inputs
    assumptions: dict[str, None] = {}
    allowed = _allowed(program, network)
    shorter = is_shorter(program)
    for length in range(1 if shorter else program["n"], program["n"] + 1):
        meaning, meant = meaning_of(program, length, allowed)
        try:
            weights = max(weights, _distance(meaning, meant, network, shorter))
        except NotProved as error:
            text = f"{error} (sequences of {length} tokens)" if shorter else str(error)
            raise NotFollowed(text, meaning, meant) from None
        allowed = replace(allowed, numbers=allowed.numbers - meaning.terms.written)
        approximation = _larger(approximation, float(meant.gap.max()))
        splines = _worst_of(splines, meaning.splines)
        assumptions |= dict.fromkeys(meaning.assumptions)
        another = (meaning, meant) if length == tried < program["n"] else another
    return Comparison(
        weights * (1 + 2.0**-30),
        approximation,
        tuple(splines),
        tuple(assumptions),
        tuple(meaning.box),  # pyright: ignore[reportPossiblyUnbound]
        meaning,  # pyright: ignore[reportPossiblyUnbound]
        meant,  # pyright: ignore[reportPossiblyUnbound]
        another,
    )


def _worst_of(splines: list[dict[str, Any]], more: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of every spline the largest error over the lengths; a shorter sequence may reach other pieces of it."""
    if not splines:
        return more
    return [b | {"own": max(a["own"], b["own"])} for a, b in zip(splines, more, strict=True)]


def _allowed(program: dict[str, Any], network: EmbeddedTransformer) -> Allowance:
    """What must be right before weights are followed or their rounding is bounded: sizes, shapes, finite numbers."""
    allowed = allowance(program, network)
    if not all(bool(torch.isfinite(w).all()) for w in network.parameters()):
        raise NotProved("A weight of the network is not a finite number.")
    return allowed


def refutation(
    error: NotProved, network: EmbeddedTransformer, bounds: dict[str, float] | None = None, whole: bool = False
) -> str | None:
    """An input, in words, on which network and program differ by more than claimed; None if none was found.

    The program's forms have splines in place of functions, so a claim about the functions allows the gap besides.
    Without a claim, a network may be as far off as its rounding, the gap, and what is still called near.
    """
    if not isinstance(error, NotFollowed):
        return None
    meaning, meant = error.meaning, error.meant
    gap, near = float(meant.gap.max()), _near(meaning, meant)
    try:
        if bounds is None:
            bounds = {"float64": rounding(network, tuple(meaning.box), "float64", whole) + near}
        allowed = {name: bound + gap for name, bound in bounds.items()}
        trial = try_out(meaning, meant, network, allowed, sample=256, whole=whole)
    except (ThereExistsError, ArithmeticError):
        return None
    return None if trial.fault is None else str(trial)


def _distance(meaning: Meaning, meant: Meant, network: EmbeddedTransformer, shorter: bool) -> float:
    """|network − program| in real arithmetic, for one length."""
    terms = meaning.terms
    if network.E is None or len(network.E) != meaning.full or len(network.W_out) != len(meant.forms):
        raise NotProved(f"The network is not one for {meaning.full} tokens and {len(meant.forms)} outputs.")
    named = len(terms.labels)
    padding = exact(simplest(*meaning.box[0])) if shorter else None
    outputs, error, strange = execute(terms, network, len(meaning.box), meaning.n, padding)
    worst, near = 0.0, _near(meaning, meant)
    for f, (found, wanted) in enumerate(zip(outputs, meant.forms, strict=True)):
        for i, b in enumerate(wanted):
            a, off = found[i], float(error[f, i])
            if a is not b and terms.key(a) != terms.key(b):
                away = distance(terms, a, b)
                if away > near:
                    raise NotProved(_mismatch(terms, f, i, terms.combine([(1, a), (-1, b)]), b, named, strange))
                off += away
            worst = _larger(worst, off)
    return worst


def _larger(a: float, b: float) -> float:
    """The maximum; Python's own would drop a bound that is not a number."""
    if not b < math.inf:
        raise NotProved("A bound of this program overflows.")
    return max(a, b)


def _near(meaning: Meaning, meant: Meant) -> float:
    """How far outputs may be apart and still be the same thing; whatever it is, it is paid for.

    Rounded weights leave traces of the order of the largest number of the program, or of what its units add up and
    take away again.
    """
    terms = meaning.terms
    sizes = [max(-low, high) for low, high in zip(terms.low, terms.high, strict=True)]
    largest = max(*sizes, *(terms.size(form) for row in meant.forms for form in row))
    return max(CLOSE * float(largest), float(terms.traces))


def _mismatch(terms: Terms, f: int, i: int, difference: Form, wanted: Form, named: int, strange: list[str]) -> str:
    """Which operation of the program was not found again, or where the weights do something that no operation does."""
    lacking = [terms.labels[t] for t, c in difference.linear.items() if c < 0 and t < named]
    lacking += [terms.labels[t] for t in wanted.linear]
    what = f"The weights could not be followed to token {i}, feature {f} of the output"
    what += f", at '{lacking[0]}'" if lacking else ", which is a constant in the program"
    return what + (f"; the first place that no operation accounts for is {strange[0]}" if strange else "") + "."


def rounding_of_a_file(program: dict[str, Any], network: EmbeddedTransformer, dtype: str, whole: bool = False) -> float:
    """``rounding`` of a network that was not checked, over the box that its program states.

    It says how far the run in the dtype may be from the network in exact arithmetic; not whether that is the program.
    """
    _allowed(program, network)
    tokens = next(node["settings"] for node in program["nodes"] if node["operation"] == "tokens")
    return rounding(network, ((tokens["low"], tokens["high"]),) * tokens["d"], dtype, whole)


@one_thread()
def rounding(
    network: EmbeddedTransformer, box: tuple[tuple[float, float], ...], dtype: str, whole: bool = False
) -> float:
    """Largest |computed − exact| over all outputs. A network for shorter sequences has a flag as its last feature.

    ``whole``: over the inputs of the box that are whole numbers.
    """
    flagged = network.W_in is not None and network.W_in.shape[1] == len(box) + 1
    box = (*box, (0.0, 1.0)) if flagged else box
    low, high = (np.array([ends[k] for ends in box]) for k in (0, 1))
    return float(rounding_bound(network, low, high, dtype, whole).max())
