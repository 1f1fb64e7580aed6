"""In which floating-point formats is a compact network right? Answered from its weights by a bound, never by a try.

*Safe* means: for every input of the domain off the ramps, rounded to the dtype, the network run in that dtype gives its
float64 output rounded once. With p significand bits and u = 2^-p, four conditions suffice, and each is checked:

1. Every weight is a number of the dtype (stored values excepted), and nothing overflows.
2. Units that read the input have the form w·x + b with w a power of two, and their knots −b/w and (1−b)/w are numbers
   of the dtype. Rounding to nearest is monotone and keeps such numbers, so an input on one side of a knot stays there
   when it is rounded, and w·x + b comes out ≤ 0, or ≥ 1, exactly when it is in exact arithmetic.
3. Attention has zero logits: it averages c ≤ n ones. The weight 1/n, the product, the sum and the output are rounded
   at most five times, relatively by u each, and the sum is accumulated in the dtype or in float32 if that is more (all
   matrix products we know of do): n times the mean is within n(5u + (n+2)·min(u, 2^-24)) of c, and the slope of a
   literal times that must be at most 1/2.
4. A stored value w on top of a default v: fl(fl(v) + fl(w)) = fl(v + w).

The rest is exact in any dtype: a literal is exactly 0 or at least 1; 1 minus a sum of such numbers is exactly 1 or at
most 0, in whatever order it is summed, because rounding is monotone and keeps 0 and 1.
"""

from __future__ import annotations

import copy

import numpy as np
import torch

from thereexists.errors import CannotBuild, InvalidInput
from thereexists.grid import Grid
from thereexists.model import EmbeddedTransformer
from thereexists.model.embedded import DTYPES
from thereexists.target import Array
from thereexists.verdict import Verdict

SIGNIFICAND = {"float64": 53, "float32": 24, "bfloat16": 8, "float16": 11}
_TILE_NUMBERS = 1 << 23  # hidden activations of one tile


def verdicts(network: EmbeddedTransformer, grid: Grid) -> dict[str, Verdict]:
    """Safe or not, with the reason, for every dtype."""
    return {name: verdict(network, grid, name) for name in DTYPES}


def verdict(network: EmbeddedTransformer, grid: Grid, name: str) -> Verdict:
    """Whether a network built from float64 weights is safe in a dtype."""
    dtype = as_dtype(name)
    for check in (_knots, _weights, _averages, _values):
        problem = check(network, grid, dtype, 2.0 ** -SIGNIFICAND[name])
        if problem is not None:
            return Verdict(False, (problem,))
    return Verdict(True, ("edges, averages and stored values all keep their meaning when rounded to it",))


def as_dtype(name: str | torch.dtype) -> torch.dtype:
    name = str(name).removeprefix("torch.")
    if name not in SIGNIFICAND:
        raise InvalidInput(f"'dtype' must be one of {', '.join(DTYPES)}; got {name!r} instead.")
    return getattr(torch, name)


def in_dtype(network: EmbeddedTransformer, name: str, grid: Grid) -> EmbeddedTransformer:
    """The network in another dtype, if that is safe."""
    dtype = as_dtype(name)
    if network.dtype == dtype:
        return network
    if network.dtype != torch.float64:
        raise CannotBuild(f"Only the float64 original converts safely; this one is in {network.dtype}: load it again.")
    found = verdict(network, grid, name)
    if not found.holds:
        safe = [other for other in DTYPES if verdict(network, grid, other).holds]
        raise CannotBuild(f"This witness is not safe in {name}: {found.reasons[0]}. It is safe in {', '.join(safe)}.")
    converted = copy.deepcopy(network).to(dtype)
    converted.safe = tuple(dict.fromkeys((*network.safe, name)))
    return converted


def run_embedded(network: EmbeddedTransformer, X: Array) -> Array:
    """A batch of features through the network in its own dtype, in tiles that fit into the cache; float64 out."""
    tile = max(1, _TILE_NUMBERS // (X.shape[1] * max(network.shape()["r"], network.shape()["d"])))
    with torch.no_grad():
        parts = [
            network(torch.from_numpy(X[start : start + tile]).to(network.dtype)).to(torch.float64).numpy()
            for start in range(0, len(X), tile)
        ]
    return np.concatenate(parts)


def represents(values: Array, dtype: torch.dtype) -> Array:
    """Which float64 numbers are numbers of the dtype."""
    tensor = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))
    return (tensor.to(dtype).to(torch.float64) == tensor).numpy()


