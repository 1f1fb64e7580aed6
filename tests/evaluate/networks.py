"""The kinds of networks that every engine has to run: built ones of every theorem, and ones nobody built."""

import functools

import numpy as np
import torch

import thereexists as te
from tests.cases import CASES
from thereexists.functions.targets import builtin
from thereexists.model import Attention, FeedForward, Stage, ThreePiece, Transformer


def _builders():
    for case in CASES:
        if case.n * case.value < 1600:  # one thread runs the reference in a second or so
            for modified in (False, True):
                name = f"{case.name}-n{case.n}-d{case.d}-N{case.N}{'-modified' if modified else ''}"
                yield name, functools.partial(te.build, case.target(), delta=1 / case.N, modified=modified)
    for rho in ("softmax", "sparsemax"):
        for pattern in (te.patterns.star(3), te.patterns.strided(4, stride=2)):
            build = functools.partial(te.build, builtin("sort", n=pattern.n), delta=1 / 2, pattern=pattern, rho=rho)
            yield f"{pattern.name}-{rho}", build
    yield "two-sweeps", functools.partial(te.build, te.Target(lambda X: 1e9 * (X[:, ::-1] - 0.5), n=2), delta=1 / 4)
    tiny = te.Target(lambda X: 1e-9 * np.sort(X, axis=1), n=3, d=1)
    yield "two-sweeps-tiny", functools.partial(te.build, tiny, delta=1 / 4, modified=True)
    box = te.Target(lambda X: X[:, ::-1], n=2, d=2, domain=([-3.0, 1.0], [5.0, 3.0]))
    yield "box-two-features", functools.partial(te.build, box, delta=1 / 4)
    shifted = te.Target(lambda X: X - X.mean(axis=1, keepdims=True), n=3, equivariant=True, domain=(-2.0, 6.0))
    yield "equivariant-shifted-domain", functools.partial(te.build, shifted, delta=1 / 4)


BUILT = dict(_builders())


@functools.cache
def built(name):
    return BUILT[name]()


def inputs(witness, count=200, seed=0):
    """Random inputs off the ramps, the ends of the domain, and sequences with equal tokens."""
    rng = np.random.default_rng(seed)
    low, high = witness.target.low, witness.target.high
    X = low + (high - low) * rng.random((count, witness.grid.n, witness.grid.d))
    X = X[~witness.grid.on_ramp(X)]
    equal = np.repeat(X[:5, :1], witness.grid.n, axis=1)
    ends = np.stack([np.broadcast_to(corner, X.shape[1:]) for corner in (low, high)])
    return torch.from_numpy(np.concatenate([X, equal, ends]))


def ramp_inputs(witness, count=100, seed=0):
    """Inputs with every entry on a ramp, where ids come out as anything."""
    grid, rng = witness.grid, np.random.default_rng(seed)
    upper = np.array(grid.origin) + (rng.integers(0, grid.N - 1, (count, grid.n, grid.d)) + 1) * np.array(grid.step)
    return torch.from_numpy(upper - grid.ramp * rng.random(upper.shape))


def random_network(rho="softmax", depth=40, h=2, m=2, r=3, d=2, n=4, masked=False, phi=False, seed=0):
    """Both halves in every layer, nothing sorted, nothing shared."""
    generator = torch.Generator().manual_seed(seed)

    def array(*shape):
        return 0.3 * torch.randn(*shape, dtype=torch.float64, generator=generator)

    pattern = (torch.rand(3, n, n, generator=generator) < 0.5) | torch.eye(n, dtype=torch.bool) if masked else None
    attention = Attention(
        array(depth, h, m, d), array(depth, h, m), array(depth, h, m, d), array(depth, h, m, d), array(depth, h, d, m),
        pattern=pattern,
    )  # fmt: skip
    pieces = None
    if phi:
        knots = array(depth, r, 2).sort(dim=-1).values
        slopes = array(depth, r, 3) * torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
        pieces = ThreePiece(knots, slopes, array(depth, r, 3))
    feed_forward = FeedForward(array(depth, r, d), array(depth, r), array(depth, d, r), array(depth, d), pieces)
    return Transformer({"blocks": Stage(attention, feed_forward)}, rho, array(n, d))


