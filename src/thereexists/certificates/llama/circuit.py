"""What a stock network computes if every number is exact: bits at every token, fetched from fixed distances and ANDed.

Row i of a circuit is row 3 + i of the residual stream; before it stand the constant, the mark of the first token and
the mark of an answer. A layer first adds to every ``target`` row the ``source`` rows of the token that stands its
``offset`` back (of the first token, where there is none so far back); then it adds to row z the AND of the rows that it
``reads`` for it, and removes what the ``cleared`` rows held before. Rows of one *group* are never 1 together: that is
what whoever makes a circuit proves, and ``run``, the slow interpreter that tests compare with, looks at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thereexists.core.errors import NotProved
from thereexists.functions.target import Array

BITS = 3  # rows before the first of a circuit
CONSTANT, FIRST, DONE = 0, 1, 2


@dataclass(frozen=True)
class CircuitLayer:
    """Rows as numbers: ``source`` and ``target`` (f,) of what is fetched, each from its own ``offset`` (f,);

    ``reads`` (k, most), −1 behind the last, and ``z`` (k,) of what is made; ``cleared``.
    """

    offset: Array
    source: Array
    target: Array
    reads: Array
    z: Array
    cleared: Array

    looks: ClassVar[str] = "back"  # how it finds the token that it fetches from

    def found(self, X: Array) -> Array:
        """What is fetched (length, f), from the rows X (length, rows)."""
        return X[np.maximum(np.arange(len(X))[:, None] - self.offset, 0), self.source]

    def exclusive(self, groups: Array) -> None:
        """Of the sets that make a row at most one is true: two that begin with the same rows go on with rows of one

        group, so that they are the same set or exclude each other; and none of them ends where another goes on.
        """
        for k in range(self.reads.shape[1]):
            before = np.column_stack([self.z, self.reads[:, :k]])
            group = np.where(self.reads[:, k] >= 0, groups[self.reads[:, k]], -1)
            if len(np.unique(before, axis=0)) != len(np.unique(np.column_stack([before, group]), axis=0)):
                raise NotProved("two sets of rows that make the same row may be true at once.")
        whole = np.column_stack([self.z, self.reads])
        if len(np.unique(whole, axis=0)) != len(whole):
            raise NotProved("a set of rows makes a row twice.")


def paired(offset: int, source: Array, target: Array, x: Array, y: Array, z: Array, cleared: Array) -> CircuitLayer:
    """A layer that looks one distance back and makes x AND y."""
    return CircuitLayer(np.full(len(source), offset), source, target, np.column_stack([x, y]), z, cleared)


@dataclass(frozen=True)
class LookUp(CircuitLayer):
    """A layer that makes rows for whole ``words`` (k, places): numbers of what stands in each place, −1 behind the end.

    A place holds one code at a time, or nothing, and no code's rows are all among another's (they have equally many).
    So a word is there where all of its rows are 1, and of two words that differ in a place of both only one is.
    """

    words: Array

    def exclusive(self, groups: Array) -> None:
        """No word begins another: sorted, a word that does stands directly before one that it begins."""
        found = np.unique(self.words, axis=0)
        one, next_one = found[:-1], found[1:]
        if ((one == next_one) | (one < 0)).all(axis=1).any():
            raise NotProved("two words that are looked up may be there at once.")
        if len(np.unique(np.column_stack([self.words, self.z]), axis=0)) != len(self.z):
            raise NotProved("a word makes a row twice.")


@dataclass(frozen=True)
class ByContent(CircuitLayer):
    """A layer that fetches from the token, here or before, whose ``keys`` rows hold the code that stands in the

    ``queries`` rows here (``weight`` of each are 1, or none): from the first token, where there is no such token. That
    there is one at the most is proved by whoever makes the circuit.
    """

    queries: Array
    keys: Array
    weight: int

    looks: ClassVar[str] = "content"

    def found(self, X: Array) -> Array:
        same = np.tril(X[:, self.queries] @ X[:, self.keys].T == self.weight)
        if (same.sum(axis=1) > 1).any():
            raise NotProved("two tokens have the key that is looked for.")
        return X[same.argmax(axis=1)][:, self.source]


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
        """Of what makes a row at most one is true, and what becomes one row when fetched is one at most."""
        for layer in self.layers:
            layer.exclusive(self.groups)
            fetched = np.unique(np.column_stack([layer.target, self.groups[layer.source], layer.offset]), axis=0)
            if len(fetched) != len(np.unique(layer.target)):
                raise NotProved("two rows that become one when they are fetched may both be 1.")

    def run(self, tokens: Array) -> Array:
        """The rows (length, rows) after the last layer; every number on the way must be a bit, one of a group."""
        X = self.embedding[tokens].astype(np.int64)
        for layer in self.layers:
            np.add.at(X.T, layer.target, layer.found(X).T)
            old = X.copy()
            X[:, layer.cleared] = 0
            read = np.where(layer.reads >= 0, old[:, np.maximum(layer.reads, 0)], 1)  # (length, k, most)
            np.add.at(X.T, layer.z, read.all(axis=2).T)
            of_group = np.zeros((int(self.groups.max()) + 1, len(X)), dtype=np.int64)
            np.add.at(of_group, self.groups, X.T)
            if of_group.max() > 1:
                raise NotProved("two rows of a group are 1 at once.")
        return X
