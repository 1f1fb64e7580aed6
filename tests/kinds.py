"""One small example of every kind of witness, and an input for it: what the suites over all kinds go through."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import thereexists as te
from thereexists import program as P


@dataclass(frozen=True)
class Example:
    """``given`` and ``options`` are for ``te.build``, ``x`` is one input, ``typed`` the same on the command line."""

    kind: str
    given: Any
    options: dict[str, Any]
    x: Any
    typed: str

    def build(self) -> te.Witness:
        return te.build(self.given, **self.options)

    def saved(self, folder: Path) -> Path:
        """The witness in a folder, with its certificate where it can have one."""
        self.build().save(folder)
        if self.kind != "tokens":
            te.certify(te.load(folder), opinions=1).save(folder)
        return folder


SORT = te.targets.builtin("sort", n=2)
EXAMPLES = {
    "faithful": Example("faithful", SORT, {"delta": 1 / 2}, [[0.7], [0.1]], "0.7 0.1"),
    "sparse": Example("faithful", SORT, {"delta": 1 / 2, "pattern": te.patterns.star(n=2)}, [[0.7], [0.1]], "0.7 0.1"),
    "compact": Example("compact", SORT, {"delta": 1 / 2, "construction": "compact"}, [[0.7], [0.1]], "0.7 0.1"),
    "table": Example("tokens", te.Table([["a", "b"], ["b", "a"]], [["c", "c"], ["d", "d"]]), {}, ["a", "b"], "a b"),
    "automaton": Example("automaton", te.automata.regex("(ab|ba)*", "ab"), {"n": 6}, "abba", "abba"),
    "transducer": Example(
        "automaton", te.automata.mealy(lambda c, a: divmod(int(a) + c, 2), [0, 1], "012"), {"n": 5}, "120", "120"
    ),
    "symbols": Example("symbols", P.symbols("abc", n=3).sort(), {}, "cab", "cab"),
    "parity": Example("counting", te.automata.regex("(b|ab*a)*", "ab"), {"n": 6}, "abba", "abba"),
    "program": Example("program", P.sort(P.tokens(2)), {"epsilon": 1e-3}, [[0.7], [0.1]], "0.7 0.1"),
}
