"""Machines that are found by walking: a step function is asked for every state that is met, until none is new."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from thereexists.automata.automaton import MOST_STATES, Automaton, check_alphabet, is_state, listed, short, shown
from thereexists.automata.minimise import finished
from thereexists.core.errors import InvalidInput, InvalidTarget
from thereexists.functions.vocabulary import Token

Step = Callable[[Any, Any], Any]


def from_function(
    step: Step,
    start: Hashable,
    alphabet: Iterable[Any],
    accept: Callable[[Any], Any] | Iterable[Any] | None = None,
    writes: bool = False,
) -> Automaton:
    """The machine of a Python function ``step(state, symbol)``, whose states are found by asking it.

        te.automata.from_function(lambda q, a: (2 * q + int(a)) % 3, start=0, alphabet="01", accept=[0])

    With ``writes``, a step gives (state, output). ``accept``: a function of a state or a list of states; by
    default all. Each step is asked twice: a function that changes its mind is refused.

    Args:
        step: ``step(state, symbol)`` gives the next state.
        start: the first state.
        alphabet: the symbols.
        accept: a function of a state, or the accepting states; default: all.
        writes: whether a step gives (state, output).

    Returns:
        The minimal automaton.

    Raises:
        InvalidInput: the function fails, changes its mind, or reaches too many states.
    """
    symbols = check_alphabet(alphabet)
    if not callable(step):
        raise InvalidInput(f"'step' must be a function of a state and a symbol; got {type(step).__name__} instead.")
    if not is_state(start):
        raise InvalidInput(
            f"The start must be hashable to be a state; got {shown(start)}. Use tuples in place of lists."
        )

    def twice(state: Any, symbol: Any) -> Any:
        first, again = _asked(step, state, symbol), _asked(step, state, symbol)
        if first != again:
            raise InvalidTarget(
                f"The step function is not deterministic: step({shown(state)}, {symbol!r}) gave {shown(first)}, "
                f"and then {shown(again)}. Give an NFA with te.automata.nfa."
            )
        return _pair(first, state, symbol) if writes else (first, None)

    try:
        table, written, states = walk(twice, start, symbols)
    except RecursionError as error:  # of comparing two states
        raise InvalidTarget("The states are nested too deeply to be compared: bound what a state holds.") from error
    accepting = _accepting(accept, states)
    return finished(assembled(symbols, table, written if writes else None, accepting, states, {"kind": "function"}))


def mealy(
    step: Step | dict[Any, Any], states: Sequence[Hashable], alphabet: Iterable[Any], start: Hashable | None = None
) -> Automaton:
    """A Mealy machine: ``step(state, symbol)`` gives (state, output); also a dict {(state, symbol): (state, output)}.

        te.automata.mealy(lambda carry, a: divmod(a + carry, 2), states=[0, 1], alphabet=[0, 1, 2])

    It begins in ``start``, by default the first of ``states``.

    Args:
        step: ``step(state, symbol)`` gives (state, output); or a dict.
        states: all of them.
        alphabet: the symbols.
        start: the first state; default: the first of the list.

    Returns:
        The minimal automaton, which writes.

    Raises:
        InvalidInput: a step leads to no state of the list.
    """
    known = listed(states, "'states'")
    if not callable(step) and not isinstance(step, Mapping):
        raise InvalidInput(
            "'step' must be a function of a state and a symbol, or a dict {(state, symbol): (state, output)}; got "
            f"{type(step).__name__} instead."
        )
    if not known:
        raise InvalidInput("A Mealy machine needs at least one state; 'states' is empty.")
    given = step

    def one(state: Any, symbol: Any) -> Any:
        if callable(given):
            found = given(state, symbol)
        elif (state, symbol) in given:
            found = given[state, symbol]
        else:
            raise InvalidInput(f"The Mealy machine has no step for the state {shown(state)} and the symbol {symbol!r}.")
        target = _pair(found, state, symbol)[0]
        if target not in known:
            raise InvalidInput(
                f"The step from {shown(state)} by {symbol!r} leads to {shown(target)}, which is not in 'states'."
            )
        return found

    return from_function(one, known[0] if start is None else start, alphabet, writes=True)


def walk(
    step: Callable[[Any, Any], tuple[Any, Any]], start: Hashable, symbols: Sequence[Any], what: str | None = None
) -> tuple[np.ndarray, list[list[Any]], list[Any]]:
    """The table (states, symbols), what each step writes, and the states, in the order of breadth-first search.

    ``what`` has too many states, and what helps, where they are none of the user's own: else the last one is shown.
    """
    number, states = {start: 0}, [start]
    table: list[list[int]] = []
    written: list[list[Any]] = []
    while len(table) < len(states):
        row, said = [], []
        for symbol in symbols:
            target, output = step(states[len(table)], symbol)
            if target not in number:
                if len(states) >= MOST_STATES:
                    raise InvalidInput(
                        f"There are more than {MOST_STATES:,} states, the last of them {short([target])}: an automaton "
                        "has finitely many. Bound what the state counts."
                        if what is None
                        else f"There are more than {MOST_STATES:,} states in {what}"
                    )
                number[target] = len(states)
                states.append(target)
            row.append(number[target])
            said.append(output)
        table.append(row)
        written.append(said)
    return np.array(table, dtype=np.int64), written, states


def assembled(
    symbols: tuple[Token, ...],
    table: np.ndarray,
    written: list[list[Any]] | None,
    accept: np.ndarray,
    states: Sequence[Any],
    origin: dict[str, Any],
) -> Automaton:
    """Tables of what was walked; outputs are numbered in the order in which they are met. None: it writes nothing."""
    if written is None:
        known, outputs = (), np.full(table.shape, -1)
    else:
        said = [output for row in written for output in row]
        known = check_alphabet(dict.fromkeys(said), "What the machine writes")
        numbers = {output: k for k, output in enumerate(known)}
        outputs = np.array([numbers[output] for output in said]).reshape(table.shape)
    names = tuple(shown(state, str) for state in states)
    return Automaton(symbols, table, 0, accept, outputs, known, names, len(states), origin)


def _asked(step: Step, state: Any, symbol: Any) -> Any:
    try:
        found = step(state, symbol)
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidTarget(f"step({shown(state)}, {symbol!r}) failed: {_said(error)}.") from error
    if not is_state(found):
        raise InvalidTarget(
            f"step({shown(state)}, {symbol!r}) gave {shown(found)}, which cannot be a state because it is not "
            "hashable: use tuples in place of lists."
        )
    return found


def _pair(found: Any, state: Any, symbol: Any) -> tuple[Any, Any]:
    if not isinstance(found, tuple) or len(found) != 2:
        raise InvalidTarget(f"step({shown(state)}, {symbol!r}) must give (state, output); got {shown(found)} instead.")
    return found


def _accepting(accept: Any, states: list[Any]) -> np.ndarray:
    if accept is None:
        return np.ones(len(states), dtype=bool)
    if callable(accept):
        return np.array([_accepted(accept, state) for state in states])
    wanted = listed(accept, "'accept', where it is not a function,")
    if not all(map(is_state, wanted)):
        raise InvalidInput(f"'accept' must be a list of states; got {short(wanted)}.")
    known = set(wanted)
    return np.array([state in known for state in states])


def _accepted(accept: Callable[[Any], Any], state: Any) -> bool:
    try:
        return bool(accept(state))
    except Exception as error:  # its own, or an array's, which is neither true nor false
        raise InvalidTarget(f"accept({shown(state)}) failed, or is neither true nor false: {_said(error)}.") from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {shown(error, str)}"
