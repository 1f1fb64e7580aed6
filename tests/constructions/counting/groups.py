"""Commutative groups that the tests of counting go through."""

import numpy as np

from thereexists import automata as A


def product(moduli, letters):
    """Counters modulo ``moduli``; a letter adds its vector."""

    def step(q, a):
        return tuple((x + y) % m for x, y, m in zip(q, letters[a], moduli, strict=True))

    return A.from_function(step, (0,) * len(moduli), list(letters), accept=[(0,) * len(moduli)])


def relabelled(machine, seed):
    """The same group with its states in another order, and another start."""
    order = np.random.default_rng(seed).permutation(machine.size)
    table = np.empty_like(machine.table)
    table[order] = order[machine.table]
    return A.dfa(table, int(order[0]), order[machine.accept].tolist(), machine.alphabet)


GROUPS = {
    "parity": A.regex("(b|ab*a)*", "ab"),
    "mod7": A.from_function(lambda q, a: (q + int(a)) % 7, 0, "0123", accept=[0]),
    "back and forth": A.from_function(lambda q, a: (q + (1 if a == "+" else -1)) % 5, 0, "+-", accept=[0, 2]),
    "two parities": product((2, 2), {"a": (1, 0), "b": (0, 1), "c": (0, 0)}),
    "both at once": product((2, 2), {"a": (1, 0), "b": (0, 1), "c": (1, 1)}),
    "mixed": product((4, 6), {"a": (1, 3), "b": (2, 2), "c": (0, 1)}),
    "not its own letters": relabelled(A.from_function(lambda q, a: (q + int(a)) % 6, 0, "23", accept=[0]), 3),
    "writes": A.mealy(lambda q, a: ((q + int(a)) % 3, f"{q}{a}" if q else "none"), states=[0, 1, 2], alphabet="0124"),
}
