"""Products of products: certified within ten times their true error, never below it, whatever they are nested in.

True errors are those of the network against NumPy on dense inputs. ``brute_force`` follows every operation of a
program: no gap, range or profile that the verifier works out may be left by what happens at any of the inputs.
"""

import numpy as np
import pytest

import thereexists as te
from thereexists import program as P
from thereexists.certificates.program_forms import Form, Terms
from thereexists.certificates.program_joint import join
from thereexists.certificates.program_meaning import every_value
from thereexists.certificates.program_meant import Meaning, profile_of
from thereexists.certificates.program_profile import Profile, larger_of, product_of, sum_of
from thereexists.certificates.program_splines import assumes_as_much
from thereexists.certificates.program_values import values_of
from thereexists.constructions.program.graph import nodes
from thereexists.constructions.program.primitives import PRIMITIVES
from thereexists.constructions.program.ranges import value_range
from thereexists.constructions.program.saving import to_record
from thereexists.core.errors import InvalidInput

C = (0.5, -1.0, 2.0, -0.75, 1.5, -2.0)


def horner(x):
    total = C[5] * x + C[4]
    for c in C[3::-1]:
        total = total * x + c
    return total


def powers(x):
    return C[0] + C[1] * x + C[2] * x**2 + C[3] * x**3 + C[4] * x**4 + C[5] * x**5


def mean(x):
    return x.mean(axis=1, keepdims=True)


def off(x):
    return x - P.mean(x)


def variance(x):
    return P.mean(off(x) * off(x))


def z_score(X):
    return (X - mean(X)) / np.maximum(X.std(axis=1, keepdims=True), 0.1)


def softmax(x):
    e = np.exp(x)
    return e / P.sum(e)


# name: (program, NumPy, ends of the tokens)
WRITTEN = {
    "3*x*x*x": (lambda x: 3 * x * x * x, lambda X: 3 * X**3, (0, 1)),
    "3*x*x*x on [-2, 3]": (lambda x: 3 * x * x * x, lambda X: 3 * X**3, (-2, 3)),
    "x*mean*x": (lambda x: x * P.mean(x) * x, lambda X: X * X * mean(X), (0, 1)),
    "(x*x)*(x*x)": (lambda x: (x * x) * (x * x), lambda X: X**4, (0, 1)),
    "x**5": (lambda x: x**5, lambda X: X**5, (0, 1)),
    "x*x*x*x*x": (lambda x: x * x * x * x * x, lambda X: X**5, (0, 1)),
    "degree 5, *": (horner, powers, (0, 1)),
    "degree 5, **": (powers, powers, (0, 1)),
    "four factors": (
        lambda x: x * P.roll(x, 1) * P.roll(x, 2) * x,
        lambda X: X * np.roll(X, 1, axis=1) * np.roll(X, 2, axis=1) * X,
        (-1, 1),
    ),
    "z-score, root first": (lambda x: off(x) / P.maximum(np.sqrt(variance(x)), 0.1), z_score, (0, 1)),
    "z-score, floor first": (lambda x: off(x) / np.sqrt(P.maximum(variance(x), 0.01)), z_score, (0, 1)),
    "z-score, rsqrt": (lambda x: off(x) * P.apply(P.rsqrt, P.maximum(variance(x), 0.01)), z_score, (0, 1)),
    "layer norm": (
        lambda x: off(x) * P.apply(P.rsqrt, variance(x) + 0.05),
        lambda X: (X - mean(X)) / np.sqrt(X.var(axis=1, keepdims=True) + 0.05),
        (0, 1),
    ),
    "softmax by hand": (softmax, lambda X: np.exp(X) / np.exp(X).sum(axis=1, keepdims=True), (0, 1)),
    "quotient of products": (lambda x: x * P.mean(x) / (1 + x * x), lambda X: X * mean(X) / (1 + X * X), (0, 1)),
}


