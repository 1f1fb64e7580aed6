"""A parallel kernel of Numba leaves torch the number of threads that it was given."""

import pytest

import thereexists as te
from thereexists.functions.targets import builtin

KERNELS = {
    "attention": (
        "q = torch.randn(1, 1, 40, 8); step = te.patterns.random(40, 3).step(0); "
        "from thereexists.attention.cpu_backend import _numba; _numba(); te.attention.sparse_attention(q, q, q, step)"
    ),
    "bitsets": (
        "import numpy as np; from thereexists.patterns.bitsets import depth_by_bitsets, depth_by_searches; "
        "eye = np.arange(1001), np.arange(1000); depth_by_bitsets([eye], False, 2); depth_by_searches(*eye, False)"
    ),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_torch_keeps_its_number_of_threads(fresh, kernel):
    code = (
        f"import torch, thereexists as te; torch.set_num_threads(1); {KERNELS[kernel]}; print(torch.get_num_threads())"
    )
    done = fresh("-c", code, warm=True)
    assert done.stdout.strip() == "1", done.stderr


def test_numba_that_cannot_be_loaded_says_nothing_about_the_files(fresh, monkeypatch, tmp_path):
    witness = te.build(builtin("sort", n=3), delta=1 / 8)
    witness.save(tmp_path / "w")
    te.certify(tmp_path / "w")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")
    done = fresh("-m", "thereexists", "verify", str(tmp_path / "w"))
    assert done.returncode == 2, done
    assert "NUMBA_" in done.stderr
