"""Random programs of chosen depth that do something, as plain data: steps, each an operation on earlier values.

    {"name": "v3", "op": "maximum", "of": ["v1", "v2"]}

An operation says of which types its arguments are (a *number*, or a *flag* in [0, 1]), what it makes, how it is written
in the language of programs and in NumPy, and how it is drawn. A draw is kept if every step is needed for the output, no
value leaves [−2, 2] or is computed twice, and the output is not nearly constant. ``GALLERY`` has programs that people
know; two of them are one look-up with a sharp and with a soft softmax: through the first, gradients see nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.functions.target import Array

Step = dict[str, Any]
N = 6  # tokens
VALUES = 17  # a token is one of 0, 1/16, …, 1
INPUTS = 64  # of the data of a model
MORE = 4096  # to cut an edge on that does nothing on those
MOST = 2.0
KEYS = 3 * np.arange(N) / 16  # of a look-up: 0, 3/16, …, 15/16
SHARP, SOFT = 2048.0, 16.0  # a softmax that is one-hot nearly everywhere, and one with gradients


@dataclass(frozen=True)
class Operation:
    takes: str  # the types of its arguments: n for a number, f for a flag, any of both: a
    gives: str
    settings: Callable[[np.random.Generator], dict[str, Any]]
    value: Callable[..., Any]  # (P, arguments, settings)
    array: Callable[..., Array]  # on arrays (batch, n, 1)
    text: str  # NumPy, on one array (n, 1)


def _none(rng: np.random.Generator) -> dict[str, Any]:
    return {}


def _sharpness(rng: np.random.Generator) -> dict[str, Any]:
    return {"sharpness": float(rng.choice([SOFT, SHARP]))}


def _found(a: Array, b: Array, sharpness: float) -> Array:
    """Σ_j softmax_j(−sharpness·(a_i − key_j)²)·b_j."""
    logits = -sharpness * (a - KEYS) ** 2
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ b


def _threshold(rng: np.random.Generator) -> dict[str, Any]:
    return {"c": int(rng.integers(2, 15)) / 16}


OPERATIONS: dict[str, Operation] = {
    "roll": Operation(
        "a", "same", lambda rng: {"by": int(rng.integers(1, N))},
        lambda P, a, by: P.roll(a, by), lambda a, by: np.roll(a, by, axis=1), "np.roll({0}, {by}, axis=0)"),
    "flip": Operation("a", "same", _none, lambda P, a: P.flip(a), lambda a: a[:, ::-1], "{0}[::-1]"),
    "mean": Operation(
        "a", "n", _none, lambda P, a: P.mean(a),
        lambda a: np.broadcast_to(a.mean(axis=1, keepdims=True), a.shape), "np.full_like({0}, {0}.mean())"),
    "largest": Operation(
        "a", "same", _none, lambda P, a: P.max(a),
        lambda a: np.broadcast_to(a.max(axis=1, keepdims=True), a.shape), "np.full_like({0}, {0}.max())"),
    "cummax": Operation(
        "a", "same", _none, lambda P, a: P.cummax(a), lambda a: np.maximum.accumulate(a, axis=1),
        "np.maximum.accumulate({0}, axis=0)"),
    "sort": Operation("a", "same", _none, lambda P, a: P.sort(a), lambda a: np.sort(a, axis=1), "np.sort({0}, axis=0)"),
    "relu": Operation(
        "n", "n", _threshold, lambda P, a, c: P.relu(a - c), lambda a, c: np.maximum(a - c, 0.0),
        "np.maximum({0} - {c}, 0.0)"),
    "abs": Operation(
        "n", "n", _threshold, lambda P, a, c: P.abs(a - c), lambda a, c: np.abs(a - c), "np.abs({0} - {c})"),
    "above": Operation(
        "n", "f", _threshold, lambda P, a, c: P.greater(a, c, margin=0.125),
        lambda a, c: np.clip((a - c) / 0.125, 0.0, 1.0), "np.clip(({0} - {c}) / 0.125, 0.0, 1.0)"),
    "greater": Operation(
        "nn", "f", _none, lambda P, a, b: P.greater(a, b, margin=0.125),
        lambda a, b: np.clip((a - b) / 0.125, 0.0, 1.0), "np.clip(({0} - {1}) / 0.125, 0.0, 1.0)"),
    "maximum": Operation(
        "nn", "n", _none, lambda P, a, b: P.maximum(a, b), np.maximum, "np.maximum({0}, {1})"),
    "minimum": Operation(
        "nn", "n", _none, lambda P, a, b: P.minimum(a, b), np.minimum, "np.minimum({0}, {1})"),
    "both": Operation("ff", "f", _none, lambda P, a, b: P.minimum(a, b), np.minimum, "np.minimum({0}, {1})"),
    "not": Operation("f", "f", _none, lambda P, a: 1.0 - P.relu(a), lambda a: 1.0 - a, "1.0 - {0}"),
    "blend": Operation(
        "aa", "n", lambda rng: {"p": int(rng.integers(1, 4)) / 4},
        lambda P, a, b, p: p * a + (1 - p) * b, lambda a, b, p: p * a + (1 - p) * b, "{p} * {0} + (1 - {p}) * {1}"),
    "lookup": Operation(
        "na", "n", _sharpness, lambda P, a, b, sharpness: P.lookup(a, KEYS[:, None], b, sharpness=sharpness), _found,
        "lookup({0}, {1}, {sharpness})"),
    "difference": Operation("aa", "n", _none, lambda P, a, b: a - b, lambda a, b: a - b, "{0} - {1}"),
}  # fmt: skip


def _looked_up(a: Array, b: Array, table: list[list[float]]) -> Array:
    """table[16a, 16b]."""
    i, j = (np.rint((VALUES - 1) * array).astype(int) for array in (a, b))
    return np.array(table)[i, j]


STORED = {  # never drawn into a random program: see ``superposed.py``
    "table": Operation(
        "nn", "n", _none, lambda P, a, b, table: NotImplemented, _looked_up,
        "np.array({table})[np.rint(16 * {0}).astype(int), np.rint(16 * {1}).astype(int)]"),
}  # fmt: skip
KNOWN = OPERATIONS | STORED


def _steps(*lines: tuple[Any, ...]) -> list[Step]:
    return [{"name": name, "op": op, "of": list(of), **more} for name, op, of, more in lines]


GALLERY: dict[str, list[Step]] = {
    "reverse": _steps(("v1", "flip", ["x"], {})),
    "sort": _steps(("v1", "sort", ["x"], {})),
    "cumulative_maximum": _steps(("v1", "cummax", ["x"], {})),
    "range": _steps(("v1", "largest", ["x"], {}), ("v2", "not", ["v1"], {}), ("v3", "mean", ["v2"], {})),
    "how_many_are_above": _steps(("v1", "above", ["x"], {"c": 0.5}), ("v2", "mean", ["v1"], {})),
    "greater_than_before": _steps(("v1", "roll", ["x"], {"by": 1}), ("v2", "greater", ["x", "v1"], {})),
    "peaks": _steps(
        ("v1", "roll", ["x"], {"by": 1}), ("v2", "roll", ["x"], {"by": 5}), ("v3", "greater", ["x", "v1"], {}),
        ("v4", "greater", ["x", "v2"], {}), ("v5", "both", ["v3", "v4"], {})),
    "distance_to_mean": _steps(
        ("v1", "mean", ["x"], {}), ("v2", "difference", ["x", "v1"], {}), ("v3", "abs", ["v2"], {"c": 0.0})),
    "look_up_sharp": _steps(("v1", "flip", ["x"], {}), ("v2", "lookup", ["x", "v1"], {"sharpness": SHARP})),
    "look_up_soft": _steps(("v1", "flip", ["x"], {}), ("v2", "lookup", ["x", "v1"], {"sharpness": SOFT})),
    "smooth": _steps(("v1", "roll", ["x"], {"by": 1}), ("v2", "blend", ["x", "v1"], {"p": 0.5})),
    "median_of_three": _steps(
        ("v1", "roll", ["x"], {"by": 1}), ("v2", "roll", ["x"], {"by": 5}), ("v3", "minimum", ["v1", "v2"], {}),
        ("v4", "maximum", ["v1", "v2"], {}), ("v5", "minimum", ["x", "v4"], {}), ("v6", "maximum", ["v3", "v5"], {})),
}  # fmt: skip


def random_program(rng: np.random.Generator, steps: int) -> list[Step]:
    """A program of so many steps, each of which the last one needs, and which does something."""
    while True:
        found = _drawn(rng, steps)
        arrays = values_of(found, sample(rng, 64))
        output = arrays[found[-1]["name"]]
        within = all(np.abs(array).max() <= MOST for array in arrays.values())
        alive = [array.std(axis=0).mean() > 0.02 for array in arrays.values()]
        new = len({array.tobytes() for array in arrays.values()}) == len(arrays)  # nothing is computed twice
        if within and new and all(alive) and len(np.unique(output)) > 8 and needed(found) == len(found):
            return found


def _drawn(rng: np.random.Generator, steps: int) -> list[Step]:
    types, found = {"x": "n"}, []
    names = list(OPERATIONS)
    while len(found) < steps:
        op = str(rng.choice(names))
        operation = OPERATIONS[op]
        of = []
        for wanted in operation.takes:
            fitting = [name for name, kind in types.items() if wanted in (kind, "a")]
            of.append(str(rng.choice(fitting[-3:])) if fitting else "")
        if "" in of or len(set(of)) != len(of):
            continue
        name = f"v{len(found) + 1}"
        found.append({"name": name, "op": op, "of": of, **operation.settings(rng)})
        types[name] = types[of[0]] if operation.gives == "same" else operation.gives
    return found


def needed(steps: list[Step]) -> int:
    """How many steps the last one needs, itself included."""
    wanted = {steps[-1]["name"]}
    for step in reversed(steps):
        wanted |= set(step["of"]) if step["name"] in wanted else set()
    return sum(step["name"] in wanted for step in steps)


def sample(rng: np.random.Generator, count: int) -> Array:
    """Random tokens (count, N), numbers of a vocabulary of 17."""
    return rng.integers(0, VALUES, (count, N))


def inputs(tokens: Array) -> Array:
    """What tokens stand for: (batch, n, 1)."""
    return (tokens / (VALUES - 1))[..., None]


def settings_of(step: Step) -> dict[str, Any]:
    return {key: value for key, value in step.items() if key not in ("name", "op", "of")}


def values_of(steps: list[Step], tokens: Array) -> dict[str, Array]:
    """Every value of the program on tokens (batch, n), in NumPy: (batch, n, 1) each."""
    found = {"x": inputs(tokens)}
    for step in steps:
        arguments = [found[name] for name in step["of"]]
        found[step["name"]] = np.asarray(KNOWN[step["op"]].array(*arguments, **settings_of(step)), dtype=float)
    return found


def program_of(steps: list[Step]) -> Any:
    """The program in the compiler's language."""
    from thereexists import program as P

    found = {"x": P.tokens(N)}
    for step in steps:
        arguments = [found[name] for name in step["of"]]
        found[step["name"]] = OPERATIONS[step["op"]].value(P, *arguments, **settings_of(step))
    return found[steps[-1]["name"]]


