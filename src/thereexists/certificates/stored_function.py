"""A saved witness of a function, read from its record and weights: the one reader of ``te.load`` and of ``te.verify``.

What one of them takes, the other takes. It builds nothing and runs no code of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from thereexists.core import storage
from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import malformed
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.functions.targets import restore
from thereexists.model import Transformer
from thereexists.model.sizes import check_distance, check_plan, check_sizes, counted


@dataclass(frozen=True)
class StoredFunction:
    """The network, and what the record says of it: the function, the grid, the plan with what is counted again, and a
    measured distance.
    """

    network: Transformer
    grid: Grid
    target: Target
    plan: dict[str, Any]
    distance: dict[str, Any] | None


def read_function(
    place: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor], network_class: type[Transformer]
) -> StoredFunction:
    """A built-in function comes back with the network; your own code is never run."""
    with malformed(place, "is not a complete witness"):
        storage.check_dtype(record, weights)
        check_plan(record["plan"], record["construction"])
        check_distance(record["distance"])
        network = network_class.from_structure(record["structure"], weights)
        if type(network) is not network_class:
            raise InvalidInput("the network is not of the class that this construction gives")
        target = restore(record["target"])
        grid = Grid.from_dict(record["grid"]).on(target.region)
        check_sizes(place, network, grid, target)
        return StoredFunction(network, grid, target, record["plan"] | counted(network), record["distance"])
