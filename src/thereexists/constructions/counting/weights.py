"""The network of a commutative group: two blocks at every length.

**Statement.** For an automaton whose A distinct moving letters are commuting permutations there is a network of two
blocks with A heads and causal attention whose read-out at position j is, one-hot, the state after the first j symbols,
what the last step writes, and whether the state accepts: for all strings of at most n symbols, in every dtype in which
``certificates/counting_rounding.py`` tells counts up to n apart. (Liu et al., arXiv 2210.10749, prove that solvable
automata have networks of constant depth, and count modulo m by a prefix sum; the weights and the look-up are ours.)

**What is built.** Block 1 averages: position j gets c_g/(j+1) for every counter g, and 1/(j+1) from the flag of
position 0. In block 2 head g asks with s(2c_g/(j+1), −1/(j+1)), and position k answers with (k, k²): the logit is
s(c_g² − (k − c_g)²)/(j+1), largest at k = c_g by s/(j+1) or more. With s large enough exp of that is 0, the attention
weights are exactly 1 and 0, and the number that position c_g holds for g is fetched exactly: value_g(c_g mod m_g) of
``groups.py``. The heads add to one row, and the feed-forward half is the table of its numbers.

**The table.** f(x) = f(0) + Σ_v (f(v+1) − 2f(v) + f(v−1))·ReLU(x − v), with f(−1) = f(0), is f at the whole numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from thereexists.certificates.automaton_exact import VANISHES
from thereexists.certificates.automaton_proof import FIRST, SYMBOLS
from thereexists.certificates.counting_rounding import Lookup, share_left
from thereexists.constructions.counting.groups import Counters
from thereexists.core.dtypes import DTYPES
from thereexists.functions.target import Array
from thereexists.model import Attention, EmbeddedTransformer, FeedForward, Stage

BLOCKS = 2


def scale_for(n: int) -> float:
    """The least power of two with which counts up to n are told apart in every dtype that can; 1 if none can."""
    found = [1.0]
    for name in DTYPES:
        if (share := share_left(name, n)) > 0:
            scale = 2.0 ** math.ceil(math.log2(VANISHES * (n + 1) / share))
            if Lookup("", n, scale).holds(name) is None:  # it may be beyond the range of a dtype
                found.append(scale)
    return max(found)


@dataclass(frozen=True)
class CountingSizes:
    """All sizes of the network, before it is made."""

    n: int
    counters: Counters
    scale: float

    @property
    def outputs(self) -> int:
        machine = self.counters.automaton
        return machine.size + len(machine.output_alphabet) + 1

    @property
    def d_model(self) -> int:
        return 3 * self.counters.count + 5 + self.outputs

    @property
    def head(self) -> int:
        return self.counters.count + 1

    @property
    def width(self) -> int:
        return max(1, self.counters.numbers - 1)

    @property
    def parameters(self) -> int:
        h, m, d, r = self.counters.count, self.head, self.d_model, self.width
        block = h * (4 * m * d + m) + 2 * r * d + r + d
        tokens = SYMBOLS + len(self.counters.automaton.alphabet)
        return BLOCKS * block + (self.n + 1 + tokens + self.outputs) * d


def table_units(counters: Counters) -> tuple[Array, Array, Array]:
    """Thresholds (units,), bends (answers, units) and the answer for 0."""
    f = counters.answers()
    slopes = np.diff(f, axis=0)
    bends = np.diff(slopes, axis=0, prepend=0.0)
    return np.arange(len(bends), dtype=float), bends.T, f[0]


def counting_network(sizes: CountingSizes, dtype: torch.dtype) -> EmbeddedTransformer:
    """The weights; every number but the scale and the squares of positions is a small whole one."""
    counters, A, m, d, r, n = sizes.counters, sizes.counters.count, sizes.head, sizes.d_model, sizes.width, sizes.n
    g = np.arange(A)
    flag, place, square, value, total = 2 * A + 1, 2 * A + 2, 2 * A + 3, 2 * A + 4 + g, 3 * A + 4
    answer = np.arange(total + 1, d)

    W_Q, W_K, W_V = (torch.zeros(BLOCKS, A, m, d, dtype=dtype) for _ in range(3))
    b_Q, W_O = torch.zeros(BLOCKS, A, m, dtype=dtype), torch.zeros(BLOCKS, A, d, m, dtype=dtype)
    W_V[0, 0, np.arange(m), np.r_[g, flag]] = 1.0
    W_O[0, 0, A + np.arange(m), np.arange(m)] = 1.0
    W_Q[1, g, 0, A + g], W_Q[1, :, 1, 2 * A] = 2 * sizes.scale, -sizes.scale
    W_K[1, :, 0, place] = W_K[1, :, 1, square] = 1.0
    W_V[1, g, 0, value], W_O[1, :, total, 0] = 1.0, 1.0
    mask = torch.ones(1, n + 1, n + 1, dtype=torch.bool).tril()
    attention = Attention(W_Q, b_Q, W_K, W_V, W_O, pattern=mask)

    W_1, b_1 = torch.zeros(BLOCKS, r, d, dtype=dtype), torch.zeros(BLOCKS, r, dtype=dtype)
    W_2, b_2 = torch.zeros(BLOCKS, d, r, dtype=dtype), torch.zeros(BLOCKS, d, dtype=dtype)
    thresholds, bends, at_0 = table_units(counters)
    unit = slice(len(thresholds))
    W_1[1, unit, total], b_1[1, unit] = 1.0, torch.from_numpy(-thresholds).to(dtype)
    W_2[1, answer, unit] = torch.from_numpy(np.ascontiguousarray(bends)).to(dtype)
    b_2[1, answer] = torch.from_numpy(at_0).to(dtype)

    embedding = torch.zeros(SYMBOLS + len(counters.letters), d, dtype=dtype)
    counted = np.flatnonzero(counters.letters >= 0)
    embedding[SYMBOLS + counted, counters.letters[counted]] = 1.0
    embedding[SYMBOLS:, total] = torch.from_numpy(counters.classes * len(counters.states)).to(dtype)
    embedding[FIRST] = 0.0
    k = np.arange(n + 1)
    E = torch.zeros(n + 1, d, dtype=dtype)
    E[0, flag] = 1.0
    E[:, place], E[:, square] = torch.from_numpy(k).to(dtype), torch.from_numpy(k * k).to(dtype)
    for row, values in zip(value, counters.values, strict=True):
        E[:, row] = torch.from_numpy(values[k % len(values)]).to(dtype)
    W_out = torch.zeros(sizes.outputs, d, dtype=dtype)
    W_out[np.arange(sizes.outputs), answer] = 1.0
    stage = Stage(attention, FeedForward(W_1, b_1, W_2, b_2))
    return EmbeddedTransformer({"counting": stage}, W_out, embedding=embedding, E=E)
