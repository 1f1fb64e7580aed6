"""Claims so small that every text of theirs can be run."""

from thereexists.certificates.llama.completions import Completions
from thereexists.certificates.llama.ngram import Ngram
from thereexists.certificates.llama.recall import Recall
from thereexists.certificates.llama.reverse import Reverse

PAIRS = {"ab": "xy", "abb": "y", "a": "x", "ba": "", "bab": "xx", "bb": "yxy"}


def completions_of(pairs, places):
    numbers = {"a": 0, "b": 1, "x": 0, "y": 1}
    rows = tuple((tuple(map(numbers.get, q)), tuple(map(numbers.get, a))) for q, a in pairs.items())
    return Completions(("a", "b"), ("x", "y"), rows, places)


WHOLE = completions_of(PAIRS, (0, 1, 2, 3, 4))
FOLLOWS = Ngram(("a", "b"), (((), 0), ((0,), 1), ((0, 1), 0), ((1, 0), 0), ((1, 1), 1)), 2, 4, 4)
BACKWARDS = Reverse(("a", "b", "c"), 4)
RECALLED = Recall(tuple("abcdefg"), tuple("01"), 5)
