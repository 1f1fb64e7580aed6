"""What the rows of an automaton's network mean: the map from states to states that a string of symbols is.

A string acts on the states: from q it leads to a state r, the last step writing o. The pair t = (r, o) is a *target*, r
its state. So a string is a map from states to targets, and a string uv is v's map after the states of u's. Two ways to
write such a map f into rows that are 0 or 1:

    StateMaps     one row for every pair (q, t) that some string makes true: it is 1 where f(q) = t
    MonoidMaps    one row for every map that some string is: it is 1 where that map is f

The dead state of an acceptor has no rows: from q to it is said by q having no row that is 1. Each has ``own`` rows for
maps to targets and ``fetched`` rows for the states of the map that came before. Of rows in the same *group* at most one
is 1. ``products`` says how two maps make a third, in units that are the AND of a fetched row and an own row:

    states    (q, s) and (s, t) make (q, t);  f(q) = s for at most one s, so the sum over s is 0 or 1
    monoid    f and g make g ∘ state ∘ f;  exactly one fetched row and one own row is 1

Both are closed: whatever two strings make is a row. That is checked here, and nothing is believed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.automata.automaton import Automaton
from thereexists.core.errors import InvalidInput, NotProved

MOST_ROWS = 1 << 13


@dataclass(frozen=True)
class Maps(ABC):
    """``targets`` (T, 2): state and output, −1 for none; ``labels``: of every own row, what it says."""

    automaton: Automaton
    targets: np.ndarray
    labels: np.ndarray

    @property
    def own(self) -> int:
        return len(self.labels)

    @property
    def fetched(self) -> int:
        return len(self.state_labels)

    @property
    @abstractmethod
    def state_labels(self) -> np.ndarray:
        """What every fetched row says."""

    @abstractmethod
    def projection(self) -> np.ndarray:
        """(own,): the fetched row that an own row becomes when it is fetched."""

    @abstractmethod
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Of own and of fetched rows: at most one row of a group is 1."""

    @abstractmethod
    def products(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fetched rows, own rows, and the own rows that they make."""

    @abstractmethod
    def product_count(self) -> int:
        """How many they are, before they are listed."""

    @abstractmethod
    def bits(self, f: np.ndarray) -> np.ndarray:
        """The own rows of a map (states,) to targets, −1 for the dead state: 0/1 (own,)."""

    @abstractmethod
    def map_of(self, bits: np.ndarray) -> np.ndarray:
        """The map of own rows (…, own) of 0/1: (…, states)."""

    @abstractmethod
    def start_targets(self) -> np.ndarray:
        """(own,): the target to which a row says that the start is led, −1 where it says nothing of that."""

    def at_start(self, target: np.ndarray) -> np.ndarray:
        """(own,): whether a row says that the start is led to a target for which ``target`` (T,) is true."""
        t = self.start_targets()
        return (t >= 0) & target[t]

    def letters(self) -> np.ndarray:
        """The maps of the symbols: (symbols, states)."""
        number = {(r, o): t for t, (r, o) in enumerate(self.targets.tolist())}
        found = np.full(self.automaton.table.T.shape, -1)
        for (a, q), r in np.ndenumerate(self.automaton.table.T):
            if r != self.automaton.dead:
                key = (int(r), int(self.automaton.outputs[q, a]))
                if key not in number:
                    raise NotProved(f"the step from state {q} by symbol {a} leads to {key}, which has no target.")
                found[a, q] = number[key]
        return found

    def is_identity(self, f: np.ndarray) -> bool:
        """Whether a map leads every state to itself, whatever it writes."""
        wanted = np.arange(self.automaton.size)
        live = wanted != (-1 if self.automaton.dead is None else self.automaton.dead)
        states = np.where(f < 0, -1, self.targets[f, 0])
        return bool((states[live] == wanted[live]).all() and (f[~live] < 0).all())

    def readout(self) -> np.ndarray:
        """The output rows (states + output symbols + 1, own): one-hot state, one-hot output, accepted."""
        machine = self.automaton
        states, outputs = self.targets[:, 0], self.targets[:, 1]
        rows = [self.at_start(states == q) for q in range(machine.size)]
        rows += [self.at_start(outputs == o) for o in range(len(machine.output_alphabet))]
        rows.append(self.at_start(machine.accept[states]))
        return np.stack(rows).astype(np.float64)

    def describe(self) -> dict[str, Any]:
        return {"kind": KIND_NAMES[type(self)], "targets": self.targets.tolist(), "labels": self.labels.tolist()}


@dataclass(frozen=True)
class StateMaps(Maps):
    """``labels`` (own, 2): (q, t)."""

    @property
    def state_labels(self) -> np.ndarray:
        return np.unique(self._pairs(), axis=0)

    def projection(self) -> np.ndarray:
        return np.unique(self._pairs(), axis=0, return_inverse=True)[1].reshape(-1)

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        return self.labels[:, 0], self.state_labels[:, 0]

    def products(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        T = len(self.targets)
        pairs = self.labels[:, 0] * T + self.labels[:, 1]
        order = np.argsort(pairs)
        a, b = np.nonzero(self.state_labels[:, 1][:, None] == self.labels[:, 0])  # the states in the middle agree
        made = self.state_labels[a, 0] * T + self.labels[b, 1]
        c = order[np.minimum(np.searchsorted(pairs, made, sorter=order), self.own - 1)]
        if (pairs[c] != made).any():
            raise NotProved("two pairs of the rows make a pair that has no row.")
        return a, b, c

    def product_count(self) -> int:
        into, out = (
            np.bincount(q, minlength=self.automaton.size) for q in (self.state_labels[:, 1], self.labels[:, 0])
        )
        return int(into @ out)

    def bits(self, f: np.ndarray) -> np.ndarray:
        found = (f[self.labels[:, 0]] == self.labels[:, 1]).astype(np.float64)
        if found.sum() != (f >= 0).sum():
            raise NotProved("a step of the automaton has no row.")
        return found

    def map_of(self, bits: np.ndarray) -> np.ndarray:
        found = np.full((*bits.shape[:-1], self.automaton.size), -1)
        *at, row = np.nonzero(bits > 0.5)
        found[(*at, self.labels[row, 0])] = self.labels[row, 1]
        return found

    def start_targets(self) -> np.ndarray:
        return np.where(self.labels[:, 0] == self.automaton.start, self.labels[:, 1], -1)

    def _pairs(self) -> np.ndarray:
        return np.column_stack([self.labels[:, 0], self.targets[self.labels[:, 1], 0]])


@dataclass(frozen=True)
class MonoidMaps(Maps):
    """``labels`` (own, states): the target of every state, −1 for the dead one."""

    @property
    def state_labels(self) -> np.ndarray:
        return np.unique(self._states(), axis=0)

    def projection(self) -> np.ndarray:
        return np.unique(self._states(), axis=0, return_inverse=True)[1].reshape(-1)

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(self.own, dtype=np.int64), np.zeros(self.fetched, dtype=np.int64)

    def products(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a, b = (grid.reshape(-1) for grid in np.indices((self.fetched, self.own)))
        number = {row.tobytes(): k for k, row in enumerate(np.ascontiguousarray(self.labels))}
        made = []
        for f in self.state_labels:
            through = np.where(f >= 0, self.labels[:, f], -1)  # (own, states)
            made.append([number.get(np.ascontiguousarray(row).tobytes(), -1) for row in through])
        c = np.array(made).reshape(-1)
        if (c < 0).any():
            raise NotProved("two maps of the rows make a map that has no row.")
        return a, b, c

    def product_count(self) -> int:
        return self.own * self.fetched

    def bits(self, f: np.ndarray) -> np.ndarray:
        found = (self.labels == f).all(axis=1).astype(np.float64)
        if found.sum() != 1:
            raise NotProved("a step of the automaton has no row.")
        return found

    def map_of(self, bits: np.ndarray) -> np.ndarray:
        return self.labels[np.argmax(bits, axis=-1)]

    def start_targets(self) -> np.ndarray:
        return self.labels[:, self.automaton.start]

    def _states(self) -> np.ndarray:
        return np.where(self.labels >= 0, self.targets[self.labels, 0], -1)


KINDS = {"states": StateMaps, "monoid": MonoidMaps}
KIND_NAMES = {made: name for name, made in KINDS.items()}


def read_maps(automaton: Automaton, stored: dict[str, Any]) -> Maps:
    """The rows of a record, looked at: they are distinct, and name states and targets that there are."""
    if not isinstance(stored, dict) or stored.keys() != {"kind", "targets", "labels"} or stored["kind"] not in KINDS:
        raise InvalidInput(f"maps must be described by targets, labels and a kind, one of {', '.join(KINDS)}")
    targets, labels = (_table(stored[name], name) for name in ("targets", "labels"))
    Q, O, T = automaton.size, len(automaton.output_alphabet), len(targets)
    states, outputs = targets[:, 0], targets[:, 1]
    right = targets.shape[1] == 2 and bool(((states >= 0) & (states < Q)).all())
    right = right and not (automaton.dead is not None and (states == automaton.dead).any())
    right = right and bool(((outputs >= 0) & (outputs < O)).all() if O else (outputs == -1).all())
    width = 2 if stored["kind"] == "states" else Q
    right = right and labels.shape[1] == width and len(labels) <= MOST_ROWS
    if right and stored["kind"] == "states":
        right = bool((labels >= 0).all() and (labels[:, 0] < Q).all() and (labels[:, 1] < T).all())
        right = right and not (automaton.dead is not None and (labels[:, 0] == automaton.dead).any())
    elif right:
        right = bool(((labels >= -1) & (labels < T)).all()) and (
            automaton.dead is None or bool((labels[:, automaton.dead] < 0).all())
        )
        right = right and (automaton.dead is not None or bool((labels >= 0).all()))
    right = right and all(len(np.unique(rows, axis=0)) == len(rows) for rows in (targets, labels))
    if not right:
        raise InvalidInput("targets or labels of the rows are not distinct, or are not of this automaton")
    return KINDS[stored["kind"]](automaton, targets, labels)


def _table(rows: Any, what: str) -> np.ndarray:
    whole = isinstance(rows, list) and rows and all(isinstance(row, list) and row for row in rows)
    if not whole or not all(type(x) is int and abs(x) < 1 << 31 for row in rows for x in row):
        raise InvalidInput(f"the {what} of maps must be a table of whole numbers")
    return np.array(rows, dtype=np.int64)
