"""The quick run and the slow one share a family of cases: together they have all of them, and no case twice."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAMILY = """
import pytest

@pytest.mark.sampled(3)
@pytest.mark.parametrize("k", range(10))
def test_family(k):
    pass
"""
CONFTEST = """
import pytest
from tests.sampling import leave_samples

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    leave_samples(items)
"""


def listed(folder, *options):
    command = [sys.executable, "-m", "pytest", "-c", str(folder / "none.ini"), "--collect-only", "-q", *options]
    plain = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # importing them is most of the work
    done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_three_cases_are_quick_and_the_others_slow(tmp_path):
    (tmp_path / "none.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n")
    (tmp_path / "test_family.py").write_text(FAMILY)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    quick, slow = listed(tmp_path, "-m", "not slow"), listed(tmp_path, "-m", "slow")
    assert len(quick) == 3
    assert sorted(quick + slow) == sorted(f"test_family.py::test_family[{k}]" for k in range(10))
    assert listed(tmp_path, "-m", "not slow") == quick  # the same ones in every process
    assert listed(tmp_path, "-m", "not slow", slow[0]) == [slow[0]]  # asked for by name
