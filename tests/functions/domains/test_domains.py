"""Domains that are no box: one contract for all kinds, and the cells of a grid that they may meet."""

import itertools
import json

import numpy as np
import pytest

import thereexists as te
from thereexists.cli._construction import domain_of
from thereexists.core.errors import CannotBuild, InvalidInput, InvalidTarget, Obstructed
from thereexists.functions.domains.stored import parsed, read
from thereexists.functions.grid import Grid

D = te.domains


def disc(x):
    return (x**2).sum(axis=1) - 0.8


def disc_range(low, high):
    ends = np.maximum(low**2, high**2), np.where((low < 0) & (high > 0), 0.0, np.minimum(low**2, high**2))
    return ends[1].sum(axis=1) - 0.8, ends[0].sum(axis=1) - 0.8


BALL = D.Ball([0.5, 0.5], 0.3)
# A domain, n, d, and its measure where a formula gives it.
DOMAINS = {
    "box of a sequence": (D.Box([0.0, 0.25], [0.5, 1.0]), 2, 1, 0.375),
    "ball of tokens": (BALL, 2, 2, (np.pi * 0.09) ** 2),
    "ball of sequences": (BALL, 2, 1, np.pi * 0.09),
    "ellipsoid": (D.Ellipsoid([0.0, 0.5], [[0.3, 0.1], [0.0, 0.2]]), 2, 1, np.pi * 0.06),
    "polytope": (D.Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0]), 2, 1, 0.5),
    "simplex of tokens": (D.Simplex(), 2, 3, 0.25),
    "simplex of sequences": (D.Simplex(whole=True), 3, 1, 0.5),
    "points": (D.Points(np.random.default_rng(0).random((30, 2))), 2, 1, 30.0),
    "implicit": (D.Implicit(disc, 0, 1, lipschitz=4.0, whole=True), 2, 1, np.pi * 0.2),
    "implicit by intervals": (D.Implicit(disc, 0, 1, interval=disc_range), 1, 2, np.pi * 0.2),
    "union": (BALL | D.Box([0.0, 0.0], [0.2, 0.2]), 2, 1, None),
    "intersection": (D.Simplex() & D.Polytope([[1, 0, 0]], [0.5], [0, 0, 0], [1, 1, 1]), 1, 3, 0.375),
    "tokens and sequences": (D.Simplex() & D.Ball([0.5, 0.5, 0.5, 0.5], 0.4), 2, 2, None),
}


@pytest.fixture(params=DOMAINS, scope="module")
def case(request):
    domain, n, d, measure = DOMAINS[request.param]
    target = te.Target(lambda X: X, n=n, d=d, domain=domain)
    return target, Grid.for_target(target, "1/8"), measure


def boxes_around(x, rng):
    """Boxes of every size that hold these points."""
    side = 10.0 ** rng.uniform(-6, 0, (len(x), 1)) * rng.random(x.shape)
    low = x - side * rng.random(x.shape)
    return low, np.maximum(low + side, x)


@pytest.mark.sampled(3)
def test_what_holds_of_every_domain(case):
    target, *_ = case
    region, rng = target.region, np.random.default_rng(1)
    low, high = region.ends
    x, inside = region.drawn(*rng.random((2, 8_000, target.n * target.d)))
    assert (region.contains(x) == inside).all()
    assert inside.any()
    x = x[inside]
    assert ((x >= low) & (x <= high)).all()
    assert region.meets(*boxes_around(x, rng)).all()  # never no, of a box that holds a point of it
    corner = low + (high - low) * rng.random((4000, len(low)))
    side = (high - low) * 10.0 ** rng.uniform(-3, -0.5, (4000, 1))
    within = region.within(corner, corner + side)
    some = corner[:, None] + side[:, None] * rng.random((4000, 16, len(low)))
    assert region.contains(some[within].reshape(-1, len(low))).all()
    found = region.point(corner, corner + side)
    assert region.contains(found).all()
    assert region.contains(region.nearest(corner)).all()
    same = region.nearest(x[:100])
    assert np.abs(same - x[:100]).max() <= 1e-12
    with pytest.raises((InvalidInput, CannotBuild)):  # neither it nor anything like it is 0 outside
        te.Target(lambda X: X, n=target.n, d=target.d, domain=target.domain, compact_support=True)


