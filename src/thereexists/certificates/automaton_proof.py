"""The proof that a network runs an automaton, on every string of at most n symbols: read off the weights as they are.

Rows: ``own`` (a map), ``fetched`` (a map's states), one group of rows for each modulus, and ``first``. Position 0 holds
no symbol but the identity; symbol j stands at position j.

*Claim.* Before block t, at every position j, for every string: own = the map of the last min(2^t, j) symbols, fetched =
0, the rows of a modulus m = one-hot of j mod m (0 at position 0), first = 1 at position 0 only; all of it exactly.

*Induction.* Before block 0: the embedding of a token plus E (checked row by row). In block t, checked for its weights:

1. The logits see positions only (no weight on own rows), and at every j the position max(j − 2^t, 0) is ahead of every
   other by 800 at least. exp is 0 there, so its attention weight is 1 and all others are 0. That position is at or
   before j, so what stands behind the end of a shorter string is never seen.
2. The value of own rows there is added to fetched, and nothing else is written: fetched = the states of the map of the
   min(2^t, j − 2^t) symbols before, or of the identity at position 0.
3. A hidden unit reads at most two of these rows, which are bits: it is a polynomial of them, by its four cases. The sum
   over all units is own ← Σ products − own + own and fetched ← 0, coefficient by coefficient: the map of the last
   min(2^{t+1}, j) symbols.

After T blocks, 2^T ≥ n: own is the map of the whole prefix, and the read-out is the state it leads the start to. ∎
All sums on the way are exact in a dtype by ``automaton_exact.py``, so the claim is one about the float run itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from thereexists.certificates.automaton_exact import (
    LAZY,
    VANISHES,
    Exact,
    InParts,
    Sum,
    Weights,
    most_of,
    unit_of,
    verdicts,
)
from thereexists.certificates.automaton_maps import Maps
from thereexists.core.errors import NotProved
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_down
from thereexists.core.verdict import Verdict
from thereexists.functions.target import Array
from thereexists.model import EmbeddedTransformer

MOST_MODEL_ROWS = 1 << 15  # their fourth power numbers pairs of rows in pairs of groups, in 64 bits
FIRST, SYMBOLS = 1, 2  # token numbers: 0 is not a token at all, 1 the identity, then the symbols


@dataclass(frozen=True)
class Proof:
    """``gap``: the least lead of the right position; ``dtypes``: where all sums are exact."""

    gap: float
    blocks: int
    dtypes: dict[str, Verdict]


@dataclass(frozen=True)
class _Rows:
    """Where everything stands, and which rows exclude each other."""

    own: slice
    fetched: slice
    code: slice
    first: int
    starts: tuple[int, ...]  # of every modulus, within the code rows
    moduli: tuple[int, ...]
    groups: Array  # (d,)

    @classmethod
    def of(cls, maps: Maps, moduli: tuple[int, ...], d: int) -> _Rows:
        R, S, C = maps.own, maps.fetched, sum(moduli)
        if d != R + S + C + 1:
            raise NotProved(f"the network has {d} rows; the maps and the moduli take {R + S + C + 1}.")
        if d > MOST_MODEL_ROWS:
            raise NotProved(f"the network has {d:,} rows; at most {MOST_MODEL_ROWS:,} are understood.")
        own, fetched = (np.unique(group, return_inverse=True)[1].reshape(-1) for group in maps.groups())
        code = np.repeat(np.arange(len(moduli)), moduli)
        parts = [own, fetched + own.max() + 1]
        parts += [code + parts[-1].max() + 1, [parts[-1].max() + len(moduli) + 1]]
        starts = tuple(np.cumsum([0, *moduli[:-1]]).tolist())
        slices = (slice(0, R), slice(R, R + S), slice(R + S, R + S + C))
        return cls(*slices, d - 1, starts, moduli, np.concatenate(parts))


@dataclass
class _Prover:
    network: EmbeddedTransformer
    maps: Maps
    n: int
    rows: _Rows
    sums: list[Exact] = field(default_factory=list)
    gap: float = math.inf

    def noted(self, where: str, unit: float, most: float) -> None:
        """A sum that must be exact: in float64 always, for what is computed here is computed in it."""
        wrong = (found := Sum(where, unit, most)).holds("float64")
        if wrong is not None:
            raise NotProved(f"{wrong}.")
        self.sums.append(found)


def prove(network: EmbeddedTransformer, maps: Maps, n: int, moduli: tuple[int, ...]) -> Proof:
    """The proof, or ``NotProved`` with the first step that fails."""
    if network.embedding is None or network.E is None:
        raise NotProved("the network takes no symbols, or knows no positions.")
    prover = _Prover(network, maps, n, _Rows.of(maps, moduli, network.W_out.shape[1]))
    for name, weight in network.named_parameters():
        if not (found := Weights.of(name, weight)).finite():
            raise NotProved(f"a weight of {name} is not finite.")
        prover.sums.append(found)
    _embedding(prover)
    _positions(prover)
    T, width, units = network.depth, network.shape()["r"], maps.product_count()
    if 2**T < n:
        raise NotProved(f"{T} blocks reach {2**T} symbols back; {n} are wanted.")
    if width < units:  # looked at before they are listed: a record may name many rows
        raise NotProved(f"{units:,} products of the rows take as many units; a block has {width:,}.")
    products = maps.products()
    seen: list[tuple[tuple[Array, ...], Sum]] = []
    for t, (_, _, layer) in enumerate(network.layers()):
        if layer.attention is None or layer.feed_forward is None or layer.attention[-1] is not None:
            raise NotProved(f"block {t + 1} lacks a half, or has a mask.")
        W_Q, b_Q, W_K, W_V, W_O = (np.asarray(w.detach().double().numpy()) for w in layer.attention[:-1])
        if len(W_Q) != 1:
            raise NotProved(f"block {t + 1} has {len(W_Q)} heads; one is wanted.")
        _logits(prover, t, W_Q[0], b_Q[0], W_K[0])
        _values(prover, t, W_V[0], W_O[0])
        halves = tuple(np.asarray(w.detach().double().numpy()) for w in layer.feed_forward[:-1])
        same = next((note for known, note in seen if all(map(np.array_equal, known, halves))), None)
        if same is None:  # blocks with equal weights need one proof
            seen.append((halves, _feed_forward(prover, t, halves, products)))
        else:
            prover.sums.append(same)
    _read_out(prover)
    return Proof(prover.gap, T, verdicts(prover.sums))


def _embedding(p: _Prover) -> None:
    """Token 0 is nothing, token 1 leads every state to itself, and each symbol is its own map."""
    found = p.network.embedding.detach().double().numpy()  # pyright: ignore[reportOptionalMemberAccess]
    letters = p.maps.letters()
    if len(found) != SYMBOLS + len(letters):
        raise NotProved(f"the embedding has {len(found)} tokens; {SYMBOLS + len(letters)} are wanted.")
    if found[:, p.rows.own.stop :].any() or found[0].any():
        raise NotProved("the embedding of a token writes beside the rows of its map.")
    bits = found[:, p.rows.own]
    if not np.isin(bits, (0.0, 1.0)).all():
        raise NotProved("the embedding of a token is not made of bits.")
    first = p.maps.map_of(bits[FIRST])
    if not p.maps.is_identity(first) or not np.array_equal(p.maps.bits(first), bits[FIRST]):
        raise NotProved("the first token is not the identity.")
    for a, f in enumerate(letters):
        if not np.array_equal(p.maps.bits(f), bits[SYMBOLS + a]):
            raise NotProved(f"the embedding of the symbol {p.maps.automaton.alphabet[a]!r} is not its map.")


def _positions(p: _Prover) -> None:
    """E is what the claim says, position by position."""
    E, rows = p.network.E.detach().double().numpy(), p.rows  # pyright: ignore[reportOptionalMemberAccess]
    if len(E) != p.n + 1:
        raise NotProved(f"there are {len(E)} positions; {p.n + 1} are wanted.")
    if E[0, : rows.first].any() or E[0, rows.first] != 1 or E[1:, rows.first].any() or E[:, : rows.code.start].any():
        raise NotProved("the first position is not marked, or positions write into the rows of maps.")
    j = np.arange(1, p.n + 1)
    for start, m in zip(rows.starts, rows.moduli, strict=True):
        part = E[1:, rows.code.start + start : rows.code.start + start + m]
        if not np.array_equal(part, j[:, None] % m == np.arange(m)):
            raise NotProved(f"the positions are not coded by their remainders modulo {m}.")


def _logits(p: _Prover, t: int, W_Q: Array, b_Q: Array, W_K: Array) -> None:
    """Step 1: position max(j − 2^t, 0) leads by ``VANISHES``, at every j.

    The rows that the logits see are one-hot in j mod m for each modulus m. If no product of a query and a key mixes two
    moduli, and within one depends on the difference of remainders only, then the logit of i at j is C(i − j), one sum
    over the moduli; 2n − 1 differences are all there are. Position 0, which has no remainders, is looked at by itself.
    """
    rows, n, s, where = p.rows, p.n, 2**t, f"block {t + 1}, logits"
    if W_Q[:, rows.own].any() or W_K[:, rows.own].any():
        raise NotProved(f"{where}: they depend on the symbols.")
    seen = np.r_[rows.code, rows.first]
    groups = rows.groups[seen]
    query, key = W_Q[:, seen], W_K[:, seen]
    u_q, u_k = unit_of(query, b_Q), unit_of(key)
    p.noted(f"{where}, queries", u_q, float((most_of(query, groups) + np.abs(b_Q)).max()))
    p.noted(f"{where}, keys", u_k, float(most_of(key, groups).max()))
    size, products, constant = np.abs(key).T @ np.abs(query), key.T @ query, key.T @ b_Q  # (keys, queries)
    mixed = groups[:, None] != groups
    mixed[-1] = mixed[:, -1] = False
    if size[mixed].any() or (np.abs(key).T @ np.abs(b_Q))[:-1].any():
        raise NotProved(f"{where}: they mix the remainders of different moduli, or favour some positions.")
    delta = np.arange(-(n - 1), n)
    C, A = np.zeros(len(delta)), np.zeros(len(delta))
    at_first, first_at, j = np.full(n + 1, constant[-1]), np.zeros(n + 1), np.arange(1, n + 1)
    first_size = np.full(n + 1, float(np.abs(key[:, -1]) @ np.abs(b_Q)))
    at_first[0] += products[-1, -1]
    first_size[0] += size[-1, -1]
    for start, m in zip(rows.starts, rows.moduli, strict=True):
        part = slice(start, start + m)
        r = np.arange(m)[:, None]  # remainders of the query; the key's is larger by each of 0 … m − 1
        circulant, sizes = (X[part, part][(r + np.arange(m)) % m, r] for X in (products, size))
        if (circulant != circulant[0]).any():
            raise NotProved(f"{where}: modulo {m}, they depend on more than the difference of positions.")
        C += circulant[0][delta % m]
        A += sizes.max(axis=0)[delta % m]
        at_first[1:] += products[-1, part][j % m]
        first_size[1:] += size[-1, part][j % m]
        first_at[1:] += products[part, -1][j % m]
        first_size[0] = max(first_size[0], float(size[part, -1].max()) * len(rows.moduli))
    p.noted(where, u_q * u_k, largest := float(max(A.max(), first_size.max())))
    p.sums.append(InParts(where, 4 * largest))  # the difference of two, perhaps times log2 e for powers of 2
    leads = [at_first[0] - first_at[1:].max()]  # at position 0
    near, far = slice(1, min(s, n) + 1), slice(s + 1, n + 1)
    leads.append((at_first[near] - C[delta >= 1 - s].max(initial=-math.inf)).min())  # j ≤ 2^t: position 0
    if s < n:
        right = C[delta == -s][0]  # j > 2^t: position j − 2^t
        leads += [right - C[delta != -s].max(), right - at_first[far].max()]
    lead = float(min(leads))
    if not lead >= VANISHES:
        raise NotProved(
            f"{where}: the position {s} before leads by {rounded_down(lead, 6)} only, not by {in_full(VANISHES)}, or "
            "another one does."
        )
    p.gap = min(p.gap, lead)


def _values(p: _Prover, t: int, W_V: Array, W_O: Array) -> None:
    """Step 2: own rows there become fetched rows here."""
    rows, where = p.rows, f"block {t + 1}, values"
    seen = np.r_[rows.own, rows.code, rows.first]  # the fetched rows are 0 then
    value, groups = W_V[:, seen], p.rows.groups[seen]
    u_v, u_o = unit_of(value), unit_of(W_O)
    most = most_of(value, groups)
    p.noted(where, u_v, float(most.max()))
    written = float((np.abs(W_O) @ most).max())
    p.noted(f"{where}, written", min(u_v * u_o, 1.0), written + 1.0)
    p.sums.append(InParts(where, LAZY * (p.n + 1) * max(float(most.max()), written, 1.0)))
    wanted = np.zeros((len(W_O), len(seen)))
    wanted[rows.fetched.start + p.maps.projection(), np.arange(p.maps.own)] = 1.0
    if not np.array_equal(W_O @ value, wanted):
        raise NotProved(f"{where}: what is fetched is not the map stored there.")


def _feed_forward(p: _Prover, t: int, halves: tuple[Array, ...], products: tuple[Array, Array, Array]) -> Sum:
    """Step 3: the units as polynomials of bits, summed up and compared, coefficient by coefficient."""
    W_1, b_1, W_2, b_2 = halves
    rows, d, where = p.rows, p.rows.first + 1, f"block {t + 1}, feed-forward"
    reads = W_1 != 0
    if reads[:, rows.code.start :].any():
        raise NotProved(f"{where}: a unit reads positions.")
    count = reads.sum(axis=1)
    if count.max(initial=0) > 2:
        raise NotProved(f"{where}: unit {int(count.argmax())} reads {int(count.max())} rows; two are understood.")
    unit = np.arange(len(W_1))
    a, b = reads.argmax(axis=1), d - 1 - reads[:, ::-1].argmax(axis=1)  # a ≤ b: own rows stand before fetched ones
    w_a, w_b = np.where(count > 0, W_1[unit, a], 0.0), np.where(count > 1, W_1[unit, b], 0.0)
    a, b = np.where(count > 0, a, 0), np.where(count > 0, b, 0)
    u_1, u_2 = unit_of(W_1, b_1), unit_of(W_2)
    p.noted(f"{where}, units", u_1, float((np.abs(w_a) + np.abs(w_b) + np.abs(b_1)).max()))
    h00, h10, h01, h11 = (np.maximum(b_1 + x * w_a + y * w_b, 0.0) for x, y in ((0, 0), (1, 0), (0, 1), (1, 1)))
    most = np.maximum(np.maximum(h00, h10), np.maximum(h01, h11))
    noted = Sum(where, min(u_1 * u_2, unit_of(b_2), 1.0), _most_written(p, W_2, b_2, most, a, b, h00 + h10 + h01))
    p.noted(noted.where, noted.unit, noted.most)
    # A coefficient of the polynomial is up to four cases of a unit: added up here, in float64, and exactly.
    if (wrong := Sum(where, noted.unit, 4 * noted.most).holds("float64")) is not None:
        raise NotProved(f"{wrong}.")
    writes = sparse.csr_array(W_2)
    if (writes @ h00 + b_2).any():
        raise NotProved(f"{where}: something is written whatever the bits are.")
    alone = sparse.coo_array((np.r_[h10 - h00, h01 - h00], (np.r_[unit, unit], np.r_[a, b])), shape=(len(W_1), d))
    linear = sparse.csr_array(writes @ alone.tocsr()).toarray()
    wanted = np.zeros((d, d))
    wanted[np.arange(rows.fetched.stop), np.arange(rows.fetched.stop)] = -1.0
    if not np.array_equal(linear, wanted):
        row = int(np.argwhere(linear != wanted)[0, 0])
        raise NotProved(f"{where}: row {row} is not cleared exactly, or a unit answers to one bit of two.")
    both = h11 - h10 - h01 + h00
    pairs = sparse.coo_array((both, (unit, a * d + b)), shape=(len(W_1), d * d))
    found = sparse.coo_array(writes @ pairs.tocsr())
    keep = found.data != 0
    fetched, own, made = products
    key = made.astype(np.int64) * d * d + own * d + rows.fetched.start + fetched
    got = found.row[keep].astype(np.int64) * d * d + found.col[keep]
    if not np.array_equal(np.sort(got), np.sort(key)) or not (found.data[keep] == 1.0).all():
        raise NotProved(f"{where}: the maps are not composed as the automaton composes them.")
    return noted


def _most_written(p: _Prover, W_2: Array, b_2: Array, most: Array, a: Array, b: Array, idle: Array) -> float:
    """The largest sum of sizes that a row is written with.

    A unit that is 0 unless both its bits are 1 counts where they are: at most one row of a group of fetched rows is 1,
    and with it at most one of each group of own rows.
    """
    c, u = np.nonzero(W_2)
    size = np.abs(W_2[c, u]) * most[u]
    both = (idle[u] == 0) & (a[u] < p.rows.own.stop) & (b[u] >= p.rows.fetched.start)
    total = np.abs(b_2) + 1.0
    np.add.at(total, c[~both], size[~both])
    d = np.int64(len(W_2))
    c, u, size = c[both].astype(np.int64), u[both], size[both]
    keys = ((c * d + b[u]) * d + p.rows.groups[a[u]]) * d + a[u]
    keys, size = _gathered(keys, size, np.add)  # the same pair of bits in several units
    keys, size = _gathered(keys // d, size, np.maximum)  # one own row of a group
    keys, size = _gathered(keys // d, size, np.add)  # all groups of own rows
    keys, size = _gathered(keys // d * d + p.rows.groups[keys % d], size, np.maximum)  # one fetched row of a group
    np.add.at(total, keys // d, size)
    return float(total.max())


def _gathered(keys: Array, values: Array, how: np.ufunc) -> tuple[Array, Array]:
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    return distinct, how.reduceat(values[order], first) if len(first) else values


def _read_out(p: _Prover) -> None:
    found, rows = p.network.W_out.detach().double().numpy(), p.rows
    wanted = p.maps.readout()
    if len(found) != len(wanted) or not np.array_equal(found[:, rows.own], wanted) or found[:, rows.code.start :].any():
        raise NotProved("the read-out is not the state, the output and the acceptance of the map.")
    p.noted("read-out", 1.0, float(most_of(wanted, rows.groups[rows.own]).max()))
