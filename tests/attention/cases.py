"""The case table of the attention tests: every library pattern, odd lengths, causal and not, every configuration."""

from functools import lru_cache

import numpy as np

from thereexists import patterns as tp
from thereexists.core.errors import ThereExistsError
from thereexists.patterns.parts import Band, BlockBand, Explicit, Offsets, Rect, Residue, Xor
from thereexists.patterns.step import Step


def library(n):
    """Every registered pattern that exists at n, with sizes that make its pieces overlap."""
    out = {}
    for name in tp.REGISTRY:
        try:
            out[name] = tp.build(name, n)
        except ThereExistsError:
            continue
    out["dilated-wide"] = tp.dilated(n, window=5, dilation=3)
    out["longformer-spread"] = tp.longformer(n, window=3, globals=sorted({0, n // 2, n - 1}))
    out["block_local-shifted"] = tp.block_local(n, block=5, shifted=True)
    return out


@lru_cache(maxsize=8)
def steps(n):
    """Named one-step relations: each step of each pattern, and the union, causal and not."""
    out = {}
    for name, pattern in library(n).items():
        for tail, p in (("", pattern), ("-causal", pattern.as_causal())):
            for l in range(min(p.cycle, 2)):
                out[f"{name}{tail}[{l}]"] = p.step(l)
            if p.cycle > 1:
                out[f"{name}{tail}-union"] = p.union().step(0)
    for name, step in odd_unions(n).items():
        out[name] = step
        out[name + "-causal"] = step.as_causal()
    return out


def odd_unions(n):
    """Unions nobody ships, made to overlap in every way the cutting must handle."""
    rng = np.random.default_rng(n)
    rows = np.sort(rng.permuted(np.tile(np.arange(n), (n, 1)), axis=1)[:, : min(4, n)], axis=1)
    listed = Explicit(np.arange(n + 1) * rows.shape[1], rows.ravel())
    lists = rng.permuted(np.tile(np.arange(n), (2, 1)), axis=1)[:, : max(n // 3, 1)]
    shared = np.sort(lists, axis=1)[(np.arange(n) >= (n + 1) // 2).astype(int)]
    runs = Explicit(np.arange(n + 1) * shared.shape[1], shared.ravel())
    hubs = np.unique([0, n // 3, n - 1])
    everything, own = range(n), Band(0, 0)
    several = {
        "two residues": (own, Residue(3), Residue(4)),
        "nested residues": (Residue(6), Residue(3)),
        "window and residue and hubs": (Band(-2, 2), Residue(3), Rect(everything, hubs), Rect(hubs, everything)),
        "split bands": (own, Band(-6, -4), Band(4, 5)),
        "dilated and window": (Band(-2, 1), Offsets(tuple(range(-12, 13, 3)))),
        "dilated and residue": (Residue(4), Offsets(tuple(range(-12, 13, 2)))),
        "offsets off the class": (own, Offsets(tuple(range(-11, 13, 2)))),
        "xor and blocks": (BlockBand(4), Xor(1), Xor(8)),
        "listed and all": (listed, Band(-1, 1), Residue(5), Rect(everything, hubs)),
        "runs of rows": (runs, Band(-2, 2), Rect(everything, hubs)),
        "runs of rows and residue": (runs, Residue(5)),
        "small rectangle": (own, Rect(range(0, n, 2), range(n // 2))),
        "blocks with a shift": (BlockBand(4, -1, 0, shift=2), own),
    }
    return {name: Step(n, parts) for name, parts in several.items()}


@lru_cache(maxsize=8)
def steps_with_empty_rows(n):
    """Steps in which some tokens attend to nobody; a pattern may not have them, a step alone may."""
    few = np.arange(n) % 3 == 1
    listed = Explicit(np.concatenate(([0], np.cumsum(few))), (np.flatnonzero(few) * 5) % n)
    ring = Explicit(np.arange(n + 1), (np.arange(n) + 1) % n)
    half, last = range(n // 2, n), range(n - 1, n)
    several = {
        "listed": (listed,),
        "listed and a hub": (listed, Rect(half, range(1))),
        "ahead": (Band(2, 3),),
        "far ahead and listed": (Band(n // 2, n), listed),
        "behind": (Band(-9, -5),),
        "offsets": (Offsets((4, 9)),),
        "dilated ahead": (Offsets(tuple(range(2, 22, 2))),),
        "one row sees all": (Rect(last, range(n)),),
        "one row sees all, others listed": (Rect(last, range(n)), listed),
        "rectangle": (Rect(half, half),),
        "nobody": (Offsets((n,)),),
        "nobody but a window": (Offsets((n,)), Band(1, 1)),
        "blocks before": (BlockBand(4, -2, -1),),
    }
    out = {name: Step(n, parts) for name, parts in several.items()}
    return out | {"ring-causal": Step(n, (ring,), True), "ahead of blocks-causal": Step(n, (BlockBand(4, 1, 2),), True)}