def test_no_float64_is_left_out_of_what_is_drawn(case):
    """A network may be right on every multiple of 2^-53 of the box and wrong beside them."""
    target, *_ = case
    unit, fine = np.random.default_rng(5).random((2, 4_000, target.n * target.d))
    x, _ = target.region.drawn(unit, fine)
    if isinstance(target.region, D.Points):
        return
    odd = x[x != 0].view(np.int64) & 1
    assert abs(odd.mean() - 0.5) < 0.1


def test_every_point_off_the_ramps_lies_in_a_cell_that_is_found(case):
    target, grid, _ = case
    X = target.points(np.random.default_rng(2), 8_000)
    index = grid.index(X[~grid.on_ramp(X)]).reshape(-1, target.n * target.d)
    found = set(map(tuple, grid.cube(np.arange(grid.cells)).reshape(grid.cells, -1).tolist()))
    assert set(map(tuple, index.tolist())) <= found
    assert len(found) == grid.cells < grid.N ** (target.n * target.d)


def test_measures_are_on_the_safe_side(case):
    from thereexists.certificates.ramps import extent
    from thereexists.certificates.units import PLAIN

    target, grid, measure = case
    region = target.region
    _, inside = region.drawn(*np.random.default_rng(3).random((2, 8_000, target.n * target.d)))
    estimate, off = region.mass * inside.mean(), 5 * region.mass * inside.std() / np.sqrt(8_000)
    size = extent(target, grid, PLAIN)
    assert size.least <= estimate + off
    assert size.whole >= estimate - off
    index = grid.cube(np.arange(grid.cells))
    low = np.array(grid.origin) + index * np.array(grid.step)
    ends = [end.reshape(grid.cells, -1) for end in (low, np.minimum(low + np.array(grid.step), np.array(grid.high)))]
    assert region.measure(*ends).sum() + size.off_core >= estimate - off
    assert region.measure(*ends).max() <= size.cube
    if measure is not None:
        assert abs(estimate - measure) <= off + 1e-9 * measure
        assert size.least <= measure <= size.whole


def test_off_the_cores_lies_no_more_than_is_charged(case):
    """Measured with ramps that are half a cell wide, or none of the points would lie on them."""
    from unittest import mock

    from thereexists.certificates import ramps
    from thereexists.certificates.units import PLAIN

    target, grid, _ = case
    margins = 0.1 * np.array(grid.step), 0.3 * np.array(grid.step)
    with mock.patch.object(ramps, "core_margins", return_value=margins):
        charged = ramps.extent(target, grid, PLAIN).off_core
    X, inside = target.drawn(*np.random.default_rng(4).random((2, 8_000, target.n, target.d)))
    edge = np.array(grid.origin) + grid.index(X) * np.array(grid.step)
    end = np.minimum(edge + np.array(grid.step), np.array(grid.high))
    end = np.where(grid.index(X) == grid.N - 1, end - margins[0], end - margins[1])
    off = ((X < edge + margins[0]) | (X > end)).any(axis=(1, 2)) & inside
    assert charged >= target.volume * (off.mean() - 5 * off.std() / np.sqrt(len(X)))


def test_simplex_cells_have_exactly_its_volume():
    """The cells of the simplex, in slices of the sums of uniform numbers, add up to 1/(k−1)!."""
    for k, N in itertools.product((2, 3, 4), (3, 8)):
        simplex = D.Simplex().sized(1, k)
        low = np.array(list(itertools.product(range(N), repeat=k))) / N
        total = simplex.measure(low, low + 1 / N).sum()
        assert simplex.mass <= total <= simplex.mass * (1 + N**k * 2.0**-29)


