"""The one reader of .npy and .npz files that somebody else may have written. Whatever is wrong becomes one sentence.

A few bytes can state an array larger than any memory, a name can hold what no array is, and a packed file can be a
thousand times longer than it looks. So the archive and the header of every array are looked at first: the kind of its
numbers, its shape, and that exactly so many bytes are there. Only then is memory asked for. Nothing is unpickled.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.regular_files import open_regular

MOST_BYTES = 2 << 30  # of all arrays of a file together
MOST_ARRAYS = 4096
_NUMBERS, _WORDS = "biuf", "SU"
_LONGEST_HEADER = 10_000
_DEFLATED_AT_MOST = 1032  # bytes of content for one byte of deflate's output
_WRONG = (ValueError, TypeError, LookupError, SyntaxError, EOFError, OSError, RuntimeError, ArithmeticError,
          MemoryError, TokenError, zipfile.BadZipFile, zlib.error)  # fmt: skip


def read_npz(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name: real numbers or Booleans, and words in arrays without axes."""
    with open_regular(path, None, InvalidInput) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                members = _members(archive)
                return {info.filename.removesuffix(".npy"): _member(archive, info) for info in members}
        except _WRONG as error:
            why = _shortly(error)
            raise InvalidInput(
                f"{path} is not an .npz file of plain arrays ({why}); write one with numpy.savez."
            ) from None


def read_npy(path: str | Path) -> np.ndarray:
    """The array of an .npy file: real numbers or Booleans."""
    with open_regular(path, None, InvalidInput) as stream:
        try:
            stream.seek(0, 2)
            size = stream.tell()
            stream.seek(0)
            return _array(stream, size)
        except _WRONG as error:
            raise InvalidInput(
                f"Cannot read {path} as a NumPy file: it holds no plain array ({_shortly(error)})."
            ) from None


def names_in(path: str | Path) -> set[str]:
    """The names of the members of an .npz file; none if it is not one."""
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
            return {info.filename for info in archive.infolist()[:MOST_ARRAYS]}
    except _WRONG:
        return set()


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    found = archive.infolist()
    if len(found) > MOST_ARRAYS or len({info.filename for info in found}) != len(found):
        raise ValueError(f"it names something twice, or more than {MOST_ARRAYS:,} arrays")
    for info in found:
        if not info.filename.endswith(".npy") or info.flag_bits & 1:
            raise ValueError("it holds something that is encrypted, or is not a .npy array")
        room = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: _DEFLATED_AT_MOST}.get(info.compress_type)
        if room is None:
            raise ValueError("it is compressed in a way that NumPy does not use")
        if info.file_size > room * info.compress_size:
            raise ValueError(f"it states {info.file_size:,} bytes where there is no room for them")
    if sum(info.file_size for info in found) > MOST_BYTES:
        raise ValueError(f"its arrays have more than {MOST_BYTES:,} bytes")
    return found


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as stream:
        array = _array(stream, info.file_size, words=True)
        if stream.read(1):  # reads to the end, where the checksum is compared
            raise ValueError("it is longer than it states")
        return array


def _array(stream: Any, size: int, words: bool = False) -> np.ndarray:
    """One array out of ``size`` bytes; the header must account for every one of them."""
    shape, fortran, dtype = _header(stream)
    if not all(type(side) is int and side >= 0 for side in shape) or len(shape) > 32:
        raise ValueError(f"{str(shape)[:80]} is not a shape")
    if not (dtype.kind in _NUMBERS or (words and dtype.kind in _WORDS and shape == ())) or not dtype.itemsize:
        raise ValueError(f"its numbers have the type {str(dtype)[:80]}, and real numbers are wanted")
    count = math.prod(shape)
    there = size - stream.tell()
    if count * dtype.itemsize != there:
        raise ValueError(f"an array of shape {str(shape)[:80]} does not fit the {there:,} bytes that are there")
    if there > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    flat: Any = np.empty(count, dtype)
    _fill(stream, memoryview(flat.view(np.uint8)) if count else memoryview(bytearray()))
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(stream: Any) -> tuple[tuple[Any, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"the version {version} of the format is not read here")
    return readers[version](stream, max_header_size=_LONGEST_HEADER)


def _fill(stream: Any, view: memoryview) -> None:
    at = 0
    while at < len(view):
        got = stream.read(min(1 << 24, len(view) - at))
        if not got:
            raise EOFError("it ends early")
        view[at : at + len(got)] = got
        at += len(got)


def _shortly(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200].rstrip(".") or type(error).__name__
