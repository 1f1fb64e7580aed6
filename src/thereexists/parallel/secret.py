"""The key that tells this user's finished work from a stranger's.

A job's folder may lie where others can put files: in a witness that was downloaded, on a shared disk. Every chunk in it
therefore carries a code (HMAC-SHA256) that only somebody with the key of the job can make, and the key of a job is made
from the user's own: 32 random bytes in ``job.key`` in the user's state folder, readable by nobody else. Workers get
the key of their job from whoever started it, and write; whoever started it decides what is believed.

``THEREEXISTS_STATE`` names another state folder. Where none can be written, the key lives as long as the process, and
an interrupted job starts again from the beginning.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import os
import secrets
import stat
import sys
from pathlib import Path

_BYTES = 32


def job_key(job: str) -> bytes:
    """The key of the job with this digest, for this user on this machine."""
    return hmac.digest(_user_key(str(state_folder())), job.encode(), "sha256")


def code_of(key: bytes, content: str) -> str:
    return hmac.new(key, content.encode(), hashlib.sha256).hexdigest()


def state_folder() -> Path:
    given = os.environ.get("THEREEXISTS_STATE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "thereexists"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "thereexists"


@functools.cache
def _user_key(folder: str) -> bytes:
    """Read once, so that all of a process's jobs agree; made where there is none."""
    file = Path(folder) / "job.key"
    fresh = secrets.token_bytes(_BYTES)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _ours_alone(file):
            return file.read_bytes()
        beside = file.with_name(f".job.key.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(fresh)
        try:
            os.link(beside, file)  # of two processes that do this at once, the first one wins
        except FileExistsError:
            if not _ours_alone(file):  # others could have read or written it
                beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)
        return file.read_bytes() if _ours_alone(file) else fresh
    except (OSError, RuntimeError):  # no home, a disk that is full or read-only: no resuming, that is all
        return fresh


def _ours_alone(file: Path) -> bool:
    """Whether the file is a whole key that nobody else can read or write."""
    try:
        about = file.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(about.st_mode) or about.st_size != _BYTES:
        return False
    return sys.platform == "win32" or (about.st_uid == os.getuid() and not about.st_mode & 0o077)
