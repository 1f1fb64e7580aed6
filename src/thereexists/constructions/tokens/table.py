"""Finite functions V^n → V^n as compact networks: exact on every row, and silent (None) on an input that is no row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from thereexists.constructions.compact.keyed_memory import Cubes, best_default, share
from thereexists.constructions.tokens.plan import TokensPlan
from thereexists.constructions.tokens.token_memory import count_network, levels, slot_network
from thereexists.constructions.tokens.witness import TokenWitness
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.plain_numbers import shown
from thereexists.functions.pairs import distinct_pairs
from thereexists.functions.vocabulary import FIRST, Digits, Token, Vocabulary
from thereexists.witness.method import Method

MOST_CONTEXTS = 1 << 22


@dataclass(frozen=True, init=False)
class Table:
    """``Table(inputs, outputs)``: rows of n input tokens and n output tokens, strings or integers.

        te.build(te.Table([[0, 1], [1, 0]], [[1, 1], [0, 0]]), construction="compact")

    Args:
        inputs: rows of n tokens.
        outputs: a row of n tokens for every input.
        symmetric: the output depends on the multiset of the inputs and on the position only, and each row stands for
            all orders of its inputs.
        lines: where the rows come from, for messages.

    Raises:
        InvalidInput: rows of different lengths, or one input with two outputs.
    """

    built_by: ClassVar = {"compact": "tokens"}  # see ``constructions/build.py``

    inputs: tuple[tuple[Token, ...], ...]
    outputs: tuple[tuple[Token, ...], ...]
    symmetric: bool

    def __init__(self, inputs: Any, outputs: Any, symmetric: bool = False, lines: Iterable[int] | None = None):
        if not isinstance(symmetric, bool):
            raise InvalidInput(f"'symmetric' must be True or False; got {shown(symmetric)} instead.")
        pairs = distinct_pairs(inputs, outputs, lines, advice="A table is a function: correct them.")
        n = len(pairs.inputs[0])
        for i, (x, y) in enumerate(zip(pairs.inputs, pairs.outputs, strict=True)):
            if len(x) != n or len(y) != n:
                raise InvalidInput(
                    f"All rows of a table must have {n} input and {n} output tokens; row {i} has {len(x)} and {len(y)}."
                )
        if symmetric:
            merged: dict[tuple[Token, ...], tuple[Token, ...]] = {}
            for x, y in zip(pairs.inputs, pairs.outputs, strict=True):
                key = tuple(sorted(x, key=lambda token: (isinstance(token, str), token)))
                if merged.setdefault(key, y) != y:
                    raise InvalidInput(
                        f"The table is not symmetric: {x} and another order of it have different outputs."
                    )
            pairs = type(pairs)(list(merged), list(merged.values()))
        object.__setattr__(self, "inputs", tuple(pairs.inputs))
        object.__setattr__(self, "outputs", tuple(pairs.outputs))
        object.__setattr__(self, "symmetric", symmetric)

    @classmethod
    def of(
        cls, function: Callable[[tuple[Token, ...]], Sequence[Token]], values: Sequence[Token], n: int,
        symmetric: bool = False,
    ) -> Table:  # fmt: skip
        """The table of a Python function on all sequences of n values (on all multisets, if it is symmetric)."""
        if not isinstance(values, Iterable):
            raise InvalidInput(f"'values' must be a list of tokens; got {shown(values)}.")
        values = list(values)
        if not isinstance(n, int) or n < 1 or not values:
            raise InvalidInput(
                f"A table needs n ≥ 1 tokens and at least one value; got n = {n!r}, {len(values)} values."
            )
        few = n <= MOST_CONTEXTS  # else the number of rows alone has a million digits
        if not few or n * (math.comb(len(values) + n - 1, n) if symmetric else len(values) ** n) > MOST_CONTEXTS:
            raise CannotBuild(
                f"A table of {len(values):,} values at {n:,} tokens is too large, with more than {MOST_CONTEXTS:,} "
                f"tokens in its rows{'' if symmetric else '; is the function symmetric?'}"
            )
        ways = itertools.combinations_with_replacement(values, n) if symmetric else itertools.product(values, repeat=n)
        inputs = list(ways)
        if symmetric:  # two more orders of each, which the table compares
            orders = np.arange(n)[::-1], np.random.default_rng(0).permutation(n)
            others = (tuple(x[i] for i in order) for order in orders for x in inputs)
            inputs = list(dict.fromkeys((*inputs, *others)))
        try:
            outputs = [list(function(x)) for x in inputs]
        except Exception as error:
            raise InvalidInput(f"The function of the table failed: {type(error).__name__}: {error}.") from error
        return cls(inputs, outputs, symmetric)

    @property
    def n(self) -> int:
        return len(self.inputs[0])


def build_table(table: Table) -> TokenWitness:
    """The witness: three blocks by slots, or two by counts if the table is symmetric."""
    n, vocabulary, answers = table.n, Vocabulary.of(table.inputs), Vocabulary.of(table.outputs)
    V = len(vocabulary)
    if len(table.inputs) * n > MOST_CONTEXTS:
        raise CannotBuild(f"The table has {len(table.inputs):,} rows of {n} tokens; at most {MOST_CONTEXTS:,} fit.")
    x = vocabulary.encode(table.inputs, n, first=0, fill=0)  # (rows, n)
    y = answers.encode(table.outputs, n, first=FIRST, fill=0)
    digits = Digits.for_numbers(FIRST + len(answers))
    if table.symmetric:
        whole = len(x) == math.comb(V + n - 1, n)
        at_least = (x[:, :, None] >= levels(V)).sum(axis=1)  # (rows, levels)
        codes = (at_least[..., None] >= np.arange(1, n + 1)).reshape(len(x), -1).astype(np.int8)
    else:
        whole = len(x) == V**n
        bits = max(1, math.ceil(math.log2(V)))
        codes = (x[..., None] >> np.arange(bits) & 1).reshape(len(x), -1).astype(np.int8)
    groups, tables, default = _shared(codes, digits.split(y), whole)
    if table.symmetric:
        network = count_network(n, V, groups, tables, default)
    else:
        network = slot_network(n, bits, V, groups, tables, default)  # pyright: ignore[reportPossiblyUnboundVariable]
    witness = TokenWitness(
        network, vocabulary, answers, n, digits, x + 1, y, "counts" if table.symmetric else "slots",
        fixed=True, symmetric=table.symmetric, purpose="table",
        info={"rows": len(x), "complete": whole, "contexts": len(x) * n, "units": sum(map(len, groups))},
    )  # fmt: skip
    verdicts = witness.verdicts()
    network.safe = tuple(name for name, verdict in verdicts.items() if verdict.holds)
    if not network.safe:  # a file of it could not be read again
        raise CannotBuild(f"No dtype is proved safe for this table: {verdicts['float64'].reasons[0]}.")
    return witness


def _shared(codes: np.ndarray, digits: np.ndarray, whole: bool) -> tuple[list[Cubes], list[np.ndarray], np.ndarray]:
    """Cubes and values for every position. Only a complete table may leave its commonest value to a bias: in another
    one a missing input must find nothing."""
    groups, tables, defaults = [], [], []
    for j in range(digits.shape[1]):
        distinct, label = np.unique(digits[:, j], axis=0, return_inverse=True)
        distinct = distinct.astype(np.float64)
        cubes = share(codes, label.reshape(-1))
        default = np.zeros(distinct.shape[1])
        if whole:
            default = best_default(distinct, np.bincount(cubes.labels, minlength=len(distinct)))
            same = np.flatnonzero((distinct == default).all(axis=1))
            cubes = cubes.without(int(same[0])) if len(same) else cubes
        groups.append(cubes)
        tables.append(distinct)
        defaults.append(default)
    return groups, tables, np.array(defaults)


@final
@dataclass(frozen=True)
class Stored(Method):
    """How a table is built: there is one way, and it has no options."""

    def plan(self, target: Table) -> TokensPlan:
        return build_table(target).plan

    def build(self, target: Table) -> TokenWitness:
        return build_table(target)
