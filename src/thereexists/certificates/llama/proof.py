"""The proof that a stock Llama checkpoint runs a circuit, on every prompt of its claim, in one dtype.

Rows of the residual stream: a constant C, 1 at the first token, 1 at a token that is an answer, then the bits of the
circuit; the rest is 0. Token 0 is <s>.

*Claim.* Before layer t, at every token, each bit of the circuit is there, within the errors that are carried along; the
other rows are exact.

*Induction.* Before layer 0: the embedding, compared row by row. In layer t, from its weights rounded to the dtype:

1. Queries and keys read the constant and the mark of the first token only (or codes, ``content.py``), and the token
   that the circuit names leads every other by 128, rounding included (``offsets.py``): it gets all of the weight.
2. Its source rows are added to the target rows here, which were 0, and nothing else is written (``_fetched``).
3. The gates add the ANDs and clear what the circuit clears, up to new errors that do not depend on those of the rows
   they read (``gates.py``): errors do not grow from layer to layer.

At the end ``_read_out`` compares the logits of all tokens in every case of the circuit. ∎ What the circuit computes is
proved where it is made (``automata.py``, ``addition.py``, …: a file for each claim).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.certificates.llama.circuit import BITS, CONSTANT, DONE, FIRST, Circuit, CircuitLayer
from thereexists.certificates.llama.content import content_lead
from thereexists.certificates.llama.format import Checkpoint
from thereexists.certificates.llama.gates import Errors, Gates, Scale, gated, is_power
from thereexists.certificates.llama.offsets import Turning, Vector, lead
from thereexists.certificates.llama.rounding import SLACK, VANISHES, WEIGHT, Rounding, sums
from thereexists.certificates.llama.tokens import BOS
from thereexists.core.errors import NotProved
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_down
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
    circuit: Circuit
    rounding: Rounding
    weights: dict[str, Array]  # rounded to the dtype, in float64
    C: float

    @property
    def bits(self) -> slice:
        return slice(BITS, BITS + self.circuit.rows)

    @property
    def turning(self) -> Turning:
        shape = self.checkpoint.shape
        return Turning(self.checkpoint.theta, shape.head_size, shape.positions, self.circuit.reach)

    def scale(self, errors: Errors, norm: str) -> Scale:
        """What RMSNorm makes of the rows; its weight must be 1."""
        if (self.weights[norm] != 1).any():
            raise NotProved(f"{norm}: a weight of the norm is not 1.")
        d, groups = self.checkpoint.shape.d_model, self.circuit.groups
        highest = np.zeros(int(groups.max()) + 1)
        np.maximum.at(highest, groups, (1 + errors.most) ** 2)
        squares = highest.sum() + (errors.off**2).sum() + 2  # a bit of each group, the others' errors, and the marks
        slip = self.rounding.norm(d, self.C, float(squares) * SLACK, self.checkpoint.eps)
        return Scale(np.sqrt(d), np.sqrt(d) / self.C, slip)


def prove(checkpoint: Checkpoint, dtype: str) -> Proof:
    """The proof in a dtype, or ``NotProved`` with the first step that fails."""
    circuit, shape = checkpoint.claim.circuit(), checkpoint.shape
    circuit.exclusive()
    weights = checkpoint.rounded(dtype)
    if BITS + circuit.rows > shape.d_model or 4 ** round(np.log2(shape.d_model) / 2) != shape.d_model:
        raise NotProved(f"d_model must be a power of four of at least {BITS + circuit.rows}; it is {shape.d_model}.")
    if shape.layers != len(circuit.layers):
        raise NotProved(f"there are {shape.layers} layers; {len(circuit.layers)} are wanted.")
    if shape.positions < circuit.reach + 1:
        raise NotProved(f"there are {shape.positions:,} positions; {circuit.reach + 1:,} are wanted.")
    C = float(weights["model.embed_tokens.weight"][BOS, CONSTANT])
    if not (C > 0 and is_power(np.array(C))):
        raise NotProved(f"the constant row must be a power of two; it is {in_full(C)}.")
    prover = _Prover(checkpoint, circuit, Rounding(dtype), weights, C)
    _embedding(prover)
    errors, worst, leads = Errors(np.zeros(circuit.rows), np.zeros(circuit.rows)), 0.0, []
    empty = np.asarray(~circuit.embedding.any(axis=0))  # rows that are 0 at every token
    for t, layer in enumerate(circuit.layers):
        try:
            if not empty[layer.target].all():
                raise NotProved("what is fetched is added to rows that hold something.")
            leads.append(_looked(prover, t, layer, errors))
            errors = _fetched(prover, t, layer, errors)
            worst = max(worst, float(errors.most.max()))
            errors = _gated(prover, t, layer, errors)
            worst = max(worst, float(errors.most.max()))
        except NotProved as error:
            raise NotProved(f"layer {t + 1}: {error}") from error
        empty[layer.target], empty[layer.cleared], empty[layer.z] = False, True, False
    return Proof(min(leads), _read_out(prover, errors), worst)


def _embedding(p: _Prover) -> None:
    """The bits of the circuit, and the marks where they belong."""
    found = p.weights["model.embed_tokens.weight"]
    wanted = np.zeros_like(found)
    wanted[:, CONSTANT] = p.C
    wanted[BOS, FIRST] = 1.0
    wanted[list(p.circuit.answers), DONE] = 1.0
    wanted[:, p.bits] = p.circuit.embedding
    if not np.array_equal(found, wanted):
        token = int((found != wanted).any(axis=1).argmax())
        raise NotProved(f"the embedding of {p.checkpoint.claim.vocabulary.texts[token]!r} is not what it must be.")


def _looked(p: _Prover, t: int, layer: CircuitLayer, errors: Errors) -> float:
    """Step 1, for every head that is heard."""
    shape, name = p.checkpoint.shape, f"model.layers.{t}.self_attn"
    scale = p.scale(errors, f"model.layers.{t}.input_layernorm.weight")
    W_Q, W_K, W_O = (p.weights[f"{name}.{part}_proj.weight"] for part in "qko")
    size, group = shape.head_size, shape.heads // shape.key_heads
    back = np.full(shape.d_model, -1)
    back[BITS + layer.target] = layer.offset
    seen: dict[bytes, float] = {}
    for head in range(shape.heads):
        part = slice(head * size, (head + 1) * size)
        if not W_O[:, part].any():
            continue  # nothing reads it
        q, k = W_Q[part], W_K[(head // group) * size : (head // group + 1) * size]
        offsets = np.unique(back[W_O[:, part].any(axis=1)])
        if len(offsets) != 1 or offsets[0] < 0:
            raise NotProved(f"head {head}: it writes rows that are fetched from different distances, or from nowhere.")
        key = q.tobytes() + k.tobytes() + offsets.tobytes()
        try:
            if key not in seen:
                seen[key] = _LEADS[layer.looks](p, q, k, layer, int(offsets[0]), scale, errors)
            if not seen[key] >= VANISHES:
                where = f"{offsets[0]} back" if layer.looks == "back" else "with the right key"
                raise NotProved(
                    f"the token {where} leads by {rounded_down(seen[key], 4)} only, rounding included; "
                    f"{in_full(VANISHES)} is wanted."
                )
        except NotProved as error:
            raise NotProved(f"head {head}: {error}") from error
    return min(seen.values(), default=np.inf)


def _lead_back(p: _Prover, q: Array, k: Array, layer: CircuitLayer, offset: int, scale: Scale, errors: Errors) -> float:
    if np.delete(q, CONSTANT, axis=1).any() or np.delete(k, [CONSTANT, FIRST], axis=1).any():
        raise NotProved("a query or a key depends on more than the constant and the first token.")
    query = _linear(p, (q[:, CONSTANT] * scale.top,), scale)
    constant, mark = k[:, CONSTANT] * scale.top, k[:, FIRST] * scale.bit
    other, first = _linear(p, (constant,), scale), _linear(p, (constant, mark), scale)
    return lead(query, other, first, offset, p.turning, p.rounding)


def _lead_of_content(p: _Prover, q: Array, k: Array, layer: Any, offset: int, scale: Scale, errors: Errors) -> float:
    return content_lead(q, k, layer, scale, errors, p.turning, p.rounding)


_LEADS = {"back": _lead_back, "content": _lead_of_content}


def _linear(p: _Prover, terms: tuple[Array, ...], scale: Scale) -> Vector:
    """A row of a linear layer with these terms that are not 0."""
    size = np.abs(np.stack(terms)).sum(axis=0)
    nominal = np.stack(terms).sum(axis=0)
    slip = size * (scale.slip + sums(len(terms)) * (1 + scale.slip))
    return Vector(nominal, (slip + p.rounding.u * (np.abs(nominal) + slip)) * SLACK)


def _fetched(p: _Prover, t: int, layer: CircuitLayer, errors: Errors) -> Errors:
    """Step 2: a target row is one value, a sum of source rows that exclude each other; nothing else is written."""
    shape, name = p.checkpoint.shape, f"model.layers.{t}.self_attn"
    scale = p.scale(errors, f"model.layers.{t}.input_layernorm.weight")
    W_V, W_O = p.weights[f"{name}.v_proj.weight"], p.weights[f"{name}.o_proj.weight"]
    target, place = np.unique(layer.target, return_inverse=True)
    written = np.zeros(shape.d_model, dtype=bool)
    written[BITS + target] = True
    if W_O[~written].any() or ((W_O[written] != 0).sum(axis=1) != 1).any():
        raise NotProved("attention writes beside the rows that it fetches, or such a row is not one value.")
    out = (W_O[BITS + target] != 0).argmax(axis=1)
    weight = W_O[BITS + target, out]
    size, group = shape.head_size, shape.heads // shape.key_heads
    value = (out // size // group) * size + out % size
    found = (W_V[value] * weight[:, None] * scale.bit)[:, : p.bits.stop]
    wanted = np.zeros_like(found)
    wanted[place, BITS + layer.source] = 1.0
    if not np.array_equal(found, wanted):
        raise NotProved("what is fetched is not what stands there.")
    u, seen = p.rounding.u, errors.normalised(scale.slip)
    count = np.bincount(place)
    quiet = np.bincount(place, seen.off[layer.source])  # of all source rows, should they be 0
    loud = np.zeros(len(target))
    np.maximum.at(loud, place, seen.most[layer.source])
    # One row with weights that are powers of two is a number of the dtype: value and output lose nothing by the cast.
    # Neither does a sum with a row that is 0. Left are the weight and its cast.
    plain = (count == 1) & is_power(weight)
    sized = (count + 2) * sums(0) + np.where(plain, 0.0, u)
    on = loud + quiet + sized * (1 + loud + quiet)
    casts = 1 + np.where(plain, 0, 2) + (errors.off[target] != 0)
    heard = (1 + WEIGHT) * (1 + u) ** casts * (1 + sums(4))
    before = errors.off[target] * (1 + u)
    after = Errors(errors.on.copy(), errors.off.copy())
    after.on[target] = ((1 + on) * heard - 1 + before) * SLACK
    after.off[target] = (quiet * (1 + sized) * heard + before) * SLACK
    return after


def _gated(p: _Prover, t: int, layer: CircuitLayer, errors: Errors) -> Errors:
    """Step 3."""
    scale, name = p.scale(errors, f"model.layers.{t}.post_attention_layernorm.weight"), f"model.layers.{t}.mlp"
    gates = Gates(*(p.weights[f"{name}.{part}_proj.weight"] for part in ("gate", "up", "down")))
    return gated(gates, layer, scale, errors, p.rounding)


def _read_out(p: _Prover, errors: Errors) -> float:
    """Every case, and all logits: the least lead of a right one. What no case names is 0 or is not read."""
    scale = p.scale(errors, "model.norm.weight")
    W = p.weights["lm_head.weight"]
    named = np.unique([row for case in p.circuit.cases for row in case.on]).astype(np.int64)
    bits = W[:, p.bits] * scale.bit
    if W[:, FIRST].any() or np.delete(bits, named, axis=1).any():
        raise NotProved("the answer reads more than it may.")
    constant, done = W[:, CONSTANT] * scale.top, W[:, DONE] * scale.bit
    seen = errors.normalised(scale.slip)
    several = max(len(case.on) for case in p.circuit.cases)
    quiet = np.abs(bits) @ seen.off
    loud = several * (np.abs(bits) * (1 + seen.on)).max(axis=1, initial=0.0)
    slip = (np.abs(constant) + np.abs(done)) * scale.slip + several * (np.abs(bits) * seen.most).max(axis=1) + quiet
    sizes = np.abs(constant) + np.abs(done) + loud + quiet
    slip = (slip + (sums(2 + len(named)) + p.rounding.u) * sizes) * SLACK
    least = np.inf
    for case in p.circuit.cases:
        logits = constant + bits[:, list(case.on)].sum(axis=1) + done * case.done
        least = min(least, *(_lead(logits, slip, token, group) for token, group in case.right))
    if not least >= LEAST:
        raise NotProved(
            f"an answer's logit leads by {rounded_down(least, 4)} only, rounding included, not by {in_full(LEAST)}."
        )
    return float(least)


def _lead(logits: Array, slip: Array, right: int, group: slice) -> float:
    others = np.arange(group.start, group.stop) != right
    rest = (logits + slip)[group][others]
    return float(logits[right] - slip[right] - rest.max(initial=-np.inf))
