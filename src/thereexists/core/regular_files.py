"""The one way to open a file that a stranger may have put there: an ordinary file, of a stated size at most.

A name in a stranger's folder may be a pipe that never answers, a device that never ends, or a link that leads in a
circle. The file is opened without waiting, and looked at *after* it was opened, so that it cannot change in between.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from thereexists.core.errors import BadWitnessFile, InvalidInput, Obstructed, ThereExistsError, Unreadable

# Why a file cannot be read that may be in perfect order: rights, devices, limits of this process.
_OURS = {errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.EINTR}
_UNKNOWN: dict[type[ThereExistsError], type[ThereExistsError]] = {BadWitnessFile: Unreadable, InvalidInput: Obstructed}
MOST_ENTRIES = 100_000  # that are looked at below a folder


def open_regular(
    file: str | Path, most: int | None = None, error: type[ThereExistsError] = BadWitnessFile
) -> BufferedReader:
    """The opened file. One sentence if it is not there, no ordinary file, or longer than ``most`` bytes."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as failed:
        raise _unread(error, failed)(
            f"{file} cannot be read: {getattr(failed, 'strerror', None) or failed}."
        ) from failed
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        raise error(f"{file} cannot be read: it is {_kind(about.st_mode)}, and an ordinary file is wanted.")
    if most is not None and about.st_size > most:
        os.close(handle)
        raise error(f"{file} has {about.st_size:,} bytes; a file of this kind has at most {most:,}.")
    return os.fdopen(handle, "rb")


def read_regular(file: str | Path, most: int, error: type[ThereExistsError] = BadWitnessFile) -> bytes:
    """Its content: as many bytes as it has when it is opened, no more, however it grows."""
    with open_regular(file, most, error) as stream:
        try:
            return stream.read(os.fstat(stream.fileno()).st_size)
        except OSError as failed:
            raise _unread(error, failed)(f"{file} cannot be read: {failed.strerror}.") from failed


def file_sha256(file: str | Path, error: type[ThereExistsError] = BadWitnessFile) -> str:
    """Of as many bytes as it has when it is opened: a link may lead to a file of the system that states none."""
    with open_regular(file, error=error) as stream:
        left, digest, part = os.fstat(stream.fileno()).st_size, hashlib.sha256(), memoryview(bytearray(1 << 18))
        try:
            while left > 0 and (read := stream.readinto(part[: min(left, len(part))])):
                digest.update(part[:read])
                left -= read
        except OSError as failed:
            raise _unread(error, failed)(f"{file} cannot be read: {failed.strerror}.") from failed
    return digest.hexdigest()


def _unread(error: type[ThereExistsError], failed: Exception) -> type[ThereExistsError]:
    """What a failure to read tells: something about the file, or only about us."""
    ours = isinstance(failed, OSError) and failed.errno in _OURS
    return _UNKNOWN.get(error, error) if ours else error


def files_below(folder: Path, most: int = MOST_ENTRIES) -> Iterator[Path]:
    """The files of a folder and of those in it, no link followed; one sentence after ``most`` entries."""
    left, todo = most, [folder]
    while todo:
        inner = []
        with suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    raise InvalidInput(f"{folder} holds more than {most:,} files; give the folder of the runs itself.")
                if entry.is_dir(follow_symlinks=False):
                    inner.append(Path(entry.path))
                elif entry.is_file():
                    yield Path(entry.path)
        todo += inner


def is_regular(file: str | Path) -> bool:
    """Whether there is an ordinary file, or a link to one."""
    try:
        return stat.S_ISREG(os.stat(file).st_mode)
    except (OSError, ValueError):
        return False


def _kind(mode: int) -> str:
    words = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISCHR: "a device", stat.S_ISBLK: "a device"}
    return next((word for test, word in words.items() if test(mode)), "a socket")
