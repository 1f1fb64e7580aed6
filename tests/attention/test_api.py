"""The module, the plan, what is refused, and torch.compile."""

import copy
import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import thereexists as te
from tests.attention.exactness import inputs
from thereexists import patterns as tp
from thereexists.attention import SparseAttention, explain, sparse_attention
from thereexists.attention.planned import explained
from thereexists.core.errors import InvalidInput, ThereExistsError

BIG = 2048  # large enough that the planner leaves the mask alone


def test_the_lines_of_the_readme():
    pattern = te.patterns.strided(n=BIG, stride=32).union()
    layer = te.attention.SparseAttention(pattern, heads=2, dim=16)
    x = torch.randn(1, BIG, 16)
    assert layer(x).shape == x.shape
    assert "residue classes mod 32" in str(te.attention.explain(pattern, device="cuda"))
    assert "strided-union" in repr(layer)


def test_a_layer_trains():
    """Fit one batch through our own kernels (padding rules the stock ones out): the loss falls by half."""
    torch.manual_seed(0)
    layer = SparseAttention(tp.strided(48, 6).union(), heads=2, dim=16)
    x, lengths = torch.randn(2, 48, 16), torch.tensor([48, 30])
    target = x.roll(6, dims=1)
    optimiser = torch.optim.Adam(layer.parameters(), 3e-2)
    losses = []
    for _ in range(40):
        loss = (layer(x, lengths=lengths) - target)[:, :30].square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0], losses


def test_padding_equals_the_shorter_sequence():
    """Causal and padded to 40, or cut to 29: the same numbers for the real tokens."""
    q, k, v, _ = inputs((2, 2, 40, 8), torch.float64)
    long = sparse_attention(q, k, v, tp.strided(40, 5).as_causal().union(), lengths=torch.tensor([29, 29]))
    short = sparse_attention(*(x[:, :, :29] for x in (q, k, v)), tp.strided(29, 5).as_causal().union())
    bound = 64 * torch.finfo(torch.float64).eps * v.abs().max()  # averages of at most 40 values, two summation orders
    assert (long[:, :, :29] - short).abs().max() <= bound


def test_grouped_queries_repeat_the_keys():
    q, k, v, _ = inputs((1, 4, 40, 8), torch.float32)
    step = tp.window(40, 3).step(0)
    got = sparse_attention(q, k[:, :2], v[:, :2], step)
    want = sparse_attention(q, k[:, [0, 0, 1, 1]], v[:, [0, 0, 1, 1]], step)
    assert torch.equal(got, want)


def test_the_planner_chooses_by_structure():
    """One line per kind of pattern, at a size where structure pays."""
    n = 65536
    ways = {
        "dense": (tp.dense(n), "dense"),
        "strided": (tp.strided(n, 256).union(), "pieces"),
        "star": (tp.star(n), "pieces"),
        "logsparse": (tp.logsparse(n), "listed"),
        "random": (tp.random(n, 8), "listed"),
    }
    for name, (pattern, way) in ways.items():
        assert explain(pattern, "cuda").ways == (way,), name
    assert explain(tp.random(64, sparsity=0.3), "cpu").ways == ("masked",)
    pieces = explain(tp.strided(n, 256).union(), "cuda").heads[0].pieces
    assert len(pieces) == 2
    assert "without the keys ≡ (mod 256)" in pieces[1]
    report = explain(tp.strided(n, 256).multihead(8), "cuda").to_json()
    assert [h["heads"] for h in report["heads"]] == [[0, 4], [4, 8]]


