"""What every network of an automaton can, however it is built: run strings, and prove itself."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_certificate import AutomatonCertificate, certify_automaton, proved
from thereexists.certificates.automaton_proof import FIRST, SYMBOLS
from thereexists.certificates.certificate import FILE, load_certificate
from thereexists.certificates.stored_automaton import StoredMachine
from thereexists.core.dtypes import DTYPES, as_dtype, dtype_name
from thereexists.core.errors import CannotBuild, InvalidInput, NotProved
from thereexists.core.regular_files import is_regular
from thereexists.core.verdict import Verdict
from thereexists.evaluate.prefixes import run_prefixes
from thereexists.model import EmbeddedTransformer
from thereexists.witness.witness import Samples, Witness

MOST_TRACED = 256
_SAMPLE_POSITIONS = 1 << 14


class MachineWitness(Witness):
    """``made``: the certificate that was made with it; ``folder``: where it was loaded from."""

    network: EmbeddedTransformer
    made: AutomatonCertificate | None
    folder: Path | None

    @property
    @abstractmethod
    def automaton(self) -> Automaton:
        """What it runs."""

    @property
    @abstractmethod
    def stored(self) -> StoredMachine:
        """What the verifier looks at."""

    @property
    def positions(self) -> int:
        """One for each symbol, and the first."""
        return self.n + 1

    @property
    def certificate(self) -> AutomatonCertificate | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of these very weights and this automaton; from a folder its author's word, which ``te.verify`` checks."""
        return self.its_own(self.made or self._read_certificate)

    @functools.cached_property
    def _read_certificate(self) -> AutomatonCertificate | None:
        if self.folder is None or not is_regular(self.folder / FILE):
            return None
        return load_certificate(self.folder, (AutomatonCertificate.kind,))

    def to_compute(self) -> Automaton:
        return self.automaton

    # ---- running it --------------------------------------------------------------------------------------------------

    def __call__(self, x: Any) -> Any:
        """Accepted or not, for one string or a list of them; of a transducer, what it writes."""
        return self.outputs(x) if self.automaton.writes else self.accepts(x)

    def accepts(self, x: Any) -> Any:
        """(strings,) of bool; one for one string."""
        words, one = self.words(x)
        rows = self.run(words)
        found = np.array([rows[k, len(word), -1] > 0.5 for k, word in enumerate(words)], dtype=bool)
        return found[0] if one else found

    def states(self, x: Any) -> Any:
        """The number of the state after every prefix, the empty one first."""
        words, one = self.words(x)
        rows = self.run(words)[..., : self.automaton.size]
        dead = -1 if self.automaton.dead is None else self.automaton.dead
        numbers = np.where(rows.max(axis=-1) > 0.5, rows.argmax(axis=-1), dead)
        found = [numbers[k, : len(word) + 1] for k, word in enumerate(words)]
        return found[0] if one else found

    def outputs(self, x: Any) -> Any:
        """What each step writes; refused for a machine that writes nothing."""
        machine = self.automaton
        if not machine.writes:
            raise InvalidInput("This automaton writes nothing: ask for its states, or whether it accepts.")
        words, one = self.words(x)
        numbers = self.run(words)[..., machine.size : -1].argmax(axis=-1)
        found = [[machine.output_alphabet[o] for o in numbers[k, 1 : len(w) + 1]] for k, w in enumerate(words)]
        return found[0] if one else found

    def run(self, words: list[np.ndarray]) -> np.ndarray:
        """The read-out (strings, longest + 1, states + outputs + 1) of strings; shorter ones stay at the end."""
        longest = max((len(word) for word in words), default=0)
        tokens = np.full((len(words), longest + 1), FIRST, dtype=np.int64)
        for row, word in zip(tokens, words, strict=True):
            row[1 : len(word) + 1] = word + SYMBOLS
        return run_prefixes(self.network, tokens)

    def words(self, x: Any) -> tuple[list[np.ndarray], bool]:
        """Strings as numbers, and whether it was one; too long ones and unknown symbols are refused."""
        x = x.tolist() if isinstance(x, np.ndarray) else x
        plain = all(isinstance(symbol, str) and len(symbol) == 1 for symbol in self.automaton.alphabet)
        batch = isinstance(x, list | tuple) and (plain or all(isinstance(word, list | tuple | str) for word in x))
        if batch and not plain and x and all(isinstance(s, str | int) and s in self.automaton.number for s in x):
            batch = False  # a list of symbols that are not characters is one string
        given = list(x) if batch else [x]
        if not given:
            raise InvalidInput("The input must hold at least one string; got none.")
        words = self.automaton.words(given)
        for k, word in enumerate(words):
            if len(word) > self.n:
                raise InvalidInput(
                    f"A string must have at most {self.n:,} symbols, for which this network was built; string {k} has "
                    f"{len(word):,}. Build one with a larger n."
                )
        return words, not batch

    # ---- what every witness can --------------------------------------------------------------------------------------

    def traced(self, x: Any) -> tuple[np.ndarray, list[Any], list[int], Any]:
        """What every trace begins with: token numbers of one string, its symbols, its states and the answer."""
        words, one = self.words(x)
        if len(words) != 1 or len(words[0]) > MOST_TRACED:
            sizes = f"{len(words)} strings" if len(words) != 1 else f"one of {len(words[0]):,}"
            raise InvalidInput(f"trace takes one string of at most {MOST_TRACED} symbols; got {sizes}.")
        symbols = [self.automaton.alphabet[a] for a in words[0].tolist()]
        states, answer = self.states(x), self(x)
        tokens = np.concatenate([[FIRST], words[0] + SYMBOLS])
        return tokens, symbols, (states if one else states[0]).tolist(), answer if one else answer[0]

    def samples(self) -> Samples:
        """All strings of n symbols where they are few, else random ones."""
        symbols, most = len(self.automaton.alphabet), max(2, _SAMPLE_POSITIONS // (self.n + 1))
        if symbols ** min(self.n, 64) <= most:
            ids = np.array(list(itertools.product(range(symbols), repeat=self.n)))
        else:
            ids = np.random.default_rng().integers(0, symbols, (most, self.n))
        tokens = np.concatenate([np.full((len(ids), 1), FIRST), ids + SYMBOLS], axis=1)
        return Samples(((tokens, run_prefixes(self.network, tokens)),), "strings")

    def verdicts(self) -> dict[str, Verdict]:
        """By the proof, from the weights as they are."""
        try:
            return proved(self.stored).dtypes
        except NotProved as error:
            return dict.fromkeys(DTYPES, Verdict(False, (str(error).removesuffix("."),)))

    def to(self, dtype: torch.dtype | str) -> MachineWitness:
        """The same in another dtype, with a certificate of its own; nothing is rounded."""
        wanted = as_dtype(dtype)
        found = self.verdicts()
        verdict = found[dtype_name(wanted)]
        if not verdict.holds:
            raise CannotBuild(f"This witness is not safe in {dtype_name(wanted)}: {verdict.reasons[0]}.")
        if wanted == self.network.dtype:
            return self
        network = copy.deepcopy(self.network).to(wanted)
        other: Any = dataclasses.replace(self, network=network, made=None, folder=None)  # pyright: ignore
        return dataclasses.replace(other, made=certify_automaton(other.stored))

    def described(self, **own: Any) -> dict[str, Any]:
        """``describe``, with what only one construction has."""
        machine, certificate = self.automaton, self.certificate
        return {
            "kind": self.construction,
            "n": self.n,
            "states": machine.size,
            "states_before": machine.before,
            "symbols": len(machine.alphabet),
            "alphabet": list(machine.alphabet),
            "output_alphabet": list(machine.output_alphabet),
            "accepting": int(machine.accept.sum()),
            "origin": machine.origin,
            **own,
            **self.blocks(),
            "certified": None if certificate is None else certificate.claim(),
            "gap": None if certificate is None else certificate.gap,
            "assumptions": [] if certificate is None else certificate.assumptions,
        }

    def facts(self) -> list[str]:
        machine = self.automaton
        what = f", writes {len(machine.output_alphabet)} symbols" if machine.writes else ""
        before = f" ({machine.before} before minimising)" if self.folder is None else ""  # else its author's word
        sizes = f"{machine.size} states{before}, {len(machine.alphabet)} symbols{what}"
        certificate = self.certificate
        return [sizes, "not certified" if certificate is None else certificate.marked(certificate.claim())]

    def save(self, path: str | Path) -> None:
        """Write the directory ``path`` (model.safetensors, witness.json, certificate.json)."""
        super().save(path)
        if self.certificate is not None:
            self.certificate.save(path)
