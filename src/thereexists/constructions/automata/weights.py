"""The network of an automaton: doubling over the maps of strings.

**Statement.** For every automaton and every n there is a network of ⌈log2 n⌉ blocks (one for n = 1) with one head
whose read-out at position j is, one-hot, the state after the first j symbols, what the last step writes, and whether
the state accepts: for all strings of at most n symbols, exactly, in float64, float32, float16 and bfloat16.
(Liu et al., arXiv 2210.10749, Theorem 1, prove that log-depth networks exist; the weights, the position code and the
exact attention are ours.)

**What is built.** Block t attends from j to j − 2^t (or, before the beginning, to position 0, which is the identity)
and composes: own ← own ∘ fetched. The query of j is λ times the code of j − 2^t (``codes.py``), so the logit of
position i is λ times the number of moduli at which i and j − 2^t agree: Kλ where they are equal, at most (K − 1)λ
elsewhere. Position 0 has no code; its key answers to the constant (K − ½)λ of every query. So the right position leads
by λ/2 = 1024, and exp of −1024 is 0 in every dtype: the attention weights are exactly 1 and 0, and the maps stay
exactly 0/1.

**AND.** ReLU(x + y − 1) is x AND y for bits. With exact bits nothing has to be saturated; ``saturating`` builds
ReLU(2x + 2y − 5/2) − ReLU(2x + 2y − 7/2), twice the units, which is the same for bits and forgives errors up to 1/8 of
kernels that compute exp otherwise. The old maps are removed by ReLU(x) = x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from thereexists.certificates.automaton_maps import Maps
from thereexists.certificates.automaton_proof import FIRST, SYMBOLS
from thereexists.constructions.automata.codes import codes, moduli_for, shift
from thereexists.constructions.automata.maps import units_of
from thereexists.functions.target import Array
from thereexists.model import Attention, EmbeddedTransformer, FeedForward, Stage

LAMBDA = 2048.0  # the gap is half of it


@dataclass(frozen=True)
class Sizes:
    """All sizes of the network, before it is made."""

    n: int
    maps: Maps
    moduli: tuple[int, ...]
    blocks: int
    saturating: bool

    @classmethod
    def of(cls, maps: Maps, n: int, saturating: bool) -> Sizes:
        blocks = max(1, (n - 1).bit_length())
        # j − 2^t and another position differ by at most n − 1 + 2^t: by less than the product, so their codes differ.
        return cls(n, maps, moduli_for(n - 1 + 2 ** (blocks - 1)), blocks, saturating)

    @property
    def d_model(self) -> int:
        return self.maps.own + self.maps.fetched + sum(self.moduli) + 1

    @property
    def head(self) -> int:
        return max(sum(self.moduli) + 1, self.maps.fetched)

    @property
    def width(self) -> int:
        clearing = self.maps.own + self.maps.fetched
        return (units_of(self.maps) - clearing) * (2 if self.saturating else 1) + clearing

    @property
    def outputs(self) -> int:
        return self.maps.automaton.size + len(self.maps.automaton.output_alphabet) + 1

    @property
    def parameters(self) -> int:
        d, m, r = self.d_model, self.head, self.width
        block = 4 * m * d + m + 2 * r * d + r + d
        tokens = SYMBOLS + len(self.maps.automaton.alphabet)
        return self.blocks * block + (self.n + 1 + tokens + self.outputs) * d


def network_of(sizes: Sizes, dtype: torch.dtype) -> EmbeddedTransformer:
    """The weights; every number is a multiple of 1/2 that all dtypes hold."""
    maps, d = sizes.maps, sizes.d_model
    own = np.arange(maps.own)
    fetched = maps.own + np.arange(maps.fetched)
    first, code = d - 1, np.arange(maps.own + maps.fetched, d - 1)
    stage = Stage(_attention(sizes, own, fetched, code, dtype), _feed_forward(sizes, fetched, dtype))
    embedding = torch.zeros(SYMBOLS + len(maps.automaton.alphabet), d, dtype=dtype)
    letters = maps.letters()
    embedding[FIRST, own] = torch.from_numpy(maps.bits(_identity(maps))).to(dtype)
    embedding[SYMBOLS:, own] = torch.from_numpy(np.stack([maps.bits(f) for f in letters])).to(dtype)
    E = torch.zeros(sizes.n + 1, d, dtype=dtype)
    E[1:, code] = torch.from_numpy(codes(sizes.moduli, np.arange(1, sizes.n + 1))).to(dtype)
    E[0, first] = 1.0
    W_out = torch.zeros(sizes.outputs, d, dtype=dtype)
    W_out[:, own] = torch.from_numpy(maps.readout()).to(dtype)
    return EmbeddedTransformer({"doubling": stage}, W_out, embedding=embedding, E=E)


def _identity(maps: Maps) -> Array:
    """Staying: every state to the first target that has it."""
    found = np.full(maps.automaton.size, -1)
    found[maps.targets[::-1, 0]] = np.arange(len(maps.targets))[::-1]
    return found


def _attention(sizes: Sizes, own: Array, fetched: Array, code: Array, dtype: torch.dtype) -> Attention:
    T, m, d, C, K = sizes.blocks, sizes.head, sizes.d_model, len(code), len(sizes.moduli)
    W_Q, W_K, W_V = (torch.zeros(T, 1, m, d, dtype=dtype) for _ in range(3))
    b_Q, W_O = torch.zeros(T, 1, m, dtype=dtype), torch.zeros(T, 1, d, m, dtype=dtype)
    for t in range(T):
        W_Q[t, 0, :C, code] = torch.from_numpy(LAMBDA * shift(sizes.moduli, 2**t)).to(dtype)
    b_Q[:, 0, C] = (K - 0.5) * LAMBDA
    W_K[:, 0, np.arange(C), code] = 1.0
    W_K[:, 0, C, d - 1] = 1.0  # position 0 answers to the constant
    W_V[:, 0, sizes.maps.projection(), own] = 1.0
    W_O[:, 0, fetched, np.arange(len(fetched))] = 1.0
    return Attention(W_Q, b_Q, W_K, W_V, W_O)


def _feed_forward(sizes: Sizes, fetched: Array, dtype: torch.dtype) -> FeedForward:
    """The ANDs of all products, then a unit for every row that is cleared."""
    d, r, clearing = sizes.d_model, sizes.width, sizes.maps.own + sizes.maps.fetched
    a, b, c = sizes.maps.products()
    W_1, b_1 = torch.zeros(r, d, dtype=dtype), torch.zeros(r, dtype=dtype)
    W_2 = torch.zeros(d, r, dtype=dtype)
    cases = ((2.0, -2.5, 1.0), (2.0, -3.5, -1.0)) if sizes.saturating else ((1.0, -1.0, 1.0),)
    for k, (slope, bias, factor) in enumerate(cases):
        unit = k * len(a) + np.arange(len(a))
        W_1[unit, fetched[a]] = W_1[unit, b] = slope
        b_1[unit] = bias
        W_2[c, unit] = factor
    rows, unit = np.arange(clearing), r - clearing + np.arange(clearing)
    W_1[unit, rows], W_2[rows, unit] = 1.0, -1.0
    T = sizes.blocks
    stacked = (W_1.repeat(T, 1, 1), b_1.repeat(T, 1), W_2.repeat(T, 1, 1), torch.zeros(T, d, dtype=dtype))
    return FeedForward(*stacked)
