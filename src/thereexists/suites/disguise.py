"""Other weights, the same function: equalities of real arithmetic that hold exactly for the numbers in the file.

    turned      Z' = Z R with an orthogonal R. R is a signed permutation, or one after H/2^k, H the 4^k × 4^k matrix of
                Sylvester and Hadamard (H H^T = 4^k, so R R^T = 1 exactly, and all entries are ± a power of two). What
                writes is multiplied by R, what reads by R^T; d_model is filled up with rows of zeros to 4^k.
    shuffled    hidden units and heads in another order; a unit's incoming weights times 2^a, the outgoing ones times
                2^-a (ReLU is positively homogeneous); queries times 2^a, keys times 2^-a; values and outputs too
    doubled     a unit twice, each with half of its outgoing weights
    shifted     a constant added to all keys: every logit of a query changes by the same number, the softmax does not
    split       W = W_a + W_b, both applied and added (``onnx_files.py``: the parts of a weight)

All products are exact in float64 (terms are multiples of 2^-k and sums stay below 2^(53−k): no order of summation
rounds). ``undone`` takes the whole disguise off again, and ``disguise`` refuses a result from which it does not get the
plain weights back, bit by bit. So whatever is true of the plain network in real arithmetic is true of the disguised
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Array
from thereexists.suites.net import Block, Fixed, Head, Hidden, Net

LARGEST_TURN = 64  # rows


@dataclass(frozen=True)
class Key:
    """All that is needed to take a disguise off."""

    R: Array
    rows: int  # of the plain network
    heads: tuple[tuple[tuple[int, int, int], ...], ...]  # block, head: (which, a of queries, a of values)
    units: tuple[tuple[Array, Array, Array] | None, ...]  # block: which unit, its a, its share of the outgoing weights


def disguise(net: Net, rng: np.random.Generator, turn: bool) -> tuple[Net, Key]:
    """A disguise drawn by ``rng``, and its key; ``turn`` by a Hadamard matrix, not only by a signed permutation."""
    key = _draw(net, rng, turn)
    made = _put_on(net, key, rng)
    plain, back = net.weights(), undone(made, key).weights()
    shifts = {name for name in plain if name.endswith(".b_K")}  # the one thing that is not taken off but cancels
    if plain.keys() != back.keys() or not all(np.array_equal(plain[k], back[k]) for k in plain.keys() - shifts):
        raise CannotBuild("This disguise does not come off exactly.")
    return made, key


def _draw(net: Net, rng: np.random.Generator, turn: bool) -> Key:
    d = net.d
    size = 4
    while size < d:
        size *= 4
    turn = turn and size <= LARGEST_TURN
    size = size if turn else d
    R = np.zeros((size, size))
    R[np.arange(size), rng.permutation(size)] = rng.choice([-1.0, 1.0], size)
    if turn:
        R = R @ hadamard(size) / np.sqrt(size)
        R = R * rng.choice([-1.0, 1.0], size)
    heads, units = [], []
    for block in net.blocks:
        order = rng.permutation(len(block.heads))
        heads.append(tuple((int(j), int(rng.integers(-2, 3)), int(rng.integers(-2, 3))) for j in order))
        if block.hidden is None:
            units.append(None)
            continue
        r = len(block.hidden.b_1)
        twice = rng.random(r) < 0.25
        which = np.concatenate([np.arange(r), np.flatnonzero(twice)])
        share = np.concatenate([np.where(twice, 0.5, 1.0), np.full(int(twice.sum()), 0.5)])
        order = rng.permutation(len(which))
        units.append((which[order], rng.integers(-2, 3, len(which)), share[order]))
    return Key(R, d, tuple(heads), tuple(units))


def hadamard(size: int) -> Array:
    """Sylvester's: H_1 = 1, H_2m = [[H, H], [H, −H]]."""
    H = np.ones((1, 1))
    while len(H) < size:
        H = np.block([[H, H], [H, -H]])
    return H


