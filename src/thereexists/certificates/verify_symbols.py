"""Re-check a saved program over symbols: its network is near the program, and the program gives symbols on strings."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np

from thereexists.certificates.check import Asked, Check
from thereexists.certificates.program_trial import SLOW, given
from thereexists.certificates.program_values import values_of
from thereexists.certificates.symbol_certificate import Alphabets, lengths_of, prove_symbols, why_not
from thereexists.certificates.verify_program import Checked, compiled_checks
from thereexists.core.dtypes import as_dtype
from thereexists.core.errors import BadWitnessFile, NotProved
from thereexists.core.rounded_figures import rounded_up

_TRIED = 16
_WORK = 1 << 22  # logits of all heads and blocks


def symbol_checks(asked: Asked) -> Iterator[Check]:
    checked = yield from compiled_checks(asked)
    if checked is None:
        return
    try:
        alphabets = Alphabets.read(asked.record["symbols"])
    except BadWitnessFile as error:
        yield Check("alphabets", False, str(error))
        return
    stated = Alphabets(tuple(checked.certificate.alphabet), tuple(checked.certificate.output_alphabet))
    words = "are" if stated == alphabets else "are not"
    yield Check("alphabets", stated == alphabets, f"{_sizes(alphabets)} {words} those of the certificate")
    lengths, program = checked.certificate.lengths, asked.record["program"]
    yield Check("lengths", lengths == lengths_of(program), f"claimed {lengths}, the program says {lengths_of(program)}")
    try:
        prove_symbols(program, alphabets)
    except NotProved as error:
        yield Check("symbols", False, f"not proved: {error}")
        return
    yield Check("symbols", True, f"on every string the program gives one of {len(alphabets.output_alphabet)} symbols")
    for name, part in checked.certificate.bounds.items():
        reason = why_not(name, part["bound"], alphabets)
        yield Check(
            f"exact {name}", not reason, reason or f"{rounded_up(part['bound'], 3)} < 1/2: the nearest symbol is right"
        )
    yield _trial(checked, alphabets)


def _sizes(alphabets: Alphabets) -> str:
    return f"{len(alphabets.alphabet)} symbols in, {len(alphabets.output_alphabet)} out"


def _trial(checked: Checked, alphabets: Alphabets) -> Check:
    """Random strings of the full length, drawn anew each time: for whoever does not believe the proof."""
    seed = secrets.randbits(32)
    network, found = checked.network, checked.found
    work = found.meaning.full**2 * max(network.shape()["h"], 1) * max(network.depth, 1)
    count = min(_TRIED, max(1, _WORK // work))
    shape = (count, found.meaning.n, 1)
    X = np.random.default_rng(seed).integers(0, len(alphabets.alphabet), shape).astype(np.float64)
    meant, noise = values_of(found.meaning, found.meant, X)
    wanted = np.rint(meant.astype(np.float64))
    if not (np.abs(meant - wanted) <= noise + 2.0**-40).all():
        return Check("strings", False, f"the program does not give a whole number on a random string (seed {seed})")
    names = [name for name in checked.certificate.bounds if name not in SLOW or work <= _WORK]
    for name in names:
        there = network.rounded(as_dtype(name))
        if not np.array_equal(np.rint(there.run(given(X, found.meaning, network))[:, : found.meaning.n]), wanted):
            return Check("strings", False, f"a random string goes wrong in {name} (seed {seed})")
    return Check("strings", True, f"{count} random strings (seed {seed}) in {', '.join(names)}")
