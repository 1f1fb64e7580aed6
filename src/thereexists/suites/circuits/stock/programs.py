"""Random causal programs over letters that do something, as plain data; and some that people know.

    {"name": "v2", "op": "before", "of": ["v1"], "by": 1, "fill": 0}

A value is a *letter* (0, 1, 2: a, b, c) or a *flag* (0, 1) at every token. An operation says which of them it takes and
gives, how it is written in the language of programs and in NumPy, and how it is drawn. All strings are tried: a draw is
kept if no value is constant or another one's, the answer is not mostly one letter and no function of the last letter
alone, and turning any one value into another changes the answer of some string.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from thereexists.functions.target import Array
from thereexists.suites.circuits.programs import Step, needed, settings_of

N = 6  # letters
LETTERS = "abc"
FLAGS = "ny"
MOSTLY = 0.8


@dataclass(frozen=True)
class Operation:
    takes: str  # l for a letter, f for a flag
    gives: str
    settings: Callable[[np.random.Generator], dict[str, Any]]
    value: Callable[..., Any]  # (P, arguments, settings)
    array: Callable[..., Array]  # on arrays (strings, n) of whole numbers
    text: str  # NumPy, on one array (n,)


def _none(rng: np.random.Generator) -> dict[str, Any]:
    return {}


def _letter(rng: np.random.Generator) -> int:
    return int(rng.integers(len(LETTERS)))


def before(a: Array, by: int, fill: int = 0) -> Array:
    return np.concatenate([np.full_like(a[:, :by], fill), a[:, :-by]], axis=1)


def find(query: Array, keys: Array, values: Array, default: int) -> Array:
    """The value at the last token up to here whose key is the query here."""
    n = query.shape[1]
    same = np.tril(query[:, :, None] == keys[:, None, :])
    last = n - 1 - same[:, :, ::-1].argmax(axis=2)
    return np.where(same.any(axis=2), np.take_along_axis(values, last, axis=1), default)


OPERATIONS: dict[str, Operation] = {
    "before": Operation(
        "l", "l", lambda rng: {"by": int(rng.integers(1, 4)), "fill": _letter(rng)},
        lambda P, a, by, fill: a.delay(by, fill=LETTERS[fill]), before,
        "np.concatenate([np.full({by}, {fill}), {0}[:-{by}]])"),
    "earlier": Operation(
        "f", "f", lambda rng: {"by": int(rng.integers(1, 4))}, lambda P, a, by: P.delay(a, by), before,
        "np.concatenate([np.full({by}, 0), {0}[:-{by}]])"),
    "first": Operation(
        "l", "l", _none, lambda P, a: a.take([0] * N), lambda a: np.repeat(a[:, :1], a.shape[1], axis=1),
        "np.full_like({0}, {0}[0])"),
    "recode": Operation(
        "l", "l", lambda rng: {"table": [_letter(rng) for _ in LETTERS]},
        lambda P, a, table: P.recode(a, {LETTERS[k]: LETTERS[to] for k, to in enumerate(table)}, alphabet=LETTERS),
        lambda a, table: np.array(table)[a], "np.array({table})[{0}]"),
    "is_one_of": Operation(
        "l", "f", lambda rng: {"some": sorted(rng.choice(3, int(rng.integers(1, 3)), replace=False).tolist())},
        lambda P, a, some: P.isin(a, [LETTERS[k] for k in some]), lambda a, some: np.isin(a, some).astype(int),
        "np.isin({0}, {some}).astype(int)"),
    "same": Operation(
        "ll", "f", _none, lambda P, a, b: P.same(a, b), lambda a, b: (a == b).astype(int), "({0} == {1}).astype(int)"),
    "choose": Operation(
        "fll", "l", _none, lambda P, f, a, b: P.choose(f, a, b), lambda f, a, b: np.where(f == 1, a, b),
        "np.where({0} == 1, {1}, {2})"),
    "both": Operation("ff", "f", _none, lambda P, a, b: P.minimum(a, b), np.minimum, "np.minimum({0}, {1})"),
    "either": Operation("ff", "f", _none, lambda P, a, b: P.maximum(a, b), np.maximum, "np.maximum({0}, {1})"),
    "differ": Operation("ff", "f", _none, lambda P, a, b: P.abs(a - b), np.bitwise_xor, "{0} ^ {1}"),
    "not": Operation("f", "f", _none, lambda P, a: 1.0 - a, lambda a: 1 - a, "1 - {0}"),
    "ever": Operation(
        "f", "f", _none, lambda P, a: P.cummax(a), lambda a: np.maximum.accumulate(a, axis=1),
        "np.maximum.accumulate({0})"),
    "odd_so_far": Operation(
        "f", "f", _none, lambda P, a: P.isin(P.as_symbols(P.cumsum(a), list("0123456")), list("135")),
        lambda a: np.cumsum(a, axis=1) % 2, "np.cumsum({0}) % 2"),
    "after_the_last": Operation(
        "l", "l", lambda rng: {"default": _letter(rng)},
        lambda P, a, default: P.previous(a, default=LETTERS[default]),
        lambda a, default: find(a, before(a, 1, -1), a, default),
        "find({0}, np.concatenate([[-1], {0}[:-1]]), {0}, {default})"),
    "find": Operation(
        "lll", "l", lambda rng: {"default": _letter(rng)},
        lambda P, a, b, c, default: P.find(a, b, c, default=LETTERS[default], causal=True), find,
        "find({0}, {1}, {2}, {default})"),
}  # fmt: skip
LOOKS = ("after_the_last", "find")  # operations that look tokens up by what they hold


def _steps(*lines: tuple[Any, ...]) -> list[Step]:
    return [
        {"name": f"v{k + 1}", "op": op, "of": of.split(), **(more[0] if more else {})}
        for k, (op, of, *more) in enumerate(lines)
    ]


_A, _B = {"some": [0]}, {"some": [1]}

GALLERY: dict[str, list[Step]] = {
    "letter_before": _steps(("before", "x", {"by": 1, "fill": 0})),
    "induction": _steps(("after_the_last", "x", {"default": 0})),
    "same_as_before": _steps(("before", "x", {"by": 1, "fill": 0}), ("same", "x v1")),
    "first_letter": _steps(("first", "x")),
    "a_was_seen": _steps(("is_one_of", "x", _A), ("ever", "v1")),
    "odd_number_of_a": _steps(("is_one_of", "x", _A), ("odd_so_far", "v1")),
    "a_then_b": _steps(
        ("is_one_of", "x", _A), ("earlier", "v1", {"by": 1}), ("is_one_of", "x", _B), ("both", "v2 v3")),
    "as_it_began": _steps(("first", "x"), ("same", "x v1")),
    "two_of_three": _steps(
        ("before", "x", {"by": 1, "fill": 0}), ("before", "x", {"by": 2, "fill": 0}), ("same", "v1 v2"),
        ("choose", "v3 v1 x")),
    "changed_twice": _steps(
        ("before", "x", {"by": 1, "fill": 0}), ("same", "x v1"), ("not", "v2"), ("earlier", "v3", {"by": 1}),
        ("both", "v3 v4")),
    "copy_or_swap": _steps(
        ("is_one_of", "x", _A), ("odd_so_far", "v1"), ("recode", "x", {"table": [0, 2, 1]}), ("choose", "v2 v3 x")),
    "again_and_again": _steps(("after_the_last", "x", {"default": 0}), ("same", "x v1")),
}  # fmt: skip


def every_string() -> Array:
    """(3^n, n)."""
    return np.array(list(product(range(len(LETTERS)), repeat=N)))


def random_program(rng: np.random.Generator, steps: int, good: Callable[[list[Step]], bool]) -> list[Step]:
    """A program of so many steps that does something, and that is ``good``."""
    strings = every_string()
    while True:
        found = _drawn(rng, steps)
        if needed(found) == len(found) and _does_something(found, strings) and good(found):
            return found


def _drawn(rng: np.random.Generator, steps: int) -> list[Step]:
    types, found = {"x": "l"}, []
    names = list(OPERATIONS)
    while len(found) < steps:
        op = str(rng.choice(names))
        operation, of = OPERATIONS[op], []
        for wanted in operation.takes:
            fitting = [name for name, kind in types.items() if kind == wanted]
            of.append(str(rng.choice(fitting[-3:])) if fitting else "")
        if "" in of or len(set(of)) != len(of):
            continue
        name = f"v{len(found) + 1}"
        found.append({"name": name, "op": op, "of": of, **operation.settings(rng)})
        types[name] = operation.gives
    return found


def _does_something(steps: list[Step], strings: Array) -> bool:
    values = values_of(steps, strings)
    answer = values[steps[-1]["name"]]
    if len({array.tobytes() for array in values.values()}) < len(values):
        return False
    if any((array == array.flat[0]).all() for array in values.values()):
        return False
    last = strings[:, -1]
    if np.unique(answer, return_counts=True)[1].max() > MOSTLY * answer.size:
        return False
    if all(len(np.unique(answer[last == k, -1])) == 1 for k in range(len(LETTERS))):
        return False
    return all((values_of(steps, strings, turned=s["name"])[steps[-1]["name"]] != answer).any() for s in steps[:-1])


def gives(steps: list[Step]) -> dict[str, str]:
    """The type of every value."""
    return {"x": "l"} | {step["name"]: OPERATIONS[step["op"]].gives for step in steps}


def symbols_of(kind: str) -> str:
    return LETTERS if kind == "l" else FLAGS


def values_of(steps: list[Step], strings: Array, turned: str = "") -> dict[str, Array]:
    """Every value on strings (strings, n), in NumPy; ``turned``: a value that is made another one everywhere."""
    found, types = {"x": strings}, gives(steps)
    for step in steps:
        operation = OPERATIONS[step["op"]]
        made = np.asarray(operation.array(*(found[name] for name in step["of"]), **settings_of(step)), dtype=np.int64)
        found[step["name"]] = (made + 1) % len(symbols_of(types[step["name"]])) if step["name"] == turned else made
    return found


def written(steps: list[Step]) -> tuple[Any, dict[str, Any]]:
    """The program in the compiler's language, and the compiler's value of every name."""
    from thereexists import program as P

    found: dict[str, Any] = {"x": P.symbols(LETTERS, n=N)}
    for step in steps:
        arguments = [found[name] for name in step["of"]]
        found[step["name"]] = OPERATIONS[step["op"]].value(P, *arguments, **settings_of(step))
    last, kind = found[steps[-1]["name"]], gives(steps)[steps[-1]["name"]]
    program = last if kind == "l" else P.as_symbols(last, FLAGS)
    return program, {name: getattr(value, "number", value) for name, value in found.items()}


def numpy_text(steps: list[Step]) -> str:
    """A NumPy file of its own: ``program(letters)`` for one string, as numbers, with all values."""
    lines = ["import numpy as np", "", ""]
    lines += FIND.splitlines() if any(step["op"] in LOOKS for step in steps) else []
    lines += ["def program(letters):", '    """All values, for n numbers of letters: 0, 1, 2 are a, b, c."""']
    lines += ["    x = np.asarray(letters, dtype=int)"]
    lines += [
        f"    {step['name']} = {OPERATIONS[step['op']].text.format(*step['of'], **settings_of(step))}" for step in steps
    ]
    names = ["x", *(step["name"] for step in steps)]
    lines.append(f"    return {{{', '.join(f'{chr(34)}{name}{chr(34)}: {name}' for name in names)}}}")
    return "\n".join(lines) + "\n"


FIND = '''def find(query, keys, values, default):
    """The value at the last token up to here whose key is the query here."""
    found = np.full(len(query), default)
    for i in range(len(query)):
        hits = np.flatnonzero(keys[: i + 1] == query[i])
        if len(hits):
            found[i] = values[hits[-1]]
    return found


'''
