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
    """The coarsest partition that refines ``block`` (states,) and that every symbol respects: numbers from 0.

    A block splits the others by the sets of symbols that lead into it, all symbols at once. Of the pieces of a block
    the largest keeps its number and its place among those that wait; every other one will split in its turn, so a
    state is looked at as part of a splitter at most log Q times.
    """
    columns = np.unique(table, axis=1)  # symbols that act alike tell no states apart
    Q, S = columns.shape
    edges = np.argsort(columns.reshape(-1), kind="stable")  # those that lead to a state stand together
    source, symbol = np.divmod(edges, S)
    begin = np.searchsorted(columns.reshape(-1)[edges], np.arange(Q + 1))
    block = block.copy()
    members = [np.flatnonzero(block == k) for k in range(int(block.max()) + 1)]
    waiting = set(range(len(members)))
    while waiting:
        splitter = members[waiting.pop()]
        at = _ranges(begin[splitter], begin[splitter + 1])
        touched, row = np.unique(source[at], return_inverse=True)
        leads = np.zeros((len(touched), S), dtype=bool)
        leads[row, symbol[at]] = True
        kinds = _classes(np.column_stack([block[touched, None].view(np.uint8), np.packbits(leads, axis=1)]))
        _, first, count = np.unique(kinds, return_index=True, return_counts=True)
        size = np.array([len(members[k]) for k in block[touched[first]].tolist()])
        for k in np.unique(block[touched[first[count < size]]]).tolist():
            inside = touched[block[touched] == k]
            rest = np.setdiff1d(members[k], inside, assume_unique=True)
            of = kinds[block[touched] == k]
            pieces = [inside[of == kind] for kind in np.unique(of)] + ([rest] if len(rest) else [])
            pieces.sort(key=len)
            members[k] = pieces.pop()
            for piece in pieces:
                block[piece] = len(members)
                waiting.add(len(members))
                members.append(piece)
    return block


def _ranges(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """low_0, …, high_0 − 1, low_1, …, high_1 − 1, …"""
    count = high - low
    return np.repeat(low - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(count.sum())


def _classes(rows: np.ndarray) -> np.ndarray:
    """Numbers from 0, the same for equal rows; compared as bytes, which is many times faster than number by number."""
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)
    return np.unique(whole, return_inverse=True)[1].reshape(-1)


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
