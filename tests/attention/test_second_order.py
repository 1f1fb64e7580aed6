"""Double backward: the second derivatives are right on every way, or the call says that it has none."""

from types import SimpleNamespace

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.attention.exactness import inputs
from thereexists import patterns as tp
from thereexists.attention import Dropout, explain, operator, planned, sparse_attention
from thereexists.attention.log_sums import Sums
from thereexists.attention.plain_call import PlainAttention
from thereexists.attention.ways import _way_of

N = 9
PATTERNS = {
    "window": tp.window(N, 1),
    "hubs": tp.star(N),
    "strided, causal": tp.strided(N, 3).union().as_causal(),
    "random": tp.random(N, 3),
    "multihead": tp.strided(N, 3).multihead(2),
}


def forced(pattern, way, monkeypatch):
    """The planner takes ``way`` wherever it can, and never hands the whole call to torch's kernel."""

    def way_of(step, span, device, own, dropout):
        made = _way_of(step, span, device, own, dropout)
        if way not in made.estimates:
            return made
        from thereexists.attention.lower import lower
        from thereexists.attention.ways import _NARROW, HeadWay, list_everything

        lowered = list_everything(step) if way == "listed" else lower(step, _NARROW)
        return HeadWay(step, span, way, made.estimates, lowered)

    monkeypatch.setattr("thereexists.attention.ways._way_of", way_of)
    monkeypatch.setattr("thereexists.attention.functional._stock", lambda handle, device: None)
    return explain(pattern).ways


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "way", "kind"),
    [(name, "pieces", "plain") for name in ("window", "hubs", "multihead")]
    + [
        ("random", "listed", "plain"),
        ("strided, causal", "pieces", "padded"),
        ("strided, causal", "listed", "dropout"),
    ],
)
def test_second_derivatives_equal_finite_differences(name, way, kind, monkeypatch):
    pattern = PATTERNS[name]
    forced(pattern, way, monkeypatch)
    q, k, v, _ = (x.requires_grad_() for x in inputs((2, 2, N, 3), torch.float64))
    options = {
        "plain": {},
        "padded": {"lengths": torch.tensor([N, 4])},
        "dropout": {"dropout_p": Dropout(0.3, seed=5)},
    }[kind]

    def call(q, k, v):
        return sparse_attention(q, k, v, pattern, **options)

    assert gradcheck(call, (q, k, v), fast_mode=True)
    assert gradgradcheck(call, (q, k, v), fast_mode=True)


def test_dense_and_masked_heads_beside_others():
    """Heads of one multihead call that run on torch's kernel inside ours."""
    pattern = tp.Pattern("both", (tp.dense(N).step(0), tp.random(N, 3).step(0)), heads=(1, 1))
    q, k, v, _ = (x.requires_grad_() for x in inputs((1, 2, N, 3), torch.float64))
    assert set(explain(pattern).ways) <= {"dense", "masked", "listed"}
    assert gradgradcheck(lambda *x: sparse_attention(*x, pattern), (q, k, v), fast_mode=True)


@pytest.mark.parametrize("pattern", [tp.dense(N), tp.random(N, sparsity=0.3)], ids=["dense", "masked"])
def test_whole_calls_of_torchs_kernel_refuse_or_are_right(pattern):
    """torch's fused kernel has no second derivative and says so; its formula ("math") has."""
    q, k, v, _ = (x.requires_grad_() for x in inputs((1, 2, N, 3), torch.float64))
    (dq,) = torch.autograd.grad(sparse_attention(q, k, v, pattern).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match=r"derivative for .* is not implemented"):
        dq.square().sum().backward()
    with sdpa_kernel(SDPBackend.MATH):
        assert gradgradcheck(lambda *x: sparse_attention(*x, pattern), (q, k, v), fast_mode=True)


def test_one_tensor_in_all_three_places_and_the_third_order(monkeypatch):
    pattern = tp.window(3, 1)
    forced(pattern, "listed", monkeypatch)
    x = torch.randn(1, 1, 3, 2, dtype=torch.float64, requires_grad=True)

    def slope(x):
        (d,) = torch.autograd.grad(sparse_attention(x, x, x, pattern).square().sum(), x, create_graph=True)
        return d

    assert gradgradcheck(lambda x: sparse_attention(x, x, x, pattern), (x,), fast_mode=True)
    assert gradgradcheck(slope, (x,), fast_mode=True)


def test_the_op_for_compiled_calls_has_second_derivatives_too():
    pattern = tp.window(N, 1)
    q, k, v, _ = (x.requires_grad_() for x in inputs((1, 2, N, 3), torch.float64))
    handle = pattern.number
    assert gradgradcheck(
        lambda q, k, v: operator.attention_op(q, k, v, handle, 0.5, torch.ones(1, N, dtype=torch.bool), 0.0, None)[0],
        (q, k, v),
        fast_mode=True,
    )


def test_the_short_way_has_second_derivatives():
    """The way that CUDA takes, with the definition in the place of the kernels."""
    step = PATTERNS["window"].union_step()
    mask, scale = torch.from_numpy(step.mask()), 0.7

    def forward(q, k, v, scale):
        s = (scale * q @ k.mT).masked_fill(~mask, -torch.inf)
        return s.softmax(-1) @ v, s.logsumexp(-1)

    how = planned.Weighting(step.number, scale)

    def backward(do, q, k, v, out, lse, pieces, options):
        return planned.run_backward(do, q, k, v, out, Sums(lse), how)

    noted = SimpleNamespace(forward=forward, backend=SimpleNamespace(backward=backward), pieces=None)

    def call(q, k, v):
        return PlainAttention.apply(q, k, v, how, noted)

    q, k, v, _ = (x.requires_grad_() for x in inputs((1, 2, N, 3), torch.float64))
    assert gradcheck(call, (q, k, v), fast_mode=True)
    assert gradgradcheck(call, (q, k, v), fast_mode=True)
