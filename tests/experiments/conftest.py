"""Fixtures of the experiments: their data, and the command on it."""

from tests.experiments.small_data import cache, call, data, small  # noqa: F401
