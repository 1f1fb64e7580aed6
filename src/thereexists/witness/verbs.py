"""Verbs that take a witness or its folder: each is one look-up, or one question to the witness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thereexists.certificates.check import Progress, Wanted, untold
from thereexists.core.errors import InvalidInput
from thereexists.core.named_folder import folder_named
from thereexists.core.neutral import neutral
from thereexists.functions.target import Target
from thereexists.parallel import HERE, Workers
from thereexists.witness.load import loaded
from thereexists.witness.trace import Trace
from thereexists.witness.witness import Witness


@neutral()
def certify(
    witness: Witness | str | Path,
    p: float = 1.0,
    target: Target | None = None,
    folder: str | Path | None = None,
    progress: Progress = untold,
    workers: Workers = HERE,
    **sampling: Any,
) -> Any:
    """A certificate of what the network computes.

        certificate = te.certify(witness)
        certificate.bound  # d_1 between the function and the network is at most this

    A function gets a bound on d_p: rigorous if its target states a modulus of continuity or an interval extension;
    statistical, and labelled so, if it states only a bound on |f|. A program gets a bound in the sup norm, an automaton
    the statement that it is right on every string.

    Args:
        witness: a witness, or the folder of a saved one; the certificate is then saved there.
        p: the p of d_p.
        target: the function, for a witness of your own function that was loaded from a folder: same shape, domain and
            symmetry, or it is refused.
        folder: the witness's own folder; finished chunks are kept there, and an interrupted run resumes.
        progress: called as ``progress(done, total)``.
        workers: how many processes compute it, and where; the certificate is the same, to the last bit.
        **sampling: ``seed``, ``confidence``, ``samples`` and ``opinions``.

    Returns:
        A certificate: ``bound``, ``assumptions``, ``save(folder)``.

    Raises:
        InvalidInput: an option is not what it must be, or nothing that is known of the function allows a bound.
        NotProved: the proof does not succeed.
    """
    given = witness if isinstance(witness, str | Path) else None
    witness = witness_of(witness, "certify")
    unknown = [name for name in sampling if name not in ("seed", "confidence", "samples", "opinions")]
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} is not an option of certify: it takes seed, confidence, samples, opinions.")
    place = folder or given
    resumes = None if place is None else folder_named(place)
    wanted = Wanted(p, target, folder=resumes, progress=progress, workers=workers, **sampling)
    certificate = witness.kind.find("certify")(witness, wanted)
    if given is not None:
        certificate.save(given)
    return certificate


@neutral()
def trace(witness: Witness | str | Path, x: Any) -> Trace:
    """Watch one sequence go through the network.

        te.trace(witness, [[0.7], [0.1], [0.4]]).moves

    Args:
        witness: a witness, or the folder of a saved one.
        x: one input, as the witness takes it: of a function, a sequence (n, d).

    Returns:
        A trace: the state after every stage, and everything that changed it.

    Raises:
        InvalidInput: ``x`` is not an input of this witness.
    """
    return witness_of(witness, "trace").trace(x)


def witness_of(given: Any, verb: str) -> Witness:
    if not isinstance(given, Witness | str | Path):
        raise InvalidInput(
            f"{verb} takes a witness (te.build or te.load gives one) or its folder; got {type(given).__name__}."
        )
    return loaded(given)
