"""The gallery: ten stock checkpoints, kept as recipes. ``thereexists gallery NAME --out FOLDER`` makes one.

A recipe is a claim and a paragraph for its card: the public figures for the same task. Weights are made when they are
asked for, in seconds, and every one is proved before its folder appears.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.exports import export_claim, plan_llama
from thereexists.exports.gallery.recipes import RECIPES, Recipe


def recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise InvalidInput(f"The gallery has {', '.join(RECIPES)}; got {name!r} instead.")
    return RECIPES[name]


def plan_recipe(name: str) -> dict[str, Any]:
    """Layers, sizes and parameters of a recipe's checkpoint, before it is written."""
    return plan_llama(recipe(name).make())


def make_recipe(name: str, folder: str | Path, dtype: str = "float32") -> dict[str, Any]:
    """Write the checkpoint; its card has the figures beside it."""
    found = recipe(name)
    return export_claim(found.make(), folder, dtype, f"## Beside\n\n{found.beside}\n")