RANDOM = {
    "softmax": {},
    "hardmax": {"rho": "hardmax"},
    "sparsemax-masked": {"rho": "sparsemax", "masked": True},
    "entmax15": {"rho": "entmax15"},
    "softmax-masked-m1": {"masked": True, "m": 1},
    "one-feature": {"d": 1, "m": 1, "r": 4},
    "three-heads": {"h": 3, "m": 1, "d": 3, "r": 5},
}


def sorted_network(depth=300, d=2, n=3, rho="softmax", seed=0):
    """Random weights that qualify for bisection though nobody built them: shared directions, sorted thresholds."""
    generator = torch.Generator().manual_seed(seed)

    def array(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    u, direction = array(1, 1, 1, d), array(1, 1, d)
    W_Q, W_K = (a * torch.ones(depth, 2, 1, 1, dtype=torch.float64) for a in (300 * u, u))
    b_Q = (300 * array(depth, 2, 1)).sort(dim=0, descending=True).values
    W_V = array(depth, 1, 1, d).repeat(1, 2, 1, 1)
    W_O = array(depth, 1, d, 1) * torch.tensor([0.5, -0.5], dtype=torch.float64)[:, None, None]
    b_1 = (3 * array(depth, 1)).sort(dim=0).values - torch.tensor([0.0, 0.1, 0.3], dtype=torch.float64)
    W_1 = direction * torch.ones(depth, 3, 1, dtype=torch.float64)
    feed_forward = FeedForward(W_1, b_1, 0.01 * array(depth, d, 3), torch.zeros(depth, d, dtype=torch.float64))
    attention = Attention(W_Q, b_Q, W_K, W_V, 0.01 * W_O)
    return Transformer(
        {"shift": Stage(attention=attention), "move": Stage(feed_forward=feed_forward)}, rho, array(n, d)
    )


def bits(Y):
    return Y.detach().cpu().numpy().view(np.int64)


def there_and_back(kind: str) -> Transformer:
    """z_0 grows to 2^900 and goes back to 0; up there, what writes nothing overflows: a unit, a layer, a head, a sweep.

    0 · ∞ and ∞ − ∞ are NaN in the reference, and whoever leaves them out gets 0.
    """
    huge = 2.0**200
    grow, shrink, idle = _feed_forward(3), _feed_forward(1), _feed_forward(40)
    grow.W_1[:, 0, 0], grow.W_2[:, 0, 0] = 1.0, 2.0**300
    shrink.W_1[:, 0, 0], shrink.W_2[:, 0, 0] = 1.0, -1.0
    idle.W_1[:, 0, 1], idle.b_1[:, 0], idle.W_2[:, 1, 0] = 1.0, torch.linspace(-2.0, 0.0, 40).double(), 2.0**-10
    halves: dict[str, Stage] = {"idle": Stage(feed_forward=idle)}
    if kind == "unit":
        idle.W_1[20, 1, 0] = huge
    elif kind == "layer":
        idle.W_1[20, 0, 0], idle.W_2[20] = huge, 0.0
    else:
        W, b = torch.zeros(40, 2, 1, 2).double(), torch.zeros(40, 2, 1).double()
        key, value, opposite = W.clone(), W.clone(), W.mT.clone()
        key[..., 1], value[..., 0] = 1.0, huge
        if kind == "sweep":
            b[:, 0, 0] = b[:, 1, 0] = torch.linspace(-4000.0, -8000.0, 40).double()
            opposite[:, 0, 1], opposite[:, 1, 1] = 1.0, -1.0
        halves["heads"] = Stage(Attention(W, b, key, value, opposite))
    return Transformer({"grow": Stage(feed_forward=grow), **halves, "shrink": Stage(feed_forward=shrink)})


def _feed_forward(depth: int) -> FeedForward:
    W, b = torch.zeros(depth, 2, 2).double(), torch.zeros(depth, 2).double()
    return FeedForward(W, b, W.clone(), b.clone())
