"""Random cycles in which some steps are causal, by a flag or by their parts, and some look both ways."""

import numpy as np

from thereexists.patterns import Pattern, build, window
from thereexists.patterns.parts import as_causal_part
from thereexists.patterns.step import Step

NAMES = ("window", "dilated", "block_local", "strided", "fixed", "star", "logsparse", "butterfly", "sink_window")
NAMES += ("prefix_lm", "random", "alternating", "bigbird", "dense")


def mixed_cycle(seed, n=8):
    """Two to four steps of the library's patterns, each as it is, with the flag, or with causal parts written out."""
    rng = np.random.default_rng(seed)
    steps = []
    for _ in range(int(rng.integers(2, 5))):
        name = NAMES[rng.integers(len(NAMES))]
        pattern = window(n, int(rng.integers(1, 4))) if name == "window" else build(name, n)
        step = pattern.steps[rng.integers(pattern.cycle)]
        way = rng.integers(3)
        if way == 1:
            step = step.as_causal()
        elif way == 2:
            step = Step(n, tuple(as_causal_part(part, n) for part in step.parts))
        steps.append(step)
    return Pattern("mixed", tuple(steps))
