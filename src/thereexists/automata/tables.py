"""Machines that are written down: tables of deterministic and of non-deterministic automata."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from thereexists.automata.automaton import Automaton, check_alphabet, is_state, listed, shown
from thereexists.automata.explore import assembled, walk
from thereexists.automata.minimise import finished
from thereexists.core.errors import InvalidInput

DEAD = "(dead)"  # the state of missing transitions; no state of a user's: theirs stand in tuples here


def dfa(table: Any, start: Hashable, accept: Iterable[Any], alphabet: Iterable[Any] | None = None) -> Automaton:
    """A deterministic automaton: {state: {symbol: state}}, or an array (states, symbols) with its alphabet.

        te.automata.dfa({"even": {"1": "odd"}, "odd": {"1": "even"}}, start="even", accept=["even"])

    What is missing leads to a dead state.

    Args:
        table: {state: {symbol: state}}, or an array (states, symbols).
        start: the first state.
        accept: the accepting states.
        alphabet: the symbols; default: those of the table.

    Returns:
        The minimal automaton.

    Raises:
        InvalidInput: a state or symbol is named that does not exist.
    """
    given = None if alphabet is None else check_alphabet(alphabet)
    rows = _rows(table, given)
    symbols = check_alphabet(_symbols(rows)) if given is None else given
    accepting = _known(accept, (start,), rows, (target for row in rows.values() for target in row.values()))
    _only(rows, symbols)

    def step(state: Any, symbol: Any) -> tuple[Any, Any]:
        found = rows.get(state[0], {}) if state != DEAD else {}
        return ((found[symbol],) if symbol in found else DEAD), None

    moves, _, states = walk(step, (start,), symbols, "the table: minimise it, or give a part of it.")
    accepted = np.array([state != DEAD and state[0] in accepting for state in states])
    names = [DEAD if state == DEAD else state[0] for state in states]
    return finished(assembled(symbols, moves, None, accepted, names, {"kind": "dfa"}))


def nfa(
    transitions: Mapping[Any, Mapping[Any, Iterable[Any]]],
    start: Any,
    accept: Iterable[Any],
    alphabet: Iterable[Any] | None = None,
) -> Automaton:
    """A non-deterministic automaton {state: {symbol: states}}, made deterministic; the symbol None takes no input.

        te.automata.nfa({0: {"a": [0, 1], "b": [0]}, 1: {"b": [2]}}, start=0, accept=[2])   # … ends in ab

    ``start``: a state, or a set or list of them.

    Args:
        transitions: {state: {symbol: states}}.
        start: a state, or several.
        accept: the accepting states.
        alphabet: the symbols; default: those of the table.

    Returns:
        The minimal automaton.

    Raises:
        InvalidInput: a state or symbol is named that does not exist.
    """
    rows = {
        state: {a: _targets(state, a, targets) for a, targets in row.items()}
        for state, row in _mapping(transitions).items()
    }
    symbols = check_alphabet([a for a in _symbols(rows) if a is not None] if alphabet is None else alphabet)
    starts = tuple(start) if isinstance(start, set | frozenset | list) else (start,)
    if not starts:
        raise InvalidInput("An NFA needs at least one start state; 'start' is empty.")
    everywhere = (target for row in rows.values() for targets in row.values() for target in targets)
    accepting = _known(accept, starts, rows, (*everywhere, *starts))
    _only(rows, (*symbols, None))

    def closed(states: Iterable[Any]) -> frozenset[Any]:
        found, fresh = set(states), list(states)
        while fresh:
            more = set(rows.get(fresh.pop(), {}).get(None, ())) - found
            found |= more
            fresh += more
        return frozenset(found)

    def step(states: frozenset[Any], symbol: Any) -> tuple[frozenset[Any], None]:
        return closed({target for state in states for target in rows.get(state, {}).get(symbol, ())}), None

    told = "the automaton made deterministic, each a set of those given: give fewer, or fewer that go on by one symbol."
    moves, _, states = walk(step, closed(starts), symbols, told)
    accepted = np.array([bool(accepting & state) for state in states])
    names = ["{" + ", ".join(sorted(map(str, state))) + "}" for state in states]
    return finished(assembled(symbols, moves, None, accepted, names, {"kind": "nfa"}))


def _rows(table: Any, symbols: tuple[Any, ...] | None) -> dict[Any, dict[Any, Any]]:
    if isinstance(table, Mapping):
        return {state: dict(row) for state, row in _mapping(table).items()}
    array: np.ndarray
    try:
        array = np.asarray(table)
    except ValueError:  # rows of several lengths
        array = np.empty((0,))
    if symbols is None or array.ndim != 2 or array.dtype.kind not in "iu" or array.shape[1] != len(symbols):
        raise InvalidInput(
            "A DFA is {state: {symbol: state}}, or an array of whole numbers (states, symbols) together with its "
            f"alphabet; got {type(table).__name__} of the shape {array.shape}."
        )
    if ((array < 0) | (array >= len(array))).any():
        raise InvalidInput(f"A table of {len(array)} states leads to the states 0 to {len(array) - 1} only.")
    return {q: dict(zip(symbols, row, strict=True)) for q, row in enumerate(array.tolist())}


def _mapping(table: Any) -> Mapping[Any, Mapping[Any, Any]]:
    if not isinstance(table, Mapping) or not table or not all(isinstance(row, Mapping) for row in table.values()):
        raise InvalidInput("Transitions are written as {state: {symbol: …}}, with at least one state.")
    return table


def _symbols(rows: Mapping[Any, Mapping[Any, Any]]) -> list[Any]:
    return list(dict.fromkeys(symbol for row in rows.values() for symbol in row))


def _targets(state: Any, symbol: Any, targets: Any) -> tuple[Any, ...]:
    if isinstance(targets, str) or not isinstance(targets, Iterable):  # a text would be a list of its characters
        raise InvalidInput(
            f"An NFA leads to a list of states: {shown(state)} by {shown(symbol)} leads to {shown(targets)}; write "
            f"[{shown(targets)}]."
        )
    return tuple(targets)


def _known(accept: Any, starts: tuple[Any, ...], rows: Mapping[Any, Any], targets: Iterable[Any]) -> frozenset[Any]:
    reached, accepting = list(targets), listed(accept, "'accept'")
    for state in (*starts, *reached, *accepting):
        if not is_state(state):
            raise InvalidInput(f"A state must be hashable; got {shown(state)}. Use tuples in place of lists.")
    known = {*rows, *reached}
    strange = [state for state in (*starts, *accepting) if state not in known]
    if strange:
        raise InvalidInput(
            f"{shown(strange[0])} is named as the start or as accepting, but is not a state of the table."
        )
    return frozenset(accepting)


def _only(rows: Mapping[Any, Mapping[Any, Any]], symbols: tuple[Any, ...]) -> None:
    strange = [a for a in _symbols(rows) if a not in symbols]
    if strange:
        raise InvalidInput(f"The table has transitions by {shown(strange[0])}, which is not in the alphabet.")
