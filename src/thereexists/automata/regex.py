"""Python's regular expressions as automata, as far as they are regular; ``m.accepts(s)`` is ``re.fullmatch(p, s)``.

The pattern is parsed by Python's own parser, and each single-character item (a literal, a class, a dot, under whatever
flags) is compiled by Python's own compiler and asked about every symbol of the alphabet. So the syntax and the meaning
of classes are Python's by construction; ours is only how items are put together.

The tree becomes a non-deterministic machine with three kinds of edges: one that reads a symbol of a set, one that reads
nothing, and one that reads nothing under a condition on the two neighbours of the place (``^ $ \\A \\Z \\b \\B``). The
deterministic machine remembers the set of states after the last symbol and what the last symbol was, as far as a
condition asks: conditions are decided when the next symbol, or the end, is there. ``$`` also holds before a newline
that ends the string: the guess that it does is a *mode* of a state, 1 (one newline must follow), then 2 (and the end).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from re import _compiler, _constants, _parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

import numpy as np

from thereexists.automata.automaton import Automaton, check_alphabet
from thereexists.automata.explore import assembled, walk
from thereexists.automata.minimise import finished
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import is_text

PRINTABLE = "".join(map(chr, range(32, 127)))
MOST_EDGES = 1 << 16  # of the non-deterministic machine: bounded repetitions are written out
MOST_VISITS = 1 << 24  # of its states and edges, while the deterministic one is found
MOST_STEPS = 1 << 23  # of work while the non-deterministic one is written: items met, symbols asked about
MOST_CHARACTERS = 1 << 18  # of a pattern
MOST_ENTRIES = 1 << 23  # of the table, before it is minimised
DEEPEST = 100  # groups, alternatives and repetitions within each other
FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.ASCII
_REFUSED = {
    "GROUPREF": "a back-reference",
    "GROUPREF_EXISTS": "a condition on a group",
    "GROUPREF_IGNORE": "a back-reference",
    "ASSERT": "a look-around",
    "ASSERT_NOT": "a look-around",
    "POSSESSIVE_REPEAT": "a possessive repetition",
    "ATOMIC_GROUP": "an atomic group",
}
_TOO_DEEP = f"Groups, alternatives and repetitions may be nested at most {DEEPEST} deep: write the pattern flatter."
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
_ITEMS = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_STEPS_OF_AN_ITEM = 16  # it takes about as long as asking whether so many symbols match


def regex(pattern: str, alphabet: Iterable[Any] = PRINTABLE, flags: int = 0) -> Automaton:
    """The minimal automaton of the strings over ``alphabet`` (default: printable ASCII) that match as a whole.

        te.automata.regex(r"(ab|ba)*", alphabet="ab")

    A back-reference, a look-around, a possessive repetition or an atomic group is refused by name.

    Args:
        pattern: as Python's ``re`` has it.
        alphabet: the symbols of the strings.
        flags: of ``re``: IGNORECASE, MULTILINE, DOTALL, VERBOSE or ASCII.

    Returns:
        The minimal automaton.

    Raises:
        InvalidInput: the pattern is malformed, or is not regular.
    """
    symbols = check_alphabet(alphabet)
    if not all(isinstance(symbol, str) and len(symbol) == 1 for symbol in symbols):
        raise InvalidInput("A regular expression reads characters: every symbol of its alphabet must be one.")
    if not isinstance(pattern, str):
        raise InvalidInput(f"A regular expression is a string; got {type(pattern).__name__} instead.")
    if len(pattern) > MOST_CHARACTERS:
        raise InvalidInput(f"A pattern has at most {MOST_CHARACTERS:,} characters; this one has {len(pattern):,}.")
    if not is_text(pattern):
        raise InvalidInput(f"A pattern must be valid Unicode text; got {pattern!a} instead.")
    if not isinstance(flags, int):
        raise InvalidInput(f"'flags' must be flags of re, such as re.IGNORECASE; got {flags!r} instead.")
    if int(flags) & ~int(FLAGS):  # as integers: a flag knows nothing of bits without a name
        raise InvalidInput(f"'flags' may hold {FLAGS!r}; got {re.RegexFlag(flags)!r}.")
    try:
        tree = _parser.parse(pattern, int(flags))
        machine = _Machine(tuple(map(str, symbols)), tree, pattern)
        end = machine.sequence(tree, 0, _Under(machine.multiline))
    except RecursionError as error:  # of Python's parser, or because much is on the stack already
        raise InvalidInput(_TOO_DEEP) from error
    except (re.error, OverflowError) as error:
        raise InvalidInput(f"{pattern!r} is not a regular expression that Python accepts: {error}.") from error
    origin = {"kind": "regex", "pattern": pattern, "flags": int(flags)}
    return finished(_deterministic(machine, end, origin))


# ---- the non-deterministic machine -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Under:
    """The flags that hold at a place: MULTILINE, and the enclosing groups with flags of their own."""

    multiline: bool
    groups: tuple[tuple[int, int], ...] = ()
    ascii: bool = False


@dataclass
class _Machine:
    """``reads[q]``: (set of symbols, target); ``free[q]``: (condition or None, target)."""

    symbols: tuple[str, ...]
    tree: Any
    pattern: str
    reads: list[list[tuple[frozenset[int], int]]] = field(default_factory=lambda: [[]])
    free: list[list[tuple[str | None, int]]] = field(default_factory=lambda: [[]])
    edges: int = 0
    steps: int = 0
    depth: int = 0
    known: dict[str, frozenset[int]] = field(default_factory=dict)

    @property
    def multiline(self) -> bool:
        return bool(self.tree.state.flags & re.MULTILINE)

    @property
    def written(self) -> tuple[int, int]:
        """How much there is: an item that leaves it as it is does nothing."""
        return len(self.reads), self.edges

    def new(self) -> int:
        self.reads.append([])
        self.free.append([])
        return len(self.reads) - 1

    def spend(self, steps: int) -> None:
        """Whatever takes time is counted: a short pattern can ask for more than anyone can wait for."""
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise InvalidInput(
                "The pattern's automaton cannot be written out in reasonable time: lower the bounds of its "
                "repetitions, or write it with fewer and smaller classes."
            )

    def edge(self, source: int, target: int, symbols: frozenset[int] | None = None, where: str | None = None) -> None:
        self.edges += 1
        if self.edges > MOST_EDGES:
            raise InvalidInput(
                f"The pattern takes more than {MOST_EDGES:,} steps when its repetitions are written out: lower their "
                "bounds, or write * for a large one."
            )
        if symbols is None:
            self.free[source].append((where, target))
        else:
            self.reads[source].append((symbols, target))

    def sequence(self, tree: Any, source: int, under: _Under) -> int:
        """From ``source`` through all items of the tree; where that ends."""
        self.depth += 1
        if self.depth > DEEPEST + 1:
            raise InvalidInput(_TOO_DEEP)
        for operation, argument in tree:
            source = self.item(operation, argument, source, under)
        self.depth -= 1
        return source

    def item(self, operation: Any, argument: Any, source: int, under: _Under) -> int:
        name = str(operation)
        self.spend(_STEPS_OF_AN_ITEM)
        if name in _ITEMS:
            target = self.new()
            self.edge(source, target, self.matching(operation, argument, under))
            return target
        if name == "BRANCH":
            target = self.new()
            for branch in argument[1]:
                self.edge(self.sequence(branch, source, under), target)
            return target
        if name == "SUBPATTERN":
            _, add, remove, tree = argument
            multiline = bool((under.multiline or add & re.MULTILINE) and not remove & re.MULTILINE)
            return self.sequence(tree, source, _Under(multiline, (*under.groups, (add, remove))))
        if name in _REPEATS:
            least, most, tree = argument
            return self.repeat(least, most, tree, source, under)
        if name == "AT":
            target = self.new()
            self.edge(source, target, where=self.condition(str(argument), under))
            return target
        if name == "FAILURE":
            return self.new()  # an empty class: nothing leads there
        what = _REFUSED.get(name, name.lower().replace("_", " "))
        raise InvalidInput(
            f"{self.pattern!r} has {what}, which this compiler does not know: write the pattern without it."
        )

    def repeat(self, least: int, most: int, tree: Any, source: int, under: _Under) -> int:
        for _ in range(least):
            written, source = self.written, self.sequence(tree, source, under)
            if written == self.written:
                return source  # a tree of nothing: its repetitions are nothing
        if most is _constants.MAXREPEAT:
            loop = self.new()
            self.edge(source, loop)
            self.edge(self.sequence(tree, loop, under), loop)
            return loop
        target = self.new()
        self.edge(source, target)
        for _ in range(most - least):
            written, source = self.written, self.sequence(tree, source, under)
            if written == self.written:
                break
            self.edge(source, target)
        return target

    def condition(self, at: str, under: _Under) -> str:
        if at in ("AT_BOUNDARY", "AT_NON_BOUNDARY"):
            return ("b" if at == "AT_BOUNDARY" else "B") + ("a" if self.is_ascii(under) else "u")
        lines = {"AT_BEGINNING": "^", "AT_END": "$"}
        if at in lines:
            return lines[at] + ("m" if under.multiline else "")
        return {"AT_BEGINNING_STRING": "^", "AT_END_STRING": "Z"}[at]

    def is_ascii(self, under: _Under) -> bool:
        found = bool(self.tree.state.flags & re.ASCII)
        for add, _ in under.groups:
            found = (found or bool(add & re.ASCII)) and not add & re.UNICODE
        return found

    def matching(self, operation: Any, argument: Any, under: _Under) -> frozenset[int]:
        """The symbols that one item matches: Python compiles it, within the groups that hold it, and is asked."""
        members = argument if isinstance(argument, list) else []  # of a class
        self.spend(len(members) + len(under.groups))
        key = repr((operation, argument, under.groups))
        if key not in self.known:
            # Python's compiler writes ranges out; then every symbol is asked about.
            self.spend(sum(min(b[1] - b[0], 1 << 16) for a, b in members if str(a) == "RANGE"))
            self.spend(len(self.symbols) + _STEPS_OF_AN_ITEM * len(under.groups))
            item = _parser.SubPattern(self.tree.state, [(operation, argument)])
            for add, remove in reversed(under.groups):
                item = _parser.SubPattern(self.tree.state, [(_constants.SUBPATTERN, (None, add, remove, item))])
            matches = _compiler.compile(item, 0).fullmatch
            self.known[key] = frozenset(k for k, symbol in enumerate(self.symbols) if matches(symbol))
        return self.known[key]


# ---- the deterministic one -------------------------------------------------------------------------------------------

_BEGIN = "begin"
_END = "end"


def _deterministic(machine: _Machine, end: int, origin: dict[str, Any]) -> Automaton:
    """States are (set of (state, mode) after the last symbol, what the last symbol was to the conditions)."""
    conditions = {where for edges in machine.free for where, _ in edges if where is not None}
    looks = _looks(conditions)
    classes, members = _symbol_classes(machine, looks)
    visits = 0

    def closure(core: Iterable[tuple[int, int]], before: Any, after: Any) -> set[tuple[int, int]]:
        """What is reached without reading, between a symbol (or the beginning) and the next (or the end)."""
        nonlocal visits
        found, fresh = set(core), list(core)
        while fresh:
            state, mode = fresh.pop()
            visits += 1 + len(machine.free[state]) + len(machine.reads[state])
            if visits > MOST_VISITS:
                raise InvalidInput(
                    "The pattern's automaton cannot be found in reasonable time: lower the bounds of its "
                    "repetitions, or write it with fewer alternatives that overlap."
                )
            for where, target in machine.free[state]:
                for reached in _through(where, mode, before, after):
                    if (target, reached) not in found:
                        found.add((target, reached))
                        fresh.append((target, reached))
        return found

    def step(state: tuple[frozenset[tuple[int, int]], Any], k: int) -> tuple[Any, None]:
        core, before = state
        after = looks(machine.symbols[members[k]])
        reached = set()
        for place, mode in closure(core, before, after):
            if mode == 2 or (mode == 1 and not after.newline):
                continue
            for symbols, target in machine.reads[place]:
                if members[k] in symbols:
                    reached.add((target, 2 if mode == 1 else 0))
        return (frozenset(reached), after if reached else None), None

    def accepted(state: tuple[frozenset[tuple[int, int]], Any]) -> bool:
        core, before = state
        return any(place == end and mode != 1 for place, mode in closure(core, before, _END))

    begin = (frozenset({(0, 0)}), _BEGIN)
    told = "the pattern's automaton: lower the bounds of its repetitions, or write fewer alternatives that overlap."
    table, _, states = walk(step, begin, range(len(members)), told)
    if len(states) * len(classes) > MOST_ENTRIES:
        raise InvalidInput(
            f"The pattern's automaton has {len(states):,} states and {len(classes):,} symbols, more than "
            f"{MOST_ENTRIES:,} entries in all: lower the bounds of its repetitions, or take a smaller alphabet."
        )
    accept = np.array([accepted(state) for state in states])
    names = [f"s{k}" for k in range(len(states))]
    return assembled(machine.symbols, table[:, classes], None, accept, names, origin)


@dataclass(frozen=True)
class _Look:
    """What conditions can see of a symbol."""

    newline: bool
    word: bool
    ascii_word: bool


def _looks(conditions: set[str]) -> Callable[[str], _Look]:
    """A symbol as the conditions of this pattern see it: what none of them asks is the same for all symbols."""
    lines = any(where[0] in "^$" for where in conditions)
    word, plain = "bu" in conditions or "Bu" in conditions, "ba" in conditions or "Ba" in conditions

    def look(symbol: str) -> _Look:
        is_word = symbol.isalnum() or symbol == "_"
        return _Look(lines and symbol == "\n", word and is_word, plain and is_word and symbol.isascii())

    return look


def _through(where: str | None, mode: int, before: Any, after: Any) -> tuple[int, ...]:
    """The modes in which an edge can be passed; none where its condition fails. In mode 1, the newline comes next."""
    newline_before = before is not _BEGIN and before is not None and before.newline
    newline_after = after is not _END and after.newline
    if where is None or (where == "^" and before is _BEGIN) or (where == "^m" and (before is _BEGIN or newline_before)):
        return (mode,)
    if where == "Z" or where.startswith("$"):
        if after is _END:
            return (mode,)
        if where == "$m":
            return (mode,) if newline_after else ()
        return (1,) if where == "$" and newline_after and mode != 2 else ()
    if where[0] in "bB":
        if before is _BEGIN and after is _END:
            return (mode,) if _BOUNDARY_OF_NOTHING[where[0]] else ()
        which = "word" if where[1] == "u" else "ascii_word"
        left, right = (side not in (_BEGIN, _END) and getattr(side, which) for side in (before, after))
        return (mode,) if (left != right) == (where[0] == "b") else ()
    return ()


# Whether \b and \B hold in the empty string: that of \B has changed from one Python to another.
_BOUNDARY_OF_NOTHING = {letter: re.fullmatch(rf"\{letter}", "") is not None for letter in "bB"}


def _symbol_classes(machine: _Machine, looks: Callable[[str], _Look]) -> tuple[np.ndarray, list[int]]:
    """Symbols that no item and no condition tells apart share a class: its number for each, and one of each class."""
    sets = list({symbols for edges in machine.reads for symbols, _ in edges})
    numbers: dict[Any, int] = {}
    members: list[int] = []
    classes = np.empty(len(machine.symbols), dtype=np.int64)
    for k, symbol in enumerate(machine.symbols):
        seen = (looks(symbol), frozenset(i for i, some in enumerate(sets) if k in some))
        if seen not in numbers:
            numbers[seen] = len(members)
            members.append(k)
        classes[k] = numbers[seen]
    return classes, members
