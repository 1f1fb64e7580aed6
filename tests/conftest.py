"""Shape annotations are checked at run time, wherever there are any; Hypothesis runs the same examples everywhere."""

import atexit
import functools
import gc
import os
import shutil
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")
if "THEREEXISTS_STATE" not in os.environ:  # the tests' own key, for all of their processes
    os.environ["THEREEXISTS_STATE"] = tempfile.mkdtemp(prefix="thereexists-state-")
    atexit.register(shutil.rmtree, os.environ["THEREEXISTS_STATE"], ignore_errors=True)

import pytest
import typer.testing
from hypothesis import settings
from jaxtyping import install_import_hook

import tests.typechecker
from tests.browser import browser  # noqa: F401  (a fixture)
from tests.fresh import fresh  # noqa: F401  (a fixture)
from tests.sampling import leave_samples

install_import_hook([f"thereexists.{package}" for package in tests.typechecker.SHAPED], "tests.typechecker.check")
gc.disable()  # until all tests are collected: what is imported stays, and none of it is garbage
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("suite")
typer.testing._get_command = functools.cache(typer.testing._get_command)  # which makes all commands at every call


MANY = 1000  # tests: whoever asks for fewer may not need the kernels at all


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items):
    """The docs first: the longest tests, with the dearest fixtures, stay with one worker and do not end the run."""
    leave_samples(items)
    items.sort(key=lambda item: "tests/docs/" not in item.nodeid)


def pytest_collection_finish(session):
    """Compile once for all workers. What is imported by now stays: no need to look at a million objects at every
    collection of garbage.
    """
    if "PYTEST_XDIST_WORKER" in os.environ and len(session.items) > MANY:
        from tests import kernels  # not before the hook above: it imports the package

        kernels.one_after_the_other()
    gc.freeze()
    gc.enable()
