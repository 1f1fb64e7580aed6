"""The folder that somebody names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import shown


def folder_named(given: Any) -> Path:
    """As a path; whatever names no folder is refused, a witness in place of its folder among it."""
    if not isinstance(given, str | os.PathLike):
        raise InvalidInput(f"A folder is named by a text or a path; got {shown(given)} instead.")
    return Path(given)
