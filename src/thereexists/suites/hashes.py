"""The hash of a file of a suite."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
