"""The Triton kernels, under Triton's interpreter: every kernel, every flag, tiles smaller than the case.

They run in a process of their own, because the interpreter is chosen when Triton is imported.
"""

import pytest

from tests.attention.exactness import relations
from tests.attention.interpreted import run, worst

CASES = [
    "runs of rows-causal",  # a column list per run of rows
    "window and residue and hubs-causal",  # two strips merged, columns with both exclusions, full rows
    "fixed[1]",  # the row's own key beside columns in arithmetic progression
    "listed and all",  # all pieces at once
]
SHARES = 8  # of the relations
WINDOWS = ["window[0]", "window-causal[0]"]  # kernels of their own


def test_kernels_under_the_interpreter():
    pytest.importorskip("triton")
    rows = run("cpu", 32, "float16", CASES[:1]) + run("cpu", 18, "float16", CASES[1:])
    assert len(rows) == 3 * len(CASES)  # plain; padded with dropout; with shared key heads
    windows = run("cpu", 50, "float16", WINDOWS)
    assert len(windows) == 3 * len(WINDOWS)
    rows += windows
    assert [row for row in rows if not worst(row) <= 1] == []


@pytest.mark.slow
def test_every_step_under_the_interpreter():
    pytest.importorskip("triton")
    for kind in ("float32", "float16"):
        rows = run("cpu", 32, kind, [])
        assert [row for row in rows if not worst(row) <= 1] == []


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("n", [37, 300])
@pytest.mark.parametrize("share", range(SHARES))
def test_every_step_on_the_gpu(kind, n, share):
    """In shares, which several workers take: nearly all of the time goes into compiling."""
    rows = run("cuda", n, kind, list(relations(n))[share::SHARES])
    assert [row for row in rows if not worst(row) <= 1] == []
