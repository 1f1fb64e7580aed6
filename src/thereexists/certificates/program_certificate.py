"""The certificate of a program: for which dtype how far the network may be from the program, in the sup norm."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, final

import torch

from thereexists._version import __version__
from thereexists.certificates.certificate import (
    RIGHT,
    Certificate,
    is_list_of,
    is_number,
    is_object,
    is_size,
    is_table_of,
    is_text,
)
from thereexists.certificates.check import Wanted
from thereexists.certificates.program_bound import Comparison, Refuted, compare, refutation, rounding
from thereexists.core.dtypes import DTYPES
from thereexists.core.errors import CannotBuild, InvalidInput, NotProved, ThereExistsError
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.model import EmbeddedTransformer
from thereexists.model.digest import weights_sha256

AGREEMENT = 1e-9  # by how much two machines may differ in a bound: another NumPy may add in another order
ARITHMETIC = (
    "sums are accumulated in the dtype, or in float32 if that is more, and each operation rounds to nearest "
    "(products in TF32 are not covered)",
    "an input is a number of the dtype",
    "numbers below the smallest normal one are kept or taken for 0, in any operation; in float16 they are kept",
    "exp(t) is computed as 0 for t ≤ −800, as it is below the smallest number of every dtype",
)


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class CompiledCertificate(Certificate):
    """``|network in dtype − program| ≤ bounds[dtype]["bound"]`` at every token and feature, for every input that the
    variant is about: of the box, or, if these are ``whole``, of whole numbers in the box.

    ``parts``: approximation (splines against their functions, carried to the output) and weights (what rounding the
    coefficients to float64 weights does); a dtype's bound is the sum of both and of its rounding. ``reasons`` says why
    another dtype has no bound. ``dtype`` is the one that was asked for, ``bound`` its bound.
    """

    paper: ClassVar[str] = "programs"
    whole: ClassVar[bool] = False

    norm: str
    dtype: str
    bounds: dict[str, dict[str, float]]
    reasons: dict[str, str]
    parts: dict[str, float]
    splines: list[dict[str, Any]]
    box: list[list[float]]
    program_sha256: str

    @abstractmethod
    def as_small_as_asked(self, bound: float) -> bool:
        """Whether a bound of some dtype is as small as those of this certificate have to be."""

    def means(self, meant: dict[str, Any]) -> bool:
        return self.program_sha256 == program_sha256(meant)

    def keeps_epsilon(self) -> bool:
        return self.as_small_as_asked(self.bound)

    def label(self) -> str:
        return "proved"

    def shares(self) -> dict[str, float]:
        rounding = {"rounding": self.bounds[self.dtype]["rounding"]} if self.dtype in self.bounds else {}
        return self.parts | rounding

    def dtype_bounds(self) -> dict[str, float | None]:
        return {name: part["bound"] for name, part in self.bounds.items()} | dict.fromkeys(self.reasons)

    def detail(self) -> str:
        others = [
            f"≤ {rounded_up(part['bound'], 4)} in {name}" for name, part in self.bounds.items() if name != self.dtype
        ]
        return ", ".join(others) or "no other dtype has a bound"

    @classmethod
    def right(cls) -> dict[str, Callable[[Any], bool]]:
        return RIGHT | {
            **dict.fromkeys(("norm", "dtype", "program_sha256"), is_text),
            "bound": is_size,
            "bounds": _are_bounds,
            "reasons": is_table_of(is_text),
            "parts": is_table_of(is_size, ("approximation", "weights")),
            "splines": is_list_of(is_object),
            "box": _is_box,
        }


@final
@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class ProgramCertificate(CompiledCertificate):
    """Of a program over the reals: the bounds hold for every input of the box.

    ``epsilon`` is how large a bound was asked to be at most, None where none was asked for.
    """

    kind: ClassVar[str] = "program"

    epsilon: float | None

    def claim(self) -> str:
        return f"{self.norm} norm ≤ {rounded_up(self.bound, 4)} in {self.dtype}"

    def statement(self) -> str:
        bound = rounded_up(self.bound, 6)
        return f"|network in {self.dtype} − program| ≤ {bound} for every input of the box, token and feature"

    def subject(self) -> dict[str, str]:
        box = ", ".join(f"[{in_full(low)}, {in_full(high)}]" for low, high in self.box)
        return {"program": f"SHA-256 {self.program_sha256}", "inputs": box}

    def asked_for(self) -> list[float]:
        return [] if self.epsilon is None else [self.epsilon]

    def as_small_as_asked(self, bound: float) -> bool:
        return self.epsilon is None or bound <= self.epsilon

    @classmethod
    def right(cls) -> dict[str, Callable[[Any], bool]]:
        return super().right() | {"epsilon": lambda part: part is None or is_number(part)}


def certify_program(
    program: dict[str, Any], network: EmbeddedTransformer, dtype: str = "float64", epsilon: float | None = None,
    dtypes: Sequence[str] = DTYPES,
) -> ProgramCertificate:  # fmt: skip
    """Compare weights and program, bound the rounding in every dtype; sets ``network.safe`` to those with a bound."""
    fields = certified(program, network, Choice(dtype, epsilon, dtypes))
    network.safe = tuple(fields["bounds"])
    return ProgramCertificate(**fields, epsilon=epsilon, weights_sha256=weights_sha256(network))


@dataclasses.dataclass(frozen=True)
class Choice:
    """The dtype asked for and how large its bound may be, the dtypes that get a bound, and for which inputs it is."""

    dtype: str = "float64"
    epsilon: float | None = None
    dtypes: Sequence[str] = DTYPES
    whole: bool = False


def certified(program: dict[str, Any], network: EmbeddedTransformer, choice: Choice) -> dict[str, Any]:
    """The fields that certificates of both kinds have, but for the hash of the network: its dtypes are part of that."""
    start = time.perf_counter()
    dtype, epsilon = choice.dtype, choice.epsilon
    try:
        found = compare(program, network)
    except NotProved as error:
        shown = refutation(error, network, whole=choice.whole)
        if shown is not None:
            raise Refuted(f"Refuted: the network does not compute the program. {error} {shown}.") from error
        raise NotProved(
            f"Not proved: {error} No input was found on which network and program differ; it may well be right."
        ) from error
    bounds, reasons = dtype_bounds(network, found, choice.dtypes, epsilon, choice.whole)
    return {
        "norm": "sup",
        "dtype": dtype,
        "bound": bounds[dtype]["bound"] if dtype in bounds else float("inf"),
        "bounds": {name: {**part, "rounding": roomy(part["rounding"])} for name, part in bounds.items()},
        "reasons": reasons,
        "parts": {"approximation": roomy(found.approximation), "weights": roomy(found.weights)},
        "splines": [{**spline, "own": roomy(spline["own"])} for spline in found.splines],
        "assumptions": [*found.assumptions, *ARITHMETIC],
        "box": [list(ends) for ends in found.box],
        "program_sha256": program_sha256(program),
        "package_version": __version__,
        "seconds": round(time.perf_counter() - start, 3),
    }


def certify_again(witness: Any, wanted: Wanted) -> ProgramCertificate:
    """The certificate of a loaded witness, for the dtypes that it was saved with.

    Of the old certificate only two choices are kept, the dtype asked for and epsilon; not one word: it may be forged.
    """
    network, before = witness.network, witness.certificate
    dtype, safe = saved_choice(witness, wanted)
    epsilon = None if before is None else before.epsilon
    found = certify_program(witness.record(), network, dtype, epsilon, safe)
    if network.safe != safe:
        raise CannotBuild(
            f"The witness says that it runs in {', '.join(safe)}, but only {', '.join(network.safe)} is proved."
        )
    others = [name for name in DTYPES if name not in safe]
    return dataclasses.replace(
        found, reasons={name: f"the witness was not saved for it; build with dtype='{name}'." for name in others}
    )


def saved_choice(witness: Any, wanted: Wanted) -> tuple[str, tuple[str, ...]]:
    """The dtype that a loaded witness was asked for, and all that it was saved with."""
    if wanted.target is not None:
        raise InvalidInput("A program is certified against itself: leave the target out.")
    network, before = witness.network, witness.certificate
    if network.dtype != torch.float64:
        raise InvalidInput(f"Certificates are made from the float64 weights; this witness is in {network.dtype}.")
    safe = network.safe
    return (safe[0] if before is None or before.dtype not in safe else before.dtype), safe


def dtype_bounds(
    network: EmbeddedTransformer, found: Comparison, dtypes: Sequence[str], epsilon: float | None, whole: bool = False
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """The bound of every dtype, or why it has none (or one beyond ``epsilon``)."""
    bounds: dict[str, dict[str, float]] = {}
    reasons: dict[str, str] = {}
    for name in dtypes:
        try:
            part = rounding(network, found.box, name, whole)
        except ThereExistsError as error:
            reasons[name] = str(error)
            continue
        total = roomy(added_up(part, found))
        if not math.isfinite(total):
            reasons[name] = "its bound is not a number."
        elif epsilon is not None and total > epsilon:
            reasons[name] = f"its bound {rounded_up(total, 3)} is beyond epsilon = {in_full(epsilon)}."
        else:
            bounds[name] = {"rounding": part, "bound": total}
    return bounds, reasons


def added_up(part: float, found: Comparison) -> float:
    """At least the sum of the three parts."""
    return (part + found.weights + found.approximation) * (1 + 2.0**-50)


def roomy(size: float) -> float:
    """A little more: what another machine finds is covered, too, and a verifier forgives nothing."""
    return size * (1 + 2 * AGREEMENT)


def program_sha256(program: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(program, sort_keys=True).encode()).hexdigest()


def _are_bounds(part: Any) -> bool:
    """Of one dtype at least, and for each of them what rounding does and what is proved; nothing else."""
    return is_table_of(is_table_of(is_size, ("rounding", "bound")))(part) and bool(part) and part.keys() <= set(DTYPES)


def _is_box(part: Any) -> bool:
    """One interval for each feature, and one feature at least."""
    rows = is_list_of(is_list_of(is_number))(part) and all(len(ends) == 2 and ends[0] < ends[1] for ends in part)
    return rows and bool(part)
