"""Compiled FlexAttention with our ``mask_mod``: tables of listed tokens and rows are made before the trace, not in it.

python tests/patterns/compiled_flex.py aot_eager|inductor
"""

import sys

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from thereexists.patterns import Pattern, Step, bigbird, longformer
from thereexists.patterns.parts import Rect

N = 256


def main(backend):
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, N, 16) for _ in range(3))
    listed = longformer(N, 8, globals=[0, 17, 200])
    both = Pattern("both", (listed.as_causal().step(0), bigbird(N, 16, 2).step(0))).multihead(2)
    documents = Pattern("packed", (Step(N, tuple(Rect(range(a, a + 8), range(a, a + 8)) for a in range(0, N, 8))),))
    for pattern in (both,) if backend == "aot_eager" else (both, listed, bigbird(N, 16, 2), documents):
        torch._dynamo.reset()
        heads = None if pattern.heads is None else 2
        blocks = create_block_mask(pattern.mask_mod(0), None, heads, N, N, device="cpu")
        with torch.no_grad():
            got = torch.compile(flex_attention, dynamic=False, backend=backend)(q, k, v, block_mask=blocks)
        want = scaled_dot_product_attention(q, k, v, attn_mask=torch.from_numpy(pattern.mask())[None])
        # convex combinations of N values, each rounded a few times a term
        assert (got - want).abs().max() <= 8 * N * torch.finfo(torch.float32).eps * v.abs().max(), pattern.name
        print(pattern.name)


if __name__ == "__main__":
    main(sys.argv[1])
