"""VNN-LIB 1.0 properties: for which inputs, and which outputs would be *unsafe*. Written, and parsed back.

    (assert (or (and (>= X_0 0.25) (<= X_0 0.5) …) (and …)))      the inputs: one box, or several
    (assert (or (and (>= Y_3 0.75)) (and (<= Y_3 0.1))))           the unsafe outputs: one half-space, or several

All assertions hold together: bounds beside an ``or``, or two of them, mean the boxes in which their cases meet.

A property is violated (sat) if some input of a box has an output in one of the half-spaces. It holds (unsat) if none
has. Variables are numbered in the order of the flattened arrays, as in VNN-COMP. Numbers are decimals that mean a
float32 exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Array

SIGNS = (">=", "<=")  # of lower and of upper ends
MOST_BOXES = 256
Bounds = dict[tuple[int, str], float]  # input, sign → end


@dataclass(frozen=True)
class Limit:
    """An unsafe half-space: output ``index`` ≥ ``value`` (sense +1) or ≤ ``value`` (−1)."""

    index: int
    sense: int
    value: float

    def depth(self, Y: Array) -> Array:
        """How far outputs (batch, …) are inside, negative if they are outside."""
        return self.sense * (Y.reshape(len(Y), -1)[:, self.index] - self.value)


@dataclass(frozen=True)
class Property:
    boxes: tuple[tuple[Array, Array], ...]  # (n, features) each: lower and upper ends
    limits: tuple[Limit, ...]
    outputs: int

    def inside(self, X: Array) -> Array:
        """Which inputs (batch, n, features) lie in a box."""
        return np.any([((low <= X) & (X <= high)).all(axis=(1, 2)) for low, high in self.boxes], axis=0)

    def depth(self, Y: Array) -> Array:
        """How far inside the unsafe set, at its deepest half-space."""
        return np.max([limit.depth(Y) for limit in self.limits], axis=0)


def text_of(asked: Property, title: str) -> str:
    """The file. Lines that start with ; are comments."""
    inputs = asked.boxes[0][0].size
    lines = [f"; {title}", ""]
    lines += [f"(declare-const X_{i} Real)" for i in range(inputs)]
    lines += [f"(declare-const Y_{i} Real)" for i in range(asked.outputs)]
    boxes = [
        [
            f"({sign} X_{i} {decimal(value)})"
            for i, pair in enumerate(zip(low.ravel(), high.ravel(), strict=True))
            for sign, value in zip(SIGNS, pair, strict=True)
        ]
        for low, high in asked.boxes
    ]
    lines += ["", "; inputs"]
    if len(boxes) == 1:
        lines += [f"(assert {part})" for part in boxes[0]]
    else:
        lines += ["(assert (or", *(f"  (and {' '.join(box)})" for box in boxes), "))"]
    limits = [f"({'>=' if part.sense > 0 else '<='} Y_{part.index} {decimal(part.value)})" for part in asked.limits]
    lines += ["", "; unsafe outputs"]
    if len(limits) == 1:
        lines += [f"(assert {limits[0]})"]
    else:
        lines += ["(assert (or", *(f"  (and {part})" for part in limits), "))"]
    return "\n".join(lines) + "\n"


def decimal(value: float) -> str:
    """A float32 as a decimal that is exactly it, without an exponent."""
    if float(np.float32(value)) != float(value):
        raise InvalidInput(f"{value!r} is not a float32 number.")
    exact = Fraction(float(value))
    digits = max(exact.denominator.bit_length() - 1, 0)
    whole = abs(exact.numerator) * 10**digits // exact.denominator
    text = str(whole).rjust(digits + 1, "0")
    text = f"{text[: len(text) - digits]}.{text[len(text) - digits :]}" if digits else f"{text}.0"
    return ("-" if exact < 0 else "") + (text.rstrip("0") + "0" if text.endswith("0") else text)


def parse(text: str, shape: tuple[int, ...]) -> Property:
    """A file of the form above; ``shape`` of an input. Anything else is refused."""
    try:
        return _parsed(text, shape)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"This is not a VNN-LIB property of the suite's form: {error}.") from None


def _parsed(text: str, shape: tuple[int, ...]) -> Property:
    """All assertions hold together: the cases of one meet those of every other, and what no input satisfies is gone."""
    if not re.fullmatch(r"[\n -~]*", text):
        raise ValueError("a character that is neither ASCII nor an end of line")
    bare = re.sub(r";[^\n]*", "", text)
    commands = _tree(re.findall(r"[()]|[^\s()]+", bare))
    counts = {"X": 0, "Y": 0}
    boxes: list[Bounds] = [{}]
    limits: list[Limit] = []
    for command in commands:
        if command[0] == "declare-const":
            _, name, sort = command
            if name != f"{name[0]}_{counts[name[0]]}" or sort != "Real":
                raise ValueError(f"{name} is declared out of order")
            counts[name[0]] += 1
            continue
        (word, body) = command
        if word != "assert":
            raise ValueError(f"the command {word}")
        cases = [_atoms(case) for case in body[1:]] if body[0] == "or" else [_atoms(body)]
        letters = {atom[1][0] for case in cases for atom in case}
        if letters == {"X"} and all(cases):
            if len(boxes) * len(cases) > MOST_BOXES:
                raise ValueError(f"more than {MOST_BOXES} boxes of inputs")
            boxes = [_both(box, _bounds(case)) for box in boxes for case in cases]
        elif letters == {"Y"} and not limits and all(len(case) == 1 for case in cases):
            limits = [Limit(_number(n, "Y"), 1 if s == ">=" else -1, _value(v)) for ((s, n, v),) in cases]
        else:
            raise ValueError("an assertion about inputs and outputs, or a second one about outputs")
    size = int(np.prod(shape))
    if counts["X"] != size or not limits or any(limit.index >= counts["Y"] for limit in limits):
        raise ValueError(f"{counts['X']} inputs where {size} are wanted, or no unsafe outputs")
    if any(box.keys() != {(i, sign) for i in range(size) for sign in SIGNS} for box in boxes):
        raise ValueError("an input has no lower or no upper end, or is not declared")
    ends = [[np.array([box[i, sign] for i in range(size)]).reshape(shape) for sign in SIGNS] for box in boxes]
    some = tuple((low, high) for low, high in ends if (low <= high).all())
    if not some:
        raise ValueError("an empty set of inputs")
    return Property(some, tuple(limits), counts["Y"])


def _tree(tokens: list[str]) -> list:
    stack: list[list] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    if len(stack) != 1:
        raise ValueError("a bracket is open")
    return stack[0]


def _atoms(case: list) -> list[tuple[str, str, str]]:
    found = case[1:] if case[0] == "and" else [case]
    if not all(len(atom) == 3 and atom[0] in SIGNS for atom in found):
        raise ValueError("an assertion that is no bound")
    return [tuple(atom) for atom in found]


def _bounds(atoms: list[tuple[str, str, str]]) -> Bounds:
    box: Bounds = {}
    for sign, name, value in atoms:
        box = _both(box, {(_number(name, "X"), sign): _value(value)})
    return box


def _both(one: Bounds, other: Bounds) -> Bounds:
    """Where both hold: of two lower ends the higher one counts, of two upper ends the lower one."""
    inner = {">=": max, "<=": min}
    return one | {at: inner[at[1]](end, one.get(at, end)) for at, end in other.items()}


def _value(text: str) -> float:
    """A decimal that is exactly a number of float32: what is proved is about the number that stands in the file."""
    if not re.fullmatch(r"-?[0-9]{1,64}(\.[0-9]{1,256})?", text):
        raise ValueError(f"{text[:40]!r} where a decimal is wanted")
    value = float(text)
    if Fraction(text) != Fraction(value) or not abs(value) <= np.finfo(np.float32).max or np.float32(value) != value:
        raise ValueError(f"{text[:40]} is not exactly a number of float32")
    return value


def _number(name: str, letter: str) -> int:
    if not re.fullmatch(f"{letter}_(0|[1-9][0-9]{{0,8}})", name):
        raise ValueError(f"{name} where {letter}_… is wanted")
    return int(name[2:])
