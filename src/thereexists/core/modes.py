"""Who may read what is written: whoever the umask lets, as for any file that a program opens.

``mkstemp`` and ``mkdtemp`` keep everybody else out, and so does the writer of safetensors; what they made gets its mode
here, when it is complete.
"""

from __future__ import annotations

import os
from pathlib import Path

_UMASK = os.umask(0o077)  # it can be read only by setting it, for the whole process: once, and back at once
os.umask(_UMASK)


def as_the_umask_says(path: Path) -> None:
    """For a file or a folder."""
    path.chmod((0o777 if path.is_dir() else 0o666) & ~_UMASK)
