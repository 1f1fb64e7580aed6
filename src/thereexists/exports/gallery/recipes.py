"""The ten recipes: a name, what it does, the claim, and what others have published for the same task."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from thereexists import automata
from thereexists.automata.automaton import Automaton
from thereexists.certificates.llama.claims import Claim
from thereexists.constructions.automata.build import Doubling
from thereexists.constructions.tokens.completions import completions
from thereexists.exports.asked import named
from thereexists.exports.ngrams import ngram_of_file
from thereexists.functions.pairs import read_pairs

HERE = Path(__file__).parent
DEPTH = 5  # of brackets
SORTED, MOST_SORTED = "abcde", 4
MODULUS = 7

NOBODY = "We know of no public weights for this task with which it could be compared."
DOUBLING = (
    "That a Transformer of O(log n) layers runs every automaton is a theorem of Liu et al. (arXiv 2210.10749), who "
    "train models and publish no constructed weights."
)
ADDERS = (
    "AdderBoard (`anadim/AdderBoard`) collects Transformers for ten-digit addition with as few parameters as there can "
    "be: 6 to 52 in hand-made ones, in formats of their own, tested on 10,010 pairs. torchwright 0.2.0 makes a stock "
    "Phi-3 checkpoint of 29 layers, d_model 1,024, that adds three digits, in float32 only, and proves nothing. This "
    "one is stock, and proved on all pairs in both dtypes; it is not small by the standard of AdderBoard."
)
TRACR = (
    "Tracr compiles `sort` over five values to 3 layers, d_model 50 at n = 5 and 155 at n = 20, in a format of its "
    "own; its `reverse` at n = 20, as compiled by default, was right on 24 of 60 inputs when we ran it. It completes "
    "no text: it maps a sequence to a sequence at once."
)


@dataclass(frozen=True)
class Recipe:
    """``asked`` is answered by ``told``, as text, and then the text ends or goes on."""

    what: str
    make: Callable[[], Claim]
    asked: str
    told: str
    beside: str


def _claim(reference: str) -> Callable[[], Claim]:
    def make() -> Claim:
        claim = named(reference)
        assert claim is not None
        return claim

    return make


def _doubled(machine: Callable[[], Automaton], n: int) -> Callable[[], Claim]:
    return lambda: Doubling(n=n).lowerable(machine())


def _brackets() -> Automaton:
    def step(depth: int, symbol: str) -> int:
        deeper = depth + (1 if symbol == "(" else -1)
        return deeper if 0 <= depth <= DEPTH and 0 <= deeper <= DEPTH else -1

    return automata.from_function(step, 0, "()", accept=[0])


def _date() -> Automaton:
    return automata.regex("[0-9][0-9][0-9][0-9]-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", "0123456789-")


def _counter() -> Automaton:
    return automata.from_function(lambda q, a: (q + int(a)) % MODULUS, 0, "0123456", accept=[0])


def _alternating_group() -> Automaton:
    """The 60 even permutations of five things as letters, the things as states: thing q is moved to p[q]."""
    even = [
        p for p in itertools.permutations(range(5)) if sum(p[i] > p[j] for i in range(5) for j in range(i, 5)) % 2 == 0
    ]
    table = [[p[q] for p in even] for q in range(5)]
    return automata.dfa(table, 0, [0], ["".join(map(str, p)) for p in even])


def _sort() -> Claim:
    words = [word for m in range(1, MOST_SORTED + 1) for word in itertools.product(SORTED, repeat=m)]
    return completions([[*word, "="] for word in words], [sorted(word) for word in words])


def _questions() -> Claim:
    asked, told, _ = read_pairs(HERE / "questions.csv")
    return completions(asked, told)


def _text() -> Claim:
    return ngram_of_file(HERE / "text.txt", 6)


RECIPES = {
    "addition": Recipe(
        "two numbers of ten digits",
        _claim("addition:10"),
        "0000000123+0000000989=",
        "00000001112",
        ADDERS,
    ),
    "brackets": Recipe(
        f"balanced brackets, up to {DEPTH} deep, 64 of them",
        _doubled(_brackets, 64),
        "(()())",
        " accepted",
        DOUBLING,
    ),
    "date": Recipe(
        "dates as 2026-11-16, months 01 to 12 and days 01 to 31, by a regular expression",
        _doubled(_date, 32),
        "2026-11-16",
        " accepted",
        DOUBLING,
    ),
    "reverse": Recipe("words of up to ten letters backwards", _claim("reverse:10"), "straw=", "warts", TRACR),
    "sort": Recipe(
        f"up to {MOST_SORTED} of the letters {SORTED}, sorted: a table of all such words",
        _sort,
        "decb=",
        "bcde",
        TRACR,
    ),
    "recall": Recipe(
        "key–value recall: up to 16 letters with a digit each, by an induction head",
        _claim("recall:16"),
        "x7y3a1y",
        "3",
        f"Induction heads are found in trained models (Olsson et al., arXiv 2209.11895). {NOBODY}",
    ),
    "counter": Recipe(
        f"digits added up modulo {MODULUS}, 64 of them",
        _doubled(_counter, 64),
        "34016",
        " accepted",
        DOUBLING,
    ),
    "a5": Recipe(
        "the word problem of A5, 1,024 permutations of five things",
        _doubled(_alternating_group, 1024),
        "12034 20134",
        "→ accepted",
        f"{DOUBLING} The word problem of A5 is complete for NC¹: no fixed depth is known to suffice for all n.",
    ),
    "questions": Recipe(
        "168 questions and answers: capitals and chemical symbols",
        _questions,
        "What is the capital of Peru ?",
        " Lima",
        "Trained models of any size answer such questions, and others, and are wrong now and then; this one answers "
        f"these, and nothing else. {NOBODY}",
    ),
    "text": Recipe(
        "a small text, continued by its last six characters",
        _text,
        "a gate is",
        " open or shut, and every weight of it is written down.",  # two sentences of the text: six characters is all
        "An n-gram model needs no Transformer; that one can be it is shown by Svete and Cotterell (arXiv 2404.14994). "
        f"{NOBODY}",
    ),
}