def test_plans_are_made_once_and_go_with_the_pattern():
    pattern = tp.window(BIG, 8)
    device = torch.device("cpu")
    assert explained(pattern, device) is explained(pattern, device)
    assert explained(pattern, device) is not explained(tp.window(BIG, 8), device)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q: sparse_attention(q, q, q, tp.strided(8, 2)), "has 2 steps"),
        (lambda q: sparse_attention(q, q, q, tp.window(9, 2)), "has 9 tokens; got a sequence of 8"),
        (lambda q: sparse_attention(q, q, q[:, :1], tp.window(8, 2)), "must be"),
        (lambda q: sparse_attention(q, q[:, :, :7], q[:, :, :7], tp.window(8, 2)), "agree in batch"),
        (lambda q: sparse_attention(q, q[:, [0, 0, 1]], q[:, [0, 0, 1]], tp.window(8, 2)), "multiple of the 3"),
        (lambda q: sparse_attention(q, q.double(), q.double(), tp.window(8, 2)), "one floating-point type"),
        (lambda q: sparse_attention(*[q.to(torch.float8_e4m3fn)] * 3, tp.window(8, 2)), "of 16 bits at least"),
        (lambda q: sparse_attention(*[q.to("meta")] * 3, tp.window(8, 2)), "with numbers in them"),
        (lambda q: sparse_attention(q, q, q, tp.strided(8, 2).multihead(4)), "made for 4 heads"),
        (lambda q: sparse_attention(q, q, q, tp.window(8, 2), dropout_p=1.0), "dropout_p"),
        (lambda q: sparse_attention(q, q, q, tp.window(8, 2), lengths=torch.tensor([1, 2])), "one number for each"),
        (
            lambda q: sparse_attention(q, q, q, tp.window(8, 2), key_padding_mask=torch.ones(1, 7).bool()),
            "True at real",
        ),
        (lambda q: SparseAttention(tp.window(8, 2), heads=3, dim=8), "multiple of 'heads'"),
        (lambda q: SparseAttention(tp.window(8, 2), heads=0, dim=8), "must be a whole number from 1 on"),
        (lambda q: SparseAttention(tp.strided(8, 2).multihead(4), heads=2, dim=8), "made for 4 heads"),
        (lambda q: SparseAttention(tp.window(8, 2), heads=2, dim=8, dropout=1.5), "dropout"),
        (lambda q: explain(tp.window(8, 2), "tpu"), "devices cpu, cuda"),
    ],
)
def test_what_is_refused_and_why(call, message):
    # shapes are also checked by jaxtyping here; outside the suite the sentences below are what a user sees
    error = (InvalidInput, __import__("jaxtyping").TypeCheckError)
    with pytest.raises(error) as caught:
        call(torch.randn(1, 2, 8, 4))
    if isinstance(caught.value, ThereExistsError):
        assert message in str(caught.value)
    else:
        assert any(word in message for word in ("must be", "agree", "one number", "True at real", "positive"))


@pytest.mark.parametrize("pattern", [tp.window(24, 4), tp.dense(24), tp.strided(24, 4).multihead(4)])
def test_under_autocast_as_torchs_own_attention(pattern):
    """Mixed types are cast; what is computed from them is computed as without autocast, in its usual precision."""
    q = torch.randn(1, 4, 24, 8, requires_grad=True)
    k, v = (torch.randn(1, 2, 24, 8).bfloat16() for _ in range(2))
    for given in ({}, {"sinks": torch.zeros(4)}, {"softcap": 4.0}):
        with torch.autocast("cpu", torch.bfloat16):
            got = sparse_attention(q, k, v, pattern, **given)
            stock = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        assert got.dtype == stock.dtype == torch.bfloat16
        assert torch.equal(got, sparse_attention(q.bfloat16(), k, v, pattern, **given))
        assert torch.autograd.grad(got.float().sum(), q)[0].dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):  # a type that autocast leaves alone
        assert sparse_attention(q.double(), k.double(), v.double(), pattern).dtype == torch.float64


@pytest.mark.parametrize("given", [{}, {"softcap": 4.0}, {"bias": torch.ones(2)}, {"sinks": torch.zeros(2)}])
@pytest.mark.parametrize("rows", [48, 40])
def test_a_query_that_is_no_number_makes_a_row_that_is_none(given, rows):
    """torch's kernel takes it for a row without keys, and a model that has diverged would go on."""
    for pattern in (tp.window(48, 4), tp.strided(48, 6).union(), tp.star(48), tp.random(48, 5, seed=0)):
        for bad in (float("nan"), float("inf")):
            q, k, v = (torch.randn(1, 2, m, 8) for m in (rows, 48, 48))
            q[0, 1, 5] = bad
            q.requires_grad_()
            out, lse = sparse_attention(q, k, v, pattern, return_lse=True, **given)
            (grad,) = torch.autograd.grad(out.sum(), q)
            for x in (out.isnan().any(-1), lse.isnan(), grad.isnan().any(-1)):
                assert x[0, 1, 5]
                assert x.sum() == 1, pattern


@pytest.mark.parametrize("pattern", [tp.window(64, 2), tp.window(64, 20), tp.strided(64, 8).union(), tp.dense(64)])
@pytest.mark.parametrize("given", [{}, {"softcap": 2.0}])
def test_a_row_whose_keys_are_all_no_numbers_is_no_row_without_keys(pattern, given):
    q, v = torch.randn(2, 1, 2, 64, 8)
    out, lse = sparse_attention(q, torch.full_like(q, float("nan")), v, pattern, return_lse=True, **given)
    assert out.isnan().all()
    assert lse.isnan().all()


EMPTY = {
    "softcap": {"softcap": 2.0},
    "bias": {"bias": torch.zeros(2)},
    "sinks": {"sinks": torch.zeros(2)},
    "dropout": {"dropout_p": 0.5},
    "lse": {"return_lse": True},
    "plain": {},
}


@pytest.mark.parametrize("rows", [2, 16])
@pytest.mark.parametrize("pattern", [tp.dense(16), tp.window(16, 2), tp.strided(16, 4).union()])
@pytest.mark.parametrize("given", EMPTY)
def test_no_sequences_at_all(given, pattern, rows):
    q, k = torch.randn(0, 2, rows, 4, requires_grad=True), torch.randn(0, 1, 16, 4)
    out = sparse_attention(q, k, torch.randn(0, 1, 16, 3), pattern, **EMPTY[given])
    out = out[0] if given == "lse" else out
    assert out.shape == (0, 2, rows, 3)
    assert torch.autograd.grad(out.sum(), q)[0].shape == q.shape
    if given != "dropout":
        assert sparse_attention(k, k, k, [], **(EMPTY[given] if given == "plain" else {})).shape == k.shape


