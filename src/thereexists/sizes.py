"""The sizes that a record states, against the weights that are there: looked at before anything is made of them.

A few digits in a record can ask for more memory than any machine has; weights cannot, they have to be sent. So every
stated size is bounded by the weights before it is used. The bounds are those that every network of the constructions
keeps, with room to spare, and hold for n tokens, d features, N cells a feature, K = N^d:

    both                features of the grid, the function and the ends of the network are d; E has n rows
    both                cells K^n ≤ 2^52: the ids of the faithful network are exact in float64, and the compact
                        network's contexts were all tabulated
    faithful            one layer for each id at least: n·K^n with positions, Σ j·C(K, j) for j ≤ n without
    compact             one hidden unit for each of the N − 1 inner edges of a feature at least; without positions
                        one for every number of tokens up to n, too
"""

from __future__ import annotations

import math
from typing import Any

from thereexists.errors import BadWitnessFile, InvalidInput
from thereexists.grid import Grid
from thereexists.model import EmbeddedTransformer, Transformer
from thereexists.target import Target

MOST_CELL_BITS = 52


def check_plan(plan: dict[str, Any]) -> None:
    """A stored plan is of the types that everybody who shows it relies on."""
    pattern, error, sizes = plan["pattern"], plan["error"], plan.get("sizes")
    counts = [plan["sweeps"], plan["parameters"], plan["memory_bytes"], plan["layers"]["total"]]
    right = all(type(x) is int for x in (*counts, *plan["layers"].values()))
    right = right and type(plan["theorem"]) in (int, str) and plan["theorem"] in (1, 2, "B")
    right = right and type(plan["id_bits"]) in (int, float)
    construction = plan.get("construction", "faithful")
    right = right and (construction == "faithful" or (construction == "compact" and isinstance(sizes, dict)))
    parts = ("p", "grid", "equal_columns", "ramps")
    right = right and (error is None or all(type(error[part]) in (int, float) for part in parts))
    if pattern is not None:
        right = right and all(type(pattern[key]) is int for key in ("cycle", "depth"))
        right = right and isinstance(pattern["name"], str) and isinstance(pattern["path"], list)
    if not right:
        raise InvalidInput("its plan does not hold the numbers and words that a plan holds")


def check_sizes(place: object, network: Transformer, grid: Grid, target: Target) -> None:
    """Refuse a record whose sizes the weights do not bear out."""
    n, d, N = grid.n, grid.d, grid.N
    problem = (
        _ends(network, grid, target)
        or (f"{N}^{n * d} cubes are too many" if n * d * math.log2(N) > MOST_CELL_BITS else None)
        or (_compact(network, grid) if isinstance(network, EmbeddedTransformer) else _faithful(network, grid))
        or _pattern(network, n)
    )
    if problem is not None:
        raise BadWitnessFile(f"{place} states sizes that its weights do not have: {problem}.")


def _ends(network: Transformer, grid: Grid, target: Target) -> str | None:
    if (grid.n, grid.d) != (target.n, target.d):
        return f"a grid for n = {grid.n}, d = {grid.d} and a function for n = {target.n}, d = {target.d}"
    compact = isinstance(network, EmbeddedTransformer)
    width = network.shape()["d"]
    read = network.W_in.shape[1] if compact and network.W_in is not None else width
    if read != grid.d or (compact and network.W_out.shape[0] != grid.d):
        return f"d = {grid.d}, and the network reads {read} features"
    E = network.E
    if (E is not None) != grid.positional:
        return "positions are claimed and not stored, or stored and not claimed"
    if E is not None and tuple(E.shape) != (grid.n, width):
        return f"n = {grid.n}, and there are positions for {tuple(E.shape)}"
    return None


def _faithful(network: Transformer, grid: Grid) -> str | None:
    needed, j = 0, 1  # K ≤ 2^52 here, and the sum stops as soon as it is too large
    if grid.positional:
        needed = grid.n * grid.cells
    else:
        ways = 1
        while j <= min(grid.n, grid.K) and needed <= network.depth:
            ways = ways * (grid.K - j + 1) // j
            needed, j = needed + j * ways, j + 1
    if needed > network.depth:
        return f"a grid of {grid.N} cells a feature takes {needed:,} layers or more, and there are {network.depth:,}"
    return None


def _compact(network: EmbeddedTransformer, grid: Grid) -> str | None:
    parts = [stage.feed_forward for stage in network.stages.values() if stage.feed_forward is not None]
    units = sum(part.W_1.shape[0] * part.W_1.shape[1] for part in parts)
    needed = max((grid.N - 1) * grid.d, 0 if grid.positional else grid.n)
    if needed > units:
        return f"N = {grid.N}, n = {grid.n} take {needed:,} hidden units or more, and there are {units:,}"
    return None


def _pattern(network: Transformer, n: int) -> str | None:
    for name, stage in network.stages.items():
        masks = None if stage.attention is None else stage.attention.pattern
        if masks is not None and (tuple(masks.shape[1:]) != (n, n) or (n > 1 and len(masks) > stage.depth)):
            return f"n = {n}, {stage.depth} layers, and the pattern of {name} is {tuple(masks.shape)}"
    return None
