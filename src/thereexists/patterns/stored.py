"""A pattern as plain JSON and back, exactly: the formulas of its parts, nothing evaluated.

    record(pattern)         # {"format": 1, "name": …, "n": …, "steps": [{"causal": …, "parts": [["Band", −2, 2]]}], …}
    restore(record, n)      # the same relation; what the record says is checked before it is used

A record may come from a stranger's file. Here its form is checked, and each list against n, which is bounded by the
caller, who knows how many tokens there are. What the numbers of a part may be, its constructor says (``parts``).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.patterns.intervals import Documents, Meet
from thereexists.patterns.neighbourhood import Neighbourhood
from thereexists.patterns.numbers import shown
from thereexists.patterns.parts import (
    Band,
    BlockBand,
    CausalInterval,
    CausalPart,
    Explicit,
    IntervalPart,
    Offsets,
    Part,
    Rect,
    Residue,
    Xor,
)
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import Step

FORMAT = 1
_LARGE = 1 << 40
_CAUSAL = (CausalPart, CausalInterval)  # of a union of causal steps with others: the pairs j ≤ k of another part
_FORMULAS = (Band, BlockBand, Residue, Offsets, Xor, Rect, Explicit, Documents, Neighbourhood)
_KINDS = {kind.__name__: kind for kind in (*_FORMULAS, Meet, *_CAUSAL)}


def record(pattern: Pattern) -> dict[str, Any]:
    """The pattern as JSON types; a step that several layers share is written once."""
    return {
        "format": FORMAT,
        "name": pattern.name,
        "n": pattern.n,
        "heads": None if pattern.heads is None else list(pattern.heads),
        "layers": pattern.layers,
        "steps": [{"causal": step.causal, "parts": [_part_record(p) for p in step.parts]} for step in pattern.steps],
    }


def restore(stored: Any, n: int) -> Pattern:
    """The pattern of a record for ``n`` tokens; a record for another number is refused before anything is built."""
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise InvalidInput(f"A stored pattern must be a record of format {FORMAT}; save it with this version.")
    name, heads, layers, steps = (stored.get(key) for key in ("name", "heads", "layers", "steps"))
    if type(stored.get("n")) is not int or stored["n"] != n:
        raise InvalidInput(
            f"The stored pattern {shown(name)} has {shown(stored.get('n'))} tokens and the model got {n}; give "
            "use_pattern a pattern of that length."
        )
    if not isinstance(name, str) or not isinstance(steps, list) or not steps:
        raise InvalidInput("A stored pattern needs a name and a list of steps; this record is damaged.")
    if layers is not None:
        _integers([layers], 1, 1 << 31)
    share = None if heads is None else tuple(_integers(heads, 1, 1 << 31))
    return Pattern(name, tuple(_step(step, n) for step in steps), heads=share, layers=layers)


def _part_record(part: Part) -> list[Any]:
    return [type(part).__name__, *(_plain(getattr(part, field.name)) for field in fields(part))]  # type: ignore


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return _part_record(value)
    if isinstance(value, range):  # the same tokens, ending with the last one
        return {"range": [value[0], value[-1] + 1, value.step if len(value) > 1 else 1] if value else [0, 0, 1]}
    return [int(x) for x in value] if isinstance(value, np.ndarray | tuple) else int(value)


def _step(stored: Any, n: int) -> Step:
    parts = stored.get("parts") if isinstance(stored, dict) else None
    if not isinstance(parts, list) or not parts or not isinstance(stored.get("causal"), bool):
        raise InvalidInput("A step of a stored pattern needs 'causal' and a list of parts; this record is damaged.")
    return Step(n, tuple(_part(part, n) for part in parts), stored["causal"])


def _part(stored: Any, n: int) -> Part:
    """The constructors check every number; here only that JSON holds the right kinds of things, and tokens of n."""
    kind = _KINDS.get(stored[0]) if isinstance(stored, list) and stored and isinstance(stored[0], str) else None
    if kind is None or len(stored) - 1 != len(fields(kind)):
        raise InvalidInput(f"A stored part must be one of {', '.join(_KINDS)} with its numbers; got {shown(stored)}.")
    values = stored[1:]
    if kind in _CAUSAL:
        return _causal(values[0], n, kind)
    if kind is Rect:
        return Rect(*(_tokens(value, n) for value in values))
    if kind is Explicit:
        return Explicit(np.array(_integers(values[0]), np.int64), np.array(_integers(values[1], 0, n - 1), np.int64))
    if kind is Documents:
        return Documents(np.array(_integers(values[0], 0, n - 1), np.int64))
    if kind is Neighbourhood:
        return Neighbourhood(*(tuple(_integers(value, 1, n)) for value in values))
    if kind is Meet:
        return _meet(values, n)
    if kind is Offsets:
        return Offsets(tuple(_integers(values[0])))
    numbers: Any = _integers(values)
    return kind(*numbers)


def _causal(stored: Any, n: int, kind: Any) -> Part:
    """The causal version of a part, which is none itself: twice would say no more, and records nest no deeper."""
    nested = isinstance(stored, list) and stored and stored[0] in [c.__name__ for c in _CAUSAL]
    inner = None if nested else _part(stored, n)
    if inner is None or isinstance(inner, IntervalPart) != (kind is CausalInterval):
        raise InvalidInput(f"A stored {kind.__name__} cannot be made of {shown(stored)}; this record is damaged.")
    return kind(inner)


def _meet(stored: list[Any], n: int) -> Part:
    """What two intervals share, each of them a formula: records nest no deeper."""
    plain = all(isinstance(x, list) and x and x[0] in [kind.__name__ for kind in _FORMULAS] for x in stored)
    parts: list[Any] = [_part(x, n) for x in stored] if plain else []
    if not parts or not all(isinstance(part, IntervalPart) for part in parts):
        raise InvalidInput(f"A stored Meet cannot be made of {shown(stored)}; this record is damaged.")
    return Meet(*parts)


def _tokens(value: Any, n: int) -> range | np.ndarray:
    if isinstance(value, dict):
        ends = _integers(value.get("range"), 0, n)
        if len(ends) != 3 or ends[2] < 1:
            raise InvalidInput(f"A range of tokens must have a start, a stop and a step ≥ 1; got {shown(value)}.")
        return range(*ends)
    tokens = np.array(_integers(value, 0, n - 1), np.int64)
    if (np.diff(tokens) <= 0).any():
        raise InvalidInput("The tokens of a stored pattern must ascend.")
    return tokens


def _integers(values: Any, least: int = -_LARGE, most: int = _LARGE) -> list[int]:
    good = isinstance(values, list) and all(type(x) is int and least <= x <= most for x in values)
    if not good:
        raise InvalidInput(f"A stored pattern needs integers from {least} to {most} here; got {shown(values)}.")
    return values
