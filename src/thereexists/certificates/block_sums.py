"""The sums over cubes that a rigorous certificate was made of, block by block: kept beside it, known by their hash.

A kill between the two renames of a save leaves the new certificate with the new sums under the name they were written
to; here they are known by their hash and put in place.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from thereexists.certificates.certificate import BLOCKS
from thereexists.core.atomic_files import parts_of
from thereexists.core.errors import BadWitnessFile, Recovered, Unreadable
from thereexists.core.regular_files import is_regular, read_regular

Blocks = list[list[float]]

_MOST_ROWS = 1 << 19  # twice the most blocks there are
SUMS, OLDER_SUMS = 10, 6  # of a block; older ones say nothing of single inputs, nor of the float64 run
_MOST_BYTES = SUMS * 8 * _MOST_ROWS + 4096  # and a header


@dataclass(frozen=True)
class Computed:
    """Sums that are at hand, for a certificate that asks for them: unlike a lambda, it can be pickled."""

    blocks: Blocks

    def __call__(self) -> Blocks:
        return self.blocks


def load_blocks(folder: str | Path, sha256: str) -> Blocks:
    """The sums with this hash; refused if they are not those."""
    file = Path(folder) / BLOCKS
    if not (is_regular(file) or parts_of(file)):
        raise BadWitnessFile(f"{folder} has no {BLOCKS} whose sums could be checked: certify it again.")
    problem = f"{file} holds other sums than the certificate was made of: its SHA-256 differs."
    for place in (file, *parts_of(file)):
        try:
            blocks = _read(place)
        except Unreadable:  # by us, here: nothing is known of it
            raise
        except BadWitnessFile as error:
            problem = str(error) if place == file and is_regular(file) else problem
            continue
        if blocks_sha256(blocks) == sha256:
            if place != file:
                with suppress(OSError):
                    os.replace(place, file)
                told = f"A save of the certificate in {folder} was interrupted; its sums have been put in place."
                warnings.warn(told, Recovered, stacklevel=2)
            return blocks
    raise BadWitnessFile(problem)


def _read(file: Path) -> Blocks:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        stored = load(read_regular(file, _MOST_BYTES))["sums"]
    except (SafetensorError, KeyError) as error:
        raise BadWitnessFile(f"{file} was truncated or changed: {error}") from error
    shaped = stored.ndim == 2 and stored.shape[1] in (SUMS, OLDER_SUMS) and len(stored) <= _MOST_ROWS
    if stored.dtype != np.float64 or not shaped:
        raise BadWitnessFile(f"{file} was changed: it holds {stored.dtype} {stored.shape}, not ten sums per block.")
    return stored.tolist()


def packed(blocks: Blocks) -> bytes:
    from safetensors.numpy import save

    return save({"sums": np.array(blocks, dtype=np.float64)})


def blocks_sha256(blocks: Blocks) -> str:
    return hashlib.sha256(np.array(blocks, dtype="<f8").tobytes()).hexdigest()
