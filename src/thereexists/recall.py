"""Two ways to run a network on tokens: as it is, or with the memory's unit found by its key. The answers are the same.

Why the second may skip so much (networks of ``code_network``, whose stages are codes, sums, recall, select):

- A memory unit is ReLU(1 − Σ of the literals that contradict its key). Where every literal is exactly 0 or at least 1
  (checked on every sequence; if not, the network runs as it is), only the unit with the sequence's own key can fire,
  and it gives exactly 1: all others add exactly 0. A sorted list of keys and one bisection find it.
- Attention has zero logits, so every token of a sequence receives the same mean, and the literals depend on nothing
  else: the first token's are everybody's. Blocks 2 and 3 run on that token alone.
- At position j the select layer passes on the digits of position j (v + base·1 − base = v) and nothing else
  (v + 0 − base ≤ 0); its weights are checked to have that form, and the digits are taken as they are stored.
- The first block acts on every token by itself: its result is tabulated for all tokens and positions.
- Columns of W_1 that are all 0, and rows of W_2 that are, need no arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thereexists.errors import InvalidInput
from thereexists.model import EmbeddedTransformer, FeedForward

ENGINES = ("dense", "indexed")
_STAGES = ("codes", "sums", "recall", "select")
_NUMBERS = 1 << 24
_MOST_CODES = 1 << 26


def run_tokens(network: EmbeddedTransformer, ids: np.ndarray, engine: str) -> np.ndarray:
    """Output digits (batch, n, digits) as float64; ids are numbers of tokens, 0 pads."""
    if engine not in ENGINES:
        raise InvalidInput(f"'engine' must be one of {', '.join(ENGINES)}; got {engine!r} instead.")
    known = _index(network) if engine == "indexed" else None
    shape = network.shape()
    width = 8 * shape["d"] if known else 2 * max(shape["r"], shape["d"])
    tile = max(1, _NUMBERS // (ids.shape[1] * width))
    parts = []
    with torch.no_grad(), _threads(1 if known else torch.get_num_threads()):
        for start in range(0, len(ids), tile):
            X = torch.from_numpy(np.ascontiguousarray(ids[start : start + tile]))
            found = known.run(network, X) if known else None
            parts.append((network(X, X > 0) if found is None else found).to(torch.float64).numpy())
    return np.concatenate(parts)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Many small operations: handing each to several threads costs far more than it saves."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
        """An index, or None if the network is not of this kind: full keys over pairs of rows, gates 1, no b_2."""
        if tuple(network.stages) != _STAGES or network.E is None:
            return None
        stages, attention = network.stages, network.stages["sums"].attention
        parts = [stages[name].feed_forward for name in _STAGES]
        if attention is None or any(part is None for part in parts):
            return None
        if any(bool(w.any()) for w in (attention.W_Q, attention.b_Q, attention.W_K)) or attention.W_V.shape[1] != 1:
            return None
        W_V, W_O = attention.W_V.detach()[0, 0], attention.W_O.detach()[0, 0]  # (m, d), (d, m)
        V_rows, O_rows = W_V.argmax(dim=1), W_O.argmax(dim=0)
        factor = W_O[O_rows, torch.arange(len(O_rows))]
        plain = bool((W_V.count_nonzero(dim=1) == 1).all()) and bool((W_O.count_nonzero(dim=0) == 1).all())
        if not plain or not bool((W_V[torch.arange(len(V_rows)), V_rows] == 1).all()):
            return None
        W_1, b_1, W_2, b_2 = (w.detach()[0] for w in parts[2].parameters_list())  # pyright: ignore
        live = W_1.any(dim=0).nonzero()[:, 0]
        asked, half = W_1[:, live] == -1, len(live) // 2
        keyed = len(live) > 0 and len(live) % 2 == 0 and bool(((W_1[:, live] == 0) | asked).all())
        if not keyed or bool(b_2.any()) or not bool((b_1 == 1).all()):
            return None
        if not bool((asked[:, :half] ^ asked[:, half:]).all()):
            return None
        keys = _packed(asked[:, half:].numpy())  # the key's bit i is 1 where it contradicts r_i⁻
        order = np.argsort(keys)
        values = _selected(network, W_2)
        if values is None:
            return None
        codes, sums = (_Live.of(part) for part in parts[:2])  # pyright: ignore[reportArgumentType]
        table = _codes_of_all(network, codes, V_rows)
        return cls(codes, sums, V_rows, O_rows, factor, live[:half], live[half:], keys[order], order, values, table)

    def run(self, network: EmbeddedTransformer, X: Tensor) -> Tensor | None:
        """The digits, or None if some literal is neither 0 nor at least 1."""
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
        if not bool((((above == 0) & (below >= 1)) | ((above >= 1) & (below == 0))).all()):
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


def _selected(network: EmbeddedTransformer, W_2: Tensor) -> Tensor | None:
    """What the select layer makes of every memory unit's values, or None if it is not of the form said above."""
    layer, E = network.stages["select"].feed_forward, network.E
    if layer is None or E is None:
        return None
    select, bias, write, b_2 = (w.detach()[0].double() for w in layer.parameters_list())  # pyright: ignore
    out = network.W_out.detach().argmax(dim=1)
    stored = W_2.detach().any(dim=1)
    base = -bias[0]
    value_row = (select * stored).argmax(dim=1)
    gate = (select * ~stored) @ E.detach().double().T  # (units, n): base at the unit's own position, else 0
    position, digit = gate.argmax(dim=1), write[out].argmax(dim=0)
    n, g, unit = len(E), len(out), torch.arange(len(select))
    expected = torch.zeros_like(gate)
    expected[unit, position] = base
    form = (
        bool((bias == -base).all() and (gate == expected).all() and not b_2.any())
        and bool((select[:, stored].count_nonzero(dim=1) == 1).all() and (select[unit, value_row] == 1).all())
        and bool((write.count_nonzero(dim=0) == 1).all() and (write[out[digit], unit] == 1).all())
        and bool((W_2 >= 0).all() and (W_2.double() <= base).all() and not E.detach()[:, stored].any())
        and len(torch.unique(position * g + digit)) == len(select) == n * g
        and bool((network.W_out.detach().count_nonzero(dim=1) == 1).all() and not E.detach()[:, out].any())
    )
    if not form:
        return None
    row = torch.empty(n, g, dtype=torch.long)
    row[position, digit] = value_row
    return W_2.detach()[row].permute(2, 0, 1).contiguous()


def _index(network: EmbeddedTransformer) -> KeyIndex | None:
    """The network's index, made once."""
    known = getattr(network, "_key_index", None)
    if known is None or known[0] != network.dtype:
        known = (network.dtype, KeyIndex.of(network))
        object.__setattr__(network, "_key_index", known)
    return known[1]


def _packed(bits: np.ndarray) -> np.ndarray:
    """Rows of bits as sortable numbers or byte strings."""
    packed = np.packbits(bits, axis=1)
    short = -packed.shape[1] % 8
    words = np.ascontiguousarray(np.pad(packed, ((0, 0), (0, short)))).view(">u8")
    return words.reshape(-1) if words.shape[1] == 1 else words.view([("", ">u8")] * words.shape[1]).reshape(-1)
