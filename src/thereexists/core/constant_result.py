"""``torch.compiler.assume_constant_result``, without its price: calling it loads all of torch's compiler, two seconds.

It only writes a note on the function, which the compiler reads when it comes by; we write the same note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def constant_result(function: F) -> F:
    """Mark a function whose result a compiled model may hold as a constant."""
    vars(function)["_dynamo_marked_constant"] = True
    return function
