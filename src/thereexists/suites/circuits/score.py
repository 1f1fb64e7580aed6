"""A method's edges against the known circuit: precision, recall, and whether those edges alone do the work.

Edges that carry a value but whose cutting changes nothing (``needed: false``) count neither for nor against. Where
edges come with scores, *average precision* ranks them all: 1 if every needed edge comes before every other one.

**Faithfulness** keeps the edges that were found and cuts all others, which then carry what they carry for another input
(*resample*), or on average over the inputs (*mean*): 1 − E|y_cut − y| / E|y_none − y|, y_none with every edge cut. 1 is
perfect; 0 is no better than cutting everything; below 0 is worse.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import read_json
from thereexists.functions.target import Array
from thereexists.suites.circuits.make import INPUTS, inputs
from thereexists.suites.circuits.run import Edge, edges_of, run
from thereexists.suites.net import Block, Head, Hidden, Net


def score_circuits(folder: Path, names: list[str], answers: Path) -> dict[str, Any]:
    """``answers``: {model: [[from, to], …]} or [[from, to, score], …], as JSON."""
    given = read_json(answers)
    if not isinstance(given, dict) or not given:
        raise InvalidInput(f"{answers} must be an object of models with their edges.")
    strange = sorted(given.keys() - set(names))
    if strange:
        raise InvalidInput(f"{answers} answers {strange[0]!r}, which is no model of {folder}.")
    rows = []
    for name in sorted(given):
        circuit = read_json(folder / "models" / name / "circuit.json")
        net, tokens = read_model(folder / "models" / name)
        edges = _edges(answers, name, given[name], edges_of(net))
        rows.append({"model": name, "dress": circuit["dress"]} | scores(net, tokens, circuit["edges"], edges))
    kept = [key for key in rows[0] if key not in ("model", "dress")]
    total = {"models": len(rows)} | {
        key: float(np.mean([row[key] for row in rows if row[key] is not None] or [np.nan])) for key in kept
    }
    return {"total": total, "rows": rows}


def _edges(answers: Path, name: str, given: Any, known: list[Edge]) -> dict[Edge, float | None]:
    found: dict[Edge, float | None] = {}
    for edge in given if isinstance(given, list) else [None]:
        if not isinstance(edge, list) or len(edge) not in (2, 3) or tuple(edge[:2]) not in set(known):
            wanted = '["input", "m0"], or with a score ["input", "m0", 0.5]'
            raise InvalidInput(f"{answers}: {edge!r} is no edge of {name}; one is {wanted}.")
        found[edge[0], edge[1]] = float(edge[2]) if len(edge) == 3 else None
    return found


def scores(net: Net, tokens: Array, circuit: list[dict[str, Any]], edges: dict[Edge, float | None]) -> dict[str, Any]:
    """All figures of one model. Of edges with scores the best are taken: as many as the circuit needs."""
    needed = {(edge["from"], edge["to"]) for edge in circuit if edge["needed"]}
    neutral = {(edge["from"], edge["to"]) for edge in circuit} - needed
    ranked = sorted((edge for edge in edges if edge not in neutral), key=lambda edge: -(edges[edge] or 0.0))
    with_scores = any(score is not None for score in edges.values())
    chosen = set(ranked[: len(needed)] if with_scores else ranked)
    right = len(chosen & needed)
    clean = inputs(tokens[:INPUTS])
    other = np.roll(clean, 1, axis=0)
    return {
        "precision": right / len(chosen) if chosen else None,
        "recall": right / len(needed) if needed else None,
        "average_precision": _average_precision(ranked, needed) if with_scores else None,
        "resample": _faithfulness(net, clean, chosen | neutral, run(net, other).writes),
        "mean": _faithfulness(net, clean, chosen | neutral, _means(run(net, clean).writes)),
    }


def _average_precision(ranked: list[Edge], needed: set[Edge]) -> float | None:
    hits = np.array([edge in needed for edge in ranked])
    if not needed:
        return None
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1) if len(hits) else hits
    return float((precision * hits).sum() / len(needed))


def _means(writes: dict[str, Array]) -> dict[str, Array]:
    return {name: np.broadcast_to(W.mean(axis=0, keepdims=True), W.shape) for name, W in writes.items()}


def _faithfulness(net: Net, X: Array, kept: set[Edge], other: dict[str, Array]) -> float:
    y, none = run(net, X).output, run(net, X, set(), other).output
    off, most = np.abs(run(net, X, kept, other).output - y).mean(), np.abs(none - y).mean()
    return float(1 - off / most) if most else 1.0


def read_model(folder: Path) -> tuple[Net, Array]:
    """The network from the files that TransformerLens reads, and the inputs of the data."""
    from safetensors.torch import load_file

    config = read_json(folder / "config.json")
    W = {name: array.double().numpy() for name, array in load_file(folder / "model.safetensors").items()}
    blocks = []
    for name in [name for name in W if name.endswith((".W_Q", ".b_Q"))]:
        W[name] = W[name] / config["attn_scale"]  # a power of two
    for i in range(config["n_layers"]):
        part = {
            name.removeprefix(f"blocks.{i}."): array for name, array in W.items() if name.startswith(f"blocks.{i}.")
        }
        heads = [
            Head(*(part[f"attn.{name}"][j] for name in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "W_O")))
            for j in range(config["n_heads"])
        ]
        hidden = Hidden(*(part[f"mlp.{name}"] for name in ("W_in", "b_in", "W_out", "b_out")))
        blocks.append(Block(tuple(heads), hidden))
    W_in = W["embed.W_E"][-1:]  # the last token is the number 1
    tokens = load_file(folder / "data.safetensors")["tokens"].numpy()
    return Net(W_in, W["pos_embed.W_pos"], tuple(blocks), W["unembed.W_U"]), tokens
