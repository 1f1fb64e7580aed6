"""Objects that compiled code knows by a number, since the operators of torch take tensors and numbers only."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Self

from thereexists.core.constant_result import constant_result

_KNOWN: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_KEPT: dict[int, Any] = {}
_NUMBERS = itertools.count(1)


class Numbered:
    """An object with a number of this process, from its making on: a compiler that meets it finds the number there.

    Copies and unpickled objects are made by ``__new__``, too, and have numbers of their own: names that begin with
    ``_of_this_process`` do not travel.
    """

    def __new__(cls, *_args: Any, **_named: Any) -> Self:
        made = super().__new__(cls)
        number = next(_NUMBERS)
        # A note beside the fields, which may be frozen. As text: the second number that torch's compiler meets in one
        # place becomes a variable of the graph, like a size.
        made.__dict__["_of_this_process_number"] = str(number)
        _KNOWN[number] = made
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_of_this_process")}

    @property
    def number(self) -> int:
        return int(self.__dict__["_of_this_process_number"])


@constant_result
def kept(number: int) -> int:
    """The number, whose object lives as long as this process: as long as compiled code that asks for it may.

    A compiler calls this once, while it makes the code.
    """
    _KEPT[number] = _KNOWN[number]
    return number


def numbered(number: int) -> Any:
    """The object behind a number, as long as somebody holds it."""
    return _KNOWN[number]
