"""The hash of a file of a suite."""

from __future__ import annotations

from pathlib import Path

from thereexists.core.errors import InvalidInput
from thereexists.core.regular_files import file_sha256


def sha256(file: Path) -> str:
    return file_sha256(file, InvalidInput)
