"""The sizes that a record states, against the weights that are there: looked at before anything is made of them.

A few digits in a record can ask for more memory than any machine has; weights cannot, they have to be sent. So every
stated size is bounded by the weights before it is used. The bounds are those that every network of the constructions
keeps, with room to spare, and hold for n tokens, d features, N cells per feature, K = N^d:

    both                features of the grid, the function and the ends of the network are d; E has n rows
    both                cells K^n ≤ 2^52: the ids of the faithful network are exact in float64, and the compact
                        network's cubes are numbered, when some are drawn, and its contexts were all tabulated
    faithful            one layer for each id at least: n·K^n with positions, Σ j·C(K, j) for j ≤ n without
                        (on a domain that is not a box: one for each step of the quantiser, and N^d·n·d ≤ 2^24)
    compact             one hidden unit for each of the N − 1 inner edges of a feature at least; without positions
                        one for every number of tokens up to n, too
"""

from __future__ import annotations

import math
from typing import Any

from thereexists.core.errors import BadWitnessFile, InvalidInput
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.model import Transformer

MOST_CELL_BITS = 52
MOST_TOKEN_CELLS = 1 << 24  # numbers, over all positions: every one is enclosed, whatever the domain

_OF_EVERY_PLAN = {"n", "d", "delta", "construction", "theorem", "layers", "parameters", "memory_bytes", "error"}


def check_plan(plan: dict[str, Any], construction: str) -> None:
    """A stored plan is of the names and types that everybody who shows it relies on, and of its record's kind."""
    error, pattern, sizes = plan["error"], plan.get("pattern"), plan.get("sizes")
    own = {"sizes"} if "sizes" in plan else {"sweeps", "id_bits"} | ({"pattern"} & plan.keys())
    counts = [plan["parameters"], plan["memory_bytes"], plan["layers"]["total"], *plan["layers"].values()]
    parts = ("p", "grid", "equal_columns", "ramps")
    epsilon = plan.get("epsilon")  # older plans have none
    right = plan.keys() - {"epsilon"} == _OF_EVERY_PLAN | own and plan["construction"] == construction
    right = right and all(type(x) is int and _is_size(x) for x in (*counts, plan.get("sweeps", 1)))
    right = right and type(plan["theorem"]) in (int, str) and plan["theorem"] in (1, 2, "B")
    right = right and _is_size(plan.get("id_bits", 0))
    right = right and (error is None or all(_is_size(error[part]) for part in parts))
    right = right and (error is None or error["p"] >= 1)
    right = right and (epsilon is None or (_is_size(epsilon) and epsilon > 0 and error is not None))
    right = right and ("sizes" not in plan or isinstance(sizes, dict))
    right = right and ("pattern" not in plan or isinstance(pattern, dict))
    if isinstance(pattern, dict):
        right = right and all(type(pattern[key]) is int for key in ("cycle", "depth"))
        right = right and isinstance(pattern["name"], str)
        lists = (pattern["path"], pattern["connections"])
        right = right and all(isinstance(x, list) and x and all(type(k) is int for k in x) for x in lists)
    if not right:
        raise InvalidInput("its plan does not hold the numbers and words that a plan holds")


def check_distance(distance: Any) -> None:
    """A stored measurement, if there is one, has its numbers: whoever reads the record shows them."""
    names = {"p", "estimate", "low", "high", "samples", "confidence", "seed"}
    if distance is None:
        return
    right = isinstance(distance, dict) and distance.keys() == names and all(map(_is_size, distance.values()))
    right = right and all(type(distance[name]) is int for name in ("samples", "seed"))
    if not (right and distance["p"] >= 1 and 0 < distance["confidence"] < 1):
        raise InvalidInput("its measured distance does not hold the numbers of a measurement")


def _is_size(x: Any) -> bool:
    return type(x) in (int, float) and x >= 0  # True is no number


def counted(network: Transformer) -> dict[str, Any]:
    """What a plan says of a network that is there, counted on its weights. Theorem B is the one of sparse attention, 2
    has positions, 1 neither.
    """
    layers = {name: stage.depth for name, stage in network.stages.items()}
    stacks = (stage.attention for stage in network.stages.values())
    sparse = any(stack is not None and stack.pattern is not None for stack in stacks)
    return {
        "theorem": "B" if sparse else 1 if network.E is None else 2,
        "layers": layers | {"total": sum(layers.values())},
        "parameters": network.parameter_count,
    }


def check_sizes(place: object, network: Transformer, grid: Grid, target: Target) -> None:
    """Refuse a record whose sizes the weights do not bear out."""
    n, d, N = grid.n, grid.d, grid.N
    problem = (
        _ends(network, grid, target)
        or (f"{N}^{n * d} cubes are too many" if too_many_cubes(n, d, N) else None)
        or _least_size(network, grid)
        or _pattern(network, n)
    )
    if problem is not None:
        raise BadWitnessFile(f"{place} states sizes that its weights do not have: {problem}.")


def too_many_cubes(n: int, d: int, N: int) -> bool:
    """Whether N^{nd} is more than any construction builds, or reader counts."""
    return n * d * math.log2(N) > MOST_CELL_BITS


def _ends(network: Transformer, grid: Grid, target: Target) -> str | None:
    if (grid.n, grid.d) != (target.n, target.d):
        return f"a grid for n = {grid.n}, d = {grid.d} and a function for n = {target.n}, d = {target.d}"
    width, (reads, writes) = network.shape()["d"], network.ends()
    if (reads, writes) != (grid.d, grid.d):
        return f"d = {grid.d}, and the network reads {reads} features and writes {writes}"
    E = network.E
    if (E is not None) != grid.positional:
        return "positions are claimed and not stored, or stored and not claimed"
    if E is not None and tuple(E.shape) != (grid.n, width):
        return f"n = {grid.n}, and there are positions for {tuple(E.shape)}"
    return None


def _least_size(network: Transformer, grid: Grid) -> str | None:
    """A grid of so many cells takes so many layers of one unit, or blocks of so many units: else it is not of these."""
    thin = grid.domain is not None
    least, have, what = network.size_for(grid.N, grid.n, grid.d, grid.positional, thin)
    if thin and grid.K * grid.n * grid.d > MOST_TOKEN_CELLS:
        return f"{grid.N}^{grid.d} cells of a token are too many"
    if least <= have:
        return None
    return f"a grid of {grid.N} cells per feature takes {least:,} {what}, and there are {have:,}"


def _pattern(network: Transformer, n: int) -> str | None:
    for name, stage in network.stages.items():
        masks = None if stage.attention is None else stage.attention.pattern
        if masks is not None and (tuple(masks.shape[1:]) != (n, n) or (n > 1 and len(masks) > stage.depth)):
            return f"n = {n}, {stage.depth} layers, and the pattern of {name} is {tuple(masks.shape)}"
    return None
