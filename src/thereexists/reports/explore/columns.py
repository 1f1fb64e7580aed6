"""Watching the proof: the columns of a sequence through quantiser, selective shifts, global shift, value mapping."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from thereexists.core.errors import CannotBuild, ThereExistsError
from thereexists.functions.target import Target
from thereexists.reports.explore.frames import Changes, attention_at, changes
from thereexists.reports.explore.ghosts import ghosts
from thereexists.reports.explore.moves import OUTPUT, QUANTISE, Change, Moves, chapter_of
from thereexists.reports.explore.output_map import Lattice, lattice
from thereexists.reports.explore.viewer import (
    WIDEST,
    Viewer,
    check_entries,
    layer_number,
    output_frame,
    sequence,
    short,
    stage_rows,
    wanted,
)
from thereexists.reports.measure import spreading_layers
from thereexists.witness.function import FunctionWitness
from thereexists.witness.recounted import as_told, told_description, told_name, told_sizes

MOST_FRAMES = 400
MOST_LINES = 600  # cell edges that are drawn
MOST_WINDOWS = 4_000


class Columns(Viewer):
    """Frames are the layers that change anything; a column is drawn at its entries, then at its id uᵀz."""

    kind = "columns"

    def __init__(self, witness: FunctionWitness, target: Target):
        self.witness, self.target = witness, target
        self._last: tuple[bytes, Changes] | None = None

    @cached_property
    def moves(self) -> Moves | None:
        """What explains the layers; nothing without the stage that makes ids."""
        stages = self.witness.network.stages
        if "context" not in stages or (stage := stages["context"]).attention is None:
            return None
        sweeps = stage.depth - spreading_layers(self.witness)
        return Moves(self.witness.grid, stage.attention, self._edges(), sweeps)

    @cached_property
    def ghosts(self) -> dict[str, Any] | None:
        return ghosts(self.witness)

    def about(self) -> dict[str, Any]:
        grid, network = self.witness.grid, self.witness.network
        return {
            "kind": self.kind,
            "title": short(told_name(self.witness)),
            "about": short(told_description(self.witness)),
            "facts": {
                **told_sizes(self.witness),
                "layers": f"{network.depth:,}",
                "parameters": f"{network.parameter_count:,}",
                "attention": network.rho + ("" if self.witness.plan.stated_pattern() is None else ", sparse"),
            },
            "certified": self.proved,
            "n": grid.n,
            "d": grid.d,
            "low": self.target.low,
            "high": self.target.high,
            "start": starting_point(self.target),
            "depth": network.depth,
            "stages": stage_rows(network),
            "chapters": self._chapters(),
            "edges": self._edges(),
            "offset": 0.0 if network.E is None else network.E.detach().numpy(),
            "cells": grid.N,
            "ghosts": self.ghosts,
            "windows": self._windows(),
            "map": self.lattice() is not None,
        }

    def lattice(self, coarse: bool = False) -> Lattice | None:
        target, grid = self.target, self.witness.grid
        if target.region is not None:  # no box, no two ranges
            return None
        return lattice(grid.n, np.array([target.low, target.high]), self.witness.run, grid, coarse)

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        x = sequence(asked, self.witness)
        found = self._changes(x)
        output = self.witness.run(x[None])[0]
        last = found.frames[-1].state if found.frames else found.start
        meant = self._at_the_centre(x)
        frames, before = [self._first(found)], found.start
        for frame in found.frames:
            step = Change(frame, before, self._ids(before), self._ids(frame.state))
            frames.append(self._frame(step, meant))
            before = frame.state
        target = wanted(self.target, x)
        end = output_frame(frames[-1], self.witness.network.depth, OUTPUT, output, target) | {"state": output}
        return {
            "frames": [*frames, end],
            "complete": found.complete,
            "same": bool((last == output).all()),
            "output": output,
            "target": target,
        }

    def attention(self, asked: dict[str, Any]) -> dict[str, Any]:
        x, layer = sequence(asked, self.witness), layer_number(asked, self.witness.network.depth)
        return {"heads": attention_at(self.witness.network, self._changes(x), layer)}

    def _chapters(self) -> list[dict[str, str]]:
        """The steps of the proof."""
        grid = self.witness.grid
        pairs, sweeps = grid.cells * grid.n, 0 if self.moves is None else self.moves.sweeps
        ids = "an id of its own" if grid.positional else "an id of its own, if its columns differ"
        steps = {
            "Quantise": "Every entry falls to the lower edge of its cell: "
            f"{as_told(self.witness, f'{grid.cells:,} cubes')} remain.",
            "Ids by selective shifts": f"A window goes over all possible ids, one in each of {sweeps:,} layers. "
            "A token inside jumps above everything that is still to come, by K·(max − min).",
            "Distinct ids": "The largest id holds the whole sequence. Added C times to every token, it gives each of "
            f"{as_told(self.witness, f'the {pairs:,} pairs')} (sequence, token) {ids}: the heart of the theorem.",
            "Values": "One layer for every id, the largest first, replaces the column with this id by the value of f.",
            "Output": "What the network answers, beside the function.",
        }
        return [{"name": name, "says": says} for name, says in steps.items()]

    def _windows(self) -> list[Any]:
        """Of every context layer, also of those that change nothing; the numbers of the layers begin at ``first``."""
        found = [] if self.moves is None else self.moves.windows()
        return found if len(found) <= MOST_WINDOWS else []

    def _changes(self, x: np.ndarray) -> Changes:
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = (key, changes(self.witness.network, x, MOST_FRAMES))
        return self._last[1]

    def _at_the_centre(self, x: np.ndarray) -> np.ndarray | None:
        """f̄ on the cube of x: (n, d); None if f is not known."""
        grid = self.witness.grid
        try:
            return np.asarray(grid.values(self.target, grid.index(x[None])))[0]
        except ThereExistsError:
            return None

    def _ids(self, state: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return state @ self.witness.grid.u / self.witness.grid.unit

    def _first(self, found: Changes) -> dict[str, Any]:
        encoded = self.witness.network.E is not None
        says = "The input. Every token is moved into the range of its own position." if encoded else "The input."
        frame = {"layer": 0, "stage": "input", "index": 0, "state": found.start, "ids": self._ids(found.start)}
        return frame | {"says": says, "moved": [], "attention": None, "chapter": QUANTISE}

    def _frame(self, step: Change, meant: np.ndarray | None) -> dict[str, Any]:
        frame = step.frame
        told = {"says": f"{short(frame.stage)}."} if self.moves is None else self.moves.told(step, meant)
        return {
            "layer": frame.layer,
            "stage": short(frame.stage),
            "index": frame.index,
            "chapter": chapter_of(frame.stage, frame.index, 0 if self.moves is None else self.moves.sweeps),
            "state": frame.state,
            "ids": step.new,
            "moved": step.moved,
            "attention": frame.attention,
        } | told

    def _edges(self) -> list[list[float]]:
        """Cell edges of every feature, where the encoded tokens are; empty lists where there are too many to draw."""
        grid = self.witness.grid
        lines = []
        for i in range(grid.d):
            origin = 0.0 if grid.positional else grid.origin[i]
            starts = [origin + float(s * grid.pitch[i]) for s in (range(grid.n) if grid.positional else (0,))]
            every = [a + k * grid.step[i] for a in starts for k in range(grid.N + 1)]
            lines.append(every if len(every) <= MOST_LINES else [every[0], every[-1]])
        return lines


def starting_point(target: Target) -> np.ndarray:
    """An input to begin with: spread over the domain, not in order, no two tokens alike."""
    share = (0.31 + 0.618 * np.arange(target.n * target.d)[::-1]) % 1.0  # steps of the golden section
    start = target.low + (target.high - target.low) * np.round(share, 3).reshape(target.n, target.d)
    return start if target.region is None else target.nearest(start[None])[0]


def columns_viewer(witness: FunctionWitness, target: Target | None) -> Columns:
    check_entries(witness.grid.n, witness.grid.d)
    shape = witness.network.shape()
    if max(shape["d"], shape["r"], shape["h"] * shape["m"]) > WIDEST:
        raise CannotBuild(
            f"This network has layers with h = {shape['h']}, m = {shape['m']}, r = {shape['r']}, d = {shape['d']}; "
            f"explore shows deep networks up to a width of {WIDEST}, and the theorems need h = 2, m = 1, r = 4."
        )
    return Columns(witness.knowing(target), target or witness.target)
