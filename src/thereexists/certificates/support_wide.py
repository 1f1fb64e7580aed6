"""Does a compact network vanish outside a box? What ``support.py`` proves of deep ones, for blocks over scratch rows.

Claim: its output is 0 for every X with an entry of a token at or below ``low``, or at or above ``high``. Read off the
weights in five steps, the rows and literals being those of the mass lemma (``mass.py``):

1. *Outputs* start at 0 and are written by memory units alone: ReLU(gate − Σ literals), gate ≤ 1, literals ≥ 0. There is
   a literal λ that all of them subtract: where λ ≥ 1, every one of them is 0, and so is the output.
2. λ = ReLU(a·s + b) with a > 0 and a + b ≥ 1: at least 1 where the row s is.
3. The one attention has zero logits and adds κ·(mean of the row r) to s, κ ≥ n; r and s start at 0 and are written with
   factors ≥ 0. So s is at least what r is at any one token.
4. r is at least 1 at a token with an entry outside: for every feature and each side a unit ReLU(c − w·ρ), c ≥ 1, w > 0,
   writes it with a factor ≥ 1 before the attention, ρ being a literal of that feature alone,
5. and ρ = ReLU(a·x + b) is 0 from the end of the box on: a > 0 and a·low + b ≤ 0, or a < 0 and a·high + b ≤ 0. ∎
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NoReturn

import numpy as np

from thereexists.certificates.mass import Flow, Memory
from thereexists.model import EmbeddedTransformer

Array = np.ndarray


def prove_wide(network: EmbeddedTransformer, low: Array, high: Array, n: int, no: Callable[[str], NoReturn]) -> None:
    """Ends in ``no(reason)`` if the weights do not prove it."""
    W_out = network.W_out.detach().numpy()
    layers = [stage.feed_forward for stage in network.stages.values() if stage.feed_forward is not None]
    if network.W_in is None or any(layer.phi is not None for layer in layers):
        no("it is not a network on features")
    if (np.count_nonzero(W_out, axis=1) != 1).any() or not np.isin(W_out, (0.0, 1.0)).all():
        no("the read-out is not one row for each output")
    flow, out = Flow.of(network), W_out.argmax(axis=1)
    common = _subtracted_by_all(flow, out, no)
    if common is None:
        return  # nothing writes an output, and all start at 0
    reasons = ["no literal closes all units that write an output"]
    for literal in common:
        reason = _closes(flow, network, literal, low, high, n)
        if reason is None:
            return
        reasons.append(reason)
    no(reasons[-1])


def _subtracted_by_all(flow: Flow, out: Array, no: Callable[[str], NoReturn]) -> list[int] | None:
    """Step 1: the literals that every unit subtracts that writes an output; None if there are no such units."""
    if flow.constants[:, out].any() or any(bias[out].any() for bias in flow.biases):
        no("an output starts at another number than 0, and keeps it outside the box")
    if flow.attended[out].any() or flow.from_input[out].any():
        no("an output row is written by the attention or the embedding")
    memory = Memory.reading(flow, out)
    if memory is None or (memory.gate > 1).any():
        no("the units that write outputs are not a memory")
    W_1 = flow.W_1[flow.W_2[:, out].any(axis=1)]
    if not len(W_1):
        return None
    return [row for row in flow.literals() if (W_1[:, row] == -1.0).all()]


def _closes(flow: Flow, network: EmbeddedTransformer, literal: int, low: Array, high: Array, n: int) -> str | None:
    """Steps 2 to 5 for one literal: None if it is at least 1 whenever an entry is outside, or else why not."""
    unit = flow.literals()[literal]
    s = _only_row(flow, unit)
    if s is None or flow.W_1[unit, s] <= 0 or Fraction(flow.W_1[unit, s]) + Fraction(flow.b_1[unit]) < 1:
        return "the literal that closes the memory is not at least 1 where its sum is"
    summed = _summed_row(network, flow, s, n)
    if summed is None:
        return "the literal that closes the memory does not read a sum over all tokens"
    layer, r = summed
    if flow.stage[unit] < layer or any(not _grows(flow, row) for row in (r, s)):
        return "the sum over all tokens may lose what it was given"
    written, writers = flow.literals(), np.flatnonzero(flow.W_2[:, r] >= 1).tolist()
    for feature, (bottom, top) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        x = _input_row(network, flow, feature)
        for end, sign in ((bottom, 1), (top, -1)):
            found = (_tells(flow, who, layer, x, (end, sign), written) for who in writers)
            if x is None or not any(found):
                return f"no unit notices that feature {feature} is {'below' if sign > 0 else 'above'} the box"
    return None


def _only_row(flow: Flow, unit: int) -> int | None:
    """The one row that a unit reads."""
    rows = np.flatnonzero(flow.W_1[unit])
    return int(rows[0]) if len(rows) == 1 else None


def _summed_row(network: EmbeddedTransformer, flow: Flow, s: int, n: int) -> tuple[int, int] | None:
    """Step 3: the layer of the one attention, and the row r whose mean it adds to s, at least n times."""
    at = [i for i, rows in enumerate(flow.attends) if rows.any()]
    attentions = [stage.attention for stage in network.stages.values() if stage.attention is not None]
    if len(at) != 1 or len(attentions) != 1 or attentions[0].pattern is not None or len(attentions[0].W_Q) != 1:
        return None
    W_Q, b_Q, W_K, W_V, W_O = (w.detach().numpy()[0] for w in attentions[0].parameters_list())
    if W_K.any() and (W_Q.any() or b_Q.any()):
        return None
    through = [(h, m) for h, m in np.argwhere(W_O[:, s]).tolist()]  # head and entry of it that s receives
    if len(through) != 1:
        return None
    h, m = through[0]
    rows = np.flatnonzero(W_V[h, m])
    if len(rows) != 1 or Fraction(float(W_O[h, s, m])) * Fraction(float(W_V[h, m, rows[0]])) < n:
        return None
    return at[0], int(rows[0])


def _grows(flow: Flow, row: int) -> bool:
    """A row that starts at 0 or more and to which nothing below 0 is ever added."""
    starts = (flow.constants[:, row] >= 0).all() and not flow.from_input[row]
    return bool(starts and (flow.W_2[:, row] >= 0).all() and all(bias[row] >= 0 for bias in flow.biases))


def _input_row(network: EmbeddedTransformer, flow: Flow, feature: int) -> int | None:
    """A row that holds this feature, and nothing else, always."""
    W_in = network.W_in.detach().numpy()  # pyright: ignore[reportOptionalMemberAccess]
    alone = (W_in[:, feature] == 1.0) & (np.count_nonzero(W_in, axis=1) == 1)
    kept = ~flow.W_2.any(axis=0) & ~flow.attended & ~flow.constants.any(axis=0)
    kept &= ~np.any([bias != 0 for bias in flow.biases], axis=0)
    rows = np.flatnonzero(alone & kept)
    return int(rows[0]) if len(rows) else None


def _tells(flow: Flow, unit: int, layer: int, x: int | None, side: tuple[float, int], written: dict[int, int]) -> bool:
    """Steps 4 and 5: whether a unit is at least 1 before the attention wherever x is beyond this end of the box."""
    end, sign = side
    row = _only_row(flow, unit)
    if row is None or row not in written or flow.stage[unit] >= layer or flow.b_1[unit] < 1 or flow.W_1[unit, row] >= 0:
        return False
    edge = written[row]
    if _only_row(flow, edge) != x or x is None or flow.stage[edge] >= flow.stage[unit]:
        return False
    a = Fraction(flow.W_1[edge, x])
    return a * sign > 0 and a * Fraction(end) + Fraction(flow.b_1[edge]) <= 0
