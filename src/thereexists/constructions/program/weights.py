"""Stage 5, the weights: schedule and rows become an :class:`EmbeddedTransformer` of standard blocks.

**Gather.** Positions carry ±1 codes of L = ⌈log2 n⌉ bits in rows of E. The query of token i is 512 times the code of
σ(i), so the logit at σ(i) is 512·L and at any other token at most 512·(L − 2). A gap of 1024 is beyond −log of the
smallest positive number of every dtype (745 in float64), so the softmax is exactly one-hot; all logits are integers of
at most 13 bits that end in nine zeros, exact in bfloat16 up to 2^15 tokens.

**Snapping.** Tokens enter as x + (C − low), between C and 2C for a power of two C: the addition rounds x to a multiple
of C·2^(1−p), once, and from there on differences, minima and maxima are exact (``rounding.py`` shows when). The
attention half of block 1 takes the offset away again, exactly, with one more head that attends to its own token.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import torch

from thereexists.constructions.program.lowering import SHARPNESS, Atoms, Attend, Constant, Form, Hinge, Token
from thereexists.constructions.program.schedule import Layout, Schedule, tokens_of
from thereexists.functions.target import Array
from thereexists.model import Attention, EmbeddedTransformer, FeedForward, Stage


def snap_offset(low: float, high: float) -> float:
    """C − low', C a power of two and low' ≤ low a sixteenth of C, with low' + C ≤ … ≤ high + (C − low') ≤ 2C.

    An offset far beyond the tokens would drown them, and what is subtracted for it in a head that multiplies tokens by
    much would be rounded by more than they are: so C is as small as they are, as long as C·2^-52 is a normal float64.
    """
    C = 2.0 ** math.ceil(math.log2(max(high - low, abs(low), abs(high), 2.0**-960)))
    while True:
        floor = math.floor(low * 16 / C) * C / 16
        if high - floor <= C:
            return C - floor
        C *= 2.0


def network_of(atoms: Atoms, outputs: list[Form], times: Schedule, layout: Layout, d: int) -> EmbeddedTransformer:
    tokens = tokens_of(atoms, times)
    row, d_model = layout.row, layout.d_model
    offset = {a: snap_offset(float(atoms.low[a].min()), float(atoms.high[a].max())) for a in tokens}
    offset = offset if times.blocks else {}
    W_in, E = np.zeros((d_model, d)), np.zeros((atoms.n, d_model))
    E[:, layout.one] = 1.0
    for atom in times.at(0):
        definition = atoms.definitions[atom]
        if isinstance(definition, Token):
            W_in[row[atom], definition.feature] = 1.0
            E[:, row[atom]] = offset.get(atom, 0.0)
        elif isinstance(definition, Constant):
            E[:, row[atom]] = definition.values
    stages = {}
    for block in range(1, times.blocks + 1):
        attention = _attention(atoms, times, layout, 2 * block - 1, offset if block == 1 else {})
        stages[f"block_{block}"] = Stage(attention, _feed_forward(atoms, times, layout, 2 * block))
    W_out = np.array([_read(form, layout) for form in outputs])
    return EmbeddedTransformer(stages, _tensor(W_out), W_in=_tensor(W_in), E=_tensor(E))


def _read(form: Form, layout: Layout) -> Array:
    """The coefficients of a form on the residual stream; its constant reads the row of ones."""
    weights = np.zeros(layout.d_model)
    weights[layout.one] = nearest(form.constant)
    for atom, c in form.terms.items():
        weights[layout.row[atom]] += nearest(c)
    return weights


def nearest(number: Fraction) -> float:
    """A float64 within 2^-52 of a rational, relatively; if it is not the number itself, it has more than 26 bits.

    So ``rounding.py`` may take short weights for exact, and allow 2^-52 for the long ones.
    """
    value = float(number)
    if Fraction(value) != number and _short(value):
        value = math.nextafter(value, math.inf if Fraction(value) < number else -math.inf)
    return value


def _short(value: float) -> bool:
    scaled = math.frexp(value)[0] * 2.0**26
    return scaled == math.floor(scaled)


def _attention(atoms: Atoms, times: Schedule, layout: Layout, time: int, offset: dict[int, float]) -> Attention | None:
    """One head for all that has the same queries and keys; its values are the head's value dimensions."""
    heads: dict[tuple, list[tuple[Array, int, float]]] = {}
    forms: dict[tuple, tuple[tuple[Form, ...], tuple[Form, ...]]] = {}
    for atom in times.at(time):
        definition = atoms.definitions[atom]
        if isinstance(definition, Attend):
            value = _read(_without(definition.value, offset), layout)
            forms[definition.head] = (definition.query, definition.key)
            heads.setdefault(definition.head, []).append((value, layout.row[atom], definition.scale))
    if offset:
        code = atoms.code(np.arange(atoms.n))
        forms[("offset",)] = (tuple(form * SHARPNESS for form in code), code)
        heads[("offset",)] = [(_unit(layout, -shift), layout.row[token], 1.0) for token, shift in offset.items()]
    if not heads:
        return None
    m = max(1, *(max(len(forms[head][0]), len(values)) for head, values in heads.items()))
    h, d_model = len(heads), layout.d_model
    W_Q, W_K, W_V = (np.zeros((1, h, m, d_model)) for _ in range(3))
    b_Q, W_O = np.zeros((1, h, m)), np.zeros((1, h, d_model, m))
    for number, (head, values) in enumerate(heads.items()):
        for i, (query, key) in enumerate(zip(*forms[head], strict=True)):
            query = _without(query, offset)
            W_Q[0, number, i] = _read(Form(query.terms), layout)
            b_Q[0, number, i] = nearest(query.constant)
            W_K[0, number, i] = _read(_without(key, offset), layout)
        for i, (value, target, scale) in enumerate(values):
            W_V[0, number, i] = value
            W_O[0, number, target, i] = scale
    pattern = torch.ones(atoms.n, atoms.n, dtype=torch.bool).tril()[None] if atoms.causal else None
    return Attention(*(_tensor(w) for w in (W_Q, b_Q, W_K, W_V, W_O)), pattern=pattern)


