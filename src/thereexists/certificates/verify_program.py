"""Re-check a saved program: its weights against its operations, and every number of its certificate.

The weights are run symbolically and compared with what the operations mean (``program_bound.py``); nothing of the
compiler is used. At last some random inputs, drawn anew each time, go through the network in every certified dtype and
through the program's own forms: a bound that is wrong may be caught there by somebody who did not believe the proof.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from thereexists.certificates.certificate import load_certificate
from thereexists.certificates.check import Asked, Check, as_claimed
from thereexists.certificates.program_bound import Comparison, compare, refutation
from thereexists.certificates.program_certificate import (
    ARITHMETIC,
    CompiledCertificate,
    added_up,
    dtype_bounds,
    program_sha256,
)
from thereexists.certificates.program_limits import check_program
from thereexists.certificates.program_places import check_name, check_places
from thereexists.certificates.program_splines import assumes_as_much
from thereexists.certificates.program_trial import try_out
from thereexists.core import storage
from thereexists.core.dtypes import DTYPES
from thereexists.core.errors import BadWitnessFile, NotProved, ThereExistsError
from thereexists.core.json_files import malformed
from thereexists.core.kinds import KINDS
from thereexists.core.rounded_figures import rounded_up
from thereexists.model import EmbeddedTransformer
from thereexists.model.digest import weights_sha256


def program_checks(asked: Asked) -> Iterator[Check]:
    """The checks, one after the other; the first that makes the others meaningless ends them."""
    yield from compiled_checks(asked)


@dataclass(frozen=True)
class Checked:
    """What was read and found on the way to the last check."""

    certificate: Any
    network: EmbeddedTransformer
    found: Comparison


def compiled_checks(asked: Asked) -> Generator[Check, None, Checked | None]:
    """Of a program over reals or over symbols: that the network is as near to the program as its certificate says."""
    asked.without_a_function()
    record = asked.record
    storage.check_dtype(record, asked.weights)
    try:
        check_program(record["program"])
    except ThereExistsError as error:
        yield Check("meaning", False, str(error))
        return None
    certificate = load_certificate(asked.folder, KINDS[record["construction"]].certificates)
    with malformed(asked.folder, "is not a complete witness"):
        check_name(record)
        network = EmbeddedTransformer.from_structure(record["structure"], asked.weights)
    yield Check("files", True, "record, weights and certificate are whole and match their digests")
    claimed, actual = record.get("class"), network.shape() | {"positional": network.E is not None}
    yield Check("class", claimed == actual, f"{as_claimed(claimed, actual)}; {network.depth} blocks")
    yield _check_places(record, network)
    sha = weights_sha256(network)
    same = sha == certificate.weights_sha256
    yield Check("weights", same, f"SHA-256 {sha[:16]}… {'is' if same else 'is not'} the certified one")
    program = record["program"]
    sha = program_sha256(program)
    same = certificate.means(program)
    yield Check("program", same, f"{len(program['nodes'])} operations, SHA-256 {sha[:16]}… {'is' if same else 'is not'} the certified one")  # noqa: E501  # fmt: skip
    try:
        found = compare(program, network)
    except NotProved as error:
        shown = refutation(error, network, claims(certificate), certificate.whole)
        if shown is not None:
            yield Check("meaning", False, f"refuted: {shown}")
        else:
            yield Check("meaning", False, f"not proved: {error} No input was found on which the claim fails.")
        return None
    except ThereExistsError as error:
        yield Check("meaning", False, str(error))
        return None
    yield Check("meaning", True, f"the weights compute the program, all of its {found.terms:,} quantities, in real arithmetic")  # noqa: E501  # fmt: skip
    yield from _check_numbers(certificate, network, found)
    yield from _check_dtypes(certificate, network, found)
    yield _check_sample(certificate, network, found)
    return Checked(certificate, network, found)


def _check_places(record: dict[str, Any], network: EmbeddedTransformer) -> Check:
    try:
        check_places(record["places"], record["program"], network)
    except BadWitnessFile as error:
        return Check("places", False, str(error))
    return Check("places", True, f"{len(record['places'])} halves that are there (what they make is its author's word)")


def _check_numbers(
    certificate: CompiledCertificate, network: EmbeddedTransformer, found: Comparison
) -> Iterator[Check]:
    box = [list(ends) for ends in found.box]
    yield Check("box", certificate.box == box, f"claimed {certificate.box}, the program says {box}")
    actual = {"approximation": found.approximation, "weights": found.weights}
    right = certificate.parts.keys() == actual.keys() and all(
        _covers(certificate.parts[key], value) for key, value in actual.items()
    )
    yield Check("parts", right, as_claimed(certificate.parts, actual))
    listed = certificate.splines
    right = len(listed) == len(found.splines) and all(
        {**stated, "own": 0.0} == {**spline, "own": 0.0} and _covers(stated.get("own"), spline["own"])
        for stated, spline in zip(listed, found.splines, strict=True)
    )
    yield Check("splines", right, f"{len(found.splines)} functions, off by {[s['own'] for s in found.splines]}")
    needed = {*found.assumptions, *ARITHMETIC}
    stated = set(certificate.assumptions)  # no word more than needed, either: it would be taken for ours
    differing = {text for text in needed if not any(assumes_as_much(other, text) for other in stated)}
    differing |= {text for text in stated if not any(assumes_as_much(text, other) for other in needed)}
    yield Check("assumptions", not differing, "; ".join(differing) or f"all {len(needed)} are listed")
    yield Check("norm", certificate.norm == "sup", f"in the {certificate.norm} norm")


def _check_dtypes(certificate: CompiledCertificate, network: EmbeddedTransformer, found: Comparison) -> Iterator[Check]:
    """Every stated bound covers its parts, and the network allows no dtype without one."""
    names = list(certificate.bounds)
    known = bool(names) and set(names) <= set(DTYPES) and set(network.safe) == set(names)
    yield Check("dtypes", known, f"certified {', '.join(names)}; the network runs in {', '.join(network.safe)}")
    if not known:
        return
    actual, reasons = dtype_bounds(network, found, names, None, certificate.whole)
    for name in names:
        stated = certificate.bounds[name]
        if name in reasons:
            yield Check(f"bound {name}", False, reasons[name])
            continue
        part = actual[name]["rounding"]
        right = stated.keys() == {"rounding", "bound"} and _covers(stated.get("rounding"), part)
        right = right and _covers(stated.get("bound"), added_up(part, found))
        right = right and certificate.as_small_as_asked(stated["bound"])
        yield Check(
            f"bound {name}",
            right,
            f"claimed sup norm ≤ {stated.get('bound')}, found {rounded_up(actual[name]['bound'], 6)}",
        )
    odd = certificate.reasons.keys() - (set(DTYPES) - set(names))  # why a dtype has no bound: only of one that has none
    yield Check("reasons", not odd, f"a reason against {', '.join(sorted(odd))}" if odd else "those of its author")
    stated = certificate.bounds.get(certificate.dtype, {}).get("bound")
    right = stated is not None and certificate.bound == stated
    yield Check("bound", right, f"claimed {certificate.bound} in {certificate.dtype}")


def claims(certificate: CompiledCertificate) -> dict[str, float]:
    """The bound of every dtype that has one."""
    found: dict[str, float] = {}
    for name, part in certificate.bounds.items():
        bound = part.get("bound")
        if name in DTYPES and bound is not None and _covers(bound, 0.0):
            found[name] = float(bound)
    return found


def _check_sample(certificate: CompiledCertificate, network: EmbeddedTransformer, found: Comparison) -> Check:
    lengths = [(found.meaning, found.meant), *([found.another] if found.another else [])]
    trials = [try_out(*one, network, claims(certificate), whole=certificate.whole) for one in lengths]
    return Check("trial", all(trial.fault is None for trial in trials), "; ".join(map(str, trials)))


def _covers(claimed: Any, found: float) -> bool:
    """A claim may be larger than what is found, never smaller; and no bound is negative or infinite."""
    if isinstance(claimed, bool) or not isinstance(claimed, int | float) or not math.isfinite(claimed):
        return False
    return 0 <= found < math.inf and found <= claimed
