"""A script for a GPU, in a process of its own (Triton compiles no module that the tests' import hook has rewritten):

    python -m tests.attention.on_cuda recorded bfloat16
    python -m tests.attention.on_cuda cudnn

One JSON line for each case. ``recorded``: does a call whose launches were recorded give the bits of the first one?
``cudnn``: output and gradients of cuDNN's causal windows against float64, in units of their bounds; at most 1 is right.
``sink``: cuDNN with a sink against our own kernels, which a call gets that wants deterministic algorithms.
``shared``: query heads that share keys, plain, mapped by ``torch.func`` and compiled, against float64 in units of the
bounds. ``nan``: queries that are no numbers: whose rows are NaN, and which rows have other bits than without them.
"""

import json
import sys
from dataclasses import replace

import torch

from tests.attention.cases import steps
from thereexists import attention as ta
from thereexists.attention import cudnn_windows
from thereexists.attention.reference import exact_attention, excess
from thereexists.patterns.parts import Band
from thereexists.patterns.step import Step

LAYOUTS = [  # n, batch, heads, key heads, size, window
    (1088, 1, 2, 2, 64, 1024),  # 64 more than a multiple of 128
    (1000, 2, 4, 2, 128, 600),
    (1536, 1, 4, 1, 256, 1024),
    (777, 1, 2, 2, 72, 128),
]


def say(**fields):
    print(json.dumps(fields), flush=True)


def tensors(b, heads, kv, n, d, dtype, heads_last=True, low=False):
    gen = torch.Generator().manual_seed(n + d)
    shapes = [(b, n, h, d) if heads_last else (b, h, n, d) for h in (heads, kv, kv, heads)]
    q, k, v, do = (torch.randn(s, generator=gen).to("cuda", dtype) for s in shapes)
    if low:  # every logit of every row is below -100
        k = k * 0 - 4
        q = q * 0.25 + 4
    return [x.transpose(1, 2) if heads_last else x for x in (q, k, v, do)]


def check(got, grads, q, k, v, do, mask, scale):
    """Output and gradients against float64, in units of their bounds."""
    b, heads, n, d = q.shape
    group = heads // k.shape[1]
    kk, vv = (x.repeat_interleave(group, 1) for x in (k, v))
    want = exact_attention(q, kk, vv, mask[None, None].expand(b, heads, n, n), do, scale, 1)
    found = [excess(got, want.out, want.out_bound)]
    for g, w, bound in zip(grads, want.grads, want.grad_bounds, strict=True):
        shared = (b, g.shape[1], -1, n, d)
        found.append(excess(g, w.reshape(shared).sum(2), bound.expand_as(w).reshape(shared).sum(2)))
    return found


def recorded(kind):
    n, dtype = 300, getattr(torch, kind)
    for name, step in steps(n).items():
        with torch.no_grad():
            q, k, v, _ = tensors(2, 4, 4, n, 32, dtype)
            first = ta.sparse_attention(q, k, v, step)
            a, b, c, _ = tensors(2, 4, 4, n, 32, dtype)
            again = ta.sparse_attention(a, b, c, step)  # other tensors, the same numbers
            other = ta.sparse_attention(2 * a, b, c, step)  # other numbers
            want = ta.sparse_attention(2 * a, b, c, replace(step))  # nothing is recorded for this one
        noted = step.__dict__.get("_of_this_process_plain", {}).get(q.device)
        say(
            case=name,
            recorded=noted is not None and len(noted.recorded) > 0,
            same=torch.equal(first, again) and torch.equal(other, want),
            differs=not torch.equal(first, other),
        )


