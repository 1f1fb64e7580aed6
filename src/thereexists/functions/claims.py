"""What a target claims about its function, put to the test: a counterexample ends a claim, survival proves nothing.

Two claims: the modulus of continuity, tried on random pairs and by halving some of them until they are next to each
other, which finds jumps; and the interval extension, tried by a search that climbs.
An extension may be right at the corners of every box and wrong inside (the values of sin(πx) at the two ends are both 0
on [0, 1]); so points are drawn inside boxes, the one that sticks out most (or comes nearest) is kept, and the search
goes on in a smaller box around it. Boxes of every size are tried, single points included, and the ones that came
nearest have descendants beside fresh ones.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_down
from thereexists.functions.asking import phase
from thereexists.functions.modulus import falling
from thereexists.functions.target import EVALUATION_ERROR, Array, Target

BOXES = 64  # of one generation
GENERATIONS = 4
POINTS = 16  # of one round, in every box
ROUNDS = 8  # each in a box a third as wide as before
HALVED = 64  # pairs
HALVINGS = 44  # from the size of the domain to the rounding of f
Boxes = tuple[Array, Array]


def refute(target: Target, pairs: int = 4_000, seed: int = 0, boxes: Boxes | None = None) -> str | None:
    """A sentence with a counterexample to the modulus or the interval extension, or None if the search finds none.

    ``boxes``: further boxes (low, high) on which the extension will be used, to be tried too.
    """
    found = None if target.region is None else target.region.refuted(seed)
    if found is not None or not target.provable:
        return found
    rng = np.random.default_rng(seed)
    tried = _Pairs.of(target, pairs, rng)
    if target.has_modulus:
        found = _refute_modulus(target, tried) or _refuted_by_a_jump(target, tried)
    if found is None and target.interval is not None:
        found = _refute_extension(target, rng, boxes, tried.rounding(target))
    return found


@dataclass(frozen=True)
class _Pairs:
    """Random pairs of sequences at every distance, f there, and how far each pair is apart."""

    X: Array
    Y: Array
    moved: Array
    change: Array
    largest: float

    @classmethod
    def of(cls, target: Target, count: int, rng: np.random.Generator) -> _Pairs:
        X = target.points(rng, count)
        reach = 10.0 ** rng.uniform(-4, 0, (count, 1, 1)) * (target.high - target.low)
        Y = target.nearest(X + reach * rng.choice([-1.0, 0.0, 1.0], X.shape))
        with phase(f"are the claims about {target.name} true", 2 * count):
            f_X, f_Y = target(X), target(Y)
        moved, change = np.abs(X - Y).max(axis=(1, 2)), np.abs(f_X - f_Y).max(axis=(1, 2))
        return cls(X, Y, moved, change, max(float(np.abs(f_X).max()), float(np.abs(f_Y).max())))

    def rounding(self, target: Target) -> float:
        """f is computed in floats: allow the rounding of a sum of a thousand of its terms, no more.

        Terms may cancel. They are taken to be as large as f, or as its steepest slope here allows between 0 and the
        end of the domain: measured, not as the target claims it, or a large claim would excuse anything. Without an
        interval extension a certificate takes f to be known to within 2^-40 · max(1, |f|), and so does this.
        """
        size = float(max(np.abs(target.low).max(), np.abs(target.high).max()))
        apart = self.moved > 0
        slope = float((self.change[apart] / self.moved[apart]).max(initial=0.0))
        terms = max(self.largest, slope * size, 0.0 if target.interval is not None else 1.0)
        return 1e3 * float(np.finfo(np.float64).eps) * terms + 1e-300


def _refute_modulus(target: Target, pairs: _Pairs) -> str | None:
    allowed = _allowed(target, pairs.moved)
    in_order = sorted(zip(pairs.moved.tolist(), allowed.tolist(), strict=True))
    fall = next((said for near, far in itertools.pairwise(in_order) if (said := falling(near, far))), None)
    if fall is not None:
        return fall
    if (pairs.change > allowed + pairs.rounding(target)).any():
        at = int((pairs.change - allowed).argmax())
        return (
            f"f changes by {in_full(float(pairs.change[at]))} between {pairs.X[at].tolist()} and "
            f"{pairs.Y[at].tolist()}, and its modulus of continuity allows {in_full(float(allowed[at]))}"
        )
    return None


def _refuted_by_a_jump(target: Target, pairs: _Pairs) -> str | None:
    """Of every pair the half that exceeds the modulus more, again and again: a jump stays, a slope does not.

    A function that computes in float32 is a staircase, whose steps are too low for random pairs. What float64 may round
    (``EVALUATION_ERROR``) is no step.
    """
    X, Y = pairs.X[:HALVED], pairs.Y[:HALVED]
    with phase(f"does {target.name} jump", (2 + HALVINGS) * len(X)):
        f_X, f_Y = target(X), target(Y)
        for _ in range(HALVINGS):
            middle = target.nearest(X + (Y - X) / 2)
            f_middle = target(middle)
            first = (_excess(target, X, middle, f_X, f_middle) > _excess(target, middle, Y, f_middle, f_Y))[
                :, None, None
            ]
            X, f_X = np.where(first, X, middle), np.where(first, f_X, f_middle)
            Y, f_Y = np.where(first, middle, Y), np.where(first, f_middle, f_Y)
    excess = _excess(target, X, Y, f_X, f_Y)
    allowed = 2 * EVALUATION_ERROR * np.maximum(1.0, np.maximum(np.abs(f_X), np.abs(f_Y)).max(axis=(1, 2)))
    at = int((excess - allowed).argmax())
    if excess[at] <= allowed[at] + pairs.rounding(target):
        return None
    return (
        f"f jumps by {np.abs(f_X - f_Y)[at].max():.4g} between {X[at].tolist()} and {Y[at].tolist()}, more than its "
        "modulus of continuity allows; or it computes in less than float64"
    )


def _excess(target: Target, X: Array, Y: Array, f_X: Array, f_Y: Array) -> Array:
    """By how much f changes more than its modulus allows, pair by pair; negative if it does not."""
    return np.abs(f_X - f_Y).max(axis=(1, 2)) - _allowed(target, np.abs(X - Y).max(axis=(1, 2)))


def _allowed(target: Target, moved: Array) -> Array:
    return np.array([target.variation(float(r)) for r in moved])


def _refute_extension(target: Target, rng: np.random.Generator, given: Boxes | None, allowed: float) -> str | None:
    low, high = _random_boxes(target, rng, BOXES)
    if given is not None:
        low, high = np.concatenate([low, given[0]]), np.concatenate([high, given[1]])
    for generation in range(GENERATIONS):
        X, f_X, f_low, f_high, excess = _climb(target, rng, low, high)
        if excess.max() > allowed:
            at = int(excess.argmax())
            return (
                f"the interval extension misses f in the box from {low[at].tolist()} to {high[at].tolist()}: "
                f"f({X[at].tolist()}) = {f_X[at].tolist()} is outside {f_low[at].tolist()} … {f_high[at].tolist()}"
            )
        if generation + 1 < GENERATIONS:
            nearest = np.argsort(-excess)[: BOXES // 2]
            children, fresh = _varied(target, rng, low[nearest], high[nearest]), _random_boxes(target, rng, BOXES // 2)
            low, high = (np.concatenate(sides) for sides in zip(children, fresh, strict=True))
    return None


def _climb(target: Target, rng: np.random.Generator, low: Array, high: Array) -> tuple[Array, ...]:
    """The point of every box at which f sticks out of the extension most, as far as the search finds.

    (points, f there, the extension's two ends, by how much the worst entry sticks out: negative if none does).
    Half of the boxes watch their worst entry, the others one entry of their own: the worst may hide another.
    """
    f_low, f_high = target.enclosure(low, high)
    count, entries = len(low), target.n * target.d
    watched = np.ones((count, entries), dtype=bool)
    own = rng.random(count) < 0.5
    watched[own] = np.arange(entries) == rng.integers(entries, size=(int(own.sum()), 1))
    first = target.nearest(low)
    best_X, best_f, best = first, target(first), np.full(count, -np.inf)
    worst_X, worst_f, worst = best_X, best_f, best
    search_low, search_high = low, high
    for _ in range(ROUNDS):
        share = rng.random((POINTS, *low.shape))
        share[: POINTS // 4] = np.rint(share[: POINTS // 4])  # corners too
        X = np.clip(search_low + share * (search_high - search_low), low, high)  # (points, boxes, n, d)
        flat = X.reshape(-1, target.n, target.d)
        inside = target.contains(flat)  # the others say nothing of the box
        f_X = target(flat if inside.all() else target.nearest(flat)).reshape(X.shape)
        out = np.maximum(f_X - f_high, f_low - f_X).reshape(POINTS, count, entries)
        out = np.where(inside.reshape(POINTS, count, 1), out, -np.inf)
        worst_X, worst_f, worst = _better(worst_X, worst_f, worst, X, f_X, out.max(axis=2))
        best_X, best_f, best = _better(best_X, best_f, best, X, f_X, np.where(watched, out, -np.inf).max(axis=2))
        reach = (search_high - search_low) / 6
        search_low, search_high = np.maximum(best_X - reach, low), np.minimum(best_X + reach, high)
    return worst_X, worst_f, f_low, f_high, worst


def _better(X: Array, f_X: Array, value: Array, tried: Array, f_tried: Array, values: Array) -> tuple[Array, ...]:
    """Per box, the best of what was known and what was tried."""
    at, box = values.argmax(axis=0), np.arange(len(value))
    gains = (values[at, box] > value)[:, None, None]
    return (
        np.where(gains, tried[at, box], X),
        np.where(gains, f_tried[at, box], f_X),
        np.maximum(values[at, box], value),
    )


def _random_boxes(target: Target, rng: np.random.Generator, count: int) -> Boxes:
    """The whole domain, boxes of every size down to 10^-9 of it, some flat in some entries, some single points."""
    width = target.high - target.low
    shape = (count, target.n, target.d)
    reach = 10.0 ** np.where(rng.random((count, 1, 1)) < 0.5, rng.uniform(-1, 0, (count, 1, 1)), -9 * rng.random(shape))
    flat = rng.random(shape) < rng.choice([0.0, 0.0, 0.3, 1.0], (count, 1, 1))
    side = np.where(flat, 0.0, reach) * width
    low = np.clip(target.low + rng.random(shape) * width - side / 2, target.low, target.high)
    high = np.clip(low + side, target.low, target.high)
    low[0], high[0] = target.low, target.high
    return low, high


def _varied(target: Target, rng: np.random.Generator, low: Array, high: Array) -> Boxes:
    """Boxes near the given ones: moved by a part of their size, a little wider or narrower."""
    side = high - low
    low = np.clip(low + side * rng.uniform(-0.5, 0.5, low.shape), target.low, target.high)
    return low, np.clip(low + side * 2.0 ** rng.uniform(-2, 1, low.shape), low, target.high)


def said_of_the_edge(target: Target, points: int = 1024, seed: int = 0) -> list[str]:
    """Of a function that is 0 outside its box: whether it is 0 at the edge too, as a continuous one is. A sentence, or
    none; points of the edge are tried."""
    if not target.compact_support:
        return []
    rng = np.random.default_rng(seed)
    X = target.low + (target.high - target.low) * rng.random((points, target.n, target.d))
    token, feature = rng.integers(target.n, size=points), rng.integers(target.d, size=points)
    ends = np.where(rng.random(points) < 0.5, target.low[feature], target.high[feature])
    X[np.arange(points), token, feature] = ends
    largest = float(np.abs(target(X)).max())
    inside = float(np.abs(target(target.low + (target.high - target.low) * rng.random(X.shape))).max())
    if largest <= 2.0**-30 * max(1.0, inside):
        return []
    return [
        f"At the edge of its box {target.name} reaches {rounded_down(largest, 3)}, and outside it is 0: on all of "
        "R^{d×n} it is not continuous there, as Theorem 1 asks. The bound holds all the same: the edge has no volume."
    ]
