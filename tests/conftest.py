"""Shape annotations are checked at run time in the whole suite; Hypothesis runs the same examples everywhere."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings
from jaxtyping import install_import_hook

import tests.typechecker  # noqa: F401  (named below)
from tests.browser import browser  # noqa: F401  (a fixture)

install_import_hook("thereexists", "tests.typechecker.check")
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("suite")
