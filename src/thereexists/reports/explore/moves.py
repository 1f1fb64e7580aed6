"""Every move of the proof, explained with its numbers: who moved, by how much, and why by exactly that much.

A formula is given only if it gives the very move of the network: factors, windows and thresholds are read off the
weights of the layer, and the tokens whose ids enter are those that its heads looked at. Where they do not agree, as in
a network that somebody changed, the move is given without a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.functions.grid import Grid
from thereexists.model import Attention
from thereexists.reports.explore.frames import Frame
from thereexists.reports.explore.viewer import short

MOST_TOLD = 4  # tokens of one move that are named
GUARDS = {  # stages of a function that is 0 outside its box
    "guard": "Guard: the box is moved away from 0 and back, and what lies outside is capped and rises above all cells",
    "outside": "Outside: a column whose id is above every id of the box is pushed below 0, and then becomes 0",
}
QUANTISE, SHIFTS, SPREAD, VALUES, OUTPUT = range(5)
Piece = tuple[str, int | None]  # a part of a formula, and the token whose number it is


@dataclass(frozen=True, eq=False)
class Change:
    """One layer that changed something: its frame, what stood before it, and the ids before and after."""

    frame: Frame
    before: np.ndarray
    old: np.ndarray
    new: np.ndarray

    @property
    def moved(self) -> list[int]:
        return np.flatnonzero((self.before != self.frame.state).any(axis=1)).tolist()

    @property
    def looked_at(self) -> np.ndarray | None:
        """Whom every token looks at in every head, (h, n); None unless every head looks at one token alone."""
        weights = self.frame.attention
        if weights is None or not np.isfinite(weights).all() or (weights.max(axis=-1) != 1.0).any():
            return None
        return weights.argmax(axis=-1)


def chapter_of(stage: str, index: int, sweeps: int) -> int:
    """The step of the proof that layer ``index`` (from 1) of a stage belongs to; ``sweeps`` layers are selective."""
    if stage == "context":
        return SHIFTS if index <= sweeps else SPREAD
    return QUANTISE if stage in ("quantise", "guard") else VALUES


@dataclass(frozen=True, eq=False)
class Moves:
    """Explains the steps of one network: ``told(step)`` is what the page gets."""

    grid: Grid
    context: Attention
    edges: list[list[float]]
    sweeps: int

    def told(self, step: Change, meant: np.ndarray | None = None) -> dict[str, Any]:
        """``meant`` (n, d): f at the centre of the cube, where it is known."""
        stage = step.frame.stage
        if stage in GUARDS:
            tokens = ", ".join(f"token {j}" for j in step.moved[:MOST_TOLD])
            return {"says": f"{GUARDS[stage]} ({tokens})."}
        if stage == "quantise":
            return self._quantised(step)
        if stage == "context":
            return self._shifted(step)
        return _valued(step, meant) if stage == "value" else {"says": f"{short(stage)}: {_steps(step)}."}

    def _quantised(self, step: Change) -> dict[str, Any]:
        entries = np.argwhere(step.before != step.frame.state)[:MOST_TOLD].tolist()
        cells = []
        for j, i in entries:
            edges, x = self.edges[i], step.before[j, i]
            k = int(np.searchsorted(edges, x, side="right")) - 1
            if len(edges) > 2 and 0 <= k < len(edges) - 1:
                cells.append({"token": j, "feature": i, "ends": [edges[k], edges[k + 1]]})
        steps = ", ".join(
            f"token {j}{'' if self.grid.d == 1 else f' feature {i}'} from {step.before[j, i]:.6g} to "
            f"{step.frame.state[j, i]:.6g}"
            for j, i in entries
        )
        told: dict[str, Any] = {"says": f"Quantiser: {steps}, the lower edge of its cell.", "cells": cells}
        if len(entries) == 1 and cells:
            (j, i), (low, high) = entries[0], cells[0]["ends"]
            x, state = float(step.before[j, i]), float(step.frame.state[j, i])
            told["formula"] = [
                (f"{low:.6g} ≤ ", None), (f"{x:.6g}", j), (f" < {high:.6g}, so ", None), (f"{x:.6g} → {state:.6g}", j),
            ]  # fmt: skip
        return told

    def _shifted(self, step: Change) -> dict[str, Any]:
        """A selective shift, Z += K·Ψ(Z; b, b'), or a shift of all tokens, Z += C·ψ(Z; b)."""
        window = self.windows()[step.frame.index - 1]
        shifts = step.frame.index <= self.sweeps
        reasons = self._reasons(step)
        steps = _steps(step)
        if not shifts:
            by = step.new - step.old
            low, high = float(by.min()), float(by.max())
            alike = round(low) == round(high)
            added = f"+{low:,.0f}{_equation(reasons)}" if alike else f"+{low:,.0f} to +{high:,.0f}"
            says = f"Global shift: every token receives a maximum ({added})."
            if reasons is not None and not alike:  # with a pattern: of the tokens that it looks at
                reasons["formula"].insert(0, (f"token {step.moved[0]}: ", step.moved[0]))
        else:
            by = float(step.new[step.moved[0]] - step.old[step.moved[0]])
            says = f"Selective shift: {steps} ({'+' if by >= 0 else ''}{whole(by)}{_equation(reasons)})."
        return {"says": says, "window": window} | (reasons or {})

    def _reasons(self, step: Change) -> dict[str, Any] | None:
        """K·(max − min) or C·max, if that is the move; from whom the heads brought them."""
        seen, moved = step.looked_at, step.moved
        if seen is None or not moved:
            return None
        factor = self._factors(step.frame.index - 1)
        j = moved[0]
        given = float(sum(f * step.old[seen[h, j]] for h, f in enumerate(factor)))
        by = float(step.new[j] - step.old[j])
        links = [
            {"head": h, "from": int(seen[h, k]), "to": k, "sign": 1 if f > 0 else -1}
            for k in moved[:MOST_TOLD]
            for h, f in enumerate(factor)
            if f
        ]
        if by != given:
            return None
        high = int(seen[0, j])
        if len(factor) == 2 and factor[1] == -factor[0] == -self.grid.K:
            low = int(seen[1, j])
            formula: list[Piece] = [
                (f"{whole(by)} = {self.grid.K} · (", None), (whole(step.old[high]), high), (" − ", None),
                (whole(step.old[low]), low), (") = K · (max − min)", None),
            ]  # fmt: skip
            return {"formula": formula, "links": links}
        if len(factor) == 1 or not any(factor[1:]):
            formula = [
                (f"{whole(by)} = {whole(factor[0])} · ", None),
                (whole(step.old[high]), high),
                (" = C · max", None),
            ]
            return {"formula": formula, "links": links}
        return None

    def _factors(self, layer: int) -> list[float]:
        """What an id that a head looks at adds to one's own: W_O·W_V along u, where W_V is u itself; else nothing."""
        W_V, W_O = (w[layer].detach().numpy() for w in self.context.parameters_list()[3:])  # (h, 1, d), (h, d, 1)
        u, plain = self.grid.u, (W_V[:, 0] == self.grid.u).all(axis=1)
        return [float(f) if good else float("nan") for f, good in zip(W_O[:, :, 0] @ u, plain, strict=True)]

    def windows(self) -> list[tuple[float | None, float | None] | None]:
        """Which ids every layer of the stage selects, (b, b'); b' is None where all ids above b are."""
        W_Q, b_Q, _, _, W_O = (w.detach().numpy() for w in self.context.parameters_list())
        u = self.grid.u
        scale = W_Q[:, :, 0] @ u / (u @ u)  # (depth, h)
        along = np.isclose(W_Q[:, :, 0], scale[..., None] * u, rtol=1e-12, atol=0.0).all(axis=-1)
        with np.errstate(all="ignore"):
            at = -b_Q[:, :, 0] / scale / self.grid.unit
        used = (W_O[..., 0] != 0).any(axis=-1) & along & np.isfinite(at)
        rows = zip(at.tolist(), used.tolist(), strict=True)
        return [None if not on[0] else (b[0], b[1] if len(b) > 1 and on[1] else None) for b, on in rows]


def _valued(step: Change, meant: np.ndarray | None) -> dict[str, Any]:
    """Z += (A − z)·[u·Z ≥ q − w]: the column whose id is reached becomes the value."""
    moved = step.moved[:MOST_TOLD]
    values = {j: " ".join(f"{v:.6g}" for v in step.frame.state[j]) for j in moved}
    told = ", ".join(f"token {j}: id {whole(step.old[j])} becomes {values[j]}" for j in moved)
    if not moved:
        return {"says": f"Value mapping: {told}."}
    j = moved[0]
    formula: list[Piece] = [("id ", None), (whole(step.old[j]), j), (" → ", None), (values[j], j)]
    if meant is not None and values[j] == " ".join(f"{v:.6g}" for v in meant[j]):
        formula.append((" = f at the centre of this cube", None))
    return {"says": f"Value mapping: {told}.", "formula": formula}


def _steps(step: Change) -> str:
    return ", ".join(f"token {j} from id {whole(step.old[j])} to {whole(step.new[j])}" for j in step.moved[:MOST_TOLD])


def _equation(reasons: dict[str, Any] | None) -> str:
    """The formula behind its first number: " = 8·(20 − 4) = K·(max − min)"."""
    if reasons is None:
        return ""
    text = "".join(piece for piece, _ in reasons["formula"])
    return " = " + text.split(" = ", 1)[1].replace(" · ", "·")


def whole(value: float) -> str:
    value = float(value)
    if not np.isfinite(value):
        return "no number"
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-6 else f"{value:,.4g}"
