"""What the page may ask of a witness: ``about`` once, ``run`` for every input, ``attention`` of any layer, ``map``.

One class for each way a network can be watched: columns moving (the faithful construction), blocks writing into a
residual stream (compact witnesses, tables and memorised data sets). Everything that leaves is plain JSON: numbers that
are none become null, texts are cut. Everything that comes in is checked; a wrong input gets one sentence.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.authors_word import as_its_author_says, shortened
from thereexists.core.errors import CannotBuild, InvalidInput, ThereExistsError
from thereexists.core.named_folder import folder_named
from thereexists.core.neutral import neutral
from thereexists.core.rounded_figures import rounded_up
from thereexists.functions.target import Target
from thereexists.reports.explore.output_map import Lattice, free_entries, rounded

LONGEST_TEXT = 400
MOST_ENTRIES = 64  # sliders of a page
ROUNDING = 1e-15  # differences below are not told as numbers
MOST_WEIGHT_BYTES = 1 << 30
WIDEST = 64  # features, hidden units, heads × head size of a deep network; the theorems need 4


class Viewer(ABC):
    """A loaded witness that answers a page."""

    kind: str
    witness: Any
    proved: str | None = None  # the bound of a certificate of these very weights

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """All that the page needs before the first input."""

    @abstractmethod
    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The frames of one input, its output, and the target's."""

    @abstractmethod
    def attention(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The attention weights of any layer on one input: {"heads": (h, n, n) or None}."""

    def lattice(self, coarse: bool = False) -> Lattice | None:
        """Where a map of the output is taken; None for words, and where there is no map to draw."""
        return None

    def map(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The output over two entries of an input: {"across", "up": places, "outputs": (up, across, n, d)}."""
        found = self.lattice()
        if found is None:
            raise InvalidInput(
                "There is no map of this witness: it takes words, one number, or a domain that is not a box."
            )
        x = sequence(asked, self.witness)
        free = free_entries(asked, *x.shape)
        return {
            "across": found.axes[free[0][1]],
            "up": found.axes[free[1][1]],
            "outputs": rounded(found.over(x, free)),
        }


@neutral()
def open_viewer(witness: Any, target: Target | None = None) -> Viewer:
    """A witness, or the folder of one, for watching; refuses, in one sentence, what is too large for a page."""
    from thereexists.reports.artefact import check_records, malformed
    from thereexists.witness.load import load
    from thereexists.witness.verbs import witness_of

    if not isinstance(witness, str | Path):
        return _ready(witness_of(witness, "explore"), target)
    folder = folder_named(witness)
    check_records(folder)
    weights = folder / "model.safetensors"
    if weights.is_file() and weights.stat().st_size > MOST_WEIGHT_BYTES:
        raise CannotBuild(
            f"{weights} has {weights.stat().st_size:,} bytes; explore takes up to {MOST_WEIGHT_BYTES:,}. "
            "thereexists report shows larger witnesses."
        )
    with malformed(folder):
        return _ready(load(folder), target)


def _ready(witness: Any, target: Target | None) -> Viewer:
    viewer = witness.kind.find("viewer")(witness, target)
    viewer.proved = _proved(witness)
    about = plain(viewer.about())
    viewer.run({"x": about["start"], "words": about["start"]})  # compiles what the first question would wait for
    return viewer


def check_entries(n: int, d: int) -> None:
    """A page has room for so many sliders."""
    if n * d > MOST_ENTRIES:
        raise CannotBuild(
            f"This witness takes sequences of {n} × {d} numbers; explore shows up to {MOST_ENTRIES} in all. "
            "thereexists report and thereexists trace take more."
        )


def _proved(witness: Any) -> str | None:
    """What a certificate beside these weights says of their error; nothing if it is about others."""
    found = witness.its_own(witness.certificate)
    return None if found is None else as_its_author_says("; ".join([found.claim(), *found.meaning()]))


def sequence(asked: dict[str, Any], witness: Any) -> np.ndarray:
    """The numbers of a request as one checked sequence (n, d)."""
    x = asked.get("x")
    rows = x if isinstance(x, list) else None
    if rows is None or not all(
        isinstance(r, list) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in r) for r in rows
    ):
        raise InvalidInput("A request must have 'x', a list of tokens that are lists of numbers.")
    try:
        return witness.checked_input(rows)[0][0]
    except OverflowError:
        raise InvalidInput("A number of 'x' is too large.") from None


def layer_number(asked: dict[str, Any], depth: int) -> int:
    layer = asked.get("layer")
    if type(layer) is not int or not 1 <= layer <= depth:
        raise InvalidInput(f"'layer' must be a whole number from 1 to {depth}; got {str(layer)[:40]!r} instead.")
    return layer


def wanted(target: Target, x: np.ndarray) -> np.ndarray | None:
    """f(x), or None for a function of the user's own, whose code is not stored."""
    try:
        return np.asarray(target(x[None])[0])
    except ThereExistsError:
        return None


def output_frame(
    last: dict[str, Any], depth: int, chapter: int, output: np.ndarray, target: np.ndarray | None
) -> dict[str, Any]:
    """The stop behind the last layer: the answer, beside the function where it is known."""
    says = "The output of the network."
    with np.errstate(all="ignore"):
        if target is not None and np.shape(target) == np.shape(output):
            off = float(np.abs(output - target).max(initial=0.0))
            says = f"The output: no entry is further than {rounded_up(off, 4)} from the function."
            says = says if off > ROUNDING else "The output is that of the function, but for rounding."
    return last | {"layer": depth + 1, "stage": "output", "index": 0, "chapter": chapter, "says": says, "moved": [],
                   "attention": None, "formula": None, "links": None, "window": None, "cells": None}  # fmt: skip


def stage_rows(network: Any) -> list[dict[str, Any]]:
    """Name, depth, halves and the numbers of the layers of every stage."""
    rows, first = [], 1
    for name, stage in network.stages.items():
        halves = [half for half in ("attention", "feed_forward") if getattr(stage, half) is not None]
        rows.append({"name": short(name), "first": first, "depth": stage.depth, "halves": halves})
        first += stage.depth
    return rows


def short(value: Any) -> str:
    return shortened(str(value), LONGEST_TEXT)


def plain(value: Any) -> Any:
    """Arrays, tuples and numbers as JSON takes them; NaN and infinities become null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
