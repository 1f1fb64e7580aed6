"""Machines in the text format of AT&T FSM and OpenFst: a transition or a final state a line.

    0 1 a x        from 0 to 1, reading a and writing x      (an acceptor: 0 1 a)
    1              1 is final

The first state named is the start; ``<eps>`` is nothing. An acceptor may be non-deterministic and have transitions that
read nothing. A transducer is taken as far as it is a machine that writes at most one symbol a step: it reads a symbol
in every transition, and no state has two transitions by the same symbol; what it does not say leads to a dead state.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from thereexists.automata.automaton import Automaton
from thereexists.automata.explore import assembled, walk
from thereexists.automata.minimise import finished
from thereexists.automata.tables import DEAD, nfa
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import lines_of
from thereexists.core.regular_files import read_regular

NOTHING = "<eps>"
MOST_BYTES = 16 << 20


def from_att(file: str | Path, acceptor: bool | None = None) -> Automaton:
    """The machine of a file. A line of four words is a transducer's unless ``acceptor`` says that the last is a weight.

        te.automata.from_att("machine.fst")

    Args:
        file: in the text format of AT&T, one transition per line.
        acceptor: whether a fourth word is a weight.

    Returns:
        The minimal automaton.

    Raises:
        InvalidInput: there is no such file, or it holds no machine.
    """
    try:
        text = read_regular(Path(file), MOST_BYTES, InvalidInput).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"Cannot read {file}: {error}.") from error
    return parse_att(text, str(file), acceptor)


def parse_att(text: str, place: str = "the text", acceptor: bool | None = None) -> Automaton:
    """The same from a string."""
    words_of = re.compile(r"[^ \t]+").findall  # other white space may be a symbol
    lines = [(k, words) for k, line in enumerate(lines_of(text), 1) if (words := words_of(line))]
    if not lines:
        raise InvalidInput(f"{place} is empty; it must hold one transition per line, such as '0 1 a'.")
    arcs = [(k, words) for k, words in lines if len(words) >= 3]
    accepts = {words[0] for _, words in lines if len(words) <= 2}
    only_reads = max((len(words) for _, words in arcs), default=3) == 3 if acceptor is None else acceptor
    labels = 1 if only_reads else 2
    for k, words in lines:
        wanted = (1,) if len(words) <= 2 else (2 + labels,)
        if len(words) - wanted[0] not in (0, 1):
            raise InvalidInput(
                f"{place}, line {k}: '{' '.join(words)}' has {len(words)} words, and {wanted[0]} are expected."
            )
        _no_weight(words[wanted[0] :], f"{place}, line {k}")
    start = lines[0][1][0]
    if only_reads:
        moves: dict[str, dict[str | None, list[str]]] = {start: {}}
        for _, (source, target, label, *_rest) in arcs:
            read = None if label == NOTHING else label
            moves.setdefault(source, {}).setdefault(read, []).append(target)
            moves.setdefault(target, {})
        for state in accepts:
            moves.setdefault(state, {})
        return nfa(moves, start, accepts)
    return _transducer([(k, words[:4]) for k, words in arcs], start, accepts, place)


def _transducer(arcs: list[tuple[int, list[str]]], start: str, accepts: set[str], place: str) -> Automaton:
    steps: dict[tuple[str, str], tuple[str, str]] = {}
    for k, (source, target, read, written) in arcs:
        if read == NOTHING:
            raise InvalidInput(
                f"{place}, line {k}: a transition of a transducer must read a symbol; this one reads none."
            )
        found = (target, "" if written == NOTHING else written)
        if steps.setdefault((source, read), found) != found:
            raise InvalidInput(
                f"{place}, line {k}: the transducer is not deterministic: state {source} has two transitions by "
                f"{read!r}. Determinise it first (fstdeterminize)."
            )
    symbols = tuple(dict.fromkeys(read for _, read in steps))

    def step(state: str | None, symbol: str) -> tuple[str | None, str]:
        """None is the dead state: those of the file are strings, whatever they are called."""
        return steps.get((state, symbol), (None, "")) if state is not None else (None, "")

    table, written, states = walk(step, start, symbols)
    accept = np.array([state in accepts for state in states])
    names = [DEAD if state is None else state for state in states]
    return finished(assembled(symbols, table, written, accept, names, {"kind": "att"}))


def _no_weight(words: list[str], place: str) -> None:
    for word in words:
        try:
            weight = float(word)
        except ValueError:
            raise InvalidInput(f"{place}: {word!r} is not a number, and a weight was expected.") from None
        if weight != 0:
            raise InvalidInput(f"{place}: the weight {word} is not 0; weighted machines are not built.")