def _put_on(net: Net, key: Key, rng: np.random.Generator) -> Net:
    R, more = key.R, len(key.R) - net.d

    def writes(W: Array) -> Array:
        return exact(np.pad(W, [(0, 0)] * (W.ndim - 1) + [(0, more)]), R)

    def reads(W: Array) -> Array:
        return exact(R.T, np.pad(W, [(0, more), (0, 0)]))

    blocks = []
    for block, heads, units in zip(net.blocks, key.heads, key.units, strict=True):
        made: list[Head | Fixed] = []
        for j, a, b in heads:
            head = block.heads[j]
            W_V, W_O = reads(head.W_V) * 2.0**b, writes(head.W_O) * 2.0**-b
            if isinstance(head, Fixed):
                made.append(Fixed(head.A, W_V, W_O))
                continue
            shift = rng.integers(-4, 5, len(head.b_K)) / 4
            W_Q, b_Q = reads(head.W_Q) * 2.0**a, head.b_Q * 2.0**a
            made.append(Head(W_Q, b_Q, reads(head.W_K) * 2.0**-a, shift, W_V, W_O))
        hidden = None
        if block.hidden is not None and units is not None:
            h, (which, a, share) = block.hidden, units
            W_1, W_2 = reads(h.W_1)[:, which] * 2.0**a, writes(h.W_2)[which] * (share * 2.0**-a)[:, None]
            hidden = Hidden(W_1, h.b_1[which] * 2.0**a, W_2, writes(h.b_2[None])[0])
        blocks.append(Block(tuple(made), hidden))
    return Net(writes(net.W_in), writes(net.E), tuple(blocks), reads(net.W_out))


def undone(net: Net, key: Key) -> Net:
    """The plain network again, but for the constants that were added to keys."""
    R, d = key.R, key.rows

    def wrote(W: Array) -> Array:
        return exact(W, R.T)[..., :d]

    def read(W: Array) -> Array:
        return exact(R, W)[:d]

    blocks = []
    for block, heads, units in zip(net.blocks, key.heads, key.units, strict=True):
        found: dict[int, Head | Fixed] = {}
        for (j, a, b), head in zip(heads, block.heads, strict=True):
            W_V, W_O = read(head.W_V) * 2.0**-b, wrote(head.W_O) * 2.0**b
            if isinstance(head, Fixed):
                found[j] = Fixed(head.A, W_V, W_O)
            else:
                W_Q, b_Q = read(head.W_Q) * 2.0**-a, head.b_Q * 2.0**-a
                found[j] = Head(W_Q, b_Q, read(head.W_K) * 2.0**a, head.b_K * 0.0, W_V, W_O)
        hidden = None
        if block.hidden is not None and units is not None:
            h, (which, a, _) = block.hidden, units
            r = int(which.max(initial=-1)) + 1
            W_1, b_1, W_2 = np.zeros((d, r)), np.zeros(r), np.zeros((r, d))
            W_1[:, which], b_1[which] = read(h.W_1) * 2.0**-a, h.b_1 * 2.0**-a
            np.add.at(W_2, which, wrote(h.W_2) * (2.0**a)[:, None])  # two halves
            hidden = Hidden(W_1, b_1, W_2, wrote(h.b_2[None])[0])
        blocks.append(Block(tuple(found[j] for j in range(len(found))), hidden))
    return Net(wrote(net.W_in), wrote(net.E), tuple(blocks), read(net.W_out))


def exact(A: Array, B: Array) -> Array:
    """A B, refused where a float64 sum might round: all terms are multiples of 2^-k and add up to less than 2^(53−k).

    Where every sum has one term only, and a sign is all that it is multiplied with, nothing can round.
    """
    if _signed_permutation(A) or _signed_permutation(B):
        return A @ B
    low = _lowest(A) + _lowest(B)
    largest = float((np.abs(A) @ np.abs(B)).max(initial=0.0))
    if largest * (1 + 1e-9) >= 2.0 ** (53 + low):
        raise CannotBuild("This product of weights would be rounded.")
    return A @ B


def _signed_permutation(A: Array) -> bool:
    square = A.shape[0] == A.shape[1] and bool(np.isin(A, (-1.0, 0.0, 1.0)).all())
    return square and all((np.count_nonzero(A, axis=axis) == 1).all() for axis in (0, 1))


def _lowest(A: Array) -> int:
    """The exponent of the last bit that any number of A has."""
    values = A[A != 0]
    if not values.size:
        return 0
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # trailing zeros
    return int((exponent - 53 + zeros).min())