def cudnn():
    cudnn_windows.LEAST_WORK = 0
    done, real = [], cudnn_windows.Graph.__call__
    cudnn_windows.Graph.__call__ = lambda graph, *tensors: done.append(len(tensors)) or real(graph, *tensors)
    for n, b, heads, kv, d, window in LAYOUTS:
        for dtype in (torch.bfloat16, torch.float16):
            for low in (False, True):
                step = Step(n, (Band(-(window - 1), 0),))
                mask = torch.from_numpy(step.mask()).cuda()
                q, k, v, do = tensors(b, heads, kv, n, d, dtype, heads_last=n % 2 == 0, low=low)
                q, k, v = (x.requires_grad_() for x in (q, k, v))
                worst = []
                cudnn_windows._place.cache_clear()
                done.clear()
                for _ in range(3):  # by our kernels, by theirs, and again by theirs
                    out = ta.sparse_attention(q, k, v, step)
                    grads = torch.autograd.grad(out, (q, k, v), do)
                    worst.append(max(check(out, grads, q, k, v, do, mask, d**-0.5)))
                say(case=[n, b, heads, kv, d, window, str(dtype), low], by_cudnn=list(done), worst=worst)


def sink():
    cudnn_windows.LEAST_WORK = 0
    n = 1024
    step = Step(n, (Band(-511, 0),))
    q, k, v, do = tensors(1, 4, 2, n, 128, torch.bfloat16)
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    sinks = torch.linspace(-2, 6, 4, device="cuda").requires_grad_()
    asked, real = [], cudnn_windows.Graph.__call__
    cudnn_windows.Graph.__call__ = lambda graph, *tensors: asked.append(len(tensors)) or real(graph, *tensors)
    results = []
    for strict in (False, False, True):
        torch.use_deterministic_algorithms(strict, warn_only=True)
        out = ta.sparse_attention(q, k, v, step, sinks=sinks)
        results.append((out, *torch.autograd.grad(out, (q, k, v, sinks), do)))
    pairs = zip(*results[1:], strict=True)  # theirs, ours
    apart = [((a - b).abs().max() / b.abs().max()).item() for a, b in ((a.float(), b.float()) for a, b in pairs)]
    say(asked=asked, apart=apart)


def by(step):
    return lambda q, k, v: ta.sparse_attention(q, k, v, step)


def of_one(attend):
    """Output and gradients for one sequence of a batch."""

    def run(q, k, v, do):
        out, pull = torch.func.vjp(lambda *one: attend(*(x[None] for x in one))[0], q, k, v)
        return out, pull(do)

    return run


def shared(kind):
    n, d = 300, 64
    for name, step in list(steps(n).items())[::3]:
        mask = torch.from_numpy(step.mask()).cuda()
        q, k, v, do = tensors(2, 4, 2, n, d, getattr(torch, kind))
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        torch.compiler.reset()
        compiled = torch.compile(by(replace(step)), fullgraph=True, backend="aot_eager")  # of a step that is new
        found = {"mapped": torch.func.vmap(of_one(by(step)))(q, k, v, do)}
        for way, attend in {"plain": by(step), "compiled": compiled}.items():
            out = attend(*leaves)
            found[way] = out, torch.autograd.grad(out, leaves, do)
        worst = {way: max(check(*each, q, k, v, do, mask, d**-0.5)) for way, each in found.items()}
        say(case=name, kind=kind, **worst)


def nan(kind):
    n = 300
    for name, step in steps(n).items():
        q, k, v, _ = tensors(2, 4, 4, n, 64, getattr(torch, kind))
        want = ta.sparse_attention(q, k, v, step)
        for bad in (torch.nan, torch.inf):
            poisoned = q.clone()
            poisoned[0, 1, 70] = bad
            out = ta.sparse_attention(poisoned, k, v, step)
            same = (out == want).all(-1)
            same[0, 1, 70] = True
            rows = step.mask().any(1)
            say(
                case=name,
                bad=str(bad),
                nan=out[0, 1, 70].isnan().all().item() == bool(rows[70]),
                others=same.all().item(),
            )


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    {"recorded": recorded, "cudnn": cudnn, "sink": sink, "shared": shared, "nan": nan}[what](*rest)
