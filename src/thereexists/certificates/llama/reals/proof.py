"""The bound of a stock checkpoint over the reals, in one dtype, from its weights: |answer − program| for every input.

*Claim.* In a run on any input of the box, of any length up to n, the form of every ``Real`` of ``network.py`` differs
from the program's own number by at most its error, at every token; and every row stays within ``Reader.most``.

*Proof*, one number after the other, in the order of the program. Input rows are numbers rounded to the dtype, rows of
a table what the embedding has. Linear operations are forms. Otherwise a row is written, once, by one layer, where it
was 0 (``_nothing_else`` finds every other write), so that the residual sum is exact; it is the operation of the forms
it reads, up to an error that the layer's weights show (``layers.py``), and ``grows`` says what the operation makes of
the errors before (``operations.py``). The norms are right because the squares of all rows together
are small in the end, and rows that are not yet written are 0: a norm needs only what was proved of rows before it. The
answer is read off by ``lm_head`` in the same way. ∎

Tokens after a token have no part in any of it: heads are causal, and so is every table of this proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.certificates.llama.format import Checkpoint
from thereexists.certificates.llama.gates import is_power
from thereexists.certificates.llama.reals.layers import Errors, Layers, lead, written
from thereexists.certificates.llama.reals.network import CONSTANT, HEAD, Network, Real
from thereexists.certificates.llama.reals.reading import FLUSHED, LEAST_SHARE, Reader
from thereexists.certificates.llama.rounding import SLACK, Rounding
from thereexists.certificates.program_numbers import TINY
from thereexists.core.errors import NotProved
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.functions.target import Array

LEAST_CONSTANT, MOST_CONSTANT = 1.0, 2.0**45  # whose squares float32 holds


@dataclass(frozen=True)
class RealProof:
    """In one dtype: the bound, and the least lead of a token that is looked at (infinite where none is)."""

    bound: float
    lead: float


def prove_reals(checkpoint: Checkpoint, dtype: str) -> RealProof:
    """The proof in a dtype, or ``NotProved`` with the first step that fails."""
    network, shape, weights = checkpoint.claim.network, checkpoint.shape, checkpoint.rounded(dtype)
    _sizes(checkpoint, network)
    C = float(weights["model.embed_tokens.weight"][0, CONSTANT])
    if not (LEAST_CONSTANT <= C <= MOST_CONSTANT and is_power(np.array(C))):
        raise NotProved(f"the constant row must be a power of two, 1 to {in_full(MOST_CONSTANT)}; it is {in_full(C)}.")
    reader = Reader.of(Rounding(dtype), network.n, shape.d_model, C, checkpoint.eps)
    layers = Layers(checkpoint, network, weights, reader)
    off = _embedding(layers, C)
    for name, weight in weights.items():
        if "norm" in name and (weight != 1).any():
            raise NotProved(f"{name}: a weight of the norm is not 1.")
    leads = [np.inf]
    for t, heads in enumerate(network.heads):
        _nothing_else(layers, t)
        leads += [lead(layers, t, h, head) for h, head in enumerate(heads)]
    errors: Errors = {}
    for real in network.reals:
        errors[real] = _error(layers, real, off, errors)
    squares = reader.squares()
    if not squares <= C * C * LEAST_SHARE:
        raise NotProved(
            f"the rows' squares may be {rounded_up(squares, 3)} together, too much beside a constant of {in_full(C)}."
        )
    bound = _answer(layers, errors)
    middle = max(float(real.high.max() - real.low.min()) for real in network.outputs) / 2
    if not bound <= middle:
        raise NotProved(
            f"the bound is {rounded_up(bound, 3)}, and the middle of the range is off by {rounded_up(middle, 3)} only."
        )
    return RealProof(bound, float(min(leads)))


def _sizes(checkpoint: Checkpoint, network: Network) -> None:
    shape, rows = checkpoint.shape, len(network.rows)
    if shape.d_model < rows or 4 ** round(np.log2(shape.d_model) / 2) != shape.d_model:
        raise NotProved(f"d_model must be a power of four of at least {rows}; it is {shape.d_model}.")
    if shape.layers != network.layers:
        raise NotProved(f"there are {shape.layers} layers; {network.layers} are wanted.")
    if shape.head_size != HEAD:
        raise NotProved(f"heads must have size {HEAD}; they have {shape.head_size}.")
    heads, units = max(map(len, network.heads)), max(network.units)
    if shape.heads < heads or shape.key_heads != shape.heads or shape.width < units or shape.positions < network.n:
        raise NotProved("the config has too few heads, units or positions, or heads that share keys.")
    if shape.tokens < max(network.n, len(network.outputs)):
        raise NotProved(f"there are {shape.tokens} tokens; {max(network.n, len(network.outputs))} are wanted.")


def _embedding(layers: Layers, C: float) -> dict[int, Array]:
    """The constant, tables, and nothing where numbers will stand; how far input and table rows are from the numbers."""
    E, network, most = layers.weights["model.embed_tokens.weight"], layers.network, layers.reader.most
    tables = {r: row.table for r, row in enumerate(network.rows) if row.table is not None}
    rest = np.delete(E, [CONSTANT, *tables], axis=1)
    if (E[:, CONSTANT] != C).any() or rest.any() or E[network.n :, 1:].any():
        raise NotProved("the embedding is not the constant and the tables, with 0 elsewhere.")
    off = {}
    for r, table in tables.items():
        off[r] = np.abs(E[: network.n, r] - table)
        most[:, r] = np.abs(E[: network.n, r])
    for r in network.inputs:
        off[r] = network.rows[r].span * layers.reader.rounding.u + FLUSHED
        most[:, r] = network.rows[r].span + off[r]
    return off


def _nothing_else(layers: Layers, t: int) -> None:
    """No layer writes what is not its to write, and what is not used has no weight at all."""
    size, weights = layers.checkpoint.shape.head_size, layers.of(t)
    O, D = (np.zeros_like(weights[name], dtype=bool) for name in ("self_attn.o", "mlp.down"))
    for real in layers.network.reals:
        if real.write is not None and real.write.layer == t:
            (O if real.write.by_head else D)[real.write.row, real.write.columns(size)] = True
    looks = np.zeros(O.shape[1], dtype=bool)
    for h, head in enumerate(layers.network.heads[t]):
        looks[h * size : (h + 1) * size] = head.source is not None
    rows = {"self_attn.v": O.any(axis=0), "self_attn.q": looks, "self_attn.k": looks}
    rows |= {"mlp.gate": D.any(axis=0), "mlp.up": D.any(axis=0)}
    wanted = {name: np.broadcast_to(row[:, None], weights[name].shape) for name, row in rows.items()}
    for name, there in {**wanted, "self_attn.o": O, "mlp.down": D}.items():
        if ((weights[name] != 0) & ~there).any():
            raise NotProved(f"layer {t + 1}: {name}_proj has a weight where there must be none.")


def _error(layers: Layers, real: Real, off: dict[int, Array], errors: Errors) -> Array:
    """How far the form of a number may be from it; of a row that is written, how large that may be, too."""
    write = real.write
    if not real.given:  # a number of the program, a table or an input
        return sum((off[row] for row in real.form if row != CONSTANT), start=np.zeros(len(real.low)))
    given = [errors[part] for part in real.given]
    grown = real.grows(*given)
    if write is None:
        return grown * SLACK + TINY  # for what underflows
    before = layers.network.rows[write.row].span + grown
    before = before + sum((lean * e for lean, e in zip(write.lean, given, strict=True)), start=np.zeros(len(grown)))
    try:
        fresh = written(layers, write, before, errors)
    except NotProved as error:
        raise NotProved(f"layer {write.layer + 1}: {error}") from error
    layers.reader.most[:, write.row] = (before + fresh) * SLACK
    return (grown + fresh) * SLACK + TINY


def _answer(layers: Layers, errors: Errors) -> float:
    """The first logits are the features of the output; the others are 0."""
    W, outputs = layers.weights["lm_head.weight"], layers.network.outputs
    if W[len(outputs) :].any():
        raise NotProved("lm_head says more than the answer.")
    forms, reach = [real.form for real in outputs], layers.reach(outputs, errors)
    found = layers.reader.read(W[: len(outputs)], forms, np.ones(len(outputs)), reach)
    total = np.stack([errors[real] for real in outputs], axis=1) + found.error + found.away
    return float(total.max()) * SLACK