def dense(n, low, high, floor=0.1):
    """Random inputs, equal tokens, corners, and sequences whose deviation is about the floor."""
    rng = np.random.default_rng(0)
    some = rng.random((1500, n, 1))
    equal = np.repeat(np.linspace(0, 1, 1500)[:, None, None], n, axis=1)
    corners = rng.integers(0, 3, (500, n, 1)) / 2
    near = some - mean(some)
    near = 0.5 + floor * near / near.std(axis=1, keepdims=True) * (0.9 + 0.3 * rng.random((1500, 1, 1)))
    return low + (high - low) * np.clip(np.concatenate([some, equal, corners, near]), 0, 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", WRITTEN)
def test_the_natural_form_is_certified_within_ten_times_its_error(name):
    write, wanted, (low, high) = WRITTEN[name]
    witness = te.build(write(P.tokens(4, low=low, high=high)), dtypes=("float64", "float32"))
    X = dense(4, low, high)
    true = np.abs(witness(X) - wanted(X)).max()
    assert true <= witness.certificate.bound <= 10 * true
    if "float32" in witness.certificate.bounds:
        X = X.astype(np.float32).astype(np.float64)
        rough = np.abs(witness.to("float32")(X) - wanted(X)).max()
        assert rough <= witness.certificate.bounds["float32"]["bound"]


def nested(seed):
    """A random program with products, quotients, roots and floors, nested to depth 4."""
    rng = np.random.default_rng(seed)
    low, high = [(0.0, 1.0), (-1.0, 1.0), (-2.0, 3.0), (0.5, 2.0)][rng.integers(4)]
    x, epsilon = P.tokens(int(rng.integers(1, 4)), low=low, high=high), float(rng.choice([1e-2, 5e-2]))
    smooth, steep = [np.sin, np.tanh, P.sigmoid, np.arctan, np.square], [np.sqrt, P.rsqrt, np.log]

    def some(depth):
        return tree(int(rng.integers(depth)))

    def tree(depth):
        if depth == 0:
            return [x, P.mean(x), P.roll(x, 1), x * float(rng.choice([3, -0.5, 0.3])) + 0.25, P.max(x), off(x)][
                rng.integers(6)
            ]
        a = tree(depth - 1)
        return [
            lambda: P.multiply(a, some(depth), epsilon=epsilon),
            lambda: P.multiply(some(depth), a, epsilon=epsilon),
            lambda: P.multiply(a, some(depth) - a, epsilon=epsilon),
            lambda: P.multiply(a, a, epsilon=epsilon),
            lambda: a + some(depth) * float(rng.choice([1, -2, 0.3])),
            lambda: P.maximum(a, float(rng.choice([0.0, 0.1, 0.5]))),
            lambda: P.minimum(P.abs(a), some(depth)),
            lambda: P.apply(smooth[rng.integers(5)], a, epsilon=epsilon),
            lambda: P.apply(steep[rng.integers(3)], P.maximum(P.abs(a), 0.05), epsilon=epsilon),
            lambda: P.divide(some(depth), P.maximum(a, 0.1), epsilon=4 * epsilon),
            lambda: P.apply(np.sqrt, P.relu(P.mean(a)), epsilon=4 * epsilon),
            lambda: P.clip(P.sort(a), -0.5, 1.5),
        ][rng.integers(12)]()

    return tree(int(rng.integers(2, 5)))


def drawn(source, count):
    rng = np.random.default_rng(count)
    unit = rng.random((count, source.n, source.d))
    unit[: count // 4] = np.linspace(0, 1, count // 4)[:, None, None]
    unit[count // 4 : count // 2] = rng.integers(0, 3, unit[count // 4 : count // 2].shape) / 2
    return source.settings["low"] + (source.settings["high"] - source.settings["low"]) * unit


def brute_force(program, count=400):
    """Every operation at every input: forms, gaps, profiles and ranges hold what happens."""
    record, order = to_record(program), list(nodes(program))
    source = next(node for node in order if node.operation == "tokens")
    X = drawn(source, count).astype(np.longdouble)
    meaning, ideal = Meaning(record["n"], record["n"], Terms()), {}
    for node, value in zip(order, every_value(meaning, record["nodes"]), strict=True):
        given = [X] if node.operation == "tokens" else [ideal[a] for a in node.arguments]
        y = np.broadcast_to(PRIMITIVES[node.operation].interpret(*given, **node.settings), (count, node.n, node.d))
        ideal[node] = y
        x, noise = values_of(meaning, value, X)
        noise = noise + 2.0**-48 * (1 + float(np.abs(y).max()))
        away = np.abs(x - y).astype(np.float64)
        assert (away <= value.gap.T[None] + noise).all(), node
        profile = profile_of(meaning, value)
        assert profile.edges[0] - noise <= x.min() <= x.max() <= profile.edges[-1] + noise, node
        assert profile.low - noise <= y.min() <= y.max() <= profile.high + noise, node
        k = np.searchsorted(profile.edges, x.astype(np.float64), side="right") - 1
        left, right = (np.clip(k + step, 0, len(profile.gap) - 1) for step in (-1, 0))
        assert (away <= np.maximum(profile.gap[left], profile.gap[right]) + noise).all(), node
        low, high = value_range(node)
        assert low - noise <= min(x.min(), y.min()) <= max(x.max(), y.max()) <= high + noise, node
        for f, row in enumerate(value.forms):
            for i, form in enumerate(row):
                low, high = map(float, meaning.terms.range(form))
                assert low - noise <= x[:, i, f].min() <= x[:, i, f].max() <= high + noise, node


def small(program):
    sizes = (len(node.settings.get("knots", node.settings.get("plus", ()))) for node in nodes(program))
    return sum(sizes) <= 800 and max(map(abs, value_range(program))) < 1e4


SEEDS = range(20)  # all of them small


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_gap_or_range_is_left(seed):
    brute_force(nested(seed))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(60, 360, 30))
def test_no_gap_or_range_is_left_in_many_programs(start):
    for program in map(nested, range(start, start + 30)):
        if small(program):
            brute_force(program)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", SEEDS[:5])
def test_bounds_hold_in_the_dtypes_that_have_one(seed):
    program = nested(seed)
    witness = te.build(program, dtypes=("float64", "float32"))
    X = drawn(witness.source, 1000).astype(np.float32).astype(np.float64)
    X = np.clip(X, witness.source.settings["low"], witness.source.settings["high"])
    wanted = P.interpret(program, X.astype(np.longdouble))
    for dtype, part in witness.certificate.bounds.items():
        assert np.abs(witness.to(dtype)(X) - wanted).max() <= part["bound"]


def test_a_wrong_range_of_a_product_would_be_caught(monkeypatch):
    """Planted: products that are said to stay in half of their range."""
    from thereexists.certificates import program_meaning_curves as curves

    right = curves._product_range
    monkeypatch.setattr(curves, "_product_range", lambda *given: (right(*given)[0], right(*given)[1] / 2))
    x = P.tokens(2)
    with pytest.raises(AssertionError):
        brute_force(x * P.flip(x) * x)


def test_a_wrong_profile_would_be_caught(monkeypatch):
    from thereexists.certificates import program_meaning_curves as curves

    def half(*given, **options):
        found = product_of(*given, **options)
        return None if found is None else Profile(found.edges, found.gap / 2, found.low, found.high)

    monkeypatch.setattr(curves, "product_of", half)
    x = P.tokens(2)
    with pytest.raises(AssertionError):
        brute_force(x * x * x)


def test_one_spline_of_two_functions_is_no_square():
    """Both are 0 at the knots, and x² − x and x − x² between them: the product is below 0, and may not be bounded as a

    square. What is written twice of a known function is one value; of somebody's own it is not.
    """
    x = P.tokens(1)
    f, g = (P.apply(lambda X, c=c: c * (X * X - X) + 0.0, x, curvature=2.0, epsilon=0.3) for c in (1.0, -1.0))
    brute_force(f * g + 0.0 * x)
    for write in (lambda: off(x) * off(x), lambda: np.sin(x - 0.5) * np.sin(x - 0.5), lambda: np.square(x - 0.5)):
        assert value_range(write())[0] == 0.0


def test_a_joint_range_is_used_for_multiples_and_leaves_the_rest_alone():
    terms = Terms()
    a, b, c = (terms.term(("token", i, 0), 0, 4, "token") for i in range(3))
    join(terms, Form({a: 1, b: -1}, {}, 2), 2, 3)  # a − b stays in [0, 1]
    assert terms.range(Form({a: 3, b: -3, c: 1})) == (0, 7)
    assert terms.range(Form({a: -1, b: 1}, {}, 5)) == (4, 5)
    assert terms.range(Form({a: 2, b: -1})) == (0, 5)  # a − b, and a
    assert terms.range(Form({a: 1, b: 1})) == (0, 8)  # each by itself
    assert terms.range(Form({a: 1, c: 1})) == (0, 8)


def test_a_floor_takes_what_is_off_below_it():
    """Off by 1 up to 0.5 and by 0.01 beyond: only the latter is left of the larger of it and 0.9, but for y > 0.9."""
    value = Profile(np.array([0.0, 0.5, 2.0]), np.array([0.1, 0.01]), 0.0, 2.0)
    floor = Profile.flat(0.9, 0.9, 0.0)
    found = larger_of(value, floor)
    assert 0.01 <= found.worst <= 0.0101
    assert found.ends[0] == 0.9
    assert sum_of([(2.0, value), (-1.0, value)]).worst >= 0.3  # nothing is known of how the two go together


def test_a_refusal_names_what_the_errors_before_did():
    """1/√v has no bound where v may be off by more than its distance from 0: that is said, and by how much."""
    x = P.tokens(2)
    v = P.multiply(x, P.flip(x), epsilon=0.05) + 0.06
    with pytest.raises(InvalidInput, match=r"(?s)'apply' of rsqrt.*off by up to 0\.0.*P\.maximum or P\.clip"):
        te.build(P.apply(P.rsqrt, P.interp(v, [0.0, 2.0], [0.01, 2.01])))


@pytest.mark.parametrize(
    ("stated", "right"),
    [
        ("a function of the program has |f''| ≤ 2 from -1 to 3, as its author states", True),
        ("a function of the program has |f''| ≤ 2 from 0 to 1, as its author states", True),
        ("a function of the program has |f''| ≤ 2 from 0.5 to 3, as its author states", False),
        ("a function of the program has |f''| ≤ 2 from -inf to 3, as its author states", False),
        ("a function of the program has |f''| ≤ 2 from nan to 3, as its author states", False),
        ("a function of the program has |f''| ≤ 9 from -1 to 3, as its author states", False),
        ("a function of the program has |f''| ≤ 2 from -1 to 3, as its author states and more", False),
        ("anything else", False),
    ],
)
def test_an_older_file_may_assume_a_wider_interval_and_nothing_else(stated, right):
    needed = "a function of the program has |f''| ≤ 2 from 0 to 1, as its author states"
    assert assumes_as_much(stated, needed) is right
