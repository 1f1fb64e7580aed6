"""The hash of a file of a suite."""

from __future__ import annotations

from pathlib import Path

from thereexists.core.errors import InvalidInput
from thereexists.core.regular_files import sha256_of


def sha256(file: Path) -> str:
    return sha256_of(file, InvalidInput)