def _without(form: Form, offset: dict[int, float]) -> Form:
    """The tokens are still snapped in the first attention half: what they are too large by is subtracted here."""
    constant = form.constant
    for token, shift in offset.items():
        constant -= Fraction(shift) * form.terms.get(token, Fraction(0))
    return Form(form.terms, constant)


def _unit(layout: Layout, value: float) -> Array:
    weights = np.zeros(layout.d_model)
    weights[layout.one] = value
    return weights


def _feed_forward(atoms: Atoms, times: Schedule, layout: Layout, time: int) -> FeedForward | None:
    units: list[tuple[Form, int, Fraction]] = []  # (what is read, the row that is written, its weight)
    for atom in times.at(time):
        definition = atoms.definitions[atom]
        if not isinstance(definition, Hinge):
            continue
        target = layout.row[atom]
        units += [(form, target, c) for c, form in definition.units]
        carried = definition.carried
        if atom in layout.heir:
            carried = carried - Form({layout.heir[atom]: Fraction(1)})
        units += _identity(atoms, carried, target, Fraction(1))
    if time < times.end:
        for atom in layout.erased.get(time, []):
            units += _identity(atoms, Form({atom: Fraction(1)}), layout.row[atom], Fraction(-1))
    if not units:
        return None
    shared = {form.key: form for form, _, _ in units}
    number = {key: i for i, key in enumerate(shared)}
    W_1, b_1 = np.zeros((1, len(shared), layout.d_model)), np.zeros((1, len(shared)))
    W_2, b_2 = np.zeros((1, layout.d_model, len(shared))), np.zeros((1, layout.d_model))
    for key, form in shared.items():
        W_1[0, number[key]] = _read(Form(form.terms), layout)
        b_1[0, number[key]] = nearest(form.constant)
    total: dict[tuple[int, int], Fraction] = {}
    for form, target, weight in units:
        place = (target, number[form.key])
        total[place] = total.get(place, Fraction(0)) + weight
    for (target, unit), weight in total.items():
        W_2[0, target, unit] = nearest(weight)
    return FeedForward(_tensor(W_1), _tensor(b_1), _tensor(W_2), _tensor(b_2))


def _identity(atoms: Atoms, form: Form, target: int, weight: Fraction) -> list[tuple[Form, int, Fraction]]:
    """weight · v = weight · (ReLU(v) − ReLU(−v)), always with both units: a rounded v may have the other sign."""
    if not form.terms and not form.constant:
        return []
    return [(form, target, weight), (form * -1, target, -weight)]


def _tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))
