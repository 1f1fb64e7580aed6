"""The two verbs that make something: each finds the method for what it is given, and asks it.

te.build(target, te.Faithful(delta=1 / 8))          te.build(target, delta=1 / 8)
te.build(target, te.Compact(delta=1 / 8))           te.build(target, delta=1 / 8, construction="compact")
te.build(te.Table(inputs, outputs))                 te.build(program, epsilon=1e-3, dtype="float32")
te.build(te.automata.regex("(ab|ba)*", "ab"), n=1024)        te.build(parity, n=1024, construction="counting")
"""

from __future__ import annotations

import dataclasses
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.core.kinds import KINDS, named
from thereexists.core.neutral import neutral
from thereexists.witness.method import Method


@neutral()
def build(target: Any, method: Any = None, **options: Any) -> Any:
    """Construct a Transformer that computes ``target``: a target, a table, a program or an automaton.

        witness = te.build(te.targets.builtin("sort", n=3), delta=1 / 8)

    Args:
        target: what to compute. A ``te.Target`` or a built-in one (``te.targets.builtin``), a ``te.Table``, a program
            (``te.program``) or an automaton (``te.automata``).
        method: how to build it, as an object: ``te.Faithful(...)`` or ``te.Compact(...)``. Usually left out.
        **options: the fields of the method. A target takes those of ``te.Faithful``, or with
            ``construction="compact"`` those of ``te.Compact``: ``delta`` or ``epsilon`` first of all. A program takes
            ``epsilon``, a bound in the sup norm, and ``dtype``, in which it holds. An automaton takes ``n`` and
            ``dtype``; it counts where it is a commutative group, unless ``construction="doubling"``. A table takes
            none.

    Returns:
        A witness: the network with its plan. Call it, ``save`` it, ``te.certify`` it.

    Raises:
        InvalidInput: the target or an option is not what it must be.
        CannotBuild: the network would be too large, or its ids need more bits than float64 has.
        NotProved: no grid was found whose certificate keeps ``epsilon``.
    """
    return the_method(target, method, options).build(target)


@neutral()
def plan(target: Any, method: Any = None, **options: Any) -> Any:
    """What ``build`` would give, with the same arguments: sizes, and the predicted error where there is one.

        te.plan(te.targets.builtin("sort", n=3), delta=1 / 16).layers["total"]  # 12,385

    Args:
        target: as for ``te.build``.
        method: as for ``te.build``.
        **options: as for ``te.build``.

    Returns:
        A plan: ``layers``, ``parameters`` and, of a function, ``memory_bytes`` and the predicted ``error``.

    Raises:
        InvalidInput: the target or an option is not what it must be.
        CannotBuild: nothing could be built with these options; the message says what could.
    """
    return the_method(target, method, options).plan(target)


def the_method(target: Any, method: Any, options: dict[str, Any]) -> Method:
    """The method that is given, or the one that the options describe."""
    if method is not None:
        if options:
            raise InvalidInput(f"{next(iter(options))!r} is an option of a method: give it to {type(method).__name__}.")
        if not isinstance(method, Method):
            raise InvalidInput(f"A method is te.Faithful(…) or te.Compact(…); got {method!r}. Name your options.")
        return method
    known = getattr(type(target), "built_by", None)
    if known is None:
        raise InvalidInput(
            f"A target is needed: te.Target(f, n=…), or te.targets.builtin(name, n=…), a te.Table, a program or an "
            f"automaton; got {type(target).__name__}."
        )
    construction = options.pop("construction", next(iter(known)))
    if not isinstance(construction, str) or construction not in known:
        raise InvalidInput(f"'construction' must be one of {', '.join(known)}; got {construction!r} instead.")
    place = known[construction]  # a kind, or who chooses one
    made = named(place) if ":" in place else KINDS[place].find("method")
    fields = [field.name for field in dataclasses.fields(made)]
    unknown = [name for name in options if name not in fields]
    if unknown:
        takes = f"takes {', '.join(fields)}" if fields else "takes no options"
        raise InvalidInput(f"{unknown[0]!r} is not an option of {made.__name__}, which {takes}.")
    return made(**options)
