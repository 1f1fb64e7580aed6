"""The proof that a stock Llama checkpoint runs an automaton, on every prompt of at most n symbols, in one dtype.

Rows of the residual stream: a constant C, 1 at the first token, 1 at a token that is an answer, then ``own`` (a map of
states, in bits) and ``fetched`` (the states of a map); the rest is 0. Token 0 is <s>, the identity; symbol j is
token j.

*Claim.* Before layer t, at every token j: own = the map of the last min(2^t, j) symbols, fetched = 0, each bit within
the errors that are carried along; the other rows are exact.

*Induction.* Before layer 0: the embedding, compared row by row. In layer t, from its weights rounded to the dtype:

1. Queries and keys read the constant and the mark of the first token only, and the token max(j − 2^t, 0) leads every
   other by 128, rounding included (``offsets.py``): it gets all of the weight.
2. Its own rows are added to the fetched rows here, and nothing else is written (``_fetched``).
3. The gates make own the product of fetched and own, and fetched 0, up to new errors that do not depend on the old ones
   (``gates.py``): errors do not grow from layer to layer.

After T layers, 2^T ≥ n, own is the map of the whole prompt, and ``_read_out`` compares the logits of all tokens in
every case: the answer leads, in each group of tokens the right one leads, and behind an answer </s> does. ∎
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.certificates.automaton_maps import Maps
from thereexists.certificates.llama.format import Checkpoint
from thereexists.certificates.llama.gates import Errors, Gates, Rows, Scale, composed, is_power
from thereexists.certificates.llama.offsets import Turning, Vector, lead
from thereexists.certificates.llama.rounding import SLACK, VANISHES, WEIGHT, Rounding, sums
from thereexists.certificates.llama.tokens import BOS, EOS, SYMBOLS, Vocabulary, vocabulary_of
from thereexists.core.errors import NotProved
from thereexists.functions.target import Array

LEAST = 1.0  # by which the right logit must lead


@dataclass(frozen=True)
class Proof:
    """In one dtype: the least lead of a position, of an answer's logit, and the largest error of a bit on the way."""

    lead: float
    answer: float
    error: float


@dataclass(frozen=True)
class _Prover:
    checkpoint: Checkpoint
    rounding: Rounding
    rows: Rows
    maps: Maps
    weights: dict[str, Array]  # rounded to the dtype, in float64
    C: float

    @property
    def d(self) -> int:
        return self.checkpoint.shape.d_model

    def scale(self, errors: Errors, norm: str) -> Scale:
        """What RMSNorm makes of the rows; its weight must be 1."""
        if (self.weights[norm] != 1).any():
            raise NotProved(f"{norm}: a weight of the norm is not 1.")
        own, fetched = self.maps.groups()
        on = len(np.unique(own)) * (1 + errors.own_on) ** 2 + len(np.unique(fetched)) * (1 + errors.fetched_on) ** 2
        off = self.maps.own * errors.own_off**2 + self.maps.fetched * errors.fetched_off**2
        slip = self.rounding.norm(self.d, self.C, (on + off + 2) * SLACK, self.checkpoint.eps)
        return Scale(np.sqrt(self.d), np.sqrt(self.d) / self.C, slip)


def prove(checkpoint: Checkpoint, dtype: str) -> Proof:
    """The proof in a dtype, or ``NotProved`` with the first step that fails."""
    weights = checkpoint.rounded(dtype)
    for name, weight in weights.items():
        if not np.isfinite(weight).all():
            raise NotProved(f"{name}: a weight is not finite.")
    maps, rows = checkpoint.maps, Rows.of(checkpoint.maps)
    shape, n = checkpoint.shape, checkpoint.n
    if rows.fetched.stop > shape.d_model or 4 ** round(np.log2(shape.d_model) / 2) != shape.d_model:
        raise NotProved(f"d_model must be a power of four of at least {rows.fetched.stop}; it is {shape.d_model}.")
    if 2**shape.layers < n:
        raise NotProved(f"{shape.layers} layers reach {2**shape.layers:,} symbols back; {n:,} are wanted.")
    if shape.positions < n + 2:
        raise NotProved(f"there are {shape.positions:,} positions; {n + 2:,} are wanted.")
    C = float(weights["model.embed_tokens.weight"][BOS, rows.constant])
    if not (C > 0 and is_power(np.array(C))):
        raise NotProved(f"the constant row must be a power of two; it is {C:g}.")
    prover = _Prover(checkpoint, Rounding(dtype), rows, maps, weights, C)
    vocabulary = vocabulary_of(maps.automaton)
    _embedding(prover, vocabulary)
    errors, worst, leads = Errors(0.0, 0.0, 0.0, 0.0), 0.0, []
    for t in range(shape.layers):
        try:
            leads.append(_looked_back(prover, t, errors))
            errors = _fetched(prover, t, errors)
            worst = max(worst, errors.fetched_on, errors.own_on)
            errors = _gated(prover, t, errors)
        except NotProved as error:
            raise NotProved(f"layer {t + 1}: {error}") from error
    return Proof(min(leads), _read_out(prover, vocabulary, errors), worst)


