"""The proof that a network of two blocks runs a commutative group, on every string of at most n symbols.

The letters of such an automaton are commuting permutations of its states, so only how often each was read matters:
state = start · g_1^{c_1} ⋯ g_A^{c_A}, where c_g counts the letters that act as g. Letters that act as the identity are
not counted. Rows, in this order: ``count`` (A), ``mean`` (A and one for the flag), ``flag``, ``place``, ``square``,
``value`` (A), ``sum``, ``answer`` (states, outputs, accepted). Position 0 holds no symbol; symbol j stands at j.

*Claim.* For every string, at every position j, exactly: the answer rows are one-hot the state after j symbols, what the
last step wrote (not at position 0), and whether the state accepts.

1. *Input.* A symbol that acts as g has 1 in count row g, and some whole number in the sum row. Position k has k, k² and
   for every g a whole number value_g(k); position 0 is flagged. Nothing else is written: checked row by row.
2. *Block 1* has logits 0, and its mask lets j see 0 … j: position j gets the mean of every count row, c_g/(j+1), and
   1/(j+1) of the flag. Its feed-forward half does nothing.
3. *Block 2*, head g, fetches value_g(c_g) from position c_g ≤ j, exactly: it leads by 800 at least, by
   ``counting_rounding.py``, so its weight is 1 and all others are 0. All heads add to the sum row.
4. The sum row is then the number of the symbol plus Σ value_g(c_g). *All* such sums are listed, from what E says at
   every position: each must belong to one state only. The feed-forward half reads the sum row and nothing else, so it
   is a table of them; its entries are compared with the automaton's, for every symbol that may stand there. ∎

The sums of steps 1, 3 and 4 are exact by ``automaton_exact.py``; only the means of step 2 are rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_exact import LAZY, Exact, InParts, Sum, Weights, unit_of, verdicts
from thereexists.certificates.automaton_proof import FIRST, SYMBOLS, Proof
from thereexists.certificates.counting_rounding import Lookup, least_lead
from thereexists.core.dtypes import DTYPES
from thereexists.core.errors import NotProved
from thereexists.core.plain_text import in_full
from thereexists.functions.target import Array
from thereexists.model import EmbeddedTransformer

MOST_SUMS = 1 << 11  # numbers that the sum row may hold, and units that read it
BLOCKS = 2

ASSUMPTIONS = (
    "additions, multiplications and conversions round to a nearest number of the dtype or of a wider one, in any order "
    "of a sum; a division, or a reciprocal and a product, is off by four units of rounding at most",
    "softmax subtracts the largest logit before all else but a factor common to all; exp(0) is 1, exp(t) is 0 for "
    "t ≤ −800",
    "attention divides once by the sum of its weights; in parts it adds in float32 or wider, and rescales by "
    "exp(old − new)",
)


@dataclass(frozen=True)
class _Rows:
    """Where everything stands."""

    A: int
    d: int

    @property
    def count(self) -> slice:
        return slice(0, self.A)

    @property
    def mean(self) -> slice:
        return slice(self.A, 2 * self.A + 1)

    @property
    def flag(self) -> int:
        return 2 * self.A + 1

    @property
    def place(self) -> int:
        return self.flag + 1

    @property
    def square(self) -> int:
        return self.flag + 2

    @property
    def value(self) -> slice:
        return slice(self.flag + 3, self.flag + 3 + self.A)

    @property
    def sum(self) -> int:
        return self.flag + 3 + self.A

    @property
    def answer(self) -> slice:
        return slice(self.sum + 1, self.d)


@dataclass
class _Prover:
    network: EmbeddedTransformer
    machine: Automaton
    n: int
    rows: _Rows
    sums: list[Exact] = field(default_factory=list)

    def noted(self, where: str, unit: float, most: float) -> None:
        """A sum that must be exact: in float64 always, for what is computed here is computed in it."""
        wrong = (found := Sum(where, unit, most)).holds("float64")
        if wrong is not None:
            raise NotProved(f"{wrong}.")
        self.sums.append(found)


def prove_counting(network: EmbeddedTransformer, machine: Automaton, n: int) -> Proof:
    """The proof, or ``NotProved`` with the first step that fails."""
    if network.embedding is None or network.E is None:
        raise NotProved("the network takes no symbols, or knows no positions.")
    A, d = network.shape()["h"], network.W_out.shape[1]
    outputs = machine.size + len(machine.output_alphabet) + 1
    if A < 1 or d != 3 * A + 5 + outputs or network.W_out.shape[0] != outputs:
        raise NotProved(f"the network has {d} rows and {A} heads; {A} counts take {3 * A + 5 + outputs} rows.")
    if machine.dead is not None:
        raise NotProved("the automaton has a dead state, so its letters are not permutations that lead everywhere.")
    p = _Prover(network, machine, n, _Rows(A, d))
    for name, weight in network.named_parameters():
        if not (found := Weights.of(name, weight)).finite():
            raise NotProved(f"a weight of {name} is not finite.")
        p.sums.append(found)
    letters, numbers = _embedding(p)
    actions = _actions(p, letters)
    values = _positions(p)
    first, second = _blocks(p)
    _means(p, *first)
    scale = _lookup(p, *second[:-4], values=values)
    states = _states_of_sums(p, actions, values)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
        _answers(p, second[-4:], states, numbers, int(values[0].sum()))
    _read_out(p)
    found = verdicts(p.sums)
    gap = min((least_lead(name, n, scale) for name in DTYPES if found[name].holds), default=0.0)
    return Proof(gap, BLOCKS, found)


def _embedding(p: _Prover) -> tuple[Array, Array]:
    """Step 1 for symbols: which count each has (symbols,), −1 for none; the number of each token, the first before."""
    found, rows = p.network.embedding.detach().double().numpy(), p.rows  # pyright: ignore[reportOptionalMemberAccess]
    symbols = len(p.machine.alphabet)
    if len(found) != SYMBOLS + symbols:
        raise NotProved(f"the embedding has {len(found)} tokens; {SYMBOLS + symbols} are wanted.")
    rest = np.delete(found, np.r_[rows.count, rows.sum], axis=1)
    bits, numbers = found[SYMBOLS:, rows.count], found[FIRST:, rows.sum]
    if rest.any() or found[0].any() or found[FIRST, rows.count].any():
        raise NotProved("the embedding of a token writes beside the rows of counts and the sum.")
    if not np.isin(bits, (0.0, 1.0)).all() or (bits.sum(axis=1) > 1).any():
        raise NotProved("the embedding of a symbol counts more than one letter, or not by 1.")
    return np.where(bits.any(axis=1), bits.argmax(axis=1), -1), _whole(numbers, "the embedding of a token")


def _actions(p: _Prover, letters: Array) -> Array:
    """The permutation of every count (A, states): all symbols of a count act by it, and all of them commute."""
    Q, table = p.machine.size, p.machine.table.T  # (symbols, states)
    found = np.tile(np.arange(Q), (p.rows.A, 1))
    for a, g in enumerate(letters.tolist()):
        if g < 0:
            if not np.array_equal(table[a], np.arange(Q)):
                raise NotProved(f"the symbol {p.machine.alphabet[a]!r} is not counted, but moves the state.")
        else:
            found[g] = table[a]
    counted = letters >= 0
    if not np.array_equal(found[letters[counted]], table[counted]):
        raise NotProved("two symbols that move the state differently are counted as one.")
    if (np.sort(found, axis=1) != np.arange(Q)).any():
        raise NotProved("a symbol that is counted does not permute the states.")
    for g in found:
        if not np.array_equal(found[:, g], g[found]):  # first g, then another, and the other way round
            raise NotProved("two symbols that are counted do not commute.")
    return found


def _positions(p: _Prover) -> Array:
    """Step 1 for positions; the values (n + 1, A)."""
    E, rows, k = p.network.E.detach().double().numpy(), p.rows, np.arange(p.n + 1.0)  # pyright: ignore
    if len(E) != p.n + 1:
        raise NotProved(f"there are {len(E)} positions; {p.n + 1} are wanted.")
    if not np.array_equal(E[:, rows.place], k) or not np.array_equal(E[:, rows.square], k * k):
        raise NotProved("the positions are not numbered by k and k².")
    if not np.array_equal(E[:, rows.flag], k == 0):
        raise NotProved("the first position is not flagged by 1, or another one is.")
    if np.delete(E, np.r_[rows.flag, rows.place, rows.square, rows.value], axis=1).any():
        raise NotProved("positions write into rows that are not theirs.")
    return _whole(E[:, rows.value], "the value of a position")


def _whole(numbers: Array, where: str) -> Array:
    if (numbers != np.round(numbers)).any() or (numbers < 0).any() or (numbers > MOST_SUMS).any():
        raise NotProved(f"{where} is not a whole number from 0 to {MOST_SUMS:,}.")
    return numbers.astype(np.int64)


def _blocks(p: _Prover) -> list[tuple[Array, ...]]:
    """The weights of both blocks, each with the mask that lets j see 0 … j."""
    layers = [layer for _, _, layer in p.network.layers()]
    if len(layers) != BLOCKS:
        raise NotProved(f"there are {len(layers)} blocks; {BLOCKS} are wanted.")
    found = []
    for t, layer in enumerate(layers):
        if layer.attention is None or layer.feed_forward is None or layer.attention[-1] is None:
            raise NotProved(f"block {t + 1} lacks a half, or the mask.")
        mask = layer.attention[-1].numpy()
        if mask.shape != (p.n + 1, p.n + 1) or not np.array_equal(mask, np.tri(p.n + 1, dtype=bool)):
            raise NotProved(f"block {t + 1}: the mask does not let every position see itself and all before, only.")
        if layer.attention[0].shape[:2] != (p.rows.A, p.rows.A + 1):
            raise NotProved(f"block {t + 1} must have {p.rows.A} heads of size {p.rows.A + 1}.")
        found.append(tuple(w.detach().double().numpy() for w in (*layer.attention[:-1], *layer.feed_forward[:-1])))
    return found


def _means(p: _Prover, *weights: Array) -> None:
    """Step 2: one head copies counts and flag into the mean rows; all other weights are 0."""
    W_Q, b_Q, W_K, W_V, W_O, *feed_forward = weights
    rows, A, where = p.rows, p.rows.A, "block 1"
    if any(w.any() for w in (W_Q, b_Q, W_K)):
        raise NotProved(f"{where}: the logits are not 0.")
    if any(w.any() for w in feed_forward):
        raise NotProved(f"{where}: the feed-forward half does something.")
    i, wanted_V, wanted_O = np.arange(A + 1), np.zeros_like(W_V), np.zeros_like(W_O)
    wanted_V[0, i, np.r_[rows.count, rows.flag]] = 1.0
    wanted_O[0, np.arange(p.rows.d)[rows.mean], i] = 1.0
    if not (np.array_equal(W_V, wanted_V) and np.array_equal(W_O, wanted_O)):
        raise NotProved(f"{where}: what is averaged is not every count and the flag.")


def _lookup(p: _Prover, *weights: Array, values: Array) -> float:
    """Step 3: head g asks for its count, and adds the value that stands there to the sum; the scale s."""
    W_Q, b_Q, W_K, W_V, W_O = weights
    rows, A, where = p.rows, p.rows.A, "block 2, look-up"
    g, scale = np.arange(A), float(-W_Q[0, 1, 2 * A])
    if not scale > 0 or np.frexp(scale)[0] != 0.5:
        raise NotProved(f"{where}: the scale {in_full(scale)} is not a power of two.")
    wanted = [np.zeros_like(w) for w in (W_Q, b_Q, W_K, W_V, W_O)]
    wanted[0][g, 0, A + g], wanted[0][:, 1, 2 * A] = 2 * scale, -scale
    wanted[2][:, 0, rows.place], wanted[2][:, 1, rows.square] = 1.0, 1.0
    wanted[3][g, 0, np.arange(rows.d)[rows.value]], wanted[4][:, rows.sum, 0] = 1.0, 1.0
    for name, found, right in zip(("queries", "biases", "keys", "values", "output"), weights, wanted, strict=True):
        if not np.array_equal(found, right):
            raise NotProved(f"{where}: the {name} do not ask for the position that is the count.")
    p.sums.append(Lookup(where, p.n, scale))
    p.sums.append(InParts(where, LAZY * (p.n + 1) * max(float(values.max()), 1.0)))
    return scale


def _states_of_sums(p: _Prover, actions: Array, values: Array) -> Array:
    """Step 4: the state of every sum Σ value_g(c_g), −1 where no counts make it; a sum of two states is refused.

    c_g is 0 … n, and g^{c_g} depends on c_g modulo its order: of equal pairs (value, remainder) one is looked at.
    """
    sums = int(values.max(axis=0).sum()) + 1
    if sums > MOST_SUMS:
        raise NotProved(f"the values of positions add up to {sums:,} numbers; {MOST_SUMS:,} are understood.")
    found = np.full(sums, -1)
    found[0] = p.machine.start
    for g, action in enumerate(actions):
        powers = _powers(action)
        pairs = np.unique(np.column_stack([values[:, g], np.arange(p.n + 1) % len(powers)]), axis=0)
        known = np.flatnonzero(found >= 0)
        made = np.full(sums, -1)
        for value, r in pairs.tolist():
            states, there = powers[r][found[known]], made[known + value]
            if ((there >= 0) & (there != states)).any():
                raise NotProved("counts that lead to different states have the same sum.")
            made[known + value] = states
        found = made
    return found


def _powers(action: Array) -> list[Array]:
    """The permutations 1, g, g², … as long as they are new."""
    found = [np.arange(len(action))]
    while not np.array_equal(following := action[found[-1]], found[0]):
        found.append(following)
        if len(found) > MOST_SUMS:
            raise NotProved(f"a symbol takes more than {MOST_SUMS:,} steps to come back.")
    return found


def _answers(p: _Prover, weights: tuple[Array, ...], states: Array, numbers: Array, nothing: int) -> None:
    """Step 4: what the feed-forward half writes for every sum, compared with the automaton for every symbol.

    ``nothing`` is Σ value_g(0): at the first position no symbol was counted, and the heads fetch that all the same.
    """
    W_1, b_1, W_2, b_2 = weights
    rows, machine, where = p.rows, p.machine, "block 2, feed-forward"
    if np.delete(W_1, rows.sum, axis=1).any():
        raise NotProved(f"{where}: a unit reads another row than the sum.")
    if len(b_1) > MOST_SUMS:
        raise NotProved(f"{where}: {len(b_1):,} units read the sum; {MOST_SUMS:,} are understood.")
    if W_2[: rows.answer.start].any() or b_2[: rows.answer.start].any():
        raise NotProved(f"{where}: it writes beside the answer.")
    most = len(states) - 1 + int(numbers.max())
    if most >= MOST_SUMS:
        raise NotProved(f"the sums go up to {most:,}; {MOST_SUMS:,} numbers are understood.")
    p.noted(f"{where}, sums", 1.0, float(most))
    slope, sizes = W_1[:, rows.sum], np.abs(W_2[rows.answer])
    u_1, u_2 = unit_of(slope, b_1), unit_of(W_2)
    p.noted(f"{where}, units", u_1, float((np.abs(slope) * most + np.abs(b_1)).max()))
    hidden = np.maximum(np.outer(np.arange(most + 1.0), slope) + b_1, 0.0)  # (sums, units)
    written = float((hidden @ sizes.T + np.abs(b_2[rows.answer])).max())
    p.noted(where, min(u_1 * u_2, unit_of(b_2), 1.0), written)
    table = hidden @ W_2[rows.answer].T + b_2[rows.answer]  # (sums, answers)
    Q, one_hot = machine.size, np.eye(machine.size)
    first = table[numbers[0] + nothing]
    if not np.array_equal(first[np.r_[:Q, -1]], [*one_hot[machine.start], machine.accept[machine.start]]):
        raise NotProved(f"{where}: the answer at the first position is not the start.")
    at = np.flatnonzero(states >= 0)
    after = states[at]
    for a, number in enumerate(numbers[1:].tolist()):
        wanted = np.zeros((len(at), table.shape[1]))
        wanted[:, :Q], wanted[:, -1] = one_hot[after], machine.accept[after]
        if machine.writes:
            before = np.argsort(machine.table[:, a])[after]  # the inverse of a permutation
            wanted[:, Q:-1] = np.eye(len(machine.output_alphabet))[machine.outputs[before, a]]
        if not np.array_equal(table[number + at], wanted):
            raise NotProved(f"{where}: after the symbol {machine.alphabet[a]!r} the answer is not the automaton's.")


def _read_out(p: _Prover) -> None:
    found = p.network.W_out.detach().double().numpy()
    if found[:, : p.rows.answer.start].any() or not np.array_equal(found[:, p.rows.answer], np.eye(len(found))):
        raise NotProved("the read-out is not the answer rows.")
