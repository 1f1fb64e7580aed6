"""Several programs in superposition: more values than rows of the residual stream, in directions not orthogonal.

Programs y_m(i) = B_m[x_i, x_(i−s)], m = 1, 2, 3, each a table over pairs of tokens. The values between are 32 flags for
each token, "x_i is k" and "x_(i−s) is k" for k = 1 … 16, shared by the programs; they live in 16 rows.

    block 0   feed-forward    the flags of x: triangles of ReLU, 0 or 1 at the 17 numbers; flag k is written along p_k
    block 1   attention       position i looks at i − s, reads every <p_k, z> and writes it along q_k
              feed-forward    for every pair (a, b): clip(α(<p_a + q_b, z> − low), 0, 1), then B_1, B_2, B_3 of it

**Directions.** p_1 … p_16 and q_1 … q_16 are two orthonormal bases of R^16 with <p_a, q_b> = ±1/4 for all a and b: the
rows of R and of H R/4, H Hadamard's matrix, R orthogonal with multiples of 1/4.

**Nothing is lost.** When the head reads, only p's are in the stream, and they are orthonormal. Then z = p_x + q_y (a
term is missing for the token 0). With σ = <p_a, q_b> the sum <p_a + q_b, z> is 2 + 2σ if x = a and y = b; if one of
them is right, at most 1 + 1/4 + σ, as the wrong one adds at most 1/4; and if none is, at most 1/2. So between low =
5/4 + σ ≥ 1/2 and 2 + 2σ there is a gap of 3/4 + σ ≥ 1/2, α is 1 over it, and the unit is 1 or 0: the interference of
the flags, up to 1/4 each, is gone. The error is 0. ∎

``proved`` finds the same out from the weights alone. Queries and keys read rows that nothing writes, so a head looks
at one place whatever the tokens are; then an output depends on two tokens, and all 17² pairs are tried. All numbers
are multiples of 2^-10 below 2^12, so float64 is exact, but for softmax weights below 1e-300, which are 0 there.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Array
from thereexists.suites.circuits.programs import VALUES, N, Step
from thereexists.suites.disguise import hadamard
from thereexists.suites.net import Block, Head, Hidden, Net, constant_rows, weights_of

FLAGS = VALUES - 1  # tokens 1 … 16; the token 0 has none
PROGRAMS = 3
SHARP = 1024.0  # how far the right position leads: exp(−1024) is 0


def draw(rng: np.random.Generator) -> list[list[Step]]:
    """Three tables over the token and the one ``by`` places before."""
    by, programs = int(rng.integers(1, N)), []
    for _ in range(PROGRAMS):
        table = np.zeros((VALUES, VALUES))
        table[1:, 1:] = rng.integers(0, 9, (FLAGS, FLAGS)) / 8
        programs.append([
            {"name": "v1", "op": "roll", "of": ["x"], "by": by},
            {"name": "v2", "op": "table", "of": ["x", "v1"], "table": table.tolist()},
        ])  # fmt: skip
    return programs


def directions(rng: np.random.Generator) -> tuple[Array, Array]:
    """The p and the q, rows of two (16, 16) matrices."""
    H = hadamard(FLAGS) / 4
    R = H[rng.permutation(FLAGS)] * rng.choice([-1.0, 1.0], FLAGS)
    return R, H * rng.choice([-1.0, 1.0], FLAGS) @ R


def apart() -> tuple[Array, Array]:
    """A row for every flag: what the circuit is read off."""
    return np.eye(FLAGS, 2 * FLAGS), np.eye(FLAGS, 2 * FLAGS, FLAGS)


def net_of(programs: list[list[Step]], p: Array, q: Array) -> Net:
    """Rows: x, six positions, the flags' rows, an output for each program."""
    by, rows = programs[0][0]["by"], p.shape[1]
    d = 1 + N + rows + len(programs)
    places, flags, out = np.arange(1, 1 + N), np.arange(1 + N, 1 + N + rows), np.arange(d - len(programs), d)
    W_in, E = np.zeros((1, d)), np.zeros((N, d))
    W_in[0, 0], E[np.arange(N), places] = 1.0, 1.0

    knots = np.arange(VALUES + 1)  # flag k is ReLU(16x − k + 1) − 2 ReLU(16x − k) + ReLU(16x − k − 1)
    first = Hidden(np.zeros((d, len(knots))), -knots.astype(float), np.zeros((len(knots), d)), np.zeros(d))
    first.W_1[0] = VALUES - 1.0
    for k in range(1, VALUES):
        for knot, factor in ((k - 1, 1.0), (k, -2.0), (k + 1, 1.0)):
            first.W_2[knot, flags] += factor * p[k - 1]

    head = Head(np.zeros((d, FLAGS)), np.zeros(FLAGS), np.zeros((d, FLAGS)), np.zeros(FLAGS), np.zeros((d, FLAGS)),
                np.zeros((FLAGS, d)))  # fmt: skip
    head.W_Q[places, (np.arange(N) - by) % N], head.W_K[places, np.arange(N)] = SHARP, 1.0
    head.W_V[flags], head.W_O[:, flags] = p.T, q

    a, b = np.divmod(np.arange(FLAGS * FLAGS), FLAGS)
    sigma = (p[a] * q[b]).sum(axis=1)
    wrong = np.abs(p @ q.T).max()  # what a flag that is not meant may add
    low, high = np.maximum(1 + wrong + sigma, 2 * wrong), 2 + 2 * sigma
    slope = 1 / (high - low)  # 1 or 2: no rounding
    last = Hidden(np.zeros((d, 2 * len(a))), np.concatenate([-slope * low, -slope * low - 1]),
                  np.zeros((2 * len(a), d)), np.zeros(d))  # fmt: skip
    last.W_1[flags] = np.concatenate([(p[a] + q[b]) * slope[:, None]] * 2).T
    for m, steps in enumerate(programs):
        values = np.array(steps[1]["table"])[1:, 1:][a, b]
        last.W_2[:, out[m]] = np.concatenate([values, -values])
    W_out = np.zeros((d, len(programs)))
    W_out[out, np.arange(len(programs))] = 1.0
    return Net(W_in, E, (Block((), first), Block((head,), last)), W_out)


