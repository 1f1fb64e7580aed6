"""What a stock network computes if every number is exact: bits at every token, fetched from fixed distances and ANDed.

Row i of a circuit is row 3 + i of the residual stream; before it stand the constant, the mark of the first token and
the mark of an answer. A layer first adds to every ``target`` row the ``source`` rows of the token ``offset`` back (of
the first token, where there is none so far back); then it adds x AND y to row z, for all its pairs, and removes what
the ``cleared`` rows held before. Rows of one *group* are never 1 together: that is what whoever makes a circuit proves,
and ``run``, the slow interpreter that tests compare with, looks at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.core.errors import NotProved
from thereexists.functions.target import Array

BITS = 3  # rows before the first of a circuit
CONSTANT, FIRST, DONE = 0, 1, 2


@dataclass(frozen=True)
class CircuitLayer:
    """Rows as numbers: ``source`` and ``target`` of what is fetched, pairs ``x``, ``y`` with ``z``, ``cleared``."""

    offset: int
    source: Array
    target: Array
    x: Array
    y: Array
    z: Array
    cleared: Array


@dataclass(frozen=True)
class Case:
    """What may stand in the rows that are read at the end, and which token must lead in which group of tokens."""

    on: tuple[int, ...]
    done: bool
    right: tuple[tuple[int, slice], ...]


@dataclass(frozen=True)
class Circuit:
    """``embedding`` (tokens, rows) of bits; ``answers``: tokens that are marked as such; ``reach``: the last token."""

    embedding: Array
    groups: Array
    layers: tuple[CircuitLayer, ...]
    answers: tuple[int, ...]
    cases: tuple[Case, ...]
    reach: int

    @property
    def rows(self) -> int:
        return len(self.groups)

    def exclusive(self) -> None:
        """Of the pairs that make a row at most one is true, and what becomes one row when fetched is one at most."""
        for layer in self.layers:
            apart = np.unique(np.column_stack([layer.z, self.groups[layer.x]]), axis=0)
            pairs = np.unique(np.column_stack([layer.z, layer.x, self.groups[layer.y]]), axis=0)
            fetched = np.unique(np.column_stack([layer.target, self.groups[layer.source]]), axis=0)
            if len(apart) != len(np.unique(layer.z)) or len(pairs) != len(np.unique(layer.z * self.rows + layer.x)):
                raise NotProved("two pairs that make the same row may be true at once.")
            if len(fetched) != len(np.unique(layer.target)):
                raise NotProved("two rows that become one when they are fetched may both be 1.")

    def run(self, tokens: Array) -> Array:
        """The rows (length, rows) after the last layer; every number on the way must be a bit, one of a group."""
        X = self.embedding[tokens].astype(np.int64)
        j = np.arange(len(tokens))
        for layer in self.layers:
            back = X[np.maximum(j - layer.offset, 0)]
            np.add.at(X.T, layer.target, back.T[layer.source])
            old = X.copy()
            X[:, layer.cleared] = 0
            np.add.at(X.T, layer.z, old.T[layer.x] * old.T[layer.y])
            of_group = np.zeros((int(self.groups.max()) + 1, len(X)), dtype=np.int64)
            np.add.at(of_group, self.groups, X.T)
            if of_group.max() > 1:
                raise NotProved("two rows of a group are 1 at once.")
        return X