def test_described_and_read_again(case):
    target, grid, _ = case
    again = read(json.loads(json.dumps(target.region.describe()))).bound(target.n, target.d)
    assert again.describe() == target.region.describe()
    for mine, stored in zip(again.ends, target.region.ends, strict=True):
        assert (mine == stored).all()
    if again.codes:  # code does not come back
        with pytest.raises(Obstructed, match="--domain"):
            again.contains(np.zeros((1, target.n * target.d)))
    else:
        assert Grid.for_target(te.Target(target.f, n=target.n, d=target.d, domain=again), "1/8").cells == grid.cells


@pytest.mark.parametrize(("d", "N"), [(2, 8), (3, 8), (4, 4)])
def test_a_thin_domain_has_few_cells(d, N):
    """Those between the planes Σ k = N − d and Σ k = N, the second one included; a box has N^d."""
    target = te.Target(lambda X: X, n=1, d=d, domain=D.Simplex())
    met = [k for k in itertools.product(range(N), repeat=d) if N - d < sum(k) <= N]
    assert Grid.for_target(target, f"1/{N}").cells == len(met) < N**d / 2


REFUSED = {
    "a size that does not fit": (lambda: te.Target(abs, n=2, d=1, domain=D.Ball([0.5] * 3, 0.4)), "3 numbers"),
    "a vector of one entry": (lambda: te.Target(abs, n=2, d=1, domain=D.Simplex()), "at least two entries"),
    "an equivariant function of sequences": (
        lambda: te.Target(abs, n=2, d=1, equivariant=True, domain=BALL),
        "change places",
    ),
    "no radius": (lambda: D.Ball([0.5], -1.0), "above 0"),
    "a flat ellipsoid": (lambda: D.Ellipsoid([0.5, 0.5], [[1, 1], [1, 1]]), "interior"),
    "an endless polytope": (lambda: D.Polytope([[1, 0]], [1]), "bounded"),
    "no claim about h": (lambda: D.Implicit(disc), "Lipschitz"),
    "parts that do not meet": (
        lambda: te.Target(abs, n=1, d=2, domain=D.Ball([0.1, 0.1], 0.05) & D.Ball([0.9, 0.9], 0.05)),
        "empty",
    ),
    "points beside a ball": (lambda: te.Target(abs, n=1, d=2, domain=BALL | D.Points([[0.0, 0.0]])), "volume"),
    "no points": (lambda: D.Points([]), "rows"),
    "a word that is none": (lambda: parsed("ball 0.5"), "'ball 0.5,0.5 0.3'"),
    "a stranger's kind": (lambda: read({"kind": "blob"}), "not known"),
    "a stranger's depth": (lambda: read(deep(20)), "described"),
}


def deep(levels):
    return {"kind": "union", "parts": [deep(levels - 1)]} if levels else BALL.describe()


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why):
    make, says = REFUSED[why]
    with pytest.raises(InvalidInput, match=says):
        make()


def test_named_on_the_command_line():
    assert parsed("simplex").describe() == D.Simplex().describe()
    assert parsed("simplex whole").describe() == D.Simplex(whole=True).describe()
    assert parsed("ball 0.5,0.5 0.3").describe() == BALL.describe()
    shape = D.Ellipsoid([0.5, 0.25], [0.3, 0.1])
    assert parsed(shape.command()).describe() == shape.describe()
    with pytest.raises(InvalidInput, match=r"takes a box .*, simplex, .*; got 'blob' instead"):
        domain_of("blob", 1)
    with pytest.raises(InvalidInput, match=r"takes two numbers, as -2,5, for all features; got '1' instead"):
        domain_of("1", 1)


def test_a_false_claim_about_h_is_found():
    lies = D.Implicit(disc, 0, 1, lipschitz=0.5, whole=True)
    with pytest.raises(InvalidTarget, match="h moves farther"):
        te.plan(te.Target(lambda X: X, n=2, lipschitz=1.0, domain=lies), delta=1 / 4)


def test_a_box_is_a_box():
    """A box of tokens is the domain that numbers name."""
    given = te.Target(lambda X: X, n=2, d=2, domain=D.Box([0.0, -1.0], [1.0, 2.0]))
    plain = te.Target(given.f, n=2, d=2, domain=([0.0, -1.0], [1.0, 2.0]))
    assert given.region is None
    assert given.describe() == plain.describe()


