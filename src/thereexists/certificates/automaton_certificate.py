"""The certificate of an automaton's network: right on every string of at most n symbols, in these dtypes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from pathlib import Path
from typing import Any

from thereexists._version import __version__
from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_proof import Proof, prove
from thereexists.certificates.certificate import FILE, FORMAT_VERSION, read_certificate
from thereexists.certificates.check import Wanted
from thereexists.certificates.cubes import weights_sha256
from thereexists.certificates.stored_automaton import StoredAutomaton
from thereexists.core.atomic_files import write_beside
from thereexists.core.dtypes import DTYPES, dtype_name
from thereexists.core.errors import BadWitnessFile, InvalidInput, NotProved
from thereexists.core.json_files import malformed, record_digest

ASSUMPTIONS = (
    "an operation whose exact result is a number of the dtype gives it, in any order of a sum and in any wider format",
    "softmax subtracts the largest logit; exp(0) is 1, and exp(t) is 0 for t ≤ −800, as it is below the smallest "
    "number of every dtype",
)


@dataclasses.dataclass(frozen=True, repr=False)
class AutomatonCertificate:
    """The read-out at position j is the state after j symbols, the last output and the acceptance: exactly.

    For every string of at most ``n`` symbols, in every one of ``dtypes``; ``reasons`` says why another is not among
    them. ``gap``: the least lead of the right position's logit. ``bound`` is 0: nothing is approximated.
    """

    kind: str
    n: int
    states: int
    symbols: int
    blocks: int
    gap: float
    bound: float
    dtypes: list[str]
    reasons: dict[str, str]
    assumptions: list[str]
    automaton_sha256: str
    weights_sha256: str
    package_version: str
    seconds: float = dataclasses.field(default=0.0, compare=False)  # not stored

    def __repr__(self) -> str:
        lines = [f"AutomatonCertificate: {self.claim()}"]
        lines += [f"  not in {name}: {reason}" for name, reason in self.reasons.items()]
        return "\n".join(lines)

    def claim(self) -> str:
        """What is proved, in a few words."""
        return (
            f"right on every string of at most {self.n:,} symbols, {self.symbols}^{self.n} of that length, "
            f"in {', '.join(self.dtypes)}"
        )

    def save(self, folder: str | Path) -> None:
        """Write certificate.json into the witness's folder, whole or not at all."""
        content = {k: v for k, v in dataclasses.asdict(self).items() if k != "seconds"}
        record = {"format_version": FORMAT_VERSION, "about": "automaton", **content}
        record["digest"] = record_digest(record)
        write_beside(Path(folder) / FILE, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def certify_automaton(stored: StoredAutomaton) -> AutomatonCertificate:
    """Prove it, and set ``network.safe`` to the dtypes in which it is; ``NotProved`` says which step fails."""
    start = time.perf_counter()
    found = proved(stored)
    stored.network.safe = safe_of(found)
    return AutomatonCertificate(
        **facts_of(stored, found),
        weights_sha256=weights_sha256(stored.network),
        package_version=__version__,
        seconds=round(time.perf_counter() - start, 3),
    )


def proved(stored: StoredAutomaton) -> Proof:
    """The proof, which holds in the dtype of the weights at least."""
    try:
        found = prove(stored.network, stored.maps, stored.n, stored.moduli)
    except NotProved as error:
        raise NotProved(f"Not proved: {error}") from error
    own = found.dtypes[dtype_name(stored.network.dtype)]
    if not own.holds:
        raise NotProved(f"Not proved: {own.reasons[0]}.")
    return found


def safe_of(found: Proof) -> tuple[str, ...]:
    return tuple(name for name in DTYPES if found.dtypes[name].holds)


def facts_of(stored: StoredAutomaton, found: Proof) -> dict[str, Any]:
    """All that a certificate says of the proof, as it is."""
    safe = safe_of(found)
    return {
        "kind": "exact",
        "n": stored.n,
        "states": stored.automaton.size,
        "symbols": len(stored.automaton.alphabet),
        "blocks": found.blocks,
        "gap": found.gap,
        "bound": 0.0,
        "dtypes": list(safe),
        "reasons": {name: found.dtypes[name].reasons[0] for name in DTYPES if name not in safe},
        "assumptions": list(ASSUMPTIONS),
        "automaton_sha256": automaton_sha256(stored.automaton),
    }


def certify_again(witness: Any, wanted: Wanted) -> AutomatonCertificate:
    """What ``te.certify`` asks."""
    if wanted.target is not None:
        raise InvalidInput("An automaton's network is certified against its automaton: leave the target out.")
    return certify_automaton(witness.stored)


def automaton_sha256(automaton: Automaton) -> str:
    """Of what the machine does: not of the names of its states, nor of what it was made from."""
    told = {k: v for k, v in automaton.describe().items() if k not in ("names", "before", "origin")}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


_TYPES = {name: kind for kind, names in {
    str: ("kind", "automaton_sha256", "weights_sha256", "package_version"), int: ("n", "states", "symbols", "blocks"),
    float: ("gap", "bound"), list: ("dtypes", "assumptions"), dict: ("reasons",),
}.items() for name in names}  # fmt: skip


def load_automaton_certificate(folder: str | Path) -> AutomatonCertificate:
    """Read certificate.json; refuses one that is missing, broken, changed, newer, or about something else."""
    file, record = read_certificate(folder)
    about = record.pop("about", None)
    if about != "automaton":
        raise BadWitnessFile(f"{file} is a certificate about {about!r}, not about an automaton; update thereexists.")
    with malformed(file, "is not a complete certificate"):
        if record.keys() != _TYPES.keys():
            raise InvalidInput(f"{sorted(record.keys() ^ _TYPES.keys())[0]!r} is amiss")
        wrong = [name for name, kind in _TYPES.items() if type(record[name]) is not kind]
        texts = [*record["dtypes"], *record["assumptions"], *record["reasons"].values()]
        if wrong or not all(isinstance(text, str) for text in texts) or not set(record["dtypes"]) <= set(DTYPES):
            raise InvalidInput(f"its {(wrong or ['dtypes'])[0]!r} has a wrong type")
        return AutomatonCertificate(**record)