def places_of(rows: int) -> list[dict[str, Any]]:
    """Which half block leaves which value in which row, for flags that stand apart."""
    start, half = 1 + N, rows // 2
    here = [[f"x is {k + 1}", start + k] for k in range(half)]
    before = [[f"v1 is {k + 1}", start + half + k] for k in range(half)]
    outputs = [[f"v2{ending}", start + rows + m] for m, ending in enumerate(("", " (second)", " (third)"))]
    return [
        {"block": 0, "half": "embedding", "made": [["x", 0]]},
        {"block": 1, "half": "feed-forward", "made": here},
        {"block": 2, "half": "attention", "made": before},
        {"block": 2, "half": "feed-forward", "made": outputs},
    ]


def proved(net: Net, programs: list[list[Step]]) -> dict[str, Any]:
    """All pairs of tokens, at every position, against the tables; refused unless every output is exactly right."""
    by = programs[0][0]["by"]
    _looks_back(net, by)
    pairs = np.array(list(itertools.product(range(VALUES), repeat=2)))  # (289, 2)
    p, q = _written(net)
    for i in range(N):
        tokens = np.zeros((len(pairs), N))
        tokens[:, i], tokens[:, (i - by) % N] = pairs.T
        made = net.run((tokens / (VALUES - 1))[..., None])[:, i]
        for m, steps in enumerate(programs):
            wanted = np.array(steps[1]["table"])[pairs[:, 0], pairs[:, 1]]
            if not np.array_equal(made[:, m], wanted):
                raise CannotBuild("A pair of tokens does not get the value that is in the table.")
    between = float(np.abs(p @ q.T).max())
    return {
        "values": len(p) + len(q), "rows": p.shape[1], "interference": between, "error": 0.0,
        "directions": {f"x is {k + 1}": row.tolist() for k, row in enumerate(p)}
        | {f"v1 is {k + 1}": row.tolist() for k, row in enumerate(q)},
    }  # fmt: skip


def _looks_back(net: Net, by: int) -> None:
    """Exactly one head writes, and it looks ``by`` places back whatever it sees."""
    constant, writing = (
        constant_rows(net),
        [head for block in net.blocks for head in block.softmax_heads if head.W_O.any()],
    )
    if len(writing) != 1 or any((W[~constant]).any() for head in writing for W in (head.W_Q, head.W_K)):
        raise CannotBuild("One head must write, and its queries and keys must read positions only.")
    if not np.array_equal(weights_of(writing[0], np.where(constant, net.E, 0.0)), np.roll(np.eye(N), by, axis=0)):
        raise CannotBuild(f"The head does not look {by} places back.")


def _written(net: Net) -> tuple[Array, Array]:
    """The directions, from the weights: what a flag of x adds to the stream, and what the head makes of it."""
    tokens = np.repeat(np.arange(VALUES)[:, None], N, axis=1)
    Z = (tokens / (VALUES - 1))[..., None] @ net.W_in + net.E
    first, (head,) = net.blocks[0].hidden, net.blocks[1].softmax_heads
    if first is None:
        raise CannotBuild("Nothing makes the flags.")
    made = np.maximum(Z @ first.W_1 + first.b_1, 0.0) @ first.W_2 + first.b_2
    p = made[1:, 0] - made[:1, 0]
    flags = slice(1 + N, 1 + N + FLAGS)
    return p[:, flags], (p @ head.W_V @ head.W_O)[:, flags]
