"""The one type of all automata: a complete deterministic machine, with acceptance and one output for each step.

    table[q, a]     the state after symbol a in state q
    accept[q]       whether a string that ends in q is accepted
    outputs[q, a]   which symbol of ``output_alphabet`` the step writes; −1 everywhere in a machine that writes nothing

A missing transition of what a user gives becomes one to a *dead* state: it is absorbing and not accepting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.owned_arrays import owned
from thereexists.core.plain_text import is_text, visible
from thereexists.functions.vocabulary import Token, check_vocabulary

MOST_STATES = 1 << 14  # of a machine as it is given, before it is minimised


@dataclass(frozen=True, repr=False, eq=False)
class Automaton:
    """A finite automaton: it accepts strings and, if it has outputs, writes one symbol per step.

        machine = te.automata.regex("(ab|ba)*", "ab")
        machine.accepts("abba"), machine.size

    Args:
        alphabet: the symbols.
        table: (states, symbols), the next state.
        start: the first state.
        accept: which states accept.
        outputs: (states, symbols), what is written, or −1.
        output_alphabet: the symbols that are written.
        names: of the states.
        before: how many states there were before it was minimised.
        origin: what it was made from.
    """

    built_by: ClassVar = {  # see ``constructions/build.py``
        "auto": "thereexists.constructions.automata.choose:Shallowest",
        "doubling": "automaton",
        "counting": "counting",
    }

    alphabet: tuple[Token, ...]
    table: np.ndarray  # (states, symbols)
    start: int
    accept: np.ndarray  # (states,)
    outputs: np.ndarray  # (states, symbols)
    output_alphabet: tuple[Token, ...]
    names: tuple[str, ...]
    before: int
    origin: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kinds, words in (("table", "iu", "whole numbers"), ("outputs", "iu", "whole numbers"),
                                   ("accept", "b", "Booleans")):  # fmt: skip
            given = np.asarray(getattr(self, name))
            if given.dtype.kind not in kinds:
                raise InvalidInput(f"'{name}' of an automaton must be an array of {words}; got {given.dtype}.")
            object.__setattr__(self, name, owned(given, np.bool_ if kinds == "b" else np.int64))
        Q, S = len(self.names), len(self.alphabet)
        shapes = (self.table.shape, self.outputs.shape, self.accept.shape)
        if not 1 <= Q <= MOST_STATES or S < 1 or shapes != ((Q, S), (Q, S), (Q,)):
            raise InvalidInput(
                f"An automaton must have 1 to {MOST_STATES:,} states, at least one symbol, and tables (states, "
                f"symbols); got {Q} states, {S} symbols and tables of the shapes {shapes}."
            )
        if not (0 <= self.start < Q and (self.table >= 0).all() and (self.table < Q).all()):
            raise InvalidInput(f"Every transition and the start must be one of the states 0 to {Q - 1}.")
        wanted = (0, len(self.output_alphabet)) if self.output_alphabet else (-1, 0)
        if not ((self.outputs >= wanted[0]).all() and (self.outputs < wanted[1]).all()):
            raise InvalidInput(f"Every output must be a number of the {len(self.output_alphabet)} output symbols.")

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def writes(self) -> bool:
        """Whether it is a transducer."""
        return bool(self.output_alphabet)

    @cached_property
    def number(self) -> dict[Token, int]:
        return {symbol: k for k, symbol in enumerate(self.alphabet)}

    @cached_property
    def dead(self) -> int | None:
        """The absorbing state that accepts nothing, of a machine that writes nothing; a minimal one has at most one."""
        if self.writes:
            return None
        found = np.flatnonzero((self.table == np.arange(self.size)[:, None]).all(axis=1) & ~self.accept)
        return int(found[0]) if len(found) == 1 and self.size > 1 else None

    def words(self, given: Any) -> list[np.ndarray]:
        """Strings (or lists of symbols) as numbers; a symbol that is not in the alphabet is refused by name."""
        return [self.word(word, k) for k, word in enumerate(given)]

    def word(self, given: Any, row: int | None = None) -> np.ndarray:
        symbols = given.tolist() if isinstance(given, np.ndarray) else given
        if not isinstance(symbols, str | list | tuple):
            raise InvalidInput(f"An input is a string or a list of symbols; got {type(symbols).__name__} instead.")
        try:
            return np.array([self.number[symbol] for symbol in symbols], dtype=np.int64)
        except (KeyError, TypeError):
            place = next(k for k, s in enumerate(symbols) if not isinstance(s, str | int) or s not in self.number)
            where = f"symbol {place}" if row is None else f"symbol {place} of string {row}"
            raise InvalidInput(
                f"{shown(symbols[place])} ({where}) is not in the alphabet of {len(self.alphabet)} symbols "
                f"{short(self.alphabet)}."
            ) from None

    def states(self, word: Any) -> np.ndarray:
        """The state after every prefix, the empty one included: (length + 1,), by the table."""
        return self.run(self.word(word)[None])[0]

    def run(self, ids: np.ndarray) -> np.ndarray:
        """The same for numbers (batch, length): (batch, length + 1). Negative numbers leave the state as it is."""
        found = np.empty((len(ids), ids.shape[1] + 1), dtype=np.int64)
        found[:, 0] = self.start
        for j in range(ids.shape[1]):
            found[:, j + 1] = np.where(ids[:, j] < 0, found[:, j], self.table[found[:, j], ids[:, j]])
        return found

    def accepts(self, word: Any) -> bool:
        return bool(self.accept[self.states(word)[-1]])

    def transduce(self, word: Any) -> list[Token]:
        """What it writes, one symbol per step."""
        if not self.writes:
            raise InvalidInput("This automaton writes nothing: it accepts or rejects.")
        ids = self.word(word)
        return [self.output_alphabet[k] for k in self.outputs[self.run(ids[None])[0, :-1], ids].tolist()]

    def __eq__(self, other: object) -> bool:
        """The same machine, whatever its states are called and whatever it was made from."""
        if not isinstance(other, Automaton):
            return NotImplemented
        same = self.alphabet == other.alphabet and self.output_alphabet == other.output_alphabet
        same = same and self.size == other.size and self.start == other.start
        return same and all(
            np.array_equal(getattr(self, part), getattr(other, part)) for part in ("table", "accept", "outputs")
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        writes = f", writes {len(self.output_alphabet)} symbols" if self.writes else ""
        return (
            f"Automaton: {self.size} states, {len(self.alphabet)} symbols "
            f"{short(self.alphabet)}, {int(self.accept.sum())} accepting{writes}"
        )

    def describe(self) -> dict[str, Any]:
        """Plain data, as a record holds it; ``restore`` reads it."""
        return {
            "alphabet": list(self.alphabet),
            "table": self.table.tolist(),
            "start": self.start,
            "accept": np.flatnonzero(self.accept).tolist(),
            "outputs": self.outputs.tolist() if self.writes else [],
            "output_alphabet": list(self.output_alphabet),
            "names": list(self.names),
            "before": self.before,
            "origin": self.origin,
        }


def expression_of(origin: dict[str, Any]) -> str | None:
    """The regular expression that a machine is said to come from, and its flags; None if it is said to come from
    anything else, whatever else the record says of that.
    """
    if origin.get("kind") != "regex" or not origin.get("pattern"):
        return None
    return f"{origin['pattern']}{under_flags(origin)}"


def under_flags(origin: dict[str, Any]) -> str:
    """What a regular expression is read with, as "with re.IGNORECASE": without its flags it says something else."""
    flags = origin.get("flags")
    if not flags:
        return ""
    known = [each for each in re.RegexFlag if type(flags) is int and flags & each]
    names = [f"re.{each.name}" for each in known] if sum(known) == flags else [f"flags {flags!r}"]
    return f" with {' | '.join(names)}"


FIELDS = frozenset(("alphabet", "table", "start", "accept", "outputs", "output_alphabet", "names", "before", "origin"))


def restore(stored: dict[str, Any]) -> Automaton:
    """The automaton of a record that anyone may have written."""
    if not isinstance(stored, dict) or stored.keys() != FIELDS:
        raise InvalidInput(f"an automaton must be described by {', '.join(sorted(FIELDS))}")
    alphabet = check_vocabulary(stored["alphabet"], "the alphabet").tokens
    written = stored["output_alphabet"]
    written = check_vocabulary(written, "the output alphabet").tokens if written != [] else ()
    names, before = stored["names"], stored["before"]
    if not isinstance(names, list) or not all(isinstance(name, str) and is_text(name) for name in names):
        raise InvalidInput("the names of states must be texts")
    if not is_text(json.dumps(stored["origin"], ensure_ascii=False)):
        raise InvalidInput("the origin of an automaton must be described in text")
    if type(before) is not int or before < 1 or not isinstance(stored["origin"], dict):
        raise InvalidInput("the size before minimising must be a whole number, and the origin an object")
    Q = len(names)
    table, accept = _numbers(stored["table"], 2), _numbers(stored["accept"], 1)
    outputs = _numbers(stored["outputs"], 2) if written else np.full(table.shape, -1)
    if (not written and stored["outputs"] != []) or ((accept < 0) | (accept >= Q)).any():
        raise InvalidInput(
            "every accepting state must be one of the states, and only a machine that writes may have outputs"
        )
    if type(stored["start"]) is not int or len(np.unique(accept)) != len(accept):
        raise InvalidInput("the start must be one of the states, and every accepting state must be named once")
    accepting = np.zeros(Q, dtype=bool)
    accepting[accept] = True
    made = (alphabet, table, stored["start"], accepting, outputs, written, tuple(names), before, stored["origin"])
    return Automaton(*made)


def _numbers(rows: Any, sizes: int) -> np.ndarray:
    """Whole numbers as JSON has them, in lists of equal length."""
    flat = rows if sizes == 1 else [x for row in rows for x in row]
    if not all(type(x) is int and abs(x) < 1 << 31 for x in flat):
        raise InvalidInput("the tables of an automaton must hold whole numbers")
    return np.array(rows, dtype=np.int64).reshape(len(rows), *(() if sizes == 1 else (-1,)))


def check_alphabet(symbols: Iterable[Any], what: str = "The alphabet") -> tuple[Token, ...]:
    """Distinct strings or whole numbers, in the order given."""
    return check_vocabulary(listed(symbols, what), what).tokens


def listed(given: Any, what: str) -> list[Any]:
    """What a user gives as a list; refused if it is none."""
    try:
        return list(given)
    except TypeError:
        raise InvalidInput(f"{what} must be a list; got {shown(given)} instead.") from None


def is_state(state: Any) -> bool:
    """Whether it can be looked up."""
    try:
        hash(state)
    except Exception:
        return False
    return True


def short(symbols: Sequence[Any], most: int = 12) -> str:
    """A list for messages, cut where it is long."""
    return f"({', '.join(shown(symbol) for symbol in symbols[:most])}{', …' if len(symbols) > most else ''})"


def shown(thing: Any, how: Callable[[Any], str] = repr, most: int = 120) -> str:
    """Something of a user's for messages: cut where it is long, and its type where it does not say what it is."""
    try:
        text = how(thing)
    except Exception:  # nested too deeply, or a __repr__ of its own that fails
        return f"<{type(thing).__name__}>"
    return visible(text if len(text) <= most else text[: most - 1] + "…")