def _embedding(p: _Prover, vocabulary: Vocabulary) -> None:
    """<s> and every answer are the identity, each symbol is its own map; the marks are where they belong."""
    found, rows = p.weights["model.embed_tokens.weight"], p.rows
    own = found[:, rows.own]
    identity = p.maps.map_of(own[BOS])
    if not p.maps.is_identity(identity) or not np.array_equal(p.maps.bits(identity), own[BOS]):
        raise NotProved("the embedding of <s> is not the identity.")
    wanted = np.zeros_like(found)
    wanted[:, rows.constant] = p.C
    wanted[BOS, rows.first] = 1.0
    wanted[[EOS, *range(vocabulary.outputs.start, len(vocabulary))], rows.done] = 1.0
    wanted[:, rows.own] = own[BOS]
    letters = p.maps.letters()
    wanted[SYMBOLS : SYMBOLS + len(letters), rows.own] = np.stack([p.maps.bits(f) for f in letters])
    if not np.array_equal(found, wanted):
        token = int((found != wanted).any(axis=1).argmax())
        raise NotProved(f"the embedding of {vocabulary.texts[token]!r} is not its map, or a mark is missing.")


def _looked_back(p: _Prover, t: int, errors: Errors) -> float:
    """Step 1, for every head that is heard."""
    shape, rows, name = p.checkpoint.shape, p.rows, f"model.layers.{t}.self_attn"
    scale = p.scale(errors, f"model.layers.{t}.input_layernorm.weight")
    W_Q, W_K, W_O = (p.weights[f"{name}.{part}_proj.weight"] for part in "qko")
    size, group = shape.head_size, shape.heads // shape.key_heads
    turning = Turning(p.checkpoint.theta, size, shape.positions, p.checkpoint.n + 1)
    seen: dict[bytes, float] = {}
    for head in range(shape.heads):
        part = slice(head * size, (head + 1) * size)
        if not W_O[:, part].any():
            continue  # nobody hears it
        q, k = W_Q[part], W_K[(head // group) * size : (head // group + 1) * size]
        if np.delete(q, rows.constant, axis=1).any() or np.delete(k, [rows.constant, rows.first], axis=1).any():
            raise NotProved(f"head {head}: a query or a key depends on more than the constant and the first token.")
        key = q.tobytes() + k.tobytes()
        if key not in seen:
            query = _linear(p, (q[:, rows.constant] * scale.top,), scale)
            constant, mark = k[:, rows.constant] * scale.top, k[:, rows.first] * scale.bit
            other, first = _linear(p, (constant,), scale), _linear(p, (constant, mark), scale)
            seen[key] = lead(query, other, first, 2**t, turning, p.rounding)
        if not seen[key] >= VANISHES:
            raise NotProved(
                f"head {head}: the token {2**t} back leads by {seen[key]:.4g} only, rounding included; "
                f"{VANISHES:g} is wanted."
            )
    return min(seen.values(), default=np.inf)


def _linear(p: _Prover, terms: tuple[Array, ...], scale: Scale) -> Vector:
    """A row of a linear layer with these terms that are not 0."""
    size = np.abs(np.stack(terms)).sum(axis=0)
    nominal = np.stack(terms).sum(axis=0)
    slip = size * (scale.slip + sums(len(terms)) * (1 + scale.slip))
    return Vector(nominal, (slip + p.rounding.u * (np.abs(nominal) + slip)) * SLACK)


def _fetched(p: _Prover, t: int, errors: Errors) -> Errors:
    """Step 2: a fetched row is one value, a sum of own rows that exclude each other; nothing else is written."""
    shape, rows, name = p.checkpoint.shape, p.rows, f"model.layers.{t}.self_attn"
    scale = p.scale(errors, f"model.layers.{t}.input_layernorm.weight")
    W_V, W_O = p.weights[f"{name}.v_proj.weight"], p.weights[f"{name}.o_proj.weight"]
    written = np.zeros(shape.d_model, dtype=bool)
    written[rows.fetched] = True
    if W_O[~written].any() or ((W_O[rows.fetched] != 0).sum(axis=1) != 1).any():
        raise NotProved("attention writes beside the fetched rows, or a fetched row is not one value.")
    out = (W_O[rows.fetched] != 0).argmax(axis=1)
    weight = W_O[rows.fetched][np.arange(p.maps.fetched), out]
    size, group = shape.head_size, shape.heads // shape.key_heads
    value = (out // size // group) * size + out % size
    found = W_V[value] * weight[:, None] * scale.bit
    wanted = np.zeros((p.maps.fetched, shape.d_model))
    wanted[p.maps.projection(), np.arange(rows.own.start, rows.own.stop)] = 1.0
    if not np.array_equal(found[:, : rows.fetched.stop], wanted[:, : rows.fetched.stop]):
        raise NotProved("what is fetched is not the map that stands there.")
    _alone(p.maps)
    u, count = p.rounding.u, int(np.bincount(p.maps.projection()).max())
    seen = errors.normalised(scale.slip)
    sizes = 1 + seen.own_on + count * seen.own_off
    on = seen.own_on + count * seen.own_off + (sums(count) + u) * sizes
    off = count * seen.own_off * (1 + sums(count) + u)
    heard = (1 + WEIGHT) * (1 + u) ** 4 * (1 + sums(4))  # weight, cast, value, output, and the residual sum
    return Errors(
        errors.own_on,
        errors.own_off,
        ((1 + on) * heard - 1 + errors.fetched_off * (1 + u)) * SLACK,
        (off * heard + errors.fetched_off * (1 + u)) * SLACK,
    )


def _alone(maps: Maps) -> None:
    """Own rows that become the same fetched row exclude each other."""
    own = np.unique(maps.groups()[0], return_inverse=True)[1].reshape(-1)
    if len(np.unique(np.column_stack([maps.projection(), own]), axis=0)) != maps.fetched:
        raise NotProved("two rows that become one when they are fetched may both be 1.")


def _gated(p: _Prover, t: int, errors: Errors) -> Errors:
    """Step 3."""
    scale, name = p.scale(errors, f"model.layers.{t}.post_attention_layernorm.weight"), f"model.layers.{t}.mlp"
    gates = Gates(*(p.weights[f"{name}.{part}_proj.weight"] for part in ("gate", "up", "down")))
    after = composed(gates, p.maps, scale, errors, p.rounding)
    return Errors(after.own_on, after.own_off, after.fetched_off, after.fetched_off)


def _read_out(p: _Prover, vocabulary: Vocabulary, errors: Errors) -> float:
    """Every case of the map at the last token, and all logits: the least lead of a right one."""
    maps, machine, rows = p.maps, p.maps.automaton, p.rows
    scale = p.scale(errors, "model.norm.weight")
    W = p.weights["lm_head.weight"]
    read = np.flatnonzero(W[:, rows.own].any(axis=0))
    start = np.flatnonzero(maps.start_targets() >= 0)
    if W[:, rows.first].any() or W[:, rows.fetched].any() or not np.isin(read, start).all():
        raise NotProved("the answer reads more than where the start is led to.")
    own = W[:, rows.own] * scale.bit
    constant, done = W[:, rows.constant] * scale.top, W[:, rows.done] * scale.bit
    cases = [(own[:, row], maps.targets[maps.start_targets()[row]]) for row in start]
    if machine.dead is not None:
        cases.append((np.zeros(len(W)), np.array([machine.dead, -1])))
    seen = errors.normalised(scale.slip)
    size = np.abs(own).sum(axis=1)
    highest = np.abs(own).max(axis=1, initial=0.0)
    sizes = np.abs(constant) + np.abs(done) + highest * (1 + seen.own_on) + size * seen.own_off
    slip = (np.abs(constant) + np.abs(done)) * scale.slip + highest * seen.own_on + size * seen.own_off
    slip = (slip + (sums(2 + len(start)) + p.rounding.u) * sizes) * SLACK
    groups = [vocabulary.verdicts, vocabulary.states, *([vocabulary.outputs] if machine.writes else [])]
    leads = []
    for bits, (state, said) in cases:
        right = [vocabulary.verdicts.start + (0 if machine.accept[state] else 1), vocabulary.states.start + state]
        right += [vocabulary.outputs.start + said] if machine.writes else []
        logits = constant + bits
        answer = right[-1] if machine.writes else right[0]
        leads.append(_lead(logits, slip, int(answer), slice(0, len(W))))
        leads += [_lead(logits, slip, int(token), group) for token, group in zip(right, groups, strict=True)]
        leads.append(_lead(logits + done, slip, EOS, slice(0, len(W))))
    if not (least := min(leads)) >= LEAST:
        raise NotProved(f"an answer's logit leads by {least:.4g} only, rounding included, not by {LEAST:g}.")
    return least


def _lead(logits: Array, slip: Array, right: int, group: slice) -> float:
    others = np.arange(group.start, group.stop) != right
    rest = (logits + slip)[group][others]
    return float(logits[right] - slip[right] - rest.max(initial=-np.inf))
