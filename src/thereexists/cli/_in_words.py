"""What is no mistake of ours, nor of a file, in one sentence: a full disk, too little memory, a missing package."""

from __future__ import annotations

import re
import traceback
from importlib import metadata
from pathlib import Path

from thereexists.core.memory import is_out_of_memory, too_little_memory

NAMES = {"pysat": "python-sat"}  # of modules, where the package is called otherwise
ROOMS = {"experiments": "train", "mixers": "train", "exports": "export", "evaluate": "fast"}  # and their extras


def in_words(error: Exception) -> str | None:
    """One sentence about what the machine refused, or None: then it is a fault of ours, and its traceback is wanted."""
    if is_out_of_memory(error):
        return too_little_memory(error)
    if isinstance(error, ModuleNotFoundError):
        return _the_extra_to_install(error)
    if not isinstance(error, OSError):
        return None
    place = next((name for name in (error.filename2, error.filename) if name is not None), None)
    reason = error.strerror or str(error) or type(error).__name__
    return f"{reason}." if place is None else f"{place}: {reason}."


def _the_extra_to_install(error: ModuleNotFoundError) -> str | None:
    """As the package's own metadata say; None where no extra of ours brings the module."""
    module = (error.name or "").partition(".")[0]
    extras = _extras(NAMES.get(module, module))
    if not extras:
        return None
    places = [Path(frame.filename).parts for frame in traceback.extract_tb(error.__traceback__)]
    asking = {ROOMS.get(part, part) for place in places for part in place}
    extra = next((extra for extra in extras if extra in asking), extras[0])
    return f"This needs the package {module}, which is not installed: pip install 'thereexists[{extra}]'."


def _extras(package: str) -> list[str]:
    try:
        wanted = metadata.requires("thereexists") or []
    except metadata.PackageNotFoundError:
        return []
    found = [re.fullmatch(r"([\w.-]+).*extra == ['\"](\w+)['\"].*", line) for line in wanted]
    return [match[2] for match in found if match and match[1].lower() == package.lower() and match[2] != "dev"]
