"""The kernels that nearly every test needs, compiled by one process and not by each of them.

Numba compiles them on first use, half a minute on a fresh checkout, and keeps them on disk. Workers that begin at the
same time would each compile them all.
"""

import fcntl
import os
from pathlib import Path

import numpy as np

import thereexists as te


def load() -> None:
    """Use each once: compiled if nobody has, or read from the disk."""
    target = te.targets.builtin("sort", n=2)
    witness = te.build(target, delta=1 / 2)
    witness(np.zeros((100, 2, 1)))
    te.certify(witness)
    te.certify(te.build(target, delta=1 / 2, construction="compact"))
    te.patterns.check(te.patterns.star(n=8))
    te.heads.fit(te.heads.random_matrix(32, 2))


def one_after_the_other() -> None:
    """The first worker compiles; the others wait, which costs nothing, and read."""
    with (Path(os.environ["THEREEXISTS_STATE"]) / "kernels.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        load()
