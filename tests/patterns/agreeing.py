"""All answers of a step against its definition."""

import numpy as np


def by_definition(step):
    k, j = np.mgrid[0 : step.n, 0 : step.n]
    return np.asarray(step.contains(k.ravel(), j.ravel())).reshape(step.n, step.n)


def assert_agree(step, rng):
    truth = by_definition(step)
    assert np.array_equal(step.mask(), truth)
    assert np.array_equal(step.to_csr().toarray(), truth)
    assert np.array_equal(step.degrees, truth.sum(1))
    assert np.array_equal(step.rows(step.n // 2), np.flatnonzero(truth[step.n // 2]))
    for density in (0.1, 0.5):
        x = rng.random(step.n) < density
        assert np.array_equal(step.image(x), truth[x].any(0))
        assert np.array_equal(step.preimage(x), truth[:, x].any(1))
