"""``epsilon`` is a promise: the coarsest power-of-two grid whose *certificate* proves d_p ≤ epsilon, or a refusal.

From coarse to fine, every grid is asked what a certificate of it will say (``certificates/forecast.py``). Where that
may be at most epsilon the network is built and certified, and the first certificate that keeps epsilon ends the search;
one that does not, as some cubes may stay undecided, sends it on to the next grid. A grid is passed over only if the sum
over its cubes, which is a part of its certificate's bound, is more than epsilon already. Grids of more than 2^21 cubes
are judged by the modulus of continuity alone: so large a grid a certificate does not look at more closely.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from thereexists.certificates.certify_function import SUBCUBES
from thereexists.certificates.forecast import forecast
from thereexists.certificates.function_certificate import FunctionCertificate
from thereexists.certificates.output_bound import output_bound
from thereexists.certificates.units import ROUNDED_UP, normalised
from thereexists.core.errors import CannotBuild, InvalidInput, NotProved
from thereexists.core.plain_text import d_of, in_full
from thereexists.core.rounded_figures import rounded_down, rounded_up
from thereexists.functions.grid import MOST_CELLS, Grid
from thereexists.functions.target import Target
from thereexists.model import Transformer
from thereexists.witness.function import FunctionWitness
from thereexists.witness.plan import ErrorBudget, beyond_float64

W = TypeVar("W", bound=FunctionWitness)
Prove = Callable[[Any, float], FunctionCertificate]  # a witness and p
_NEVER = 4  # ramps that cost four epsilons never cost one: finer grids halve their share at most, and so may B be


def prove(witness: FunctionWitness, p: float) -> FunctionCertificate:
    """The certificate as ``te.certify`` makes it, in this process."""
    from thereexists.witness.verbs import certify

    return certify(witness, p)


@dataclass(frozen=True)
class Steps:
    """What a construction does on one grid; each refuses what it cannot.

    ``lay(δ)`` gives the grid before any work, ``prepare(δ)`` tabulates f and gives a tuple whose ``plan`` is the plan,
    ``output(prepared)`` a bound of |output| for every feature, and ``network(prepared)`` the network itself, whose own
    bound may be smaller. ``part(grid)`` is what the modulus of continuity says of
    the cubes; ``all_columns``: the network has f's value, not 0, where two columns share a cell. ``hint`` is what else
    somebody may try who is refused.
    """

    lay: Callable[[Fraction], Grid]
    prepare: Callable[[Fraction], Any]
    output: Callable[[Any], list[float]]
    network: Callable[[Any], Transformer]
    part: Callable[[Grid], float]
    all_columns: bool
    hint: str = ""


def candidates(target: Target, epsilon: float, p: float, steps: Steps) -> Iterator[Any]:
    """What is prepared on the grids, coarse to fine, whose certificates may keep epsilon; ends in a refusal."""
    check_epsilon(target, epsilon)
    for k in range(1, MOST_CELLS.bit_length()):
        delta = Fraction(1, 1 << k)
        try:
            found = _on_grid(target, epsilon, p, steps, delta)
        except CannotBuild as refusal:
            raise _too_fine(target, epsilon, p, delta, str(refusal) + steps.hint) from None
        if found is None:
            continue
        error = found.plan.error
        if error.ramps > _NEVER * epsilon:
            raise CannotBuild(
                f"epsilon = {in_full(epsilon)} needs narrower ramps than these networks have: the ramps alone may cost "
                f"{rounded_up(error.ramps, 3)} on any grid. Choose a larger epsilon, or a smaller p."
                + _volume(target, epsilon, p)
            )
        yield found._replace(plan=dataclasses.replace(found.plan, epsilon=float(epsilon)))
    raise _too_fine(target, epsilon, p, Fraction(1, MOST_CELLS), "There is none in float64. Choose a larger epsilon.")


def _on_grid(target: Target, epsilon: float, p: float, steps: Steps, delta: Fraction) -> Any:
    """What is prepared, with the predicted error; None if no certificate of this grid keeps epsilon."""
    grid = steps.lay(delta)
    if not math.isfinite(steps.part(grid)):
        raise beyond_float64(target, p)
    if grid.cells > SUBCUBES and target.has_modulus:
        if steps.part(grid) > epsilon:
            return None
        prepared = steps.prepare(delta)
        return prepared if prepared.plan.error.total <= epsilon else None
    known = forecast(target, grid, p, steps.all_columns, epsilon)
    if known is None:
        return None
    prepared = steps.prepare(delta)
    found = known.bound(steps.output(prepared))
    if found.total > epsilon:  # perhaps only because of the ramps: what the certificate will charge decides
        found = known.bound(output_bound(steps.network(prepared)))
    parts = found.parts
    error = ErrorBudget(p, *(ROUNDED_UP * parts[name] for name in ("grid", "equal_columns", "ramps")))
    return prepared._replace(plan=dataclasses.replace(prepared.plan, error=error))


def predicted_within(found: Iterator[Any], epsilon: float) -> Any:
    """The first that is predicted to keep epsilon."""
    return next(prepared for prepared in found if prepared.plan.error.total <= epsilon)


def proved_within(found: Iterator[Any], epsilon: float, p: float, make: Callable[[Any], W], prove: Prove) -> W:
    """The first witness whose certificate keeps epsilon, with that certificate; ``NotProved`` if none does."""
    missed = None
    try:
        for prepared in found:
            witness = make(prepared)
            certificate = prove(witness, p)
            if certificate.bound <= epsilon:
                return dataclasses.replace(witness, proved=certificate)
            missed = f"delta = {witness.grid.delta} proves only {d_of(p)} ≤ {rounded_up(certificate.bound, 6)}"
    except CannotBuild as refusal:
        if missed is None:
            raise
        raise NotProved(f"epsilon = {in_full(epsilon)} is not reached: {missed}. {refusal}") from None
    raise AssertionError("the candidates end in a refusal")


def check_epsilon(target: Target, epsilon: float) -> None:
    """Refuse what is no distance, and functions of which nothing can be proved."""
    if not target.provable:
        raise InvalidInput(
            "A grid for 'epsilon' needs a modulus of continuity: state the Lipschitz constant (--lipschitz), or "
            "choose the grid yourself (--delta). No distance can be promised for a function that is known only by "
            "its values; `certify --bound` then gives a statistical one."
        )


def _too_fine(target: Target, epsilon: float, p: float, delta: Fraction, refusal: str) -> CannotBuild:
    coarser = 2 * delta
    needs = f"a finer grid than delta = {coarser}" if coarser < 1 else "a grid"
    return CannotBuild(f"epsilon = {in_full(epsilon)} needs {needs}. {refusal}{_volume(target, epsilon, p)}")


def _volume(target: Target, epsilon: float, p: float) -> str:
    """How much of the difficulty is the size of the domain, where it is large."""
    if target.region is not None:  # whose volume is not computed
        return ""
    share = normalised(epsilon, target.low.tolist(), target.high.tolist(), target.n, p)
    if not share < epsilon / 2:
        return ""
    return (
        f" The volume of the domain makes this a hard request: {d_of(p)} adds up over "
        f"{rounded_down(target.volume, 4)}, so epsilon = {in_full(epsilon)} is a normalised distance ({d_of(p)} over "
        f"volume^(1/p)) of {rounded_down(share, 3)}."
    )
