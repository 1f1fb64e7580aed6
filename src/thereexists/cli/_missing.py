"""A package that is not installed: which extra brings it, as the package's own metadata say."""

from __future__ import annotations

import re
import traceback
from importlib import metadata
from pathlib import Path

NAMES = {"pysat": "python-sat"}  # of modules, where the package is called otherwise
ROOMS = {"experiments": "train", "mixers": "train", "exports": "export", "evaluate": "fast"}  # and their extras


def the_extra_to_install(error: ModuleNotFoundError) -> str | None:
    """One sentence, or None where no extra of ours brings the module."""
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