def test_the_box_around_a_polytope_holds_all_of_it():
    """The solver drops coefficients below 1e-9; what it leaves out is proved to be in the box all the same."""
    A, b = np.array([[1, -9e-10], [-1, 0], [0, 1], [0, -1]]), np.array([3, 0, 1e9, 0])
    x = np.array([[3.8, 0.99e9]])
    assert (x @ A.T <= b).all()
    assert D.Polytope(A, b).contains(x).all()
    assert D.Polytope(A, b).high[0] == pytest.approx(3.9, abs=1e-3)
    rng, made = np.random.default_rng(0), 0
    for size in (1, 2, 4):
        for _ in range(5):  # a simplex and random half-spaces, each row and each number of another scale
            units = 10.0 ** rng.integers(-6, 7, size)
            A = np.concatenate([-np.eye(size), np.ones((1, size)), rng.normal(size=(3, size))]) / units
            b = np.concatenate([np.zeros(size), [1.0], rng.uniform(0.2, 1.0, 3)])
            rows = 10.0 ** rng.integers(-6, 7, len(b))
            try:
                domain = D.Polytope(A * rows[:, None], b * rows)
            except InvalidInput:  # not proved: not made
                continue
            x = rng.dirichlet(np.ones(size + 1), 4000)[:, :size] * units
            inside = x[(x @ A.T <= b).all(axis=1)]
            assert len(inside)
            assert (inside >= domain.low).all()
            assert (inside <= domain.high).all()
            made += 1
    assert made >= 10


def test_strange_sizes_are_refused_and_never_warned_about():
    """Every record is read and asked, or refused in a sentence: a warning of NumPy is an error here."""
    rng = np.random.default_rng(0)
    sizes = np.array([1e308, 1e-308, 5e-324, 1e50, -1e50, 1e-50, 0.0, 1.0, -1.0, 0.5, 1e30, 1e-30, 3.0])

    def some(*shape):
        return rng.choice(sizes[int(rng.integers(0, 4)) :], shape).tolist()

    asked = 0
    for _ in range(300):
        stored = [
            {"kind": "box", "low": some(2), "high": some(2)},
            {"kind": "ellipsoid", "centre": some(2), "axes": some(2)},
            {"kind": "ellipsoid", "centre": some(2), "axes": some(2, 2)},
            {"kind": "polytope", "A": some(3, 2), "b": some(3), "low": some(2), "high": some(2)},
            {"kind": "points", "points": some(2, 2)},
            {"kind": "implicit", "low": some(2), "high": some(2), "lipschitz": 1.0, "interval": False, "origin": {}},
        ]
        for record in stored:
            try:
                domain = read(record)
                low, high = domain.ends
                domain.meets(low[None], high[None])
                domain.contains(np.array([[0.5, 0.5]]))
                domain.within(low[None], high[None])
                domain.anchor(low[None], high[None])
                asked += 1
            except InvalidInput:
                continue
    assert asked > 50


def part_of(rows):
    return {"kind": "polytope", "A": [[1, 1]] * rows, "b": [9] * rows, "low": [0, 0], "high": [1, 1]}


SMALL = {"kind": "box", "low": [0.0, 0.0], "high": [1.0, 1.0]}
BOMBS = {
    "a short list, a large matrix": ({"kind": "ellipsoid", "centre": [0] * 4000, "axes": [1] * 4000}, "1,048,576"),
    "half of them": ({"kind": "ellipsoid", "centre": [0] * 900, "axes": [1] * 900}, r"… 900 numbers\]"),
    "rows": ({"kind": "intersection", "parts": [part_of(10_000), SMALL]}, "16,384"),
    "parts": ({"kind": "union", "parts": [SMALL] * 300}, "256 parts"),
    "parts of parts": ({"kind": "union", "parts": [{"kind": "union", "parts": [SMALL] * 20}] * 20}, "256 parts"),
    "parts with points": (
        {"kind": "intersection", "parts": [{"kind": "points", "points": [[i, i] for i in range(300)]}] * 200},
        "16,384",
    ),
    "a polytope to be solved": (part_of(2) | {"low": None, "high": None}, "ends of its box"),
}


