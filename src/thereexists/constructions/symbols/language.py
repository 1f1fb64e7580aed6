"""Programs over symbols: a symbol is its number in an alphabet, and every operation is one on numbers, exactly.

    s = P.symbols("abc", n=8)
    P.recode(s, {"a": "x"}), P.choose(P.isin(s, "ab"), s, "?"), s.sort(), s.delay(1, fill="c"), P.counts(s)

*Claim.* At whole-number inputs every operation here gives the whole numbers (or the numbers of its table) that its name
says. *Proof.* All are made of exact operations of programs over the reals. A table is the ``interp`` through the points
(k, table[k]), k = 0 … |Σ| − 1: at its knots it is its values. One-hot is a tent of width 1 around each number: 1 there
and 0 at every other whole number. ReLU(1 − |s − t|) is 1 for s = t and 0 for whole numbers that differ. The others
move numbers and make none. ∎ Between whole numbers the operations mean something too (straight lines), and nobody
asks. The verifier shares none of this: ``certificates/symbol_values.py`` follows the saved operations by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from thereexists.constructions.program import compositions, operations, reductions
from thereexists.constructions.program.elementwise import abs as absolute
from thereexists.constructions.program.elementwise import clip, relu
from thereexists.constructions.program.given import describe, finite_number, whole_number
from thereexists.constructions.program.graph import Notes, Value, nodes, only_value
from thereexists.constructions.program.ranges import value_range
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import is_text

MOST_SYMBOLS = 1 << 10  # the verifier writes out every number that a symbol may be (``certificates/symbol_values.py``)


def _refused(what: str, instead: str) -> Callable[..., NoReturn]:
    def method(self: Symbols, *_: Any) -> NoReturn:
        raise InvalidInput(f"{what} of a program's symbols is not known before the program is run; take {instead}.")

    return method


@dataclass(frozen=True, eq=False, repr=False)
class Symbols:
    """A symbol at every token: ``number``, a value of one feature, is its place in ``alphabet``.

        P.symbols("abc", n=5).alphabet

    Args:
        alphabet: the symbols.
        number: a value of one feature, the place of each.
    """

    built_by: ClassVar = {"symbols": "symbols"}  # see ``constructions/build.py``

    alphabet: tuple[str, ...]
    number: Value

    @property
    def n(self) -> int:
        return self.number.n

    def __repr__(self) -> str:
        return f"symbols(n={self.n}, {len(self.alphabet)} symbols {shown(self.alphabet)})"

    def __len__(self) -> int:
        return len(self.number)

    __eq__ = _refused("'=='", "P.same(s, t), or P.isin(s, 'ab')")  # pyright: ignore[reportAssignmentType]
    __ne__ = _refused("'!='", "1 - P.same(s, t), or 1 - P.isin(s, 'ab')")  # pyright: ignore[reportAssignmentType]
    __hash__ = object.__hash__
    __bool__ = _refused("truth (if, and, or, not)", "P.choose(flag, s, t)")
    __contains__ = _refused("'in'", "P.max(P.isin(s, 'a'))")
    __iter__ = _refused("iteration", "s.take(places), P.counts(s) … for all tokens")
    __getitem__ = _refused("s[…]", "s.take(places), s.flip(), s.roll(k) or s.delay(k, fill='a')")
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _refused(
        "arithmetic", "P.numbers_of(s, table) or P.one_hot(s), which are numbers"
    )
    __pow__ = __rpow__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __abs__ = __matmul__ = __add__
    __float__ = __int__ = __round__ = __rmatmul__ = __add__
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _refused(
        "logic", "P.minimum, P.maximum and 1 - flag of flags such as P.isin(s, 'ab')"
    )
    __lt__ = __le__ = __gt__ = __ge__ = _refused("an order", "s.sort(), or P.numbers_of(s, table) and P.greater")
    __array_ufunc__ = None

    def sort(self) -> Symbols:
        """In the order of the alphabet."""
        return Symbols(self.alphabet, operations.sort(self.number))

    def flip(self) -> Symbols:
        """In reverse order."""
        return Symbols(self.alphabet, operations.flip(self.number))

    def roll(self, shift: Any = 1) -> Symbols:
        """Token i becomes token i − shift, around the end."""
        return Symbols(self.alphabet, operations.roll(self.number, shift))

    def take(self, places: Any) -> Symbols:
        """Token i becomes token ``places[i]``."""
        return Symbols(self.alphabet, operations.take(self.number, places))

    def delay(self, by: Any = 1, *, fill: str) -> Symbols:
        """Token i becomes token i − by, and ``fill`` where there is none; it may be a symbol that was not there."""
        alphabet = joined(self.alphabet, [one_symbol("delay", "fill", fill)])
        places = whole_number("delay", "a whole number of places", by)
        moved, inside = compositions.delayed(self.number, places)
        return Symbols(alphabet, moved) if inside.all() else chosen(alphabet, inside, moved, alphabet.index(fill))


_read: Notes[tuple[str, ...]] = Notes()  # of every input: its alphabet


def symbols(alphabet: Any, n: int, shorter: bool = False) -> Symbols:
    """The input: strings of n symbols (1 to n if ``shorter``) of an alphabet, its characters or a list of words.

        P.symbols("abc", n=5)

    Args:
        alphabet: its characters, or a list of words.
        n: how many symbols a string has.
        shorter: whether strings of 1 to n symbols are meant.

    Returns:
        The input of a program over symbols.

    Raises:
        InvalidInput: the alphabet is empty or names a symbol twice, or n is not a positive whole number.
    """
    symbols = checked_alphabet("symbols", alphabet)
    source = operations.tokens(n, low=0, high=max(len(symbols) - 1, 1), shorter=shorter)
    _read[source] = symbols
    return Symbols(symbols, source)


def source_of(program: Symbols) -> tuple[Value, tuple[str, ...]]:
    """The input that a program reads, and its alphabet."""
    sources = [node for node in nodes(only_symbols("build", program).number) if node.operation == "tokens"]
    if len(sources) != 1 or sources[0] not in _read:
        what = "none" if not sources else "numbers" if len(sources) == 1 else f"{len(sources)} inputs"
        raise InvalidInput(f"A program over symbols has one input, P.symbols(alphabet, n); this one has {what}.")
    return sources[0], _read[sources[0]]


def isin(s: Symbols, some: Any) -> Value:
    """A flag: 1 where the symbol is one of ``some``, 0 elsewhere.

        P.isin(P.symbols("abc", n=5), "ab")

    Args:
        s: a value that is a symbol at every token.
        some: symbols of its alphabet.

    Returns:
        A flag: a value that is 0 or 1.

    Raises:
        InvalidInput: s is not a value of symbols, or one of ``some`` is not in its alphabet.
    """
    s = only_symbols("isin", s)
    wanted = [some] if isinstance(some, str) and some in s.alphabet else _several("isin", some)
    _known("isin", s, wanted)
    return table(s, [float(symbol in wanted) for symbol in s.alphabet])


def same(s: Symbols, t: Symbols) -> Value:
    """A flag: 1 where two symbols of one alphabet are the same.

        s = P.symbols("abc", n=5)
        P.same(s, P.sort_by(s, by=s))

    Args:
        s: a value that is a symbol at every token.
        t: another one, of the same alphabet.

    Returns:
        A flag: a value that is 0 or 1.

    Raises:
        InvalidInput: s is not a value of symbols, or the alphabets differ.
    """
    s, t = only_symbols("same", s), only_symbols("same", t)
    if s.alphabet != t.alphabet:
        raise InvalidInput(
            f"'same' takes symbols of one alphabet; got {shown(s.alphabet)} and {shown(t.alphabet)}. "
            "P.recode(t, {}, alphabet=s.alphabet) writes t in that of s."
        )
    return relu(1.0 - absolute(s.number - t.number))


def recode(s: Symbols, table_of: Mapping[str, str], alphabet: Any = None) -> Symbols:
    """Every symbol becomes what the table says; one that it does not name stays.

        P.recode(P.symbols("abc", n=5), {"a": "b"})

    The new alphabet is the one given, or the new symbols in the order of the old ones.

    Args:
        s: a value that is a symbol at every token.
        table_of: what a symbol becomes; one that is not named stays.
        alphabet: the new alphabet, if not the new symbols in the order of the old.

    Returns:
        Symbols of the new alphabet.

    Raises:
        InvalidInput: s is not a value of symbols, or the table names a symbol that is not in its alphabet.
    """
    s = only_symbols("recode", s)
    _known("recode", s, _a_table("recode", table_of))
    images = [one_symbol("recode", "a new symbol", table_of.get(symbol, symbol)) for symbol in s.alphabet]
    new = tuple(dict.fromkeys(images)) if alphabet is None else checked_alphabet("recode", alphabet)
    missing = [symbol for symbol in images if symbol not in new]
    if missing:
        raise InvalidInput(f"'recode' gives {missing[0]!r}, which is not in the alphabet {shown(new)}.")
    place = {symbol: float(k) for k, symbol in enumerate(new)}
    if all(place[image] == k for k, image in enumerate(images)):
        return Symbols(new, s.number)  # only the names are others
    return Symbols(new, table(s, [place[image] for image in images]))


def numbers_of(s: Symbols, table_of: Mapping[str, float]) -> Value:
    """A number for every symbol: an ordinary value of a program over the reals.

        P.numbers_of(P.symbols("abc", n=5), {"a": 1.0, "b": 2.0, "c": 3.0})

    Args:
        s: a value that is a symbol at every token.
        table_of: a number for every symbol of its alphabet.

    Returns:
        A value of one feature.

    Raises:
        InvalidInput: s is not a value of symbols, or a symbol has no number.
    """
    s = only_symbols("numbers_of", s)
    _known("numbers_of", s, _a_table("numbers_of", table_of))
    missing = [symbol for symbol in s.alphabet if symbol not in table_of]
    if missing:
        raise InvalidInput(f"'numbers_of' takes a number for every symbol; {missing[0]!r} has none.")
    return table(s, [finite_number("numbers_of", f"the number of {a!r}", table_of[a]) for a in s.alphabet])


def one_hot(s: Symbols) -> Value:
    """A feature for every symbol of the alphabet: 1 if it is this one, else 0.

        P.one_hot(P.symbols("abc", n=5))

    Args:
        s: a value that is a symbol at every token.

    Returns:
        A value with a feature for every symbol.

    Raises:
        InvalidInput: s is not a value of symbols.
    """
    s = only_symbols("one_hot", s)
    m = len(s.alphabet)
    apart = operations.mix(s.number, np.ones((m, 1))) - np.arange(float(m))[None, :].repeat(s.n, axis=0)
    return operations.interp(apart, [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0])


def counts(s: Symbols) -> Value:
    """How many tokens are each of the symbols: a feature for each, the same at every token.

        P.counts(P.symbols("abc", n=5))

    Args:
        s: a value that is a symbol at every token.

    Returns:
        A value with a feature for every symbol.

    Raises:
        InvalidInput: s is not a value of symbols.
    """
    return reductions.sum(one_hot(only_symbols("counts", s)))


def as_symbols(numbers: Value, alphabet: Any) -> Symbols:
    """Whole numbers 0, 1, … as symbols; numbers beyond the last are the last, below 0 the first.

        s = P.symbols("abc", n=5)
        P.as_symbols(P.isin(s, "ab"), "ny")

    That they are whole for every string is for the proof to find; te.build refuses what it does not find it for.

    Args:
        numbers: a value of one feature that is whole.
        alphabet: the symbols for 0, 1, ….

    Returns:
        Symbols of that alphabet.

    Raises:
        InvalidInput: the value has several features, or the alphabet is empty.
    """
    numbers = only_value("as_symbols", numbers)
    if numbers.d != 1:
        raise InvalidInput(f"'as_symbols' takes a value of one feature; got {numbers.d}. Choose one with mix.")
    symbols = checked_alphabet("as_symbols", alphabet)
    low, high = value_range(numbers)
    beyond = low < 0 or high > len(symbols) - 1
    return Symbols(symbols, clip(numbers, 0.0, float(len(symbols) - 1)) if beyond else numbers)


def choose(flag: Any, s: Any, t: Any) -> Symbols:
    """s where the flag is 1, t where it is 0; one of them may be a single symbol. An array may be the flag.

        s = P.symbols("abc", n=5)
        P.choose(P.isin(s, "ab"), s, "c")

    Args:
        flag: a flag, or an array of zeros and ones.
        s: symbols, or one symbol.
        t: the same; one of the two is a value.

    Returns:
        Symbols of both alphabets.

    Raises:
        InvalidInput: the flag is not one, or neither is a value of symbols.
    """
    like = next((part for part in (s, t) if isinstance(part, Symbols)), None)
    like = only_symbols("choose", like)
    both = [part.alphabet if isinstance(part, Symbols) else [one_symbol("choose", "a symbol", part)] for part in (s, t)]
    alphabet = joined(like.alphabet, *both)
    numbers = [
        recode(part, {}, alphabet).number if isinstance(part, Symbols) else float(alphabet.index(part))
        for part in (s, t)
    ]
    return chosen(alphabet, flag, *numbers)


def chosen(alphabet: Any, flag: Any, a: Any, b: Any) -> Symbols:
    """``where``, made for all symbols: the verifier does not see which of them cannot be met at some position."""
    return Symbols(alphabet, operations.where_between(flag, a, b, 0.0, len(alphabet) - 1.0))


# ---- what the operations share --------------------------------------------------------------------------------------


def table(s: Symbols, values: list[float]) -> Value:
    """The straight lines through (k, values[k])."""
    values = values if len(values) > 1 else values * 2  # an interpolation has two knots at least
    return operations.interp(s.number, np.arange(float(len(values))), values)


def joined(*alphabets: Iterable[str]) -> tuple[str, ...]:
    """All symbols, the first ones first."""
    return tuple(dict.fromkeys(symbol for alphabet in alphabets for symbol in alphabet))


def only_symbols(name: str, given: Any) -> Symbols:
    if not isinstance(given, Symbols):
        raise InvalidInput(f"'{name}' takes symbols of a program; got {describe(given)}. Begin with symbols('abc', n).")
    return given


def one_symbol(name: str, what: str, given: Any) -> str:
    if not isinstance(given, str) or not given or not is_text(given):
        raise InvalidInput(f"'{name}' takes {what}, a character or a word; got {describe(given)} instead.")
    return given


def checked_alphabet(name: str, given: Any) -> tuple[str, ...]:
    """Characters of a string, or words: distinct, one at least."""
    found = [one_symbol(name, "symbols", symbol) for symbol in _several(name, given)]
    if not 1 <= len(found) <= MOST_SYMBOLS:
        raise InvalidInput(f"'{name}' takes an alphabet of 1 to {MOST_SYMBOLS:,} symbols; got {len(found):,}.")
    again = [symbol for k, symbol in enumerate(found) if symbol in found[:k]]
    if again:
        raise InvalidInput(f"'{name}' takes an alphabet of distinct symbols; {again[0]!r} is there twice.")
    return tuple(found)


def _several(name: str, given: Any) -> list[Any]:
    if not isinstance(given, str | list | tuple):
        raise InvalidInput(f"'{name}' takes symbols as a string or a list of words; got {describe(given)} instead.")
    return list(given)


def _a_table(name: str, given: Any) -> list[Any]:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"'{name}' takes a table, {{symbol: …}}; got {describe(given)} instead.")
    return list(given)


def _known(name: str, s: Symbols, some: list[Any]) -> None:
    strange = [symbol for symbol in some if symbol not in s.alphabet]
    if strange:
        raise InvalidInput(f"'{name}' names {describe(strange[0])}, which is not in the alphabet {shown(s.alphabet)}.")


def shown(alphabet: Iterable[str]) -> str:
    """Characters together, words apart; not too many."""
    found = list(alphabet)
    text = ("" if all(len(symbol) == 1 for symbol in found) else " ").join(found)
    return text if len(text) <= 60 else f"{text[:57]}…"
