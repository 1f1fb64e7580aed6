"""Compact witnesses: a function that is constant on the cells of a grid, with steep ramps between them.

**Extremes.** Inside a cell, off the ramps, the network has the stored value of the cell, exactly (its certificate
encloses every cube). Over any box at all, ramps included, no output is above the largest stored value: the mass lemma
(``certificates/mass.py``, from the weights). So a box that reaches the cell with the largest value has just that
maximum. ∎
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Array
from thereexists.suites.net import net_of
from thereexists.suites.plain import is_flag, is_whole
from thereexists.suites.verifier.families.base import UNIT, Built, Family, Params, Question, one_box
from thereexists.suites.verifier.families.hypotheses import Hypotheses, has_just

SIZES = ((2, 4), (2, 8), (3, 4), (4, 4), (3, 8))  # n, cells
FUNCTIONS = ("sort", "reverse", "running-max")
RAMP = 2**-14  # of a cell: ramps are below an edge, and narrower
INSIDE = 1 / 64  # of a cell: how far a box inside it stays away from its edges; ramps are much narrower


@final
class CompactCells(Family):
    name = "compact"
    turns = False  # the slopes of the ramps are millions: float32 would lose what a rotation mixes

    def draw(self, rng: np.random.Generator, level: int) -> Params:
        n, cells = SIZES[level - 1]
        return {"n": n, "cells": cells, "function": str(rng.choice(FUNCTIONS)), "whole": bool(rng.integers(2))}

    def hypotheses(self, params: Params) -> Hypotheses:
        yield has_just(params, "n", "cells", "function", "whole")
        yield "n and cells are whole numbers", is_whole(params["n"], 1, 64) and is_whole(params["cells"], 1, 64)
        yield f"(n, cells) is one of {SIZES}", (params["n"], params["cells"]) in SIZES
        yield f"function is one of {', '.join(FUNCTIONS)}", params["function"] in FUNCTIONS
        yield "whole is true or false", is_flag(params["whole"])

    def build(self, params: Params) -> Built:
        from thereexists.certificates.mass import mass_bound
        from thereexists.constructions.build import build
        from thereexists.functions.targets import builtin
        from thereexists.witness.verbs import certify

        witness = build(builtin(params["function"], params["n"]), delta=1 / params["cells"], construction="compact")
        certificate = certify(witness)
        network: Any = witness.network
        top = 1 - 1 / (2 * params["cells"])
        if getattr(certificate, "undecided", 1) or max(mass_bound(network)) != top:
            raise CannotBuild("The cubes of this network, or its largest output, are not proved.")
        proof = "certificate of a compact witness: every cube enclosed, all outputs bounded by the mass lemma"
        return Built(net_of(network), 0.0, proof)

    def reference(self, params: Params, X: Array) -> Array:
        """f at the centres of the cells. Between cells, on the ramps, the network is something else."""
        N = params["cells"]
        centres = (np.clip(np.floor(X * N), 0, N - 1) + 0.5) / N
        if params["function"] == "sort":
            return np.sort(centres, axis=1)
        return centres[:, ::-1] if params["function"] == "reverse" else np.maximum.accumulate(centres, axis=1)

    def covers(self, params: Params, X: Array) -> Array:
        cells = X * params["cells"]
        return ~((np.ceil(cells) - cells > 0) & (np.ceil(cells) - cells < RAMP)).any(axis=(1, 2))

    def ask(self, params: Params, rng: np.random.Generator) -> Question:
        n, N = params["n"], params["cells"]
        output = (int(rng.integers(n)), 0)
        if params["whole"]:
            low = rng.integers(0, UNIT // N * (N - 1) + 1, (n, 1)) / UNIT  # from anywhere into the last cell
            return Question(((low, np.ones((n, 1))),), output, 1)
        cell = rng.integers(0, N, (n, 1))
        low, high = (cell + INSIDE) / N, (cell + 1 - INSIDE) / N
        return Question(((low, high),), output, int(rng.choice([-1, 1])))

    def extreme(self, params: Params, question: Question) -> tuple[float, float, Array]:
        low, high = one_box(question)
        N = params["cells"]
        inside = (np.floor(low * N) == np.floor(high * N)).all() and (
            np.abs(np.stack([low, high]) * N - np.rint(np.stack([low, high]) * N)) >= INSIDE * (1 - 1e-9)
        ).all()
        if inside:
            point = (np.floor(low * N) + 0.5) / N
        elif question.sense > 0 and (high == 1.0).all() and (low <= 1 - 1 / N).all():
            point = np.full_like(low, 1 - 1 / (2 * N))
        else:
            raise CannotBuild("Nothing is proved about this box: it is neither inside a cell nor reaches the last one.")
        return float(self.reference(params, point[None])[0][question.output]), 0.0, point
