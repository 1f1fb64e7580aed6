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


def adversarial(machine, count, most, seed):
    """A third at random, a third that the machine accepts where it can, and a third of those with one symbol wrong."""
    rng = np.random.default_rng(seed)
    distance, toward = _ways_to_accept(machine)
    moves = [np.flatnonzero(distance[row] < len(distance)) for row in machine.table]  # symbols that keep hope alive
    found = [rng.integers(0, len(machine.alphabet), rng.integers(0, most + 1)).tolist() for _ in range(count // 3)]
    accepted = []
    while len(accepted) < count // 3:
        word, q, length = [], machine.start, int(rng.integers(0, most + 1))
        while len(word) + distance[q] < length and len(moves[q]):
            word.append(int(rng.choice(moves[q])))
            q = machine.table[q, word[-1]]
        while distance[q] and len(word) < most:
            word.append(int(toward[q]))
            q = machine.table[q, word[-1]]
        accepted.append(word[:most])
    for word in accepted[: count - len(found) - len(accepted)]:
        k, symbol, how = rng.integers(0, len(word) + 1), int(rng.integers(0, len(machine.alphabet))), rng.integers(3)
        changed = [*word[:k], *([symbol] if how < 2 else []), *word[k + (how != 1) :]]
        found.append(changed[:most])
    return [[machine.alphabet[a] for a in word] for word in found + accepted]


def _ways_to_accept(machine):
    """How many symbols a state is from acceptance at the least (the number of states if it never is), and the first."""
    Q = machine.size
    distance = np.where(machine.accept, 0, Q)
    for _ in range(Q):
        distance = np.minimum(distance, np.minimum(Q, 1 + distance[machine.table].min(axis=1)))
    return distance, distance[machine.table].argmin(axis=1)
