"""How a network and a target reach a worker: by the files they came from, checked on arrival; not as live objects.

A worker imports this package, reads the witness's weights (data, no code), and runs the user's function file only if
its SHA-256 is the recorded one. A function that lives in the caller's process alone (a lambda) is sent as it is.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from thereexists import storage
from thereexists.errors import BadWitnessFile, InvalidInput
from thereexists.model import Transformer
from thereexists.target import Target, from_file
from thereexists.targets import BUILTINS, builtin, restore


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
    """A built-in by name, a function file by path and hash, or, failing both, the object itself."""

    record: dict[str, Any]
    bound: float | None
    pickled: bytes | None = None

    @classmethod
    def of(cls, target: Target, stays: bool = False) -> ShippedTarget:
        """``stays``: nobody will ever load it."""
        record = target.describe()
        if stays or _is_builtin(target) or _is_from_file(target):
            return cls(record, target.bound)
        import cloudpickle

        return cls(record, target.bound, cloudpickle.dumps(target))

    def load(self) -> Target:
        if self.pickled is not None:
            import cloudpickle

            return cloudpickle.loads(self.pickled)
        origin = self.record["origin"]
        stored = dataclasses.replace(restore(self.record), bound=self.bound)
        if origin["kind"] == "builtin":
            return stored
        try:
            given = from_file(origin["reference"], n=stored.n, d=stored.d)
        except InvalidInput as error:
            raise BadWitnessFile(f"A worker cannot read the function: {error}") from error
        if given.origin["sha256"] != origin["sha256"]:
            raise BadWitnessFile(
                f"{origin['reference']} is not the file that was recorded (its SHA-256 differs); the worker did not "
                "use it."
            )
        return dataclasses.replace(stored, f=given.f)


def _is_builtin(target: Target) -> bool:
    if target.origin.get("kind") != "builtin" or target.name not in BUILTINS or target.modulus is not None:
        return False
    again = restore(target.describe())
    known = builtin(target.name, n=target.n, d=target.d)
    return again.f is target.f and (target.interval is None) == (known.interval is None)


def _is_from_file(target: Target) -> bool:
    return target.origin.get("kind") == "file" and target.modulus is None and target.interval is None
