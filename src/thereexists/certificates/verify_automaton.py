"""Re-check a saved automaton's network: the proof from the weights again, every word of its certificate, and a trial.

What the network must do is the automaton of the record. That this is the automaton of a regular expression is checked
too, where the record names one: the expression is read again and its minimal automaton compared. Of a machine made from
a Python function or a file, where it came from is its author's word; its table is there to be looked at.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterator

import numpy as np

from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_certificate import facts_of, safe_of
from thereexists.certificates.automaton_origin import check_origin
from thereexists.certificates.automaton_proof import FIRST, SYMBOLS, Proof
from thereexists.certificates.certificate import load_certificate
from thereexists.certificates.check import Asked, Check, as_claimed
from thereexists.certificates.stored_automaton import StoredMachine, read_automaton
from thereexists.certificates.stored_counting import read_counting
from thereexists.core.dtypes import as_dtype
from thereexists.core.errors import NotProved
from thereexists.core.kinds import KINDS
from thereexists.evaluate.prefixes import run_prefixes
from thereexists.model.digest import weights_sha256

_TRIED = 8  # random strings in every dtype, at most
_LONGEST = 64  # symbols of theirs; one more has as many as it may, up to
_LONG = 1024
_WORK = 1 << 31  # parameters times symbols


def automaton_checks(asked: Asked) -> Iterator[Check]:
    """Of a network that doubles."""
    asked.without_a_function()
    yield from _checks(asked, read_automaton(asked.folder, asked.record, asked.weights))


def counting_checks(asked: Asked) -> Iterator[Check]:
    """Of a network that counts."""
    asked.without_a_function()
    yield from _checks(asked, read_counting(asked.folder, asked.record, asked.weights))


def _checks(asked: Asked, stored: StoredMachine) -> Iterator[Check]:
    """The checks, one after the other; a proof that fails ends them."""
    certificate = load_certificate(asked.folder, KINDS[asked.record["construction"]].certificates)
    yield Check("files", True, "record, weights and certificate are whole and match their digests")
    network = stored.network
    claimed, actual = asked.record.get("class"), network.shape() | {"positional": network.E is not None}
    yield Check("class", claimed == actual, f"{as_claimed(claimed, actual)}; {network.depth} blocks")
    sha = weights_sha256(network)
    same = sha == certificate.weights_sha256
    yield Check("weights", same, f"SHA-256 {sha[:16]}… {'is' if same else 'is not'} the certified one")
    yield check_origin(stored.automaton)
    try:
        found = stored.prove()
    except NotProved as error:
        yield Check("proof", False, f"not proved: {error}")
        return
    yield Check("proof", True, f"{found.blocks} blocks, for every string of at most {stored.n:,} symbols")
    for name, value in facts_of(stored, found).items():
        stated = certificate.content()[name]
        if stated != value:
            yield Check(name.replace("_", " "), False, f"the certificate says {stated}; it is {value}")
            return
    yield Check("certificate", True, "says what is proved, word by word")
    right = set(network.safe) == set(safe_of(found)) and asked.record["dtype"] in network.safe
    yield Check(
        "dtypes", right, f"proved in {', '.join(safe_of(found))}; the network runs in {', '.join(network.safe)}"
    )
    if right:
        yield _trial(stored, found)


def _trial(stored: StoredMachine, found: Proof) -> Check:
    """Random strings, drawn anew each time, by the network in every dtype: for whoever does not believe the proof.

    Every second one, and the long one, takes the steps that were taken least so far, and lives as long as it can: it
    comes to states that symbols drawn at random would not meet.
    """
    machine, seed = stored.automaton, secrets.randbits(32)
    rng = np.random.default_rng(seed)
    symbols = max(1, _WORK // stored.network.parameter_count)  # that are looked at in a dtype
    short, long = min(stored.n, _LONGEST, symbols), min(stored.n, _LONG, symbols)
    batches = [(max(1, min(_TRIED, symbols // short)), short), (1, long)]
    for name in safe_of(found):
        network = copy.deepcopy(stored.network).to(as_dtype(name))
        for count, length in batches:
            ids = _strings(machine, rng, count, length)
            tokens = np.concatenate([np.full((len(ids), 1), FIRST), ids + SYMBOLS], axis=1)
            if not is_right(stored, ids, run_prefixes(network, tokens)):
                return Check("trial", False, f"a random string of {length} symbols goes wrong in {name} (seed {seed})")
    return Check(
        "trial",
        True,
        f"{sum(count for count, _ in batches)} random strings (seed {seed}) in {', '.join(safe_of(found))}",
    )


def _strings(machine: Automaton, rng: np.random.Generator, count: int, length: int) -> np.ndarray:
    """Symbols (count, length): the even rows by steps that were taken least, the odd ones at random."""
    ids = rng.integers(0, len(machine.alphabet), (count, length))
    taken = rng.random(machine.table.shape)  # ties are decided at random
    if machine.dead is not None:
        taken[machine.table == machine.dead] += count * length
    for row in ids[::2]:
        q = machine.start
        for j in range(length):
            row[j] = taken[q].argmin()
            taken[q, row[j]] += 1
            q = machine.table[q, row[j]]
    return ids


def is_right(stored: StoredMachine, ids: np.ndarray, found: np.ndarray) -> bool:
    """Whether the read-out is right for strings of symbols (batch, length): by the automaton's table alone.

    At position 0 nothing was written yet: nothing is claimed about what its output rows hold.
    """
    machine = stored.automaton
    states = machine.run(ids)
    wanted = np.zeros((*states.shape, machine.size + len(machine.output_alphabet) + 1))
    one_hot = np.eye(machine.size)
    if machine.dead is not None:
        one_hot[machine.dead] = 0.0
    wanted[..., : machine.size] = one_hot[states]
    wanted[..., -1] = machine.accept[states]
    if machine.writes:
        said = machine.outputs[states[:, :-1], ids]
        wanted[:, 1:, machine.size : -1] = np.eye(len(machine.output_alphabet))[said]
        wanted[:, 0, machine.size : -1] = found[:, 0, machine.size : -1]
    return np.array_equal(found, wanted)
