"""Which rows hold the map of a string, chosen by size: pairs of states, or the maps themselves.

Pairs (q, t): only those that some string makes true, and none for the dead state. They take Σ (q, s)·(s, t) units, up
to |Q|³. Maps: as many as the transition monoid has elements, and one unit for every two of them: less where strings act
in few ways (counters modulo m, patterns that forget).
"""

from __future__ import annotations

import numpy as np

from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_maps import Maps, MonoidMaps, StateMaps
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.functions.target import Array

CHOICES = ("auto", "states", "monoid")
MOST_ELEMENTS = 1 << 11


def choose_maps(automaton: Automaton, maps: str) -> Maps:
    """The rows that are asked for, or those that take fewer hidden units."""
    if maps not in CHOICES:
        raise InvalidInput(f"'maps' must be one of {', '.join(CHOICES)}; got {maps!r} instead.")
    targets, steps, identity = _targets(automaton)
    pairs = StateMaps(automaton, targets, _pairs(automaton, targets, steps, identity))
    if maps == "states":
        return pairs
    most = MOST_ELEMENTS if maps == "monoid" else min(MOST_ELEMENTS, int(units_of(pairs) ** 0.5) + 1)
    labels = _elements(targets, steps, identity, most)
    if labels is None:
        if maps == "monoid":
            raise CannotBuild(f"Strings act on the states in more than {most:,} ways: build with maps='states'.")
        return pairs
    monoid = MonoidMaps(automaton, targets, labels)
    return monoid if maps == "monoid" or units_of(monoid) < units_of(pairs) else pairs


def units_of(maps: Maps) -> int:
    """Hidden units of a block: an AND for each product, and one to clear each row."""
    return maps.product_count() + maps.own + maps.fetched


def _targets(automaton: Automaton) -> tuple[Array, Array, Array]:
    """Targets (T, 2); the target of every step (symbols, states), −1 for the dead state; and of staying (states,)."""
    live = automaton.table != (-1 if automaton.dead is None else automaton.dead)
    pairs = np.stack([automaton.table, automaton.outputs], axis=-1)
    reached = np.unique(pairs[live], axis=0)
    states = np.setdiff1d(np.arange(automaton.size), [] if automaton.dead is None else [automaton.dead])
    new = np.setdiff1d(states, reached[:, 0])  # entered by no step: only the start of a machine can be such a state
    output = 0 if automaton.writes else -1
    targets = np.concatenate([reached, np.stack([new, np.full(len(new), output)], axis=1)]).astype(np.int64)
    number = {tuple(pair): t for t, pair in enumerate(targets.tolist())}
    steps = np.full(automaton.table.shape, -1)
    for (q, a), is_live in np.ndenumerate(live):
        if is_live:
            steps[q, a] = number[tuple(pairs[q, a].tolist())]
    identity = np.full(automaton.size, -1)
    identity[targets[::-1, 0]] = np.arange(len(targets))[::-1]  # the first target of every state
    return targets, steps.T, identity


def _pairs(automaton: Automaton, targets: Array, steps: Array, identity: Array) -> Array:
    """(q, t): a string leads q to t, or to the state of t, at which it stays."""
    Q, T = automaton.size, len(targets)
    live = np.flatnonzero(identity >= 0)
    reach = np.eye(Q, dtype=bool)
    direct = np.zeros((Q, T), dtype=bool)
    for f in steps:
        q = np.flatnonzero(f >= 0)
        direct[q, f[q]] = True
    direct[live, identity[live]] = True
    to_states = np.zeros((T, Q), dtype=bool)
    to_states[np.arange(T), targets[:, 0]] = True
    one = direct.astype(np.int32) @ to_states.astype(np.int32) > 0
    while True:  # squaring: as often as strings get longer
        longer = reach | (reach.astype(np.int32) @ (one | reach).astype(np.int32) > 0)
        if np.array_equal(longer, reach):
            break
        reach, one = longer, one | longer
    found = reach.astype(np.int32) @ direct.astype(np.int32) > 0
    found[identity < 0] = False
    return np.argwhere(found)


def _elements(targets: Array, steps: Array, identity: Array, most: int) -> Array | None:
    """All maps of strings, and what staying makes of them; None if there are more than ``most``."""
    letters = np.unique(steps, axis=0)

    def after(f: Array, g: Array) -> Array:
        return np.where(f >= 0, g[targets[f, 0]], -1)

    found = {tuple(identity.tolist()): identity}
    fresh = [identity]
    while fresh:
        f = fresh.pop()
        for g in (*letters, identity):
            made = after(f, g)
            key = tuple(made.tolist())
            if key not in found:
                found[key] = made
                fresh.append(made)
                if len(found) > most:
                    return None
    return np.stack(list(found.values()))