def test_a_query_that_is_no_number_and_sees_nothing_is_a_row_without_keys():
    q, k, v = (torch.randn(1, 1, 24, 8) for _ in range(3))
    q[0, 0, :3] = float("nan")
    lengths = torch.tensor([0])
    assert (sparse_attention(q, k, v, tp.window(24, 4), lengths=lengths) == 0).all()


@pytest.mark.parametrize("given", [{"softcap": 50.0}, {"bias": torch.tensor([0.5, 0.25])}, {}])
def test_a_backward_inside_of_autocast_is_that_of_the_forward(given):
    pattern = tp.strided(64, 8).union()
    q, k, v, g = (torch.randn(1, 2, 64, 8) * scale for scale in (5, 1, 1, 1))
    found = []
    for inside in (False, True):
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        out = sparse_attention(*leaves, pattern, **given)
        with torch.autocast("cpu", torch.bfloat16, enabled=inside):
            found.append(torch.autograd.grad(out, leaves, g))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_compiled_without_a_graph_break(fresh):
    """In a process of its own: the suite's run-time type checks cannot be traced."""
    done = fresh("-m", "tests.attention.compiled")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["pieces", "pieces+pieces", "masked", "masked+listed"]


def test_the_op_says_what_it_returns():
    """Shapes, types, autograd registration: PyTorch's own checker for custom ops."""
    from thereexists.attention.operator import attention_op

    step = tp.strided(32, 4).union().step(0)
    q, k, v, _ = inputs((1, 2, 32, 8), torch.float64)
    for x in (q, k, v):
        x.requires_grad_()
    pad = torch.ones(1, 32, dtype=torch.bool)
    torch.library.opcheck(attention_op, (q, k, v, step.number, 0.5, pad, 0.0, None))


@pytest.mark.slow
def test_a_million_tokens_in_a_window_fit_in_eight_gigabytes():
    """Forward and backward of one layer in a process of its own; the mask alone would be 10¹² entries."""
    code = """
import resource, torch, thereexists as te
torch.set_num_threads(1)
n = 1_000_000
q, k, v = (torch.randn(1, 1, n, 64, requires_grad=True) for _ in range(3))
te.attention.sparse_attention(q, k, v, te.patterns.window(n, 64).step(0)).square().sum().backward()
assert q.grad.isfinite().all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 8


def test_memory_is_linear_in_the_connections():
    """Twice the tokens at the same window: tables and calls grow at most twice as well (plus a constant)."""
    from thereexists.attention.windows import calls

    sizes = []
    for n in (4096, 8192):
        made = [
            c for s in explained(tp.window(n, 64), torch.device("cpu")).heads[0].lowered.strips for c in calls(s, n)
        ]
        sizes.append(sum(c.mask.numel() if c.mask is not None else 0 for c in made))
        assert sum(c.chunks * c.rows for c in made) == n
        assert sum(c.pairs for c in made) <= 1.3 * np.maximum(tp.window(n, 64).step(0).connections, 1)
    assert sizes[0] == sizes[1]  # interior chunks share one mask


def test_copies_of_a_pattern_and_of_a_layer_attend_as_the_originals():
    layer = SparseAttention(tp.window(40, 2), heads=2, dim=8)
    x = torch.randn(1, 40, 8)
    with torch.no_grad():
        expected = layer(x)
        stored, twin = pickle.dumps(layer), copy.deepcopy(layer)
        del layer
        gc.collect()
        others = [SparseAttention(tp.random(40, 5, seed=i), heads=2, dim=8) for i in range(4)]
        for other in others:
            other(x)
        assert torch.equal(twin(x), expected)
        assert torch.equal(pickle.loads(stored)(x), expected)
        numbers = [each.pattern.number for each in (twin, pickle.loads(stored), *others)]
        assert len({*numbers, copy.copy(twin.pattern).number}) == 7


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_a_scale_that_is_not_positive(scale):
    q, k, v = (torch.randn(1, 2, 9, 4, dtype=torch.float64) for _ in range(3))
    hidden = torch.ones(9, 9, dtype=torch.bool).triu(1)
    expected = torch.softmax((scale * q @ k.mT).masked_fill(hidden, -torch.inf), -1) @ v
    got = sparse_attention(q, k, v, tp.dense(9).as_causal(), scale=scale)
    assert (got - expected).abs().max() <= 100 * torch.finfo(torch.float64).eps
    with pytest.raises(InvalidInput, match="finite"):
        sparse_attention(q, k, v, tp.dense(9), scale=float("nan"))
