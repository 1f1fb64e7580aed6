"""Causal programs over the reals: one of each operation, random ones, and how far a plain model is from them."""

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from thereexists import program as P
from thereexists.certificates.llama.format import Checkpoint, config_of
from thereexists.certificates.llama.reals.claim import real_claim
from thereexists.constructions.program.saving import to_record
from thereexists.exports.llama.layout import EPS, THETA
from thereexists.exports.llama.reals import lowered, shape_of


class Nodes(list):
    """The operations of a saved program, put down one after the other."""

    def put(self, operation, arguments, d=1, /, **settings):
        self.append({"operation": operation, "arguments": arguments, "d": d, "settings": settings})
        return len(self) - 1


def claim_of(program):
    return real_claim(to_record(program))


def checkpoint_of(claim, **changed):
    return Checkpoint(shape_of(claim), THETA, EPS, lowered(claim) | changed, claim)


def everything(n=5):
    """A bit of every operation, in two features."""
    x = P.tokens(n=n, d=2, low=-1.0, high=1.0)
    before = P.delay(x, 1, fill=0.25)
    high = P.maximum(P.mix(x, [[1.0, -0.5], [0.1, 0.3]]), P.clip(before, -0.5, 0.75))
    both = P.where(P.clip(2 * x + 0.5, 0.0, 1.0), high, P.minimum(x, abs(before)))
    curved = P.apply(np.sin, both, epsilon=0.01) + P.interp(x, [-1.0, 0.2, 1.0], [0.0, 1.0, 0.5])
    scaled = P.scale(P.relu(curved), np.linspace(-1.0, 1.5, n)) + P.prefix_mean(x)
    return 0.5 * P.multiply(scaled, before) + P.constant(np.arange(n) / 3, x)


def operations():
    """By name, one operation each, or one that is made of others; n = 6."""
    x = P.tokens(n=6, low=-1.0, high=1.0)
    later = P.tokens(n=6, low=0.5, high=3.0, shorter=True)
    return {
        "linear": 0.3 * x + 0.7,
        "relu": P.relu(x),
        "abs": abs(x - 0.1),
        "max": P.maximum(x, P.delay(x, 1)),
        "cummax": P.cummax(x),
        "cummin": P.cummin(x),
        "cumsum": P.cumsum(x),
        "prefix mean": P.prefix_mean(x),
        "clip": P.clip(2 * x + 0.1, -0.5, 0.5),
        "scale": P.scale(x, np.linspace(-2.0, 3.0, 6)),
        "interp": P.interp(x, [-1.0, 0.0, 0.3, 1.0], [0.0, 2.0, -1.0, 0.5]),
        "where": P.where(P.clip(4 * x, 0.0, 1.0), x, -x),
        "take": P.take(x, [0, 0, 2, 1, 0, 3]),
        "product": P.multiply(x, P.delay(x, 2, fill=0.5)),
        "square": P.multiply(later, later),
        "quotient": P.divide(1.0, later, epsilon=0.01),
        "root": P.apply(np.sqrt, later, epsilon=0.01),
        "constant": x + P.constant(np.arange(6) / 3, x),
        "moving average": P.convolve(x, [0.5, 0.25, 0.125]),
        "deep": P.cummax(P.cumsum(P.relu(x) - 0.2)),
        "everything": everything(6),
    }


def drawn(rng):
    """A program of two to six random operations; ``rng`` of ``random``."""
    n, d = rng.choice([1, 2, 3, 5, 8]), rng.choice([1, 1, 2])
    low = rng.choice([-1.0, 0.0, 0.5, -3.0])
    pool = [P.tokens(n=n, d=d, low=low, high=low + rng.choice([0.25, 1.0, 5.0]))]
    for _ in range(rng.choice([2, 3, 4, 6])):
        v, w = (rng.choice(pool) for _ in range(2))
        ways = (
            lambda v=v, w=w: rng.uniform(-1, 1) * v + rng.uniform(-1, 1) * w + rng.uniform(-1, 1),
            lambda v=v: P.mix(v, [[rng.uniform(-1, 1) for _ in range(d)] for _ in range(d)]),
            lambda v=v: P.take(v, [rng.randrange(i + 1) for i in range(n)]),
            lambda v=v: P.delay(v, rng.randrange(3), fill=rng.uniform(-1, 1)),
            lambda v=v, w=w: P.maximum(v, w),
            lambda v=v, w=w: P.minimum(v, w - 0.1),
            lambda v=v: P.relu(v - 0.2),
            lambda v=v: abs(v),
            lambda v=v: P.clip(v, -0.3, 0.8),
            lambda v=v: P.prefix_mean(v),
            lambda v=v: P.cummax(v),
            lambda v=v: P.scale(v, [[rng.choice([0.0, 1.0, -0.5, 1.7]) for _ in range(d)] for _ in range(n)]),
            lambda v=v: P.interp(v, [-1.0, 0.1, 0.6], [rng.uniform(-1, 1) for _ in range(3)]),
            lambda v=v, w=w: P.multiply(v, w),
            lambda v=v: P.apply(np.tanh, v, epsilon=0.02),
            lambda v=v, w=w: P.where([rng.randrange(2) for _ in range(n)] if d == 1 else P.clip(v, 0.0, 1.0), v, w),
        )
        pool.append(rng.choice(ways)())
    return pool[-1]


def model_of(claim, dtype):
    """As ``from_pretrained(dtype=…)`` makes it, which keeps the rotary table."""
    config = LlamaConfig(**config_of(shape_of(claim), THETA, EPS, dtype, speaks=False))
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    model.load_state_dict(lowered(claim))
    table = model.model.rotary_emb.inv_freq.clone()
    model = model.to(getattr(torch, dtype))
    model.model.rotary_emb.inv_freq = table
    return model
