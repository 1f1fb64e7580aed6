"""Watching the proof: the columns of a sequence through quantiser, selective shifts, global shift, value mapping."""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Target
from thereexists.reports.explore.frames import Changes, Frame, attention_at, changes
from thereexists.reports.explore.viewer import (
    WIDEST,
    Viewer,
    check_entries,
    layer_number,
    sequence,
    short,
    stage_rows,
    wanted,
)
from thereexists.witness.function import FunctionWitness
from thereexists.witness.recounted import told_description

MOST_FRAMES = 400
MOST_LINES = 600  # cell edges that are drawn
GUARDS = {  # stages of a function that is 0 outside its box
    "guard": "Guard: the box is moved away from 0 and back, and what lies outside is capped and rises above all cells",
    "outside": "Outside: a column whose id is above every id of the box is pushed below 0, and then becomes 0",
}


class Columns(Viewer):
    """Frames are the layers that change anything; a column is drawn at its entries, then at its id uᵀz."""

    kind = "columns"

    def __init__(self, witness: FunctionWitness, target: Target):
        self.witness, self.target = witness, target
        self._last: tuple[bytes, Changes] | None = None

    def about(self) -> dict[str, Any]:
        grid, network = self.witness.grid, self.witness.network
        return {
            "kind": self.kind,
            "title": short(self.target.name),
            "about": short(told_description(self.witness)),
            "facts": {
                "tokens": grid.n,
                "features": grid.d,
                "grid": f"δ = 1/{grid.N}",
                "layers": f"{network.depth:,}",
                "parameters": f"{network.parameter_count:,}",
                "attention": network.rho + ("" if self.witness.plan.stated_pattern() is None else ", sparse"),
            }
            | ({} if self.proved is None else {"certified": self.proved}),
            "n": grid.n,
            "d": grid.d,
            "low": self.target.low,
            "high": self.target.high,
            "start": starting_point(self.target),
            "depth": network.depth,
            "stages": stage_rows(network),
            "edges": self._edges(),
            "cells": grid.N,
        }

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        x = sequence(asked, self.witness)
        found = self._changes(x)
        output = self.witness.run(x[None])[0]
        last = found.frames[-1].state if found.frames else found.start
        frames, before = [self._first(found)], found.start
        for frame in found.frames:
            frames.append(self._frame(frame, before))
            before = frame.state
        return {
            "frames": frames,
            "complete": found.complete,
            "same": bool((last == output).all()),
            "output": output,
            "target": wanted(self.target, x),
        }

    def attention(self, asked: dict[str, Any]) -> dict[str, Any]:
        x, layer = sequence(asked, self.witness), layer_number(asked, self.witness.network.depth)
        return {"heads": attention_at(self.witness.network, self._changes(x), layer)}

    def _changes(self, x: np.ndarray) -> Changes:
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = (key, changes(self.witness.network, x, MOST_FRAMES))
        return self._last[1]

    def _ids(self, state: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return state @ self.witness.grid.u / self.witness.grid.unit

    def _first(self, found: Changes) -> dict[str, Any]:
        encoded = self.witness.network.E is not None
        says = "The input. Every token is moved into the range of its own position." if encoded else "The input."
        frame = {"layer": 0, "stage": "input", "index": 0, "state": found.start, "ids": self._ids(found.start)}
        return frame | {"says": says, "moved": [], "attention": None}

    def _frame(self, frame: Frame, before: np.ndarray) -> dict[str, Any]:
        ids = self._ids(before), self._ids(frame.state)
        moved = np.flatnonzero((before != frame.state).any(axis=1)).tolist()
        return {
            "layer": frame.layer,
            "stage": short(frame.stage),
            "index": frame.index,
            "state": frame.state,
            "ids": ids[1],
            "moved": moved,
            "says": self._words(frame, before, moved, *ids),
            "attention": frame.attention,
        }

    def _words(self, frame: Frame, before: np.ndarray, moved: list[int], old: np.ndarray, new: np.ndarray) -> str:
        """One sentence: which token moved, by how much. The numbers are the network's own."""
        if frame.stage in GUARDS:
            tokens = ", ".join(f"token {j}" for j in moved[:4])
            return f"{GUARDS[frame.stage]} ({tokens})."
        if frame.stage == "quantise":
            entries = np.argwhere(before != frame.state)[:4].tolist()
            steps = ", ".join(
                f"token {j}{'' if self.witness.grid.d == 1 else f' feature {i}'} from {before[j, i]:.6g} to "
                f"{frame.state[j, i]:.6g}"
                for j, i in entries
            )
            return f"Quantiser: {steps}, the lower edge of its cell."
        if frame.stage == "context" and len(moved) == len(before) and frame.attention is not None:
            low, high = float((new - old).min()), float((new - old).max())
            added = f"+{low:,.0f}" if round(low) == round(high) else f"+{low:,.0f} to +{high:,.0f}"
            return f"Global shift: every token receives a maximum ({added})."
        steps = ", ".join(f"token {j} from id {_whole(old[j])} to {_whole(new[j])}" for j in moved[:4])
        if frame.stage == "context":
            by = new[moved[0]] - old[moved[0]]
            return f"Selective shift: {steps} ({'+' if by >= 0 else ''}{_whole(by)}{self._why(by, old)})."
        if frame.stage == "value":
            values = ", ".join(
                f"token {j}: id {_whole(old[j])} becomes {' '.join(f'{v:.6g}' for v in frame.state[j])}"
                for j in moved[:4]
            )
            return f"Value mapping: {values}."
        return f"{short(frame.stage)}: {steps}."

    def _why(self, by: float, old: np.ndarray) -> str:
        """The numbers of the theorem behind a shift, where they give it: K·(max − min)."""
        K, high, low = self.witness.grid.K, float(old.max()), float(old.min())
        return f" = {K}·({_whole(high)} − {_whole(low)}) = K·(max − min)" if by == K * (high - low) else ""

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


def _whole(value: float) -> str:
    value = float(value)
    if not np.isfinite(value):
        return "no number"
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-6 else f"{value:,.4g}"


def columns_viewer(witness: FunctionWitness, target: Target | None) -> Columns:
    check_entries(witness.grid.n, witness.grid.d)
    shape = witness.network.shape()
    if max(shape["d"], shape["r"], shape["h"] * shape["m"]) > WIDEST:
        raise CannotBuild(
            f"This network has layers with h = {shape['h']}, m = {shape['m']}, r = {shape['r']}, d = {shape['d']}; "
            f"explore shows deep networks up to a width of {WIDEST}, and the theorems need h = 2, m = 1, r = 4."
        )
    return Columns(witness.knowing(target), target or witness.target)
