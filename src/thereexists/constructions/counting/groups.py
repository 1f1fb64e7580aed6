"""An automaton whose letters are commuting permutations, as counters whose values add up to the state.

Let the distinct letters that move something act as g_1, …, g_A, largest order first. They generate a commutative group
that leads the start everywhere; such a group has exactly one element for each state (if g and h lead the start to the
same state, they lead every state, which some k leads it from the start, to the same one). *Digits*: with H_t generated
by g_1 … g_t, every element is g_1^{e_1} ⋯ g_A^{e_A} for exactly one list of e_t < [H_t : H_{t−1}].

So counts c_g lead to Π_g g^{c_g}, and each factor has digits; adding the digits up, e_t(g_1^{c_1}) + e_t(g_2^{c_2}) +
… = D_t, without any carry, the state is start · Π_t g_t^{D_t}. The digit sums are written as one number in mixed radix,
Σ_t D_t·B_t: D_t is at most M_t, the sum of its largest digits, so B_{t+1} = B_t(M_t + 1) keeps them apart. Counting
modulo m takes at most A(m − 1) + 1 numbers in this way, and independent counters the product of their moduli.

The symbol that was read last stands above all digits where a machine writes: what a step writes is a function of the
state after it and of the symbol.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.automata.automaton import Automaton
from thereexists.certificates.counting_proof import MOST_SUMS
from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Array


@dataclass(frozen=True)
class Counters:
    """``letters`` (symbols,): the counter of each, −1 for none; ``values``: of each counter, (order,) whole numbers.

    ``states`` (sums,): the state of every sum; ``classes`` (symbols,): symbols of one class have one counter and write
    the same. The number of a class stands above the sums.
    """

    automaton: Automaton
    letters: Array
    values: tuple[Array, ...]
    states: Array
    classes: Array

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def numbers(self) -> int:
        """How many numbers the sum row may hold."""
        return len(self.states) * (int(self.classes.max()) + 1)

    def answers(self) -> Array:
        """The read-out of every number: (numbers, states + outputs + 1) of 0/1."""
        machine, Q, O = self.automaton, self.automaton.size, len(self.automaton.output_alphabet)
        found = np.zeros((int(self.classes.max()) + 1, len(self.states), Q + O + 1))
        found[:, np.arange(len(self.states)), self.states] = 1.0
        found[:, :, -1] = machine.accept[self.states]
        if machine.writes:
            for c, a in enumerate(np.unique(self.classes, return_index=True)[1]):
                before = np.argsort(machine.table[:, a])[self.states]  # the inverse of a permutation
                found[c, np.arange(len(self.states)), Q + machine.outputs[before, a]] = 1.0
        return found.reshape(-1, Q + O + 1)


def counters_of(automaton: Automaton) -> Counters:
    """The counters, or ``CannotBuild`` with the reason why there are none."""
    Q, letters = automaton.size, automaton.table.T  # (symbols, states)
    if (np.sort(letters, axis=1) != np.arange(Q)).any():
        raise CannotBuild("Counting is for groups: a symbol of this automaton leads two states to the same one.")
    moving = letters[(letters != np.arange(Q)).any(axis=1)]
    if not len(moving):
        raise CannotBuild("Counting is for groups: no symbol of this automaton moves a state, so nothing is counted.")
    actions = np.unique(moving, axis=0)
    if any(not np.array_equal(actions[:, g], g[actions]) for g in actions):
        raise CannotBuild("Counting is for commutative groups: two symbols of this automaton do not commute.")
    powers = sorted((_powers(g) for g in actions), key=len, reverse=True)
    digits = _digits(automaton.start, powers)
    if len(digits) < Q:
        raise CannotBuild(f"Counting takes automata whose states are all reached; {Q - len(digits)} are not.")
    of_powers = [np.array([digits[g[automaton.start]] for g in power]) for power in powers]  # (order, counters)
    radix = np.sum([part.max(axis=0) for part in of_powers], axis=0) + 1
    size = float(np.prod(radix.astype(float)))
    classes = _classes(automaton)
    if size * (classes.max() + 1) >= MOST_SUMS:
        raise CannotBuild(
            f"The counters of this automaton take {size * (classes.max() + 1):,.0f} numbers; fewer than {MOST_SUMS:,} "
            "are built."
        )
    base = np.cumprod([1, *radix[:-1]])
    number = {power[1 % len(power)].tobytes(): g for g, power in enumerate(powers)}
    return Counters(
        automaton,
        np.array([number.get(np.ascontiguousarray(f).tobytes(), -1) for f in letters]),
        tuple(part @ base for part in of_powers),
        _states(automaton.start, powers, radix),
        classes,
    )


def _powers(action: Array) -> list[Array]:
    """1, g, g², …, each once. In a group that moves every state as it moves the start they are as many as its orbit."""
    found = [np.arange(len(action))]
    while not np.array_equal(following := action[found[-1]], found[0]) and len(found) <= len(action):
        found.append(following)
    return found


def _digits(start: int, powers: list[list[Array]]) -> dict[int, tuple[int, ...]]:
    """The digits of the element that leads the start to a state, for all states that there are."""
    found: dict[int, tuple[int, ...]] = {start: ()}
    for power in powers:
        relative = next((r for r in range(1, len(power)) if int(power[r][start]) in found), len(power))
        found = {int(power[e][q]): (*digits, e) for e in range(relative) for q, digits in found.items()}
    return found


def _states(start: int, powers: list[list[Array]], radix: Array) -> Array:
    """start · Π g_t^{D_t} for all numbers Σ D_t B_t, the first digit changing fastest."""
    found = np.array([start])
    for power, size in zip(powers, radix.tolist(), strict=True):
        found = np.stack([power[D % len(power)][found] for D in range(size)]).reshape(-1)
    return found


def _classes(automaton: Automaton) -> Array:
    """Symbols that do and write the same have one number; all have 0 where nothing is written."""
    if not automaton.writes:
        return np.zeros(len(automaton.alphabet), dtype=np.int64)
    told = np.concatenate([automaton.table, automaton.outputs]).T
    return np.unique(told, axis=0, return_inverse=True)[1].reshape(-1)
