"""The small data sets that the commands of training read, and those commands."""

from tests.experiments.small_data import cache, call, data  # noqa: F401
