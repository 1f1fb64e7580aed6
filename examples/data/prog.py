"""A program over the reals: every token moved half way to the mean."""

from thereexists import program as P

x = P.tokens(n=4)
smooth = 0.5 * x + 0.5 * P.mean(x)
