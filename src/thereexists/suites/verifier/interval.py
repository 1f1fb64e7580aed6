"""Interval propagation over the nodes of an ONNX file: the floor that every verifier should be above.

Each value is a box; a node maps boxes to boxes. Sums are computed in float64 and each result is widened by 1e-9 of the
sizes that went into it, many times what float64 loses there. A property holds if no box of outputs, for any box of
inputs, meets an unsafe half-space; otherwise this says nothing ("unknown"): it never finds a counterexample.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.functions.target import Array
from thereexists.suites.verifier import vnnlib
from thereexists.suites.verifier.onnx_files import needed, read

WIDER = 1e-9
Box = tuple[Array, Array]


def interval_verdict(network: Path, text: str) -> tuple[str, float]:
    """unsat or unknown, and the seconds it took."""
    start = time.perf_counter()
    content, _ = read(network)
    graph = needed().load_model_from_string(content).graph
    shape = tuple(size.dim_value for size in graph.input[0].type.tensor_type.shape.dim)[1:]
    asked = vnnlib.parse(text, shape)
    safe = all(_safe(asked, *outputs(graph, low[None], high[None])) for low, high in asked.boxes)
    return ("unsat" if safe else "unknown"), time.perf_counter() - start


def _safe(asked: vnnlib.Property, low: Array, high: Array) -> bool:
    return all((limit.depth(high if limit.sense > 0 else low) < 0).all() for limit in asked.limits)


def outputs(graph: Any, low: Array, high: Array) -> Box:
    """The box of Y for a box of X."""
    to_array = needed("onnx.numpy_helper").to_array
    known: dict[str, Box] = {w.name: (to_array(w).astype(np.float64),) * 2 for w in graph.initializer}
    known[graph.input[0].name] = (low, high)
    with np.errstate(all="ignore"):  # of numbers that are too large nothing is known: they never count as safe
        for node in graph.node:
            attributes = {a.name: list(a.ints) or a.i for a in node.attribute}
            known[node.output[0]] = _RULES[node.op_type](*(known[name] for name in node.input), **attributes)
    return known[graph.output[0].name]


def _matmul(A: Box, B: Box) -> Box:
    """Middles and radii: |A B − mid A mid B| ≤ |mid A| rad B + rad A |mid B| + rad A rad B."""
    (a, r), (b, s) = _middle(A), _middle(B)
    middle, size = a @ b, np.abs(a) @ np.abs(b)
    radius = np.abs(a) @ s + r @ np.abs(b) + r @ s + WIDER * size
    return middle - radius, middle + radius


def _middle(A: Box) -> Box:
    return (A[0] + A[1]) / 2, (A[1] - A[0]) / 2


def _add(A: Box, B: Box) -> Box:
    low, high = A[0] + B[0], A[1] + B[1]
    wider = WIDER * (np.abs(low) + np.abs(high))
    return low - wider, high + wider


def _softmax(A: Box, axis: int) -> Box:
    """Weight j is smallest with its own logit low and all others high, largest the other way round."""
    low, high = A
    top = high.max(axis=axis, keepdims=True)
    least, most = np.exp(low - top), np.exp(high - top)
    others_most = most.sum(axis=axis, keepdims=True) - most
    others_least = least.sum(axis=axis, keepdims=True) - least
    with np.errstate(invalid="ignore", divide="ignore"):
        smallest, largest = least / (least + others_most), most / (most + others_least)
    smallest, largest = np.nan_to_num(smallest, nan=0.0), np.nan_to_num(largest, nan=1.0)
    return np.maximum(smallest * (1 - WIDER) - 1e-300, 0.0), np.minimum(largest * (1 + WIDER) + 1e-300, 1.0)


_RULES: dict[str, Any] = {
    "MatMul": _matmul,
    "Add": _add,
    "Softmax": _softmax,
    "Relu": lambda A: (np.maximum(A[0], 0.0), np.maximum(A[1], 0.0)),
    "Transpose": lambda A, perm: (A[0].transpose(perm), A[1].transpose(perm)),
}
