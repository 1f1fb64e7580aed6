"""The small data sets that the commands of training read."""

from tests.experiments.conftest import cache, data  # noqa: F401  (fixtures)