def _weights(network: EmbeddedTransformer, grid: Grid, dtype: torch.dtype, u: float) -> str | None:
    out = _output_rows(network)
    for name, tensor in network.state_dict().items():
        weight = tensor.detach().numpy()
        if name.endswith("W_2"):
            weight = np.delete(weight, out, axis=1)
        elif name.endswith("b_2") or name == "E":
            weight = np.delete(weight, out, axis=-1)
        wrong = ~represents(weight, dtype)
        if wrong.any():
            return f"the weight {weight[wrong].flat[0]:.17g} of {name} is not a number of that dtype"
    return None


def _knots(network: EmbeddedTransformer, grid: Grid, dtype: torch.dtype, u: float) -> str | None:
    largest = float(np.maximum(np.abs(grid.origin), np.abs(grid.high)).max())
    rows = np.flatnonzero(network.W_in.detach().numpy().any(axis=1)) if network.W_in is not None else []
    for name, stage in network.stages.items():
        if stage.feed_forward is None:
            continue
        W_1, b_1 = (w.detach().numpy()[0] for w in stage.feed_forward.parameters_list()[:2])
        readers = np.flatnonzero(W_1[:, rows].any(axis=1))
        if not len(readers):
            continue
        read = W_1[readers]
        w = read.sum(axis=1)
        if (np.count_nonzero(read, axis=1) != 1).any() or (np.abs(np.frexp(w)[0]) != 0.5).any():
            return f"a unit of {name} that reads the input is not a power of two times one feature"
        knots = np.concatenate([-b_1[readers] / w, (1.0 - b_1[readers]) / w])
        wrong = ~represents(knots, dtype)
        if wrong.any():
            return (
                f"the cell edges need a resolution that it does not have: {knots[wrong][0]:.17g} is not one of its "
                "numbers"
            )
        if float((np.abs(w) * largest + np.abs(b_1[readers])).max()) > torch.finfo(dtype).max / 2:
            return "the distance to an edge, in ramp widths, overflows"
    return None


def _averages(network: EmbeddedTransformer, grid: Grid, dtype: torch.dtype, u: float) -> str | None:
    n = grid.n
    error = n * (5 * u + (n + 2) * min(u, 2.0**-24))
    for name, stage in network.stages.items():
        if stage.attention is None:
            continue
        if stage.attention.W_Q.any() or stage.attention.b_Q.any() or stage.attention.W_K.any():
            return f"the attention of {name} is not a plain average"
        if stage.feed_forward is not None:
            slope = float(stage.feed_forward.W_1.detach().abs().max())
            if slope * error > 0.5:
                return f"an average over {n} tokens may be off by {error / n:.2g}, too much to count to {n}"
    return None


def _values(network: EmbeddedTransformer, grid: Grid, dtype: torch.dtype, u: float) -> str | None:
    out = _output_rows(network)
    constants = torch.zeros(1, network.W_out.shape[1], dtype=torch.float64) if network.E is None else network.E.detach()
    layers = [s.feed_forward for s in network.stages.values() if s.feed_forward is not None]
    defaults = constants[:, out] + sum(f.b_2.detach()[0, out] for f in layers)  # (positions or 1, outputs)
    if not bool(torch.isfinite(defaults.to(dtype)).all()):
        return "a stored value overflows"
    for layer in layers:
        W_2 = layer.W_2.detach()[0, out]  # (outputs, r)
        if not bool(W_2.any()):
            continue
        gate = constants @ layer.W_1.detach()[0].T + layer.b_1.detach()[0]  # (positions, r): what opens a unit
        for position in range(len(constants)):
            values = W_2[:, gate[position] > 0]
            default = defaults[position][:, None]
            once, twice = (default + values).to(dtype), default.to(dtype) + values.to(dtype)
            if not bool(torch.isfinite(once).all()) or not bool((once == twice).all()):
                return "a stored value would be rounded twice"
    return None


def _output_rows(network: EmbeddedTransformer) -> Array:
    return np.flatnonzero(network.W_out.detach().numpy().any(axis=0))
