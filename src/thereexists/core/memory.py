"""Whether an error says that the machine ran out of memory: then nothing is known of what was asked for, or of a file.

NumPy and Python raise ``MemoryError``; torch raises a ``RuntimeError`` with a sentence of its own, the system an
``OSError``. An error of ours that was raised *from* one of them counts as well. (torch is not imported here: the
command line asks, and its help must not wait for torch.)
"""

from __future__ import annotations

import errno
import re

# of a RuntimeError: torch's allocator (Linux, then Windows), its mapped files, C++'s own word, a GPU, a thread's stack
_SAID = (
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "Cannot allocate memory",
    "std::bad_alloc",
    "CUDA out of memory",
    "can't start new thread",
)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether the error, or one that it was raised from, is for want of memory."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if isinstance(error, RuntimeError) and (
            type(error).__name__ == "OutOfMemoryError" or any(words in str(error) for words in _SAID)
        ):
            return True
        error = error.__cause__
    return False


def too_little_memory(error: BaseException) -> str:
    """One sentence about it; of torch's own, which names lines of its source, only how much was asked for."""
    asked = re.search(r"tried to allocate ([\d.]+ ?\w+)", str(error))
    told = str(error).strip().partition("\n")[0][:200].rstrip(".") if isinstance(error, MemoryError) else ""
    more = f"{asked[1]} were asked for" if asked else told
    return f"This needs more memory than there is{f' ({more})' if more else ''}."


def unless_memory(error: BaseException) -> str:
    """What a caller's function raised, in a line; but raised again where it was for want of memory."""
    if is_out_of_memory(error):
        raise error
    return f"{type(error).__name__}: {error}".splitlines()[0]
