# %% [markdown]
# # A sparse attention pattern: is it universal, and how fast is it?
#
# A pattern says which tokens each token may look at. The theorem of Yun et al. (NeurIPS 2020) says when a Transformer
# with it still approximates every continuous function. Here three patterns are judged, one of them is built, and one is
# run.

# %%
from __future__ import annotations

import time

import torch

import thereexists as te

# %% [markdown]
# Verdicts come with witnesses: the Hamiltonian path and the depth at which every token has seen every other, or the
# pair of tokens that never meet. The witness can be checked again by code that shares nothing with what found it.

# %%
for pattern in (
    te.patterns.strided(n=1024, stride=32),
    te.patterns.block_local(n=1024, block=32),
    te.patterns.block_local(n=1024, block=32, shifted=True),
):
    verdict = te.patterns.check(pattern)
    print(f"{pattern.name:<12} {max(pattern.connections):>7,} connections  universal: {verdict.universal}")
    for reason in verdict.reasons:
        print("   ", reason)

strided = te.patterns.strided(n=1024, stride=32)
verdict = te.patterns.check(strided)
assert verdict.path is not None
print("path checked again:", te.patterns.recheck_path(strided, verdict.path, verdict.edge_steps).holds)
verdict

# %% [markdown]
# The theorem's own construction for a universal pattern: a network in which no token ever attends outside it.

# %%
fixed = te.patterns.fixed(n=4, stride=2)
print("connections of each step:", *(f"{count} of {4 * 4}" for count in fixed.connections))
witness = te.build(te.targets.builtin("sort", n=4), delta=1 / 2, pattern=fixed)
print(f"sort through it: {witness.network.depth:,} layers, proved d_1 ≤ {te.certify(witness).bound:.4f}")
witness

# %% [markdown]
# And as an attention layer for training: exact softmax attention over the pattern's keys, beside masked dense
# attention.

# %%
torch.manual_seed(0)
union = te.patterns.strided(n=2048, stride=32).union()
q, k, v = torch.randn(3, 1, 2, 2048, 32)
mask = torch.from_numpy(union.mask())


def seconds(call) -> float:
    call()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


ours = te.attention.sparse_attention(q, k, v, union)
dense = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
print(f"largest difference {(ours - dense).abs().max():.1e}")
print(f"ours {seconds(lambda: te.attention.sparse_attention(q, k, v, union)):.4f} s")
print(f"dense {seconds(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)):.4f} s")
