"""A program over symbols: what followed the last time that this symbol stood here, and ? the first time."""

from thereexists import program as P

induction = P.previous(P.symbols("abcdr", n=11), default="?")
