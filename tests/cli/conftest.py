"""The small data sets that the commands of training read, those commands, and a folder of one artefact of each kind."""

import pytest

from tests.cli import fuzz
from tests.experiments.small_data import cache, call, data  # noqa: F401


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory):
    """What the requests of ``fuzz.py`` read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("THEREEXISTS_CACHE", str(tmp_path_factory.mktemp("cache")))
        made = tmp_path_factory.mktemp("artefacts")
        fuzz.prepare(made)
        yield made
