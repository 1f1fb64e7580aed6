"""A large family of cases leaves a sample of itself in the quick run; all of it belongs to the slow tests."""

from collections import defaultdict
from random import Random

import pytest


def leave_samples(items):
    """Of a test marked ``sampled(k)``, k cases stay quick; the others become slow. A case asked for by name stays."""
    families = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("slow"):
            families[item.nodeid.partition("[")[0]].append(item)
    for name, cases in families.items():
        (keep,) = cases[0].get_closest_marker("sampled").args
        others = Random(name).sample(range(len(cases)), max(0, len(cases) - keep))  # the same ones in every process
        for k in others:
            cases[k].add_marker(pytest.mark.slow)
