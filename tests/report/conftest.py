"""Small witnesses of every kind, saved with their certificates."""

import pytest

import thereexists as te


def saved(folder, *, certified=True, **request):
    target = te.targets.builtin(request.pop("name"), n=request.pop("n"), d=request.pop("d", 1))
    witness = te.build(target, **request)
    witness.save(folder)
    if certified:
        te.certify(witness).save(folder)
    return folder


@pytest.fixture(scope="session")
def head(tmp_path_factory):
    """A small head for a random target, and its folder."""
    folder = tmp_path_factory.mktemp("head") / "h"
    made = te.heads.fit(te.heads.random_target(12, 1, seed=0), method="corrected")
    made.save(folder)
    return made, folder


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    at = tmp_path_factory.mktemp("report")
    window = te.patterns.window(n=4, window=1)
    return {
        "faithful": saved(at / "faithful", name="sort", n=2, delta=1 / 4),
        "equivariant": saved(at / "equivariant", name="softmax-attention", n=2, delta=1 / 4, certified=False),
        "wide": saved(at / "wide", name="sort", n=2, d=2, delta=1 / 2, certified=False),
        "compact": saved(at / "compact", name="sort", n=2, delta=1 / 4, construction="compact"),
        "sparse": saved(at / "sparse", name="sort", n=4, delta=1 / 2, pattern=window, certified=False),
    }
