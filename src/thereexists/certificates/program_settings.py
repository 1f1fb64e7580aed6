"""The settings that every operation has: their names, their types, and what they must agree with; no others.

The verifier proves what its table of meanings says (``program_meaning.py``). A loaded program is also *interpreted*,
with the settings of the file. So nothing may stand there that the meaning does not read or this table does not fix:
else a verified program could mean one thing and compute another. No figure that follows from others (a slope, a range,
the error of a spline) is a setting: whoever needs it works it out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from thereexists.certificates.program_splines import KNOWN
from thereexists.core.errors import BadWitnessFile

MOST_WHOLE = 1 << 53  # larger whole numbers are not all float64


def _number(part: Any) -> bool:
    return type(part) is float or (type(part) is int and abs(part) <= MOST_WHOLE)


def _size(part: Any) -> bool:
    return _number(part) and part >= 0


def _whole(part: Any) -> bool:
    return type(part) is int


def _flag(part: Any) -> bool:
    return type(part) is bool


def _word(part: Any) -> bool:
    return isinstance(part, str)


def _known(part: Any) -> bool:
    return isinstance(part, str) and (not part or part in KNOWN)


def _numbers(part: Any) -> bool:
    return isinstance(part, list) and all(map(_number, part))


def _places(part: Any) -> bool:
    return isinstance(part, list) and all(map(_whole, part))


def _table(part: Any) -> bool:
    return isinstance(part, list) and bool(part) and all(map(_numbers, part))


def _divisor(part: Any) -> bool:
    return _number(part) and 2.0**-900 <= abs(part) <= 2.0**100


def _positive(part: Any) -> bool:
    return _number(part) and part > 0


def _knots(part: Any) -> bool:
    return _numbers(part) and len(part) >= 2 and all(a < b for a, b in itertools.pairwise(part))


def _digest(part: Any) -> bool:
    return isinstance(part, str) and len(part) == 64 and set(part) <= set("0123456789abcdef")


Right = Callable[[Any], bool]

# operation: how many arguments (None: one for each coefficient), and its settings
SETTINGS: dict[str, tuple[int | None, dict[str, Right]]] = {
    "tokens": (0, {"d": _whole, "low": _number, "high": _number, "shorter": _flag}),
    "constant": (0, {"array": _table}),
    "linear": (None, {"coefficients": _numbers}),
    "mix": (1, {"matrix": _table}),
    "scale": (1, {"factors": _table}),
    "take": (1, {"source": _places, "called": _word}),
    "mean": (1, {"scale": _number}),
    "sum": (1, {"n": _whole}),
    "prefix_mean": (1, {}),
    "relu": (1, {}),
    "abs": (1, {}),
    "maximum": (2, {}),
    "minimum": (2, {}),
    "clip": (1, {"low": _number, "high": _number}),
    "where": (3, {"bottom": _number, "height": _number}),
    "sort": (1, {}),
    "max": (1, {}),
    "min": (1, {}),
    "rank": (1, {"margin": _positive, "n": _whole}),
    "argsort": (1, {"margin": _positive, "n": _whole}),
    "interp": (1, {"knots": _knots, "values": _numbers}),
    "apply": (1, {"function": _known, "knots": _knots, "values": _numbers}),
    "multiply": (2, {"plus": _knots, "minus": _knots, "balance": _positive}),
    "attend": (3, {"causal": _flag, "called": _word}),
    "soft_largest": (1, {"sharpness": _positive}),
}
OF_QUOTIENTS = {"divisor": _divisor}  # of 'linear'
OF_ONES_OWN = {"curvature": _size, "source_sha256": _digest}  # of 'apply', if its function has no name


def check_settings(program: dict[str, Any]) -> None:
    """Of a program whose parts have the right types (``check_program``)."""
    nodes = program["nodes"]
    if sum(node["operation"] == "tokens" for node in nodes) != 1:
        raise BadWitnessFile("A program has one 'tokens': its input, and the box of it.")
    for node in nodes:
        name, settings = node["operation"], node["settings"]
        if name not in SETTINGS:
            raise BadWitnessFile(f"'{name[:40]}' is not an operation that the verifier knows.")
        count, rights = SETTINGS[name]
        rights = rights | OF_ONES_OWN if name == "apply" and settings.get("function") == "" else rights
        rights = rights | OF_QUOTIENTS if name == "linear" and "divisor" in settings else rights
        odd = sorted(settings.keys() ^ rights.keys())
        if odd:
            raise BadWitnessFile(
                f"'{name}' takes the settings {', '.join(rights) or 'none'}; '{odd[0][:40]}' is missing, or is not "
                "one of them."
            )
        wrong = [key for key, setting in settings.items() if not rights[key](setting)]
        if wrong:
            raise BadWitnessFile(f"The setting '{wrong[0]}' of '{name}' has a value that it cannot have.")
        if "values" in settings and len(settings["values"]) != len(settings["knots"]):
            raise BadWitnessFile(f"'{name}' has {len(settings['knots'])} knots and {len(settings['values'])} values.")
        count = len(settings["coefficients"]) if count is None else count
        if len(node["arguments"]) != count:
            raise BadWitnessFile(f"'{name}' takes {count} values; got {len(node['arguments'])} instead.")
        n = program["n"]
        if settings.get("n", n) != n:
            raise BadWitnessFile(f"'{name}' says n = {settings['n']}; in this program it is {n}.")
        if name == "mean" and settings["scale"] not in (1, n):
            raise BadWitnessFile(f"'mean' is 1 or n = {n} times the mean; this one has the scale {settings['scale']}.")
    read = {k for node in nodes for k in node["arguments"]}
    idle = [node["operation"] for k, node in enumerate(nodes[:-1]) if k not in read]
    if idle:
        raise BadWitnessFile(f"Nothing reads '{idle[0]}'; a saved program holds only what its last operation needs.")
