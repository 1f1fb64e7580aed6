"""How a network and a target reach a worker: the network by the files it came from, the target as the caller has it.

A worker reads the witness's weights (data, no code), and gets the function that the user gave, never one that the
witness names: a folder that came from somebody else decides about numbers and about nothing that runs.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file

from thereexists.core import storage
from thereexists.core.tensor_files import save_tensors
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
            save_tensors(weights, scratch / "network.safetensors")
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
        """``stays``: it will never be loaded."""
        if stays:
            return cls(b"")
        import cloudpickle

        return cls(cloudpickle.dumps(target))

    def load(self) -> Target:
        import cloudpickle

        return cloudpickle.loads(self.pickled)


def identity_of(target: Target) -> str:
    """What tells a function from every other: finished chunks are taken for those of the same one only.

    It is its own code, and the file that it was read or imported from. What cannot be written down so is the same in
    this process only. What such code imports in its turn is taken to be unchanged.
    """
    state = hashlib.sha256(json.dumps(target.origin, sort_keys=True, default=repr).encode())
    codes = () if target.region is None else target.region.codes
    for part in (target.f, target.modulus, target.interval, *codes):
        state.update(_code_of(part))
    return state.hexdigest()


def _code_of(function: object) -> bytes:
    import cloudpickle

    module = getattr(function, "__module__", None) or ""
    home = getattr(sys.modules.get(module), "__file__", None)
    if home is not None and module.split(".")[0] == __name__.split(".")[0]:
        # One of ours, which the target's origin and values tell apart; a pickle may depend on what else is imported.
        return f"{module}.{getattr(function, '__qualname__', '')}".encode() + Path(home).read_bytes()
    try:
        return cloudpickle.dumps(function) + (b"" if home is None else Path(home).read_bytes())
    except Exception:  # whatever pickling meets: a lock, a file, a socket
        return _THIS_PROCESS


_THIS_PROCESS = secrets.token_bytes(16)
