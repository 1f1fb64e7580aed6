"""The hash of a file of a suite."""

from __future__ import annotations

import hashlib
from pathlib import Path

from thereexists.core.errors import InvalidInput
from thereexists.core.regular_files import open_regular


def sha256(file: Path) -> str:
    with open_regular(file, error=InvalidInput) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
