"""Functions that are 0 outside their box: built-in ones times a bump that vanishes at the edge."""

import numpy as np

import thereexists as te
from thereexists.certificates.support import vanishes_outside
from thereexists.functions.targets import builtin

BOXES = {1: (0.0, 1.0), 2: ([-1.3, 0.0], [0.7, 1.0])}  # by the number of features


def bumped(name, n, d=1, domain=(0.0, 1.0), equivariant=True):
    """f·Π 4t(1 − t), t the entries in units of the box: 0 at the edge. Lipschitz: L + |f|·Σ slopes of the bump."""
    f = builtin(name, n=n, d=d, domain=domain)
    low, width = f.low, f.high - f.low

    def g(X):
        t = (X - low) / width
        return f.f(X) * np.prod(4 * t * (1 - t), axis=(1, 2), keepdims=True)

    rng = np.random.default_rng(0)
    largest = 1.5 * np.abs(f(low + width * rng.random((4096, n, d)))).max() + 1e-3
    lipschitz = float(f.lipschitz + largest * n * (4 / width).sum())
    return te.Target(
        g, n=n, d=d, lipschitz=lipschitz, equivariant=equivariant, domain=domain, compact_support=True, name=name
    )


def inputs_everywhere(target, count, seed=0):
    """Entries inside the box and from a Cauchy distribution of scale 10, mixed, some of them up to 1e300; and which
    sequences have an entry outside."""
    rng = np.random.default_rng(seed)
    shape = (count, target.n, target.d)
    inside = target.low + (target.high - target.low) * rng.random(shape)
    X = np.where(rng.random(shape) < 0.5, inside, 10 * rng.standard_cauchy(shape))
    far = rng.random(shape) < 0.05
    X = np.where(far, rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(0, 300, shape), X)
    X[: count // 4] = inside[: count // 4]
    return X, ((target.low > X) | (target.high < X)).any(axis=(1, 2))


def keeps_the_theorem(target, delta, count, construction="faithful"):
    """Built, 0 outside, f̄ inside off the ramps, proved; its witness."""
    witness = te.build(target, delta=delta, construction=construction)
    X, outside = inputs_everywhere(target, count)
    Y = witness(X)
    assert outside.sum() > count / 4
    assert not Y[outside].any()
    inside = X[~outside]
    inside = inside[~witness.grid.on_ramp(inside)]
    off = np.abs(witness(inside) - witness.cell_values(inside)).max()
    assert off <= 2.0**-20 * max(1.0, np.abs(Y).max())
    assert vanishes_outside(witness.network, target, target.n).holds
    return witness
