"""Stage 3, the schedule: when every atom is made; stage 4, rows: where it lives.

Time runs in half blocks: 0 is the embedding, 2b − 1 the attention and 2b the feed-forward half of block b. An atom is
made as early as its arguments allow, so independent operations share a block. Atoms that the output does not need are
dropped.

A row whose atom was read for the last time is set to zero by the next feed-forward half, and then given to another
atom. That is exact: ReLU(v) and ReLU(−v) are v and 0 in some order, and v − v = 0 in every arithmetic. A hinge that
carries a dying atom with coefficient 1 takes over its row; the residual connection carries it.

Limits on request: an attention half with its fill of heads sends further ones to the next block, and so does a
feed-forward half with its fill of units; rows that cannot be set to zero within the width are so later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.constructions.program.lowering import Atoms, Attend, Constant, Form, Hinge, Token


@dataclass(frozen=True)
class Schedule:
    """``made[a]``: the time of atom a; ``last[a]``: the last time it is read (``end`` for what the output reads)."""

    made: dict[int, int]
    last: dict[int, int]
    end: int

    @property
    def blocks(self) -> int:
        return (self.end + 1) // 2

    def at(self, time: int) -> list[int]:
        return [atom for atom, when in self.made.items() if when == time]


@dataclass(frozen=True)
class Layout:
    """``row[a]`` of every atom; ``erased[t]``: atoms set to zero at time t; ``heir[a]``: whose row a took over."""

    row: dict[int, int]
    erased: dict[int, list[int]]
    heir: dict[int, int]
    d_model: int
    one: int


def reads(definition: object) -> list[Form]:
    if isinstance(definition, Attend):
        return [definition.value, *definition.query, *definition.key]
    if isinstance(definition, Hinge):
        return [form for _, form in definition.units] + [definition.carried]
    return []


@dataclass(frozen=True)
class Limits:
    """The most heads of an attention half and the most units of a feed-forward half; None: no limit."""

    heads: int | None = None
    width: int | None = None


def schedule(atoms: Atoms, outputs: list[Form], limits: Limits = Limits()) -> Schedule:
    needed: set[int] = {atom for form in outputs for atom in form.terms}
    for atom in reversed(range(len(atoms.definitions))):
        if atom in needed:
            needed |= {a for form in reads(atoms.definitions[atom]) for a in form.terms}
    if any(isinstance(atoms.definitions[a], Attend | Hinge) for a in needed):
        needed |= {a for form in atoms.code(np.arange(atoms.n)) for a in form.terms}  # every key
    made: dict[int, int] = {}
    last: dict[int, int] = {}
    heads: dict[int, set] = {1: {"offset"}}  # the head that takes the tokens' offset away
    units: dict[int, int] = {}
    for atom in sorted(needed):
        definition = atoms.definitions[atom]
        arguments = {a for form in reads(definition) for a in form.terms}
        after = max((made[a] for a in arguments), default=0)
        made[atom] = 0
        if isinstance(definition, Attend):
            time = after + 1 + after % 2
            while limits.heads is not None and len(heads.get(time, set()) | {definition.head}) > limits.heads:
                time += 2
            heads.setdefault(time, set()).add(definition.head)
            made[atom] = time
        elif isinstance(definition, Hinge):
            time, cost = after + 2 - after % 2, units_of(definition)
            while limits.width is not None and units.get(time, 0) and units[time] + cost > limits.width:
                time += 2
            units[time] = units.get(time, 0) + cost
            made[atom] = time
        for a in arguments:
            last[a] = max(last.get(a, 0), made[atom])
    end = max(made.values(), default=0)
    end += end % 2
    last = {atom: last.get(atom, 0) for atom in made} | {a: end + 1 for form in outputs for a in form.terms}
    return Schedule(made, last, end)


def units_of(hinge: Hinge) -> int:
    """At most: two more for what it carries."""
    return len(hinge.units) + 2 * bool(hinge.carried.terms or hinge.carried.constant)


def allocate(atoms: Atoms, times: Schedule, limits: Limits = Limits()) -> Layout:
    """Rows of constants are kept for ever; all others are reused."""
    row: dict[int, int] = {}
    erased: dict[int, list[int]] = {}
    heir: dict[int, int] = {}
    free: list[int] = []
    d_model = 1  # row 0 is the constant 1

    def take() -> int:
        nonlocal d_model
        if free:
            return free.pop()
        d_model += 1
        return d_model - 1

    living: set[int] = set()
    for time in range(times.end + 1):
        for atom in times.at(time):
            definition = atoms.definitions[atom]
            if isinstance(definition, Hinge):
                for old, c in definition.carried.terms.items():
                    if c == 1 and old in living and times.last[old] == time:
                        heir[atom] = old
                        living.discard(old)
                        break
            row[atom] = row[heir[atom]] if atom in heir else take()
        if time % 2 == 0 and time > 0:
            done = sorted(atom for atom in living if times.last[atom] <= time)
            if limits.width is not None:
                used = sum(units_of(d) for d in (atoms.definitions[a] for a in times.at(time)) if isinstance(d, Hinge))
                done = done[: max(0, limits.width - used) // 2]
            erased[time] = done
            living -= set(erased[time])
            free += [row[atom] for atom in erased[time]]
        living |= {a for a in times.at(time) if not isinstance(atoms.definitions[a], Constant)}
    return Layout(row, erased, heir, d_model, 0)


def tokens_of(atoms: Atoms, times: Schedule) -> list[int]:
    return [a for a in times.made if isinstance(atoms.definitions[a], Token)]
