"""Read a saved witness, of whatever kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from thereexists.core import storage
from thereexists.core.kinds import kind_of
from thereexists.core.named_folder import folder_named
from thereexists.core.neutral import neutral
from thereexists.witness.witness import Witness


@neutral()
def load(path: str | Path, dtype: torch.dtype | str | None = None) -> Any:
    """A saved witness. No code that comes with it is ever run.

        te.load("w")([[0.7], [0.1], [0.4]])

    Args:
        path: its folder.
        dtype: by default the one it was saved in; one that is not proved safe is refused.

    Returns:
        The witness. A built-in function comes back with it; of one of your own, only what it claims to be.

    Raises:
        BadWitnessFile: there is no whole witness in that folder.
        CannotBuild: it is not safe in ``dtype``.
    """
    record, weights = storage.read(folder_named(path))
    witness = kind_of(record, path).find("load")(path, record, weights)
    return witness.to(record["dtype"] if dtype is None else dtype)


def loaded(witness: Witness | str | Path, dtype: torch.dtype | str | None = None) -> Witness:
    """A witness, or the one in a folder: what every verb takes."""
    if isinstance(witness, Witness):
        return witness if dtype is None else witness.to(dtype)
    return load(witness, dtype)
