"""Records of parts as a stranger's file may hold them: numbers of every size, sign and kind, in every place."""

import random
from typing import Any

BIG = (31, 32, 40, 53, 62, 63, 64, 200)
KINDS = {"Band": 2, "BlockBand": 4, "Residue": 1, "Xor": 1, "Offsets": 1, "Rect": 2, "Explicit": 2}
ODD: list[Any] = [
    None,
    True,
    False,
    0.5,
    2.0,
    "3",
    "",
    [],
    {},
    [[0]],
    [1, "x"],
    {"range": [0, 4]},
    float("nan"),
    10**5000,
]


def numbers(n: int) -> list[int]:
    near = [0, 1, 2, 3, n - 1, n, n + 1, 2 * n]
    far = [(1 << b) + d for b in BIG for d in (-1, 0, 1)]
    return [sign * x for x in (*near, *far) for sign in (1, -1)]


def one(draw: random.Random, n: int) -> Any:
    """A number, mostly; sometimes something else."""
    return (
        draw.choice(ODD)
        if draw.random() < 0.03
        else draw.choice(numbers(n)[:16] if draw.random() < 0.5 else numbers(n))
    )


def tokens(draw: random.Random, n: int) -> Any:
    kind = draw.random()
    if kind < 0.4:
        return {"range": draw.choice([[0, n, 1], [1, n, 2], [n, 0, 1], [one(draw, n) for _ in range(3)]])}
    if kind < 0.8:
        return sorted(draw.sample(range(n), draw.randint(0, n)))
    return [one(draw, n) for _ in range(draw.randint(0, 3))]


def rows(draw: random.Random, n: int) -> tuple[Any, Any]:
    """Listed rows, right or with one number changed; some have no entries at all."""
    counts = [min(draw.choice((0, 0, 1, 2)), n) for _ in range(n)] if draw.random() < 0.8 else [0] * n
    starts = [sum(counts[:k]) for k in range(n + 1)]
    columns: list[Any] = [j for c in counts for j in sorted(draw.sample(range(n), c))]
    for values in (starts, columns):
        if values and draw.random() < 0.3:
            values[draw.randrange(len(values))] = one(draw, n)
    return starts, columns


def part(draw: random.Random, n: int) -> list[Any]:
    kind = draw.choice(list(KINDS))
    if kind == "Rect":
        return [kind, tokens(draw, n), tokens(draw, n)]
    if kind == "Explicit":
        return [kind, *rows(draw, n)]
    if kind == "Offsets":
        some = [one(draw, n) for _ in range(draw.randint(0, 4))]
        return [kind, sorted(some) if all(type(x) is int for x in some) else some]
    return [kind, *(one(draw, n) for _ in range(KINDS[kind]))]


def record(parts: list[Any], n: int, causal: bool) -> dict[str, Any]:
    steps = [{"causal": causal, "parts": parts}]
    return {"format": 1, "name": "x", "n": n, "heads": None, "layers": None, "steps": steps}
