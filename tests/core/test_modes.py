"""Written files have the modes that the umask leaves, weights as well as records."""

import os
import stat
import subprocess
import sys

import pytest

MADE = """
import numpy as np, os, sys
os.umask(int(sys.argv[1], 8))
import thereexists as te
te.build(te.targets.builtin("sort", n=2), epsilon=0.5, construction="compact").save("w/w")
te.export("w/w", "torch", "w/t")
"""


@pytest.mark.parametrize("umask", ["077", "022", "002"])
def test_files_have_the_modes_that_the_umask_leaves(umask, tmp_path):
    subprocess.run([sys.executable, "-c", MADE, umask], cwd=tmp_path, check=True)
    written = [*(tmp_path / "w").rglob("*")]
    assert {place.name for place in written} >= {"model.safetensors", "witness.json", "config.json"}
    for place in written:
        wanted = (0o777 if place.is_dir() else 0o666) & ~int(umask, 8)
        assert stat.S_IMODE(os.stat(place).st_mode) == wanted, place
