"""Run a lowered step on a backend and say how far output and gradients are from float64, in units of their bounds.

Also a script, for kernels that need a process of their own (Triton's interpreter, a GPU):

    TRITON_INTERPRET=1 python -m tests.attention.exactness cpu 24 float16 "strided-union" "star[0]"
"""

import json
import sys

import numpy as np
import torch

from tests.attention.cases import steps, steps_with_empty_rows
from thereexists.attention.call_options import CallOptions, survivors
from thereexists.attention.log_sums import Sums
from thereexists.attention.lower import lower
from thereexists.attention.reference import exact_attention, excess

PIECES = 5  # at most: two strips, columns, entries, full rows


def inputs(shape, dtype, device="cpu", seed=0, heads_last=False):
    """q, k, v and an upstream gradient; ``heads_last``: the layout that a projection leaves."""
    gen = torch.Generator().manual_seed(seed)
    b, h, n, d = shape
    kept = (b, n, h, d) if heads_last else shape
    tensors = [torch.randn(kept, generator=gen, dtype=torch.float64).to(device, dtype) for _ in range(4)]
    return [x.transpose(1, 2) if heads_last else x for x in tensors]


def surviving(options, b, h, n):
    row, key = np.arange(n)[:, None], np.arange(n)[None, :]
    kept = [survivors(options.seed, options.threshold, i, row, key) for i in range(b * h)]
    return torch.from_numpy(np.stack(kept).reshape(b, h, n, n)).double()


def excesses(
    step, backend, pieces, dtype, padded=False, dropout=0.0, device="cpu", d=12, b=2, h=2, heads_last=True, group=1
):
    """{out, dq, dk, dv: largest error over its bound}; correct means at most 1. ``group`` heads share a key head."""
    n = step.n
    q, k, v, do = inputs((b, h, n, d), dtype, device, heads_last=heads_last)
    k, v = k[:, ::group], v[:, ::group]
    mask = torch.from_numpy(step.mask()).to(device)[None, None].expand(b, h, n, n)
    pad = None
    if padded:
        pad = (torch.rand(b, n, generator=torch.Generator().manual_seed(1)) > 0.3).to(device)
        mask = mask & pad[:, None, None, :]
    options = CallOptions(d**-0.5, pad, dropout, seed=7 + (3 << 40))
    kind = torch.float64 if dtype == torch.float64 else torch.float32
    out, lse = torch.full_like(q, torch.nan), torch.full((b, h, n), torch.nan, dtype=kind, device=device)
    lost = backend.forward(q, k, v, out, lse, pieces, options)
    grads = backend.backward(do, q, k, v, out, lse if lost is None else Sums(lse, lost), pieces, options)
    gain = surviving(options, b, h, n).to(device) / (1 - dropout) if dropout else None
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    want = exact_attention(q, k, v, mask, do, options.scale, PIECES, gain)
    found = {"out": excess(out, want.out, want.out_bound)}
    nobody = ~mask.any(-1)
    if not torch.equal(lse == -torch.inf, nobody) or bool(out[nobody].any()) or bool(grads[0][nobody].any()):
        found["out"] = torch.inf  # a row without keys gives 0, a log-sum-exp of −inf, and no gradient
    for name, g, w, bound in zip(("dq", "dk", "dv"), grads, want.grads, want.grad_bounds, strict=True):
        shared = (b, g.shape[1], -1, n, d)  # what several heads add up to, errors too
        found[name] = excess(g, w.reshape(shared).sum(2), bound.expand_as(w).reshape(shared).sum(2))
    return found


def relations(n):
    """All steps by name, those with tokens that attend to nobody among them."""
    return steps(n) | {f"empty: {name}": step for name, step in steps_with_empty_rows(n).items()}


def main():
    device, n, kind, *names = sys.argv[1:]
    from thereexists.attention import triton_backend as backend
    from thereexists.attention import window_backend

    if device == "cpu":  # small tiles, so that small cases cross tile borders
        for what in ("WHOLE", "WINDOW", "COLUMNS", "DQ", "DKDV"):
            setattr(backend, what, backend.Blocks(16, 16, 4, 1))
        backend.ENTRIES = backend.Blocks(1, 8, 1, 1)
        window_backend.sizes = lambda q, left, right: window_backend.Sizes(*3 * [window_backend.Tiles(16, 16, 4, 1)])
    table = relations(int(n))
    for name in names or table:
        pieces = backend.TritonPieces(lower(table[name]), torch.device(device))
        for padded, dropout in ((False, 0.0), (True, 0.25)):
            found = excesses(table[name], backend, pieces, getattr(torch, kind), padded, dropout, device, b=2, h=1)
            print(json.dumps({"case": name, "padded": padded, "dropout": dropout} | found), flush=True)
        found = excesses(table[name], backend, pieces, getattr(torch, kind), device=device, b=1, h=4, group=2)
        print(json.dumps({"case": name, "group": 2} | found), flush=True)


if __name__ == "__main__":
    main()
