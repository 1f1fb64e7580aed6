"""Two ways to run a network on tokens: as it is, or with the memory's unit found by its key. The answers are the same.

Why the second may skip so much. It is taken only for a network that has, weight by weight, the form of codes that
``token_forms.py`` writes down, with a memory of full and distinct keys, unit gates, and digits that are whole numbers
from 0 to the base, written to the value rows only, in a dtype in which that form is right; everything else runs as it
is.

- Attention has zero logits, so every token of a sequence receives the same mean of codes ±1, plus one half at the first
  position: 1/(2n) or more from 0, and rounded sums are off by less than half of that. A literal is S·mean or exactly 0;
  a token's own code, at most 3/2, is added and taken away again. That is exact where the literal is 0, and rounding
  (u ≤ 2^-8) moves another by at most about 2u(literal + 3/2). So where the first token's literals are 0 or at least 3/2
  (checked on every sequence; if not, the network runs as it is), every token's are 0 or at least 1, in the same places.
  Blocks 2 and 3 run on the first token alone.
- A memory unit is ReLU(1 − Σ of the literals that contradict its key): only the unit with the sequence's own key can
  fire, and it gives exactly 1; all others add exactly 0. A sorted list of keys and one bisection find it.
- Nothing else writes the value, position and out rows. At position j the select layer passes on the digits of position
  j (v + base·1 − base = v, all integers up to twice the base exist) and nothing else (v + 0 − base ≤ 0).
- The first block acts on every token by itself: its result is tabulated for all tokens and positions.
- Columns of W_1 that are all 0, and rows of W_2 that are, need no arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thereexists.core.dtypes import dtype_name
from thereexists.core.errors import InvalidInput
from thereexists.core.threads import torch_threads
from thereexists.model import EmbeddedTransformer, FeedForward
from thereexists.model.token_forms import CodeForm
from thereexists.model.unchanged import WhileUnchanged

ENGINES = ("dense", "indexed")
_NUMBERS = 1 << 24
_HIDDEN, _LOGIT = 16, 64  # multiplications that take as long as one of them
_MOST_CODES = 1 << 26


def run_tokens(network: EmbeddedTransformer, ids: np.ndarray, engine: str) -> np.ndarray:
    """Output digits (batch, n, digits) as float64; ids are numbers of tokens, 0 pads."""
    if engine not in ENGINES:
        raise InvalidInput(f"'engine' must be one of {', '.join(ENGINES)}; got {engine!r} instead.")
    known = index_of(network) if engine == "indexed" else None
    tile = _at_once(max(8 * network.shape()["d"], ids.shape[1]) * ids.shape[1] if known else numbers_of_one(network))
    parts = []
    with torch.no_grad(), torch_threads(1 if known else torch.get_num_threads()):
        for start in range(0, len(ids), tile):
            X = torch.from_numpy(np.ascontiguousarray(ids[start : start + tile]))
            found = known.run(network, X) if known else None
            parts.append((network(X, X > 0) if found is None else found).to(torch.float64).numpy())
    return np.concatenate(parts)


def run_padded(network: EmbeddedTransformer, ids: np.ndarray, real: np.ndarray) -> np.ndarray:
    """As ``run_tokens``, by every weight, where the tokens that are not ``real`` are other numbers than 0."""
    tile = min(_at_once(numbers_of_one(network)), 4)  # they are few
    with torch.no_grad():
        parts = [
            network(torch.from_numpy(ids[i : i + tile]), torch.from_numpy(real[i : i + tile])).to(torch.float64).numpy()
            for i in range(0, len(ids), tile)
        ]
    return np.concatenate(parts)


def run_first(network: EmbeddedTransformer, ids: np.ndarray) -> np.ndarray:
    """Output digits (batch, 1, digits) of the first position alone, by every weight; ids without padding.

    Behind the last attention no position sees another one: the blocks there are run on the first alone.
    """
    layers = [layer for _, _, layer in network.layers()]
    last = _last([layer.attention for layer in layers])
    parts, tile = [], _at_once(numbers_of_one(network))
    with torch.no_grad():
        for start in range(0, len(ids), tile):
            Z = network.embed(torch.from_numpy(np.ascontiguousarray(ids[start : start + tile])))
            for number, layer in enumerate(layers):
                Z = layer(Z if number <= last else Z[:, :1])
            parts.append(torch.nn.functional.linear(Z[:, :1], network.W_out).to(torch.float64).numpy())
    return np.concatenate(parts)


def work_of_one(network: EmbeddedTransformer, first: bool = False) -> int:
    """About how many multiplications a sequence takes, in all positions or by ``run_first``: every weight at each
    position; a hidden number and a logit, which go through memory and an exponential, count as several.
    """
    stages, n = list(network.stages.values()), len(network.E)  # pyright: ignore[reportArgumentType]
    last, work = _last([stage.attention for stage in stages]), 0
    for number, stage in enumerate(stages):
        hidden = 0 if stage.feed_forward is None else stage.feed_forward.b_1.numel()
        weights = sum(weight.numel() for weight in stage.parameters())
        work += (1 if first and number > last else n) * (weights + _HIDDEN * hidden)
        work += 0 if stage.attention is None else _LOGIT * n * n * stage.attention.b_Q.shape[:2].numel()
    return work


def _last(attentions: Sequence[object | None]) -> int:
    return max((number for number, attention in enumerate(attentions) if attention is not None), default=-1)


def numbers_of_one(network: EmbeddedTransformer) -> int:
    """How many numbers a sequence has in the widest part of a network with positions: rows, units, heads, logits."""
    shape, n = network.shape(), len(network.E)  # pyright: ignore[reportArgumentType]
    return n * max(2 * shape["r"], 2 * shape["d"], shape["h"] * max(n, shape["m"]))


def _at_once(numbers: int) -> int:
    """How many sequences run together."""
    return max(1, _NUMBERS // max(numbers, 1))


@dataclass(frozen=True)
class _Live:
    """A feed-forward layer without the rows that it does not read and the rows that it does not write."""

    read: Tensor
    written: Tensor
    W_1: Tensor
    b_1: Tensor
    W_2: Tensor
    b_2: Tensor

    @classmethod
    def of(cls, layer: FeedForward) -> _Live:
        W_1, b_1, W_2, b_2 = (w.detach()[0] for w in (layer.W_1, layer.b_1, layer.W_2, layer.b_2))
        read, written = W_1.any(dim=0).nonzero()[:, 0], (W_2.any(dim=1) | (b_2 != 0)).nonzero()[:, 0]
        return cls(read, written, W_1[:, read].contiguous(), b_1, W_2[written].contiguous(), b_2[written])

    def __call__(self, Z: Tensor) -> Tensor:
        hidden = torch.nn.functional.linear(Z[..., self.read], self.W_1, self.b_1).relu_()
        Z[..., self.written] += torch.nn.functional.linear(hidden, self.W_2, self.b_2)
        return Z


@dataclass(frozen=True)
class KeyIndex:
    """The units of a recall layer by their key, and the other layers of the network in their live rows."""

    codes: _Live
    sums: _Live
    V_rows: Tensor
    O_rows: Tensor
    factor: Tensor
    positive: Tensor
    negative: Tensor
    keys: np.ndarray
    unit: np.ndarray
    values: Tensor  # (units, n, digits): what a unit stores
    table: Tensor | None  # (V·n, m): the code of every token at every position, if that is not too much

    @classmethod
    def of(cls, network: EmbeddedTransformer) -> KeyIndex | None:
        """An index, or None if the weights do not prove that recall by key gives what the network gives."""
        form = CodeForm.of(network)
        if form is None or not form.verdict(dtype_name(network.dtype)).holds:
            return None
        codes, sums = (network.stages[name].feed_forward for name in ("codes", "sums"))
        if codes is None or sums is None:
            return None
        keys = _packed(form.keys)
        order = np.argsort(keys)
        row = torch.arange(form.D)
        factor = torch.ones(form.D, dtype=network.dtype)
        live = _Live.of(codes), _Live.of(sums)
        table = _codes_of_all(network, live[0], row)
        D = form.D
        return cls(*live, row, D + row, factor, row, D + row, keys[order], order, form.digits, table)

    def run(self, network: EmbeddedTransformer, X: Tensor) -> Tensor | None:
        """The digits, or None if some literal is neither 0 nor at least 3/2 and finite."""
        zero = torch.zeros(X.shape, dtype=network.dtype)
        weights = torch.softmax(zero.masked_fill(X == 0, -torch.inf), dim=-1)  # (batch, n)
        if self.table is None:
            read = self.codes(network.embed(X))[..., self.V_rows]
        else:
            read = torch.nn.functional.embedding(X * X.shape[1] + torch.arange(X.shape[1]), self.table)
        mean = torch.bmm(weights[:, None], read)[:, 0]  # (batch, m)
        first = self.codes(torch.nn.functional.embedding(X[:, 0], network.embedding) + network.E[0])  # pyright: ignore
        first[:, self.O_rows] += mean * self.factor
        first = self.sums(first)
        above, below = first[:, self.positive], first[:, self.negative]
        one = ((above == 0) & (below >= 1.5)) | ((above >= 1.5) & (below == 0))
        if not bool(one.all()) or not bool(torch.isfinite(first).all()):
            return None
        key = _packed((above > 0).numpy())
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        fires = torch.from_numpy(self.keys[place] == key)
        return self.values[torch.from_numpy(self.unit[place])] * fires[:, None, None]


def _codes_of_all(network: EmbeddedTransformer, codes: _Live, rows: Tensor) -> Tensor | None:
    V, n = len(network.embedding), len(network.E)  # pyright: ignore[reportArgumentType]
    if V * n * len(rows) > _MOST_CODES:
        return None
    with torch.no_grad():
        parts = [
            codes(part[:, None] + network.E)[..., rows]  # pyright: ignore[reportOperatorIssue]
            for part in network.embedding.split(1024)  # pyright: ignore[reportOptionalMemberAccess]
        ]
    return torch.cat(parts).reshape(V * n, len(rows)).contiguous()


index_of = WhileUnchanged(KeyIndex.of)


def _packed(bits: np.ndarray) -> np.ndarray:
    """Rows of bits as sortable numbers or byte strings."""
    packed = np.packbits(bits, axis=1)
    short = -packed.shape[1] % 8
    words = np.ascontiguousarray(np.pad(packed, ((0, 0), (0, short)))).view(">u8")
    return words.reshape(-1) if words.shape[1] == 1 else words.view([("", ">u8")] * words.shape[1]).reshape(-1)
