"""Small machines that the tests go through, and strings for them."""

import itertools

import numpy as np

from thereexists import automata as A


def adder(base=2):
    """Digit pairs, lowest first: two states."""
    pairs = [f"{i}{j}" for i in range(base) for j in range(base)]
    return A.mealy(lambda carry, ab: divmod(int(ab[0]) + int(ab[1]) + carry, base), [0, 1], pairs)


def alternating_group():
    """A5: its 60 even permutations of five things as letters, the things as states."""
    even = [
        p for p in itertools.permutations(range(5)) if sum(p[i] > p[j] for i in range(5) for j in range(i, 5)) % 2 == 0
    ]
    letters = ["".join(map(str, p)) for p in even]
    table = np.array(even).T  # thing q is moved to p[q]
    return A.dfa(table, 0, [0], letters)


def drawn(states, symbols, seed):
    rng = np.random.default_rng(seed)
    alphabet = [chr(ord("a") + k) for k in range(symbols)]
    accept = [0, *np.flatnonzero(rng.random(states) < 0.4).tolist()]
    return A.dfa(rng.integers(0, states, (states, symbols)), 0, accept, alphabet)


SMALL = {
    "swaps": A.regex("(ab|ba)*", "ab"),
    "everything": A.regex("[ab]*", "ab"),
    "one": A.regex("a", "a"),
    "thirds": A.from_function(lambda q, a: (2 * q + int(a)) % 3, 0, "01", accept=[0]),
    "mod7": A.from_function(lambda q, a: (q + int(a)) % 7, 0, "0123", accept=[0]),
    "adder": adder(),
    "forgets": A.regex("[ab]*ab", "ab"),
    "drawn": drawn(5, 3, 1),
}


def strings(machine, count, most, seed):
    """Random strings of all lengths up to ``most``, as lists of symbols, the empty one among them."""
    rng = np.random.default_rng(seed)
    lengths = [0, most, *rng.integers(0, most + 1, count - 2).tolist()]
    return [[machine.alphabet[a] for a in rng.integers(0, len(machine.alphabet), length)] for length in lengths]