def numpy_text(steps: list[Step]) -> str:
    """A NumPy file of its own: ``program(x)`` for one sequence of tokens, with all values."""
    lines = ["import numpy as np", "", "", "def program(tokens):", '    """All values, for n numbers from 0 to 16."""']
    lines = [*lines[:2], *LOOKUP, *lines[2:]] if any(step["op"] == "lookup" for step in steps) else lines
    lines += [f"    x = np.asarray(tokens, dtype=float)[:, None] / {VALUES - 1}"]
    for step in steps:
        right = KNOWN[step["op"]].text.format(*step["of"], **settings_of(step))
        lines.append(f"    {step['name']} = {right}")
    names = ["x", *(step["name"] for step in steps)]
    lines.append(f"    return {{{', '.join(f'{chr(34)}{name}{chr(34)}: {name}' for name in names)}}}")
    return "\n".join(lines) + "\n"


LOOKUP = f"""
def lookup(a, b, sharpness):
    keys = np.array({KEYS.tolist()})
    logits = -sharpness * (a - keys) ** 2
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True) @ b
""".splitlines()


def plain_text(steps: list[Step]) -> str:
    """One line a step."""
    lines = []
    for step in steps:
        more = "".join(f", {key}={value}" for key, value in settings_of(step).items())
        lines.append(f"{step['name']} = {step['op']}({', '.join(step['of'])}{more})")
    return "\n".join(lines) + "\n"
