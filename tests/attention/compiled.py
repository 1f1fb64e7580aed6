"""A compiled layer is one graph and gives the same numbers, gradients included. Prints the way of each plan.

python -m tests.attention.compiled
"""

import copy
import gc

import torch

from thereexists import patterns as tp
from thereexists.attention import SparseAttention, explain, sparse_attention
from thereexists.attention.ways import backend_has

N = 2048  # large enough that the planner leaves the mask alone


def main():
    for pattern in (
        tp.strided(N, 32).union(),
        tp.strided(N, 32).multihead(2),
        tp.strided(64, 8).union(),
        tp.strided(40, 5).multihead(2),
    ):  # groups of heads that stock kernels run, inside the operator
        torch.compiler.reset()  # torch compiles a function eight times and then no more
        torch.manual_seed(0)
        layer = SparseAttention(pattern, heads=2, dim=16, dropout=0.1).eval()
        x = torch.randn(1, pattern.n, 16, requires_grad=True)
        want = layer(x)
        (gradient,) = torch.autograd.grad(want.square().sum(), x)
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        got = compiled(x)
        assert torch.equal(got, want)
        assert torch.equal(torch.autograd.grad(got.square().sum(), x)[0], gradient)
        ways = explain(pattern).ways
        if len(ways) == 1:  # of two alike, the first
            layer.train()  # dropout draws a seed inside the graph
            assert compiled(x).isfinite().all()
        layer.eval().pattern = tp.window(pattern.n, 3)  # another one, which a compiled layer takes as well
        assert torch.equal(compiled(x), layer(x))
        assert not torch.equal(layer(x), want)
        print("+".join(ways))
    the_bare_function()
    what_a_call_on_cuda_asks()


def the_bare_function():
    """Patterns that no eager call has ever seen, as a constant of the function and as its argument."""
    torch.compiler.reset()
    q = torch.randn(1, 2, N, 8)
    fresh = tp.window(N, 3)
    alone = torch.compile(lambda q: sparse_attention(q, q, q, fresh), fullgraph=True, backend="aot_eager")(q)
    assert torch.equal(alone, sparse_attention(q, q, q, fresh))
    compiled = torch.compile(sparse_attention, fullgraph=True, backend="aot_eager")
    q.requires_grad_()
    of_nobody = compiled(q, q, q, tp.window(N, 4))  # its gradient is asked for when the pattern is out of sight
    gc.collect()
    got = torch.autograd.grad(of_nobody.square().sum(), q)[0]
    assert torch.equal(got, torch.autograd.grad(sparse_attention(q, q, q, tp.window(N, 4)).square().sum(), q)[0])
    for pattern in (tp.window(N, 3), tp.window(N, 5), tp.strided(N, 32).union(), copy.copy(fresh)):
        assert torch.equal(compiled(q, q, q, pattern), sparse_attention(q, q, q, pattern))


def what_a_call_on_cuda_asks():
    """And no call on a CPU: what a backend does itself is found in its module, once, and not by the compiler."""
    asks = torch.compile(lambda x: x + backend_has("cpu", "softcap"), fullgraph=True, backend="aot_eager")
    assert asks(torch.zeros(1)).item() == 1


if __name__ == "__main__":
    main()
