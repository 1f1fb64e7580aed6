"""Networks on tokens (beyond the papers): tables by slots or by counts, data sets by random codes. At most four blocks.

**Slots** (``slot_network``): a table V^n → V^n. The embedding holds the bits of a token; *slots* (FF) copies them to
the position's own rows, ReLU(position + bit − 1); *gather* (attention and FF) and *recall* (FF) are those of
``compact.py``: three blocks.

**Counts** (``count_network``): a table whose output depends on the multiset of tokens and on the position. The
embedding holds [token ≥ m]; *gather* counts, *recall* answers: two blocks.

**Codes** (``code_network``): a data set of N pairs. Token t has a random sign vector, and so has position k; their
product is the code of (t, k). One half is added at the first position, so that a sum of codes is never 0.

    codes    FF         |t + k| − 1 = t·k for signs t, k
    sums     attention  the mean over the real tokens; its signs are the key of the sequence
             FF         literals ReLU(±S·mean), S = 4n, at least 1 or exactly 0, into the rows of the codes and of the
                        means, which are cleared in the same step (x − x = 0 exactly)
    recall   FF         one unit for every pair; it writes the digits of all n output tokens
    select   FF         ReLU(v_j + base·position_j − base): the own position's digits

Keys must be *checked* distinct: two sequences whose sums have the same signs cannot be told apart. The caller draws
again, with more signs, until they are.
"""

from __future__ import annotations

import numpy as np
import torch

from thereexists.constructions.compact.keyed_memory import Cubes, wrong_literals
from thereexists.constructions.compact.rows import Layer, Rows, uniform_attention
from thereexists.functions.target import Array
from thereexists.model import EmbeddedTransformer, Stage


def slot_network(n: int, bits: int, V: int, cubes: list[Cubes], values: list[Array], default: Array):
    """``cubes[j]`` over the n·bits slots for position j, storing the digits ``values[j]`` (labels, digits)."""
    g = default.shape[1]
    rows = Rows(token=bits, position=n, slots=n * bits, literals=2 * n * bits, out=g)
    copy = Layer(n * bits, rows.d_model)
    unit, i, l = np.arange(n * bits), np.repeat(np.arange(n), bits), np.tile(np.arange(bits), n)
    copy.W_1[unit, rows["position"][i]] = copy.W_1[unit, rows["token"][l]] = 1.0
    copy.b_1[:], copy.W_2[unit, rows["slots"]] = -1.0, 1.0
    literals = _literals(rows["slots"], np.full(n * bits, 4.0), np.full(n * bits, -1.5), rows)
    stages = {
        **copy.stages("slots", None),
        **literals.stages("gather", None, uniform_attention(rows["slots"], rows["slots"], float(n), rows.d_model)),
        **_recall(rows, cubes, values, default).stages("recall", None),
    }
    embedding = torch.zeros(V + 1, rows.d_model, dtype=torch.float64)
    embedding[1:, rows["token"]] = torch.from_numpy((np.arange(V)[:, None] >> np.arange(bits) & 1).astype(float))
    return _network(stages, rows, embedding, n, default)


def count_network(n: int, V: int, cubes: list[Cubes], values: list[Array], default: Array):
    """``cubes[j]`` over the statements "at least i tokens are ≥ m", m one of the ``levels``, for position j."""
    m = levels(V)
    L = len(m)
    rows = Rows(token=L, position=n, counts=L, literals=2 * L * n, out=default.shape[1])
    at = np.repeat(rows["counts"], n)
    threshold = np.tile(np.arange(1, n + 1), L)
    literals = _literals(at, np.full(len(at), 2.0), 1.5 - 2.0 * threshold, rows)
    stages = {
        **literals.stages("gather", None, uniform_attention(rows["token"], rows["counts"], float(n), rows.d_model)),
        **_recall(rows, cubes, values, default).stages("recall", None),
    }
    embedding = torch.zeros(V + 1, rows.d_model, dtype=torch.float64)
    embedding[1:, rows["token"]] = torch.from_numpy((np.arange(V)[:, None] >= m).astype(float))
    return _network(stages, rows, embedding, n, default)


def levels(V: int) -> Array:
    """The levels m at which V tokens 0 … V−1 are counted: 1 … V−1. A single token is counted at 0, n of it in every
    input: no array of the network is empty, and the count is one that the verifier knows."""
    return np.arange(1, V) if V > 1 else np.zeros(1, dtype=int)


