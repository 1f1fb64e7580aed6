"""Causal programs over symbols so small that every string of theirs can be run; and random ones."""

import itertools

from thereexists import program as P
from thereexists.certificates.llama.programs import ProgramClaim
from thereexists.certificates.symbol_certificate import Alphabets
from thereexists.constructions.program.saving import to_record
from thereexists.constructions.symbols.language import source_of


def claim_of(program):
    return ProgramClaim(to_record(program.number), Alphabets(source_of(program)[1], program.alphabet))


def strings(alphabet, n):
    return ["".join(word) for word in itertools.product(alphabet, repeat=n)]


def programs():
    """By name; all over strings of four of two letters."""
    s = P.symbols("ab", n=4)
    before = s.delay(1, fill="-")
    seen = P.previous(s, default="?")
    keys = P.choose([j % 2 for j in range(4)], before, "-")
    return {
        "recode": P.recode(s, {"a": "b", "b": "a"}),
        "one symbol": P.recode(s, {"a": "b"}),
        "delay": before,
        "same": P.as_symbols(P.same(s, P.recode(before, {"-": "a"}, alphabet="ab")), "01"),
        "by position": keys,
        "places": s.take([0, 0, 2, 1]),
        "induction": seen,
        "the first": P.find(s, before, s, default="?", which="first", causal=True),
        "recall": P.find(s, keys, s, default="?", causal=True),
        "count": P.as_symbols(P.cumsum(P.isin(s, "a")), "01234"),
        "most": P.argmax(P.cumsum(P.one_hot(s)), "ab"),
        "largest": P.as_symbols(P.cummax(P.numbers_of(s, {"a": 0, "b": 1})), "01"),
        "twice": P.previous(seen, default="!"),
        "found and delayed": P.choose(P.isin(seen, "a"), s, seen.delay(1, fill="x")),
    }


def drawn(rng):
    """A program of two to four random operations, causal all of them; ``rng`` of ``random``."""
    n = rng.choice([1, 2, 3, 5, 6])
    pool = [P.symbols("abc"[: rng.choice([2, 3])], n=n)]
    for _ in range(rng.choice([2, 3, 4])):
        s, t, u = (rng.choice(pool) for _ in range(3))
        first, last = s.alphabet[0], s.alphabet[-1]
        ways = (
            lambda s=s: s.delay(rng.randrange(4), fill="-"),
            lambda s=s: s.take([rng.randrange(i + 1) for i in range(n)]),
            lambda s=s, t=t, u=u, first=first: P.choose(P.isin(s, [first]), t, u),
            lambda s=s: P.previous(s, default="?"),
            lambda s=s, t=t, u=u: P.find(s, t, u, default="?", causal=True, which=rng.choice(["last", "first"])),
            lambda s=s, first=first: P.as_symbols(P.cumsum(P.isin(s, [first])), "0123456"),
            lambda s=s, t=t: P.choose([rng.randrange(2) for _ in range(n)], s, t),
            lambda s=s: P.as_symbols(P.same(s, s.take([rng.randrange(i + 1) for i in range(n)])), "ny"),
            lambda s=s, first=first, last=last: P.recode(s, {first: last}),
        )
        pool.append(rng.choice(ways)())
    return pool[-1]
