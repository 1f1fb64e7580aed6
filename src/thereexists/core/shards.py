"""Weights larger than memory: several safetensors files with an index, as the ecosystem shards, mapped and not read.

``model.safetensors.index.json`` names the file of every tensor; each stage of the network lies in one file, so that its
pages can be given back as soon as the stage has been used. Mapped tensors are read-only views of the file: dropping
their pages costs a later reader a page fault and nothing else.
"""

from __future__ import annotations

import json
import math
import mmap
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from thereexists.core.errors import BadWitnessFile, ThereExistsError, Unreadable
from thereexists.core.json_files import MOST_BYTES, parse_json, read_json
from thereexists.core.memory import is_out_of_memory
from thereexists.core.regular_files import open_regular

INDEX = "model.safetensors.index.json"
_DTYPES = {"F64": torch.float64, "BOOL": torch.bool}
_FILES: WeakKeyDictionary[nn.Module, list[MappedFile]] = WeakKeyDictionary()


class MappedFile:
    """A safetensors file, mapped into memory. ``release()`` drops the pages that were read."""

    def __init__(self, file: Path):
        try:
            with open_regular(file) as stream:
                self.map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise Unreadable(f"{file} cannot be read: {error}") from error
        except ThereExistsError:
            raise
        except ValueError as error:  # an empty file cannot be mapped
            raise BadWitnessFile(f"{file} cannot be read: {error}") from error
        length = int.from_bytes(self.map[:8], "little")
        if not 2 <= length <= min(MOST_BYTES, len(self.map) - 8):
            raise BadWitnessFile(f"{file} is not a safetensors file: it states a header of {length:,} bytes.")
        header = parse_json(self.map[8 : 8 + length], str(file))
        if not isinstance(header, dict):
            raise BadWitnessFile(f"{file} is not a safetensors file: its header is not an object.")
        header.pop("__metadata__", None)
        self._follow_each_other(file, header, len(self.map) - 8 - length)
        self.tensors = {name: self._tensor(file, about, 8 + length) for name, about in header.items()}

    def _follow_each_other(self, file: Path, header: dict[str, Any], size: int) -> None:
        """Every byte belongs to one tensor, as the format has it: many over the same bytes would be free to send."""
        try:
            offsets = sorted(tuple(about["data_offsets"]) for about in header.values())
            ends = [0, *(stop for _, stop in offsets)]
            whole = [first for first, _ in offsets] == ends[:-1] and ends[-1] == size
        except (KeyError, TypeError, ValueError) as error:
            raise BadWitnessFile(f"{file} is not a safetensors file: {error}") from error
        if not whole:
            raise BadWitnessFile(f"{file} is not a safetensors file: its tensors overlap, or leave bytes between them.")

    def _tensor(self, file: Path, about: Any, start: int) -> Tensor:
        try:
            dtype, shape, (first, stop) = _DTYPES[about["dtype"]], about["shape"], about["data_offsets"]
            if not all(type(x) is int and 0 <= x < 1 << 62 for x in (*shape, first, stop)):
                raise ValueError(f"shapes and offsets must be whole numbers; got {about}")
            count = math.prod(shape)
            if count * dtype.itemsize != stop - first or start + stop > len(self.map):
                raise ValueError(f"the file has no room for {about}")
            if count == 0:
                return torch.empty(shape, dtype=dtype)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="The given buffer is not writable")
                flat = torch.frombuffer(self.map, dtype=dtype, count=count, offset=start + first)
            return flat.reshape(shape)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            if is_out_of_memory(error):
                raise
            why = str(error).split("\n")[0][:300]
            raise BadWitnessFile(f"{file} is not a safetensors file of float64 arrays: {why}") from error

    def release(self) -> None:
        self.map.madvise(mmap.MADV_DONTNEED)


class Mapped(dict[str, Tensor]):
    """Mapped weights by name, and the files they are mapped from."""

    def __init__(self, weights: dict[str, Tensor], files: list[MappedFile]):
        super().__init__(weights)
        self.files = files


def read_index(folder: Path) -> dict[str, str]:
    """Tensor -> file, both as the index states them; a name that leaves the folder is refused."""
    try:
        weight_map = read_json(folder / INDEX)["weight_map"]
        files = set(weight_map.values())
    except (KeyError, TypeError, AttributeError) as error:
        raise BadWitnessFile(f"{folder / INDEX} was truncated or changed: {error}") from error
    strange = [name for name in files if not isinstance(name, str) or Path(name).name != name]
    if strange:
        raise BadWitnessFile(f"{folder / INDEX} names the file {strange[0]!r}, which is not one of this folder.")
    return weight_map


def write_index(folder: Path, weight_map: dict[str, str], total_bytes: int) -> None:
    index = {"metadata": {"total_size": total_bytes}, "weight_map": dict(sorted(weight_map.items()))}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def map_shards(folder: Path) -> tuple[dict[str, Tensor], list[MappedFile]]:
    """All tensors of a sharded folder, none of them read yet; the index and the files must name the same ones."""
    weight_map = read_index(folder)
    files = {name: MappedFile(folder / name) for name in sorted(set(weight_map.values()))}
    weights: dict[str, Tensor] = {}
    for name, file in files.items():
        for tensor, value in file.tensors.items():
            if weight_map.get(tensor) != name or tensor in weights:
                raise BadWitnessFile(f"{folder / name} holds the tensor {tensor}, which the index places elsewhere.")
            weights[tensor] = value
    if weights.keys() != weight_map.keys():
        lost = sorted(weight_map.keys() - weights.keys())[0]
        raise BadWitnessFile(f"The index names the tensor {lost}, and {weight_map[lost]} does not hold it.")
    return weights, list(files.values())


def remember(network: nn.Module, files: Iterable[MappedFile]) -> None:
    """Note which files a network's weights are mapped from."""
    _FILES[network] = list(files)


def is_mapped(network: nn.Module) -> bool:
    return network in _FILES


def release(network: nn.Module) -> None:
    """Give back the pages of a mapped network; nothing happens to one that lives in memory."""
    for file in _FILES.get(network, ()):
        file.release()
