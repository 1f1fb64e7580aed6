"""How a network and a target reach a worker: the network by the files it came from, the target as the caller has it.

A worker reads the witness's weights (data, no code), and gets the function that the user gave, never one that the
witness names: a folder that came from somebody else decides about numbers and about nothing that runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file

from thereexists.core import storage
from thereexists.functions.target import Target
from thereexists.model import Transformer


@dataclass(frozen=True)
class ShippedNetwork:
    """A folder that every worker can read: a witness's, or one that :meth:`of` has written."""

    folder: str
    saved: bool  # as a witness

    @classmethod
    def of(cls, network: Transformer, witness: Path | None, scratch: Path, write: bool = True) -> ShippedNetwork:
        """``witness`` holds the network, if it is a witness's folder at all; else it is written to ``scratch``."""
        if witness is not None and (witness / storage.WITNESS.record).is_file():
            return cls(str(witness.resolve()), True)
        if write:
            weights = {name: tensor.detach().contiguous() for name, tensor in network.state_dict().items()}
            save_file(weights, scratch / "network.safetensors")
            (scratch / "network.json").write_text(json.dumps(network.structure()), encoding="utf-8")
        return cls(str(scratch.resolve()), False)

    def load(self) -> Transformer:
        folder = Path(self.folder)
        if self.saved:
            record, weights = storage.read(folder)
            return Transformer.from_structure(record["structure"], weights)
        structure = json.loads((folder / "network.json").read_text(encoding="utf-8"))
        return Transformer.from_structure(structure, load_file(folder / "network.safetensors"))


@dataclass(frozen=True)
class ShippedTarget:
    """The target that the caller holds. A function of a user's file goes as the bytes that were run here.

    Nothing is looked up again by a name: what a record says about where a function came from is never followed.
    """

    pickled: bytes

    @classmethod
    def of(cls, target: Target, stays: bool = False) -> ShippedTarget:
        """``stays``: nobody will ever load it."""
        if stays:
            return cls(b"")
        import cloudpickle

        return cls(cloudpickle.dumps(target))

    def load(self) -> Target:
        import cloudpickle

        return cloudpickle.loads(self.pickled)
