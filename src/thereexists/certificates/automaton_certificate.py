"""The certificate of an automaton's network: right on every string of at most n symbols, in these dtypes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable
from typing import Any, ClassVar, final

from thereexists._version import __version__
from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_proof import Proof
from thereexists.certificates.certificate import (
    RIGHT,
    Certificate,
    is_count,
    is_list_of,
    is_number,
    is_size,
    is_table_of,
    is_text,
)
from thereexists.certificates.check import Wanted
from thereexists.certificates.stored_automaton import StoredMachine
from thereexists.core.dtypes import DTYPES, dtype_name
from thereexists.core.errors import InvalidInput, NotProved
from thereexists.core.rounded_figures import rounded_down, rounded_up
from thereexists.model.digest import weights_sha256


@final
@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class AutomatonCertificate(Certificate):
    """The read-out at position j is the state after j symbols, the last output and the acceptance: exactly.

    For every string of at most ``n`` symbols, in every one of ``dtypes``; ``reasons`` says why another is not among
    them. ``gap``: the least lead of the right position's logit. ``bound`` is 0: nothing is approximated.
    """

    kind: ClassVar[str] = "automaton"
    paper: ClassVar[str] = "automata"

    n: int
    states: int
    symbols: int
    blocks: int
    gap: float
    dtypes: list[str]
    reasons: dict[str, str]
    automaton_sha256: str

    def claim(self) -> str:
        return (
            f"right on every string of at most {self.n:,} symbols, {self.symbols}^{self.n} of that length, "
            f"in {', '.join(self.dtypes)}"
        )

    def statement(self) -> str:
        return (
            f"state, output and acceptance differ from the automaton's by {rounded_up(self.bound, 6)}, after every "
            f"prefix of every string of at most {self.n:,} symbols, in {', '.join(self.dtypes)}"
        )

    def label(self) -> str:
        return "proved"

    def shares(self) -> dict[str, float]:
        return {}

    def dtype_bounds(self) -> dict[str, float | None]:
        return dict.fromkeys(self.dtypes, self.bound) | dict.fromkeys(self.reasons)

    def detail(self) -> str:
        others = [f"not in {name}: {reason}" for name, reason in self.reasons.items()]
        return "; ".join([f"{self.blocks} blocks, logits lead by {rounded_down(self.gap, 6)}", *others])

    def means(self, meant: Automaton) -> bool:
        return self.automaton_sha256 == automaton_sha256(meant)

    def subject(self) -> dict[str, str]:
        machine = f"{self.states} states, {self.symbols} symbols, SHA-256 {self.automaton_sha256}"
        return {"automaton": machine, "inputs": f"every string of at most {self.n:,} symbols"}

    @classmethod
    def right(cls) -> dict[str, Callable[[Any], bool]]:
        return RIGHT | {
            **dict.fromkeys(("n", "states", "symbols", "blocks"), is_count),
            "bound": is_size,
            "gap": is_number,
            "dtypes": lambda part: is_list_of(is_text)(part) and set(part) <= set(DTYPES),
            "reasons": is_table_of(is_text),
            "automaton_sha256": is_text,
        }


def certify_automaton(stored: StoredMachine) -> AutomatonCertificate:
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


def proved(stored: StoredMachine) -> Proof:
    """The proof, which holds in the dtype of the weights at least."""
    try:
        found = stored.prove()
    except NotProved as error:
        raise NotProved(f"Not proved: {error}") from error
    own = found.dtypes[dtype_name(stored.network.dtype)]
    if not own.holds:
        raise NotProved(f"Not proved: {own.reasons[0]}.")
    return found


def safe_of(found: Proof) -> tuple[str, ...]:
    return tuple(name for name in DTYPES if found.dtypes[name].holds)


def facts_of(stored: StoredMachine, found: Proof) -> dict[str, Any]:
    """All that a certificate says of the proof, as it is."""
    safe = safe_of(found)
    return {
        "n": stored.n,
        "states": stored.automaton.size,
        "symbols": len(stored.automaton.alphabet),
        "blocks": found.blocks,
        "gap": found.gap,
        "bound": 0.0,
        "dtypes": list(safe),
        "reasons": {name: found.dtypes[name].reasons[0] for name in DTYPES if name not in safe},
        "assumptions": list(stored.assumptions),
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
