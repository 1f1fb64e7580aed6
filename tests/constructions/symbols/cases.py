"""Programs over symbols, each with the same thing in plain Python: one table for interpreter, network and proof."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists import program as P


@dataclass(frozen=True)
class Case:
    """``program`` over strings of ``n`` symbols of ``alphabet`` (1 to n if ``shorter``), ``meant`` of one of them."""

    alphabet: str
    n: int
    program: Callable[[Any], Any]
    meant: Callable[[str], Any]
    shorter: bool = False

    def written(self) -> Any:
        return self.program(P.symbols(self.alphabet, self.n, shorter=self.shorter))

    def strings(self) -> list[str]:
        """All of them."""
        lengths = range(1, self.n + 1) if self.shorter else [self.n]
        return ["".join(word) for k in lengths for word in itertools.product(self.alphabet, repeat=k)]


def swapped(s: str) -> str:
    return s.translate(str.maketrans("ab", "ba"))


def most_frequent(s: str) -> str:
    """The first symbol of the alphabet among the most frequent ones, at every token."""
    return max("abc", key=lambda a: (s.count(a), -ord(a))) * len(s)


def followed(s: str) -> str:
    """What followed each symbol the last time that it was there."""
    found = [[s[j + 1] for j in range(i) if s[j] == s[i]] for i in range(len(s))]
    return "".join(there[-1] if there else "?" for there in found)


def recalled(s: str) -> str:
    """Keys at even places, their values behind them; the last value of each key, at every token that is one."""
    pairs = {s[j]: s[j + 1] for j in range(0, len(s) - 1, 2)}
    return "".join(pairs.get(a, "?") for a in s)


def recall(s: P.Symbols) -> P.Symbols:
    keys = P.choose([j % 2 for j in range(s.n)], s.delay(1, fill="-"), "-")
    return P.find(s, keys, s, default="?")


def looked_up(s: str, which: int) -> str:
    """The symbol two places before the first (0) or last (−1) token that is this one."""
    return "".join(("--" + s)[[j for j in range(len(s)) if s[j] == a][which]] for a in s)


EXACT = {
    "itself": Case("abc", 3, lambda s: s, lambda s: s),
    "one symbol": Case("a", 2, lambda s: s.flip(), lambda s: s),
    "sorted": Case("abc", 4, lambda s: s.sort(), lambda s: "".join(sorted(s))),
    "sorted, any length": Case("abc", 3, lambda s: s.sort(), lambda s: "".join(sorted(s)), shorter=True),
    "reversed": Case("abc", 4, lambda s: s.flip(), lambda s: s[::-1]),
    "rolled": Case("abc", 4, lambda s: s.roll(1), lambda s: s[-1:] + s[:-1]),
    "taken": Case("abc", 4, lambda s: s.take([0, 0, 3, 1]), lambda s: s[0] + s[0] + s[3] + s[1]),
    "delayed": Case("abc", 4, lambda s: s.delay(2, fill="a"), lambda s: "aa" + s[:-2]),
    "delayed, new fill": Case("abc", 4, lambda s: s.delay(1, fill="-"), lambda s: "-" + s[:-1]),
    "looking ahead": Case("ab", 4, lambda s: s.delay(-1, fill="?"), lambda s: s[1:] + "?"),
    "swapped": Case("abc", 3, lambda s: P.recode(s, {"a": "b", "b": "a"}, "abc"), swapped),
    "words": Case(
        "abc", 3, lambda s: P.recode(s, {"a": "one", "c": "two"}),
        lambda s: [{"a": "one", "c": "two"}.get(a, a) for a in s],
    ),
    "merged": Case("abcd", 2, lambda s: P.recode(s, {"a": "x", "b": "x", "c": "x", "d": "y"}), lambda s: s.translate(
        str.maketrans("abcd", "xxxy"))),
    "chosen": Case("abc", 3, lambda s: P.choose(P.isin(s, "ab"), s, "?"), lambda s: s.replace("c", "?")),
    "by position": Case("ab", 4, lambda s: P.choose([1, 0, 1, 0], s, s.flip()), lambda s: s[0] + s[2] + s[2] + s[0]),
    "same as before": Case(
        "abc", 4, lambda s: P.as_symbols(P.same(s, s.roll(1)), "01"),
        lambda s: "".join(str(int(s[i] == s[i - 1])) for i in range(4)),
    ),
    "palindrome": Case(
        "ab", 5, lambda s: P.as_symbols(P.min(P.same(s, s.flip())), ["no", "yes"]),
        lambda s: ["yes" if s == s[::-1] else "no"] * 5,
    ),
    "how many a": Case(
        "abc", 4, lambda s: P.as_symbols(P.mix(P.counts(s), [[1, 0, 0]]), "01234"), lambda s: str(s.count("a")) * 4
    ),
    "how many a, any length": Case(
        "abc", 3, lambda s: P.as_symbols(P.mix(P.counts(s), [[1, 0, 0]]), "0123"),
        lambda s: str(s.count("a")) * len(s), shorter=True,
    ),
    "running count": Case(
        "ab", 5, lambda s: P.as_symbols(P.cumsum(P.isin(s, "b")), "012345"),
        lambda s: "".join(str(s[: i + 1].count("b")) for i in range(5)),
    ),
    "is there a c": Case("abc", 4, lambda s: P.as_symbols(P.max(P.isin(s, "c")), "ny"), lambda s: "ny"["c" in s] * 4),
    "weights of symbols": Case(
        "abc", 3, lambda s: P.as_symbols(2 * P.sum(P.numbers_of(s, {"a": 0.5, "b": 1, "c": -0.5})) + 3, "0123456789"),
        lambda s: str(sum({"a": 1, "b": 2, "c": -1}[x] for x in s) + 3) * 3,
    ),
    "rank": Case(
        "abc", 4, lambda s: P.as_symbols(P.rank(s.number, margin=1.0), "0123"),
        lambda s: "".join(str(sum((s[j], j) < (s[i], i) for j in range(4))) for i in range(4)),
    ),
}  # fmt: skip

SOFT = {
    "induction": Case("abc", 5, lambda s: P.previous(s, default="?"), followed),
    "induction, any length": Case("ab", 4, lambda s: P.previous(s, default="?"), followed, shorter=True),
    "recall": Case("abc", 5, recall, recalled),
    "found last": Case("abc", 4, lambda s: P.find(s, s, s.delay(2, fill="-"), default="?"), lambda s: looked_up(s, -1)),
    "found first": Case(
        "abc", 4, lambda s: P.find(s, s, s.delay(2, fill="-"), default="?", which="first"), lambda s: looked_up(s, 0)
    ),
    "found, any length": Case(
        "ab", 4, lambda s: P.find(s, s, s.delay(2, fill="-"), default="?"), lambda s: looked_up(s, -1), shorter=True
    ),
    "no such key": Case(
        "ab", 3, lambda s: P.find(s, P.recode(s, {"a": "x", "b": "y"}), s, default="a"), lambda s: "aaa"
    ),
    "one token": Case(
        "ab", 1, lambda s: P.find(s, s, P.recode(s, {"a": "x"}), default="?"), lambda s: s.replace("a", "x")
    ),
    "found twice": Case(
        "ab", 3, lambda s: P.find(P.find(s, s.delay(1, fill="-"), s, default="a"), s, s.roll(1), default="?"),
        lambda s: "".join(
            {a: s[j - 1] for j, a in enumerate(s)}.get({("-" + s)[j]: a for j, a in enumerate(s)}.get(b, "a"), "?")
            for b in s
        ),
    ),
    "sorted by another": Case(
        "abc", 4, lambda s: P.sort_by(s, by=s.flip()),
        lambda s: "".join(s[j] for j in sorted(range(4), key=lambda j: s[3 - j])),
    ),
    "most frequent": Case("abc", 4, lambda s: P.argmax(P.counts(s), "abc"), most_frequent),
    "most frequent, any length": Case("abc", 3, lambda s: P.argmax(P.counts(s), "abc"), most_frequent, shorter=True),
    "heaviest": Case(
        "abc", 3, lambda s: P.argmax(P.mix(P.counts(s), np.diag([0.5, 0.75, 1.0])), "xyz", gap=0.25),
        lambda s: "xyz"[int(np.argmax([0.5 * s.count("a"), 0.75 * s.count("b"), s.count("c")]))] * 3,
    ),
}  # fmt: skip
