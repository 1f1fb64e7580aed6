"""A program as plain data, and back: what a saved witness holds, and what the verifier reads. No code is ever stored.

What stands there defines the operations; what follows from that (slopes, ranges, errors of splines) is worked out again
by whoever needs it. A function of ``apply`` is stored by its knots and values, and by its name if it is one that
everybody knows (np.sin …). Of a function of the user's own there is the curvature that its author states, and the
SHA-256 of its source, to say which one it was: both stay with the value, and go into what is built from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thereexists.certificates.program_numpy import check_features
from thereexists.certificates.program_splines import KNOWN
from thereexists.constructions.program import splines
from thereexists.constructions.program.graph import Value, nodes
from thereexists.core.errors import BadWitnessFile
from thereexists.functions.target import Array

ARRAYS = ("array", "matrix", "factors", "knots", "values", "plus", "minus")  # settings that are arrays in a graph


def to_record(program: Value) -> dict[str, Any]:
    """``n``, and the operations in an order in which every one follows its arguments; the last one is the output."""
    order = list(nodes(program))
    number = {id(value): k for k, value in enumerate(order)}
    listed = [
        {
            "operation": value.operation,
            "arguments": [number[id(argument)] for argument in value.arguments],
            "d": value.d,
            "settings": _plain_settings(value),
        }
        for value in order
    ]
    return {"n": program.n, "nodes": listed}


def from_record(record: dict[str, Any]) -> Value:
    """The graph again. Where the function itself is not known, ``apply`` interprets its spline."""
    try:
        check_features(record)
        values: list[Value] = []
        for node in record["nodes"]:
            settings = {key: _restored(key, setting) for key, setting in node["settings"].items() if key != "d"}
            if node["operation"] == "apply":
                settings["function"] = _function(node["settings"])
            arguments = tuple(values[k] for k in node["arguments"])
            values.append(Value(node["operation"], arguments, int(record["n"]), int(node["d"]), settings))
        return values[-1]
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise BadWitnessFile(f"The saved program is not complete: {type(error).__name__}: {error}") from error


def _plain_settings(value: Value) -> dict[str, Any]:
    settings: dict[str, Any] = {key: _plain(setting) for key, setting in value.settings.items()}
    if value.operation == "tokens":
        settings["d"] = value.d
    if value.operation == "apply":
        known = splines.known_as(value.settings["function"])
        settings["function"] = known.name if known is not None and known.name in KNOWN else ""
    return settings


def _plain(setting: Any) -> Any:
    if isinstance(setting, np.ndarray | np.generic):
        return setting.tolist()
    if isinstance(setting, tuple | list):
        return [_plain(part) for part in setting]
    return setting


def _restored(name: str, setting: Any) -> Any:
    if name in ARRAYS:
        return np.array(setting, dtype=np.float64)
    return tuple(setting) if isinstance(setting, list) else setting


def _function(settings: dict[str, Any]) -> Callable[[Array], Array]:
    """The function of that name; of a user's own, its spline."""
    for function, known in splines.KNOWN.items():
        if known.name == settings["function"]:
            return function
    return splines.Remembered(np.array(settings["knots"]), np.array(settings["values"]))
