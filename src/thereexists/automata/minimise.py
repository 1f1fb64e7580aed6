"""The smallest machine that does the same: states that no string reaches go, and states that no string tells apart
become one (Hopcroft, *An n log n algorithm for minimizing states in a finite automaton*, 1971).

States are numbered in the order in which breadth-first search meets them, so two machines do the same if and only if
their minimal ones are equal, table by table.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thereexists.automata.automaton import Automaton
from thereexists.core.errors import InvalidInput


def minimal(automaton: Automaton) -> Automaton:
    """The minimal machine; ``before`` counts the states of the given one."""
    order = _reached(automaton.table, automaton.start)
    place = np.full(automaton.size, -1)
    place[order] = np.arange(len(order))
    table = place[automaton.table[order]]
    accept, outputs = automaton.accept[order], automaton.outputs[order]
    block = hopcroft(table, _classes(np.column_stack([accept, outputs])))
    _, first = np.unique(block, return_index=True)
    # The start has number 0 in ``order``. Blocks in the order of breadth-first search over blocks:
    quotient = block[table[first]]
    met = _reached(quotient, int(block[0]))
    number = np.empty(len(met), dtype=np.int64)
    number[met] = np.arange(len(met))
    chosen = first[met]
    return replace(
        automaton,
        table=number[quotient[met]],
        start=0,
        accept=accept[chosen],
        outputs=outputs[chosen],
        names=tuple(automaton.names[k] for k in order[chosen].tolist()),
    )


def finished(automaton: Automaton) -> Automaton:
    """What every front end gives: minimal, and not without any accepted string."""
    smallest = minimal(automaton)
    if not smallest.accept.any():
        raise InvalidInput(
            "The language is empty: no string over this alphabet is accepted. Check the pattern, the accepting states "
            "and the alphabet."
        )
    return smallest


def hopcroft(table: np.ndarray, block: np.ndarray) -> np.ndarray:
    """The coarsest partition that refines ``block`` (states,) and that every symbol respects: numbers from 0."""
    columns = np.unique(table, axis=1)  # symbols that act alike tell no states apart
    Q, S = columns.shape
    order = np.argsort(columns, axis=0, kind="stable")  # the states that symbol a takes to r stand together
    sorted_to = np.take_along_axis(columns, order, axis=0)
    block = block.copy()
    members = [np.flatnonzero(block == k) for k in range(int(block.max()) + 1)]
    waiting = {(k, a) for k in range(len(members)) for a in range(S)}
    while waiting:
        splitter, a = waiting.pop()
        low = np.searchsorted(sorted_to[:, a], members[splitter], "left")
        high = np.searchsorted(sorted_to[:, a], members[splitter], "right")
        counts = high - low
        at = np.repeat(low - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
        leads_in = np.zeros(Q, dtype=bool)
        leads_in[order[at, a]] = True
        for k in np.unique(block[leads_in]).tolist():
            inside = leads_in[members[k]]
            if inside.all():
                continue
            new = len(members)
            members.append(members[k][inside])
            members[k] = members[k][~inside]
            block[members[new]] = new
            smaller = new if len(members[new]) <= len(members[k]) else k
            waiting |= {(new if (k, c) in waiting else smaller, c) for c in range(S)}
    return block


def _classes(rows: np.ndarray) -> np.ndarray:
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _reached(table: np.ndarray, start: int) -> np.ndarray:
    """The states that strings reach, in the order of breadth-first search."""
    seen = np.zeros(len(table), dtype=bool)
    seen[start] = True
    layers = [np.array([start])]
    while len(layers[-1]):
        following = table[layers[-1]].reshape(-1)
        _, first = np.unique(following, return_index=True)
        fresh = following[np.sort(first)]
        fresh = fresh[~seen[fresh]]
        seen[fresh] = True
        layers.append(fresh)
    return np.concatenate(layers)
