"""Programs over symbols drawn at random: right on all strings, and verified; or not proved, which is no fault."""

import itertools

import numpy as np
import pytest

import thereexists as te
from thereexists import program as P
from thereexists.core.errors import NotProved

N, ALPHABET = 4, ("a", "b", "c")
INPUT = P.symbols(list(ALPHABET), n=N)


class Drawn:
    """A program, and the same thing in plain Python, on lists of symbols."""

    def __init__(self, program, meant):
        self.program, self.meant = program, meant


def recoded(rng, x, y):
    symbols = x.program.alphabet
    table = {a: str(rng.choice(list("abcx"))) for a in symbols if rng.random() < 0.7}
    return Drawn(P.recode(x.program, table), lambda s: [table.get(a, a) for a in x.meant(s)])


def rolled(rng, x, y):
    k = int(rng.integers(1, N))
    return Drawn(x.program.roll(k), lambda s: x.meant(s)[-k:] + x.meant(s)[:-k])


def delayed(rng, x, y):
    fill = str(rng.choice(list("abz")))
    return Drawn(x.program.delay(1, fill=fill), lambda s: [fill, *x.meant(s)[:-1]])


def ordered(rng, x, y):
    order = x.program.alphabet
    return Drawn(x.program.sort(), lambda s: sorted(x.meant(s), key=order.index))


def chosen(rng, x, y):
    some = [str(a) for a in rng.choice(x.program.alphabet, 1)]
    flag = P.isin(x.program, some)
    return Drawn(
        P.choose(flag, x.program, y.program),
        lambda s: [a if a in some else b for a, b in zip(x.meant(s), y.meant(s), strict=True)],
    )


def found(rng, x, y):
    which = str(rng.choice(["last", "first"]))

    def meant(s):
        keys, values = y.meant(s), x.meant(s)
        pairs = list(zip(keys, values, strict=True))
        table = dict(pairs if which == "last" else pairs[::-1])
        return [table.get(a, "?") for a in s]

    return Drawn(P.find(INPUT, y.program, x.program, default="?", which=which), meant)


def counted(rng, x, y):
    order = x.program.alphabet
    return Drawn(
        P.argmax(P.counts(x.program), list(order)),
        lambda s: [max(order, key=lambda a: (x.meant(s).count(a), -order.index(a)))] * N,
    )


STEPS = (recoded, rolled, delayed, ordered, chosen, found, counted)


def draw(seed, steps=3):
    rng = np.random.default_rng(seed)
    drawn = [Drawn(INPUT, list)]
    for _ in range(steps):
        x, y = (drawn[int(k)] for k in rng.integers(0, len(drawn), 2))
        drawn.append(STEPS[rng.integers(0, len(STEPS))](rng, x if rng.random() < 0.3 else drawn[-1], y))
    return drawn[-1]


def check(seed, tmp_path):
    made = draw(seed)
    strings = [list(word) for word in itertools.product(ALPHABET, repeat=N)]
    wanted = [made.meant(string) for string in strings]
    assert [list(y) for y in P.interpret(made.program, strings)] == wanted
    try:
        witness = te.build(made.program, dtypes=("float64", "float32"))
    except NotProved:
        return False
    for dtype in witness.certificate.bounds:
        assert [list(y) for y in witness.to(dtype)(strings)] == wanted
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    return True


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(4))
def test_a_random_program(seed, tmp_path):
    assert check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 120))
def test_more_random_programs(seed, tmp_path):
    check(seed, tmp_path)