def code_network(
    token_signs: Array, position_signs: Array, keys: Array, digits: Array, base: int
) -> EmbeddedTransformer:
    """``token_signs`` (V, D), ``position_signs`` (n, D), ``keys`` (N, D) of 0/1, ``digits`` (N, n, g); float32."""
    (V, D), n, g = token_signs.shape, len(position_signs), digits.shape[2]
    rows = Rows(code=D, mean=D, value=n * g, position=n, out=g)
    code, mean, i = rows["code"], rows["mean"], np.arange(D)

    product = Layer(D + 1, rows.d_model)  # z + 2 ReLU(−z) − 1 = |z| − 1, in place
    product.W_1[i, code], product.W_2[i, code], product.b_2[code] = -1.0, 2.0, -1.0
    product.W_1[D, rows["position"][0]], product.W_2[D, code] = 1.0, 0.5

    S = 4.0 * n
    signs = Layer(6 * D, rows.d_model)
    for block, (row, slope, write, factor) in enumerate(
        (
            (mean, S, code, 1.0), (mean, -S, mean, 1.0),  # the literals r⁺ and r⁻
            (code, 1.0, code, -1.0), (code, -1.0, code, 1.0), (mean, 1.0, mean, -1.0), (mean, -1.0, mean, 1.0),
        )
    ):  # fmt: skip
        signs.W_1[block * D + i, row], signs.W_2[block * D + i, write] = slope, factor

    select = Layer(n * g, rows.d_model)
    unit = np.arange(n * g)
    select.W_1[unit, rows["value"]] = 1.0
    select.W_1[unit, rows["position"][unit // g]], select.b_1[:] = float(base), -float(base)
    select.W_2[unit, rows["out"][unit % g]] = 1.0

    stages = {
        **product.stages("codes", None),
        **signs.stages("sums", None, uniform_attention(code, mean, 1.0, rows.d_model)),
        "recall": _wide_recall(rows, keys, digits),
        **select.stages("select", None),
    }
    embedding = torch.zeros(V + 1, rows.d_model)
    embedding[1:, :D] = torch.from_numpy(token_signs.astype(np.float32))
    E = torch.zeros(n, rows.d_model)
    E[:, :D] = torch.from_numpy(position_signs.astype(np.float32))
    E[torch.arange(n), rows["position"]] = 1.0
    network = EmbeddedTransformer(stages, _read_out(rows), embedding=embedding, E=E)
    return network.float()


def sequence_keys(token_signs: Array, position_signs: Array, inputs: Array) -> Array:
    """The signs of Σ t·k + 1/2 over the real tokens of every input (N, n) of numbers (0 pads): 0/1 (N, D)."""
    table = np.concatenate([np.zeros((1, token_signs.shape[1]), dtype=np.int8), token_signs])
    total = np.zeros((len(inputs), token_signs.shape[1]), dtype=np.int16)
    for k, signs in enumerate(position_signs):
        total += table[inputs[:, k]] * signs
    return (total >= 0).astype(np.int8)


def _literals(row: Array, slope: Array, bias: Array, rows: Rows) -> Layer:
    """Mirrored units ReLU(slope·s + bias) and ReLU(1 − slope·s − bias), one literal row each."""
    D = len(row)
    layer, unit = Layer(2 * D, rows.d_model), np.arange(D)
    layer.W_1[unit, row], layer.b_1[unit] = slope, bias
    layer.W_1[D + unit, row], layer.b_1[D + unit] = -slope, 1.0 - bias
    layer.W_2[np.arange(2 * D), rows["literals"]] = 1.0
    return layer


def _recall(rows: Rows, cubes: list[Cubes], values: list[Array], default: Array) -> Layer:
    layer = Layer(max(sum(map(len, cubes)), 1), rows.d_model)  # an idle unit where every answer is the default
    start = 0
    for position, (group, table) in enumerate(zip(cubes, values, strict=True)):
        unit = np.arange(start, start + len(group))
        layer.W_1[unit[:, None], rows["literals"]] = wrong_literals(group)
        layer.W_1[unit, rows["position"][position]] = 1.0
        layer.W_2[unit[:, None], rows["out"]] = table[group.labels] - default[position]
        start += len(group)
    return layer


def _wide_recall(rows: Rows, keys: Array, digits: Array) -> Stage:
    """One unit for every pair, in float32: the matrices are large."""
    from thereexists.model import FeedForward

    N = len(keys)
    W_1, W_2 = torch.zeros(1, N, rows.d_model), torch.zeros(1, rows.d_model, N)
    bits = torch.from_numpy(keys.astype(np.float32))
    D = bits.shape[1]
    W_1[0, :, :D], W_1[0, :, D : 2 * D] = bits - 1, -bits  # a 0 contradicts r⁺ (in the code rows), a 1 contradicts r⁻
    W_2[0, rows["value"]] = torch.from_numpy(digits.reshape(N, -1).T.astype(np.float32))
    return Stage(feed_forward=FeedForward(W_1, torch.ones(1, N), W_2, torch.zeros(1, rows.d_model)))


def _network(
    stages: dict[str, Stage], rows: Rows, embedding: torch.Tensor, n: int, default: Array
) -> EmbeddedTransformer:
    E = torch.zeros(n, rows.d_model, dtype=torch.float64)
    E[torch.arange(n), rows["position"]] = 1.0
    E[:, rows["out"]] = torch.from_numpy(default.astype(np.float64))
    return EmbeddedTransformer(stages, _read_out(rows).double(), embedding=embedding, E=E)


def _read_out(rows: Rows) -> torch.Tensor:
    W_out = torch.zeros(len(rows["out"]), rows.d_model)
    W_out[torch.arange(len(rows["out"])), rows["out"]] = 1.0
    return W_out
