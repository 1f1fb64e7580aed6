"""A loaded witness, described from its weights; what only its record says is listed as its author's word.

Counted again: theorem, construction, layers, parameters, class, widths, safe dtypes. The rest of a record (the grid,
predicted and measured distance, the bits of the ids, the memory of the build, the pattern's name and path, who built
it from what) takes the function or the construction to check: ``verify`` does that where a bound depends on it.
"""

from __future__ import annotations

from typing import Any

from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.functions.targets import BUILTINS, builtin
from thereexists.model import Transformer
from thereexists.model.sizes import counted
from thereexists.witness.function import FunctionWitness

STATED = WORDS.replace(" ", "_")  # the key of JSON output that lists what is the author's word


def class_of(network: Transformer) -> dict[str, Any]:
    return network.shape() | {"positional": network.E is not None}


def is_builtin(witness: FunctionWitness) -> bool:
    """Whether f is the built-in function of that name, from this package and not from the file."""
    return witness.target.origin.get("kind") == "builtin" and witness.target.name in BUILTINS


def description_of(witness: FunctionWitness) -> str:
    """What f computes, in words: ours, where a built-in function is named."""
    if is_builtin(witness):
        return builtin(witness.target.name, witness.grid.n, witness.grid.d).description
    return witness.target.description


def as_told(witness: FunctionWitness, text: str) -> str:
    """What a record says of function or grid, marked where it comes from a file: only ``verify`` compares them with
    the network."""
    return text if witness.folder is None or not text else as_its_author_says(text)


def told_name(witness: FunctionWitness) -> str:
    return as_told(witness, witness.target.name)


def told_description(witness: FunctionWitness) -> str:
    """Marked, be it in our words."""
    return as_told(witness, description_of(witness))


def told_sizes(witness: FunctionWitness) -> dict[str, Any]:
    """The sequences and the grid: how many tokens there are is counted where the network has positions."""
    grid = witness.grid
    tokens = grid.n if witness.network.E is not None else as_told(witness, str(grid.n))
    return {"tokens": tokens, "features": grid.d, "grid": as_told(witness, f"δ = 1/{grid.N}")}


def counted_again(witness: FunctionWitness) -> dict[str, Any]:
    """What of ``witness.describe()`` is known without its author: counted on the network, or compared with it."""
    network, grid = witness.network, witness.grid
    return {
        **counted(network),
        "n": grid.n,
        "d": grid.d,
        "construction": witness.construction,
        "class": class_of(network),
        "rho": network.rho,
        "dtype": "float64",
        **witness.counted(),
    }
