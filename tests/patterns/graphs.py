"""Graphs as patterns, their tokens in random order, so that no rule for the order of the tokens applies."""

import numpy as np

from thereexists.patterns.arrays import from_csr


def pattern(n, one, other, seed=0):
    """Every token sees itself, and the two ends of each edge see each other."""
    from scipy.sparse import csr_array

    name = np.random.default_rng(seed).permutation(n)
    own = np.arange(n)
    row, column = name[np.concatenate([one, other, own])], name[np.concatenate([other, one, own])]
    key = np.unique(row.astype(np.int64) * n + column)
    return from_csr(csr_array((np.ones(len(key), bool), (key // n, key % n)), shape=(n, n)))


def watts_strogatz(n, degree=6, rewired=0.1, seed=0):
    """A ring with ``degree`` neighbours, a share of whose edges leads to a random token (Watts and Strogatz 1998)."""
    rng = np.random.default_rng(seed)
    one = np.tile(np.arange(n), degree // 2)
    other = (one + np.repeat(np.arange(1, degree // 2 + 1), n)) % n
    changed = rng.random(len(one)) < rewired
    other[changed] = rng.integers(0, n, int(changed.sum()))
    return pattern(n, one, other, seed)


def grid(height, width, seed=0):
    place = np.arange(height * width).reshape(height, width)
    one = np.concatenate([place[1:].ravel(), place[:, 1:].ravel()])
    other = np.concatenate([place[:-1].ravel(), place[:, :-1].ravel()])
    return pattern(height * width, one, other, seed)


def random_symmetric(n, degree=8, seed=0):
    """The union of ``degree / 2`` random permutations, both ways."""
    rng = np.random.default_rng(seed)
    one, other = (np.concatenate([rng.permutation(n) for _ in range(degree // 2)]) for _ in range(2))
    return pattern(n, one, other, seed)


def cliques(hubs, parts, size, seed=0):
    """``parts`` cliques of ``size`` tokens, each token of which is also joined with all ``hubs`` tokens."""
    n = hubs + parts * size
    number = np.concatenate([np.full(hubs, -1), np.repeat(np.arange(parts), size)])
    k, j = np.nonzero((number[:, None] == number) | (number[:, None] < 0))
    return pattern(n, k, j, seed)


def board(side=15, seed=0):
    """A mutilated chessboard, relabelled: no path exists, no matching shows it, and resolution proofs are very long.

    A path alternates between the two colours of the board, except across the one diagonal edge. The board has an odd
    number of cells and two of the rarer colour are taken away: the colours differ by three, a path bears two. Hall's
    condition holds all the same, since the ends of the diagonal are neighbours of the frequent colour too.
    """
    y, x = (axis.ravel() for axis in np.mgrid[0:side, 0:side])
    keep = ~(((y == 0) & (x == 1)) | ((y == side - 1) & (x == side - 2)))
    y, x = y[keep], x[keep]
    mask = abs(y[:, None] - y) + abs(x[:, None] - x) <= 1
    a, b = (int(np.flatnonzero((y == c) & (x == c))[0]) for c in (side // 2, side // 2 + 1))
    mask[a, b] = mask[b, a] = True
    name = np.random.default_rng(seed).permutation(len(y))
    return mask[np.ix_(name, name)]
