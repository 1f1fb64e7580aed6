"""A method's edges against the known circuit: precision, recall, and whether those edges alone do the work.

Edges that carry a value but whose cutting changes nothing (``needed: false``) count neither for nor against. Where
edges come with scores, *average precision* ranks them all: 1 if every needed edge comes before every other one.

**Faithfulness** keeps the edges that were found and cuts all others, which then carry what they carry for another input
(*resample*), or on average over the inputs (*mean*): 1 − E|y_cut − y| / E|y_none − y|, y_none with every edge cut. 1 is
perfect; 0 is no better than cutting everything; below 0 is worse.

Every file that is read has the hash that suite.json says. Whether the circuit is true, only ``suite check`` finds out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import malformed, read_json
from thereexists.functions.target import Array
from thereexists.suites.circuits.files import read_circuit, read_names
from thereexists.suites.circuits.ready import Ready, files_to_score, read_ready
from thereexists.suites.circuits.run import Edge
from thereexists.suites.folders import require_hashes
from thereexists.suites.plain import is_number


def score_circuits(folder: Path, record: dict[str, Any], answers: Path) -> dict[str, Any]:
    """``answers``: {model: [[from, to], …]} or [[from, to, score], …], as JSON."""
    names, given = read_names(folder, record), read_json(answers)
    if not isinstance(given, dict) or not given:
        raise InvalidInput(f"{answers} must be an object of models with their edges.")
    strange = sorted(given.keys() - set(names))
    if strange:
        raise InvalidInput(f"{answers} answers {strange[0]!r}, which is not a model of {folder}.")
    rows = []
    for name in sorted(given):
        require_hashes(folder, record, files_to_score(folder, name))
        circuit = read_circuit(folder / "models" / name)
        model = read_ready(folder / "models" / name)
        edges = _edges(answers, name, given[name], model.edges)
        with malformed(folder / "models" / name, "cannot be run"), np.errstate(all="raise", under="ignore"):
            found = scores(model, circuit["edges"], edges)
        rows.append({"model": name, "dress": circuit["dress"]} | found)
    kept = [key for key in rows[0] if key not in ("model", "dress")]
    total = {"models": len(rows)} | {
        key: float(np.mean([row[key] for row in rows if row[key] is not None] or [np.nan])) for key in kept
    }
    return {"total": total, "rows": rows}


def _edges(answers: Path, name: str, given: Any, known: list[Edge]) -> dict[Edge, float | None]:
    found: dict[Edge, float | None] = {}
    every = set(known)
    edges: list[Any] = given if isinstance(given, list) else [None]
    for edge in edges:
        named = isinstance(edge, list) and len(edge) in (2, 3) and all(isinstance(end, str) for end in edge[:2])
        if not named or tuple(edge[:2]) not in every or not all(is_number(score) for score in edge[2:]):
            wanted = '["input", "m0"], or with a score ["input", "m0", 0.5]'
            raise InvalidInput(
                f"{answers}: {str(edge)[:200]!r} is not an edge of {name}; an edge is written as {wanted}."
            )
        found[edge[0], edge[1]] = float(edge[2]) if len(edge) == 3 else None
    return found


def scores(model: Ready, circuit: list[dict[str, Any]], edges: dict[Edge, float | None]) -> dict[str, Any]:
    """All figures of one model. Of edges with scores the best are taken: as many as the circuit needs."""
    needed = {(edge["from"], edge["to"]) for edge in circuit if edge["needed"]}
    neutral = {(edge["from"], edge["to"]) for edge in circuit} - needed
    ranked = sorted((edge for edge in edges if edge not in neutral), key=lambda edge: -(edges[edge] or 0.0))
    with_scores = any(score is not None for score in edges.values())
    chosen = set(ranked[: len(needed)] if with_scores else ranked)
    right = len(chosen & needed)
    other = model.go(np.roll(model.X, 1, axis=0)).writes
    return {
        "precision": right / len(chosen) if chosen else None,
        "recall": right / len(needed) if needed else None,
        "average_precision": _average_precision(ranked, needed) if with_scores else None,
        "resample": _faithfulness(model, chosen | neutral, other),
        "mean": _faithfulness(model, chosen | neutral, _means(model.go(model.X).writes)),
    }


def _average_precision(ranked: list[Edge], needed: set[Edge]) -> float | None:
    hits = np.array([edge in needed for edge in ranked])
    if not needed:
        return None
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1) if len(hits) else hits
    return float((precision * hits).sum() / len(needed))


def _means(writes: dict[str, Array]) -> dict[str, Array]:
    return {name: np.broadcast_to(W.mean(axis=0, keepdims=True), W.shape) for name, W in writes.items()}


def _faithfulness(model: Ready, kept: set[Edge], other: dict[str, Array]) -> float:
    y, none = model.go(model.X).output, model.go(model.X, set(), other).output
    off, most = np.abs(model.go(model.X, kept, other).output - y).mean(), np.abs(none - y).mean()
    return float(1 - off / most) if most else 1.0