@pytest.mark.parametrize("why", BOMBS)
def test_a_short_record_asks_for_no_long_work(why, monkeypatch):
    monkeypatch.setattr(np.linalg, "cond", lambda matrix: pytest.fail(f"a decomposition of {matrix.shape}"))
    stored, says = BOMBS[why]
    with pytest.raises(InvalidInput, match=says) as said:
        te.Target(abs, n=2, d=1, domain=read(stored))
    assert len(str(said.value)) < 500


def test_long_sequences_are_refused_where_the_domain_is_no_box():
    with pytest.raises(InvalidInput, match="at most 4,096 numbers"):
        te.Target(abs, n=5000, d=1, domain=D.Simplex(whole=True))


def test_inequalities_are_asked_some_points_at_a_time(monkeypatch):
    """Tables of points against rows stay small, and the answers are those of single points."""
    from thereexists.functions.domains import shapes

    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 2))
    domain, x = D.Polytope(A, np.ones(50), [-1, -1], [1, 1]), rng.uniform(-1, 1, (1000, 2))
    whole = [domain.contains(x), domain.meets(x, x + 0.1), domain.within(x, x + 0.1)]
    assert [0 < found.sum() < 1000 for found in whole] == [True] * 3
    monkeypatch.setattr(shapes, "AT_ONCE", 350)
    asked = []

    class Seen(np.ndarray):
        def __matmul__(self, other):
            asked.append(len(self) * other.shape[1])
            return np.asarray(self) @ other

    seen = x.view(Seen)
    again = [domain.contains(seen), domain.meets(seen, seen + 0.1), domain.within(seen, seen + 0.1)]
    assert all((a == b).all() for a, b in zip(whole, again, strict=True))
    assert len(asked) > 100
    assert max(asked) <= 350


def test_half_axes_and_their_matrix_are_one_ellipsoid():
    one, other = D.Ellipsoid([0.5, 0.25], [0.3, 0.1]), D.Ellipsoid([0.5, 0.25], [[0.3, 0.0], [0.0, 0.1]])
    assert one.describe() == other.describe()
    assert np.array_equal(one._inverse, np.linalg.inv(one.axes))
    assert one._scale == pytest.approx(2 + np.linalg.cond(one.axes) + (np.abs(one._inverse) @ [0.8, 0.35]).max())


def test_many_cells_of_a_set_that_takes_many_numbers_are_refused_at_once():
    """20,000 half planes at 65,536 cells: half an hour, of a record of 1 MB."""
    angle = np.linspace(0, 2 * np.pi, 20_000, endpoint=False)
    sides = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    domain = D.Polytope(sides.tolist(), [1.5] * len(sides), [-1.0, -1.0], [1.0, 1.0])
    target = te.targets.builtin("sort", n=1, d=2, domain=domain)
    assert Grid.for_target(target, 1 / 4).cells == 16
    with pytest.raises(CannotBuild, match="40,008 numbers of every cell"):
        _ = Grid.for_target(target, 1 / 256).cells


@pytest.mark.parametrize(
    ("make", "arrays"),
    [
        (D.Box, ([0.0, 0.0], [1.0, 1.0])),
        (D.Ellipsoid, ([0.5, 0.5], [[0.3, 0.1], [0.0, 0.2]])),
        (D.Ball, ([0.5, 0.5], 0.25)),
        (D.Polytope, ([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, 0.0, 0.0])),
        (D.Points, ([[0.0, 1.0], [1.0, 0.0]],)),
        (lambda low, high: D.Implicit(disc, low, high, lipschitz=4.0), ([0.0, 0.0], [1.0, 1.0])),
    ],
)
def test_a_domain_stays_what_it_was_when_the_caller_goes_on_with_the_arrays(make, arrays):
    given = [np.array(array) for array in arrays]
    domain = make(*given)
    before = json.dumps(domain.describe())
    for array in given:
        array += 0.125
    assert json.dumps(domain.describe()) == before
    assert not any(value.flags.writeable for value in vars(domain).values() if isinstance(value, np.ndarray))
