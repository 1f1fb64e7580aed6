"""``torch.func`` around sparse attention: what is mapped equals a loop, and gradients equal autograd's."""

import pytest
import torch

from thereexists import patterns as tp
from thereexists.attention import Dropout, SparseAttention, explain, sparse_attention
from thereexists.core.errors import InvalidInput

N = 37
PATTERNS = {
    "union": lambda: tp.strided(N, 5).union(),
    "causal window": lambda: tp.window(N, 3).as_causal(),
    "dense": lambda: tp.dense(N),
    "multihead": lambda: tp.strided(N, 5).multihead(4),
}
SCORES = {
    "plain": dict,
    "cap": lambda: {"softcap": 1.5},
    "sinks": lambda: {"sinks": torch.randn(4).double()},
    "bias": lambda: {"bias": torch.randn(4, 2 * N - 1).double()},
    "padded": lambda: {"key_padding_mask": torch.rand(2, N) > 0.3},
    "some rows": lambda: {"rows": 5},
}


def asked(scores, copies=3):
    torch.manual_seed(0)
    options = SCORES[scores]()
    rows = options.pop("rows", N)
    q = torch.randn(copies, 2, 4, rows, 8).double()
    return (q, *torch.randn(2, copies, 2, 4, N, 8).double()), options


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("name", PATTERNS)
def test_what_is_mapped_equals_a_loop(name, scores):
    """Each sequence is computed as it is without the others, to the order of its sums: 2⁻³⁰ is far above that."""
    pattern, (tensors, options) = PATTERNS[name](), asked(scores)

    def attend(q, k, v):
        return sparse_attention(q, k, v, pattern, **options)

    def loss(q, k, v):
        return attend(q, k, v).square().sum()

    loop = torch.stack([attend(*each) for each in zip(*tensors, strict=True)])
    assert torch.dist(torch.func.vmap(attend)(*tensors), loop) < 2.0**-30
    q, k, v = tensors
    last = torch.func.vmap(attend, in_dims=(4, None, 0), out_dims=1)(q.movedim(0, 4), k[0], v)
    loop = torch.stack([attend(a, k[0], c) for a, c in zip(q, v, strict=True)])
    assert torch.dist(last.movedim(1, 0), loop) < 2.0**-30

    leaves = [x.clone().requires_grad_() for x in tensors]
    want = torch.autograd.grad(sum(loss(*each) for each in zip(*leaves, strict=True)), leaves)
    alone = torch.func.grad(loss, argnums=(0, 1, 2))(*(x[0] for x in tensors))
    mapped = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(*tensors)
    for first, every, w in zip(alone, mapped, want, strict=True):
        assert torch.dist(first, w[0]) < 2.0**-30
        assert torch.dist(every, w) < 2.0**-30
        assert w.norm() > 2.0**-10


def test_gradients_of_sinks_and_second_order():
    pattern, (tensors, options) = tp.strided(N, 5).union(), asked("sinks")
    q, k, v = (x[0] for x in tensors)

    def loss(q, sinks):
        return sparse_attention(q, k, v, pattern, sinks=sinks).square().sum()

    sinks, given = options["sinks"], q.clone().requires_grad_()
    assert torch.dist(
        torch.func.grad(loss, argnums=1)(q, sinks),
        torch.autograd.grad(loss(q, leaf := sinks.clone().requires_grad_()), leaf)[0],
    ) < 2.0**-30  # fmt: skip
    (first,) = torch.autograd.grad(loss(given, sinks), given, create_graph=True)
    (want,) = torch.autograd.grad(first.square().sum(), given)
    got = torch.func.grad(lambda q: torch.func.grad(loss)(q, sinks).square().sum())(q)
    assert torch.dist(got, want) < 2.0**-30 < want.norm()
    each = torch.func.vmap(torch.func.grad(loss, argnums=1), in_dims=(0, None))(tensors[0], sinks)
    loop = torch.stack([torch.func.grad(loss, argnums=1)(a, sinks) for a in tensors[0]])
    assert torch.dist(each, loop) < 2.0**-30


def test_gradients_for_each_sample_of_a_layer():
    """What differentially private training asks for, with parameters given by ``functional_call``."""
    layer = SparseAttention(tp.strided(N, 5).union(), heads=4, dim=32).double()
    x, parameters = torch.randn(3, N, 32).double(), dict(layer.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(layer, parameters, (x[None],)).square().sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    for i, own in enumerate(x):
        want = torch.autograd.grad(loss(parameters, own), list(parameters.values()))
        for got, w in zip(each.values(), want, strict=True):
            assert torch.dist(got[i], w) < 2.0**-30 * max(1.0, w.norm().item())


def test_patterns_of_the_test_run_in_more_than_one_way():
    ways = {head.way for make in PATTERNS.values() for head in explain(make(), "cpu").heads}
    assert ways > {"dense"}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # which torch itself calls there
def test_forward_mode_is_refused_in_a_sentence():
    pattern, (tensors, _) = tp.strided(N, 5).union(), asked("plain")
    q, k, v = (x[0] for x in tensors)
    with pytest.raises(InvalidInput, match="no forward mode"):
        torch.func.jvp(lambda q: sparse_attention(q, k, v, pattern), (q,), (q,))
    with torch.autograd.forward_ad.dual_level(), pytest.raises(InvalidInput, match="no forward mode"):
        sparse_attention(torch.autograd.forward_ad.make_dual(q, q), k, v, pattern)


def test_dropout_is_drawn_as_it_is_asked_for():
    """By ``randomness``: the same pairs for all, or others for each."""
    pattern, (tensors, _) = tp.strided(N, 5).union(), asked("plain")
    q, k, v = (x[:1].expand(3, *x.shape[1:]) for x in tensors)

    def attend(q, k, v):
        return sparse_attention(q, k, v, pattern, dropout_p=0.5)

    same = torch.func.vmap(attend, randomness="same")(q, k, v)
    other = torch.func.vmap(attend, randomness="different")(q, k, v)
    assert torch.equal(same[0], same[1])
    assert not torch.equal(other[0], other[1])
    assert not torch.equal(other[1], other[2])
    with pytest.raises(RuntimeError, match="randomness"):
        torch.func.vmap(attend)(q, k, v)


def test_padding_that_is_mapped():
    """A row whose keys are all padding gives 0 there, too."""
    pattern, (tensors, _) = tp.window(N, 2), asked("plain")
    pad = torch.rand(3, 2, N) > 0.3
    pad[1, 0, :9] = False
    for rows in (N, 4):
        q, k, v = tensors[0][..., -rows:, :], *tensors[1:]

        def attend(q, k, v, pad):
            return sparse_attention(q, k, v, pattern, key_padding_mask=pad)

        loop = torch.stack([attend(*each) for each in zip(q, k, v, pad, strict=True)])
        assert torch.dist(torch.func.vmap(attend)(q, k, v, pad), loop) < 2.0**-30


@pytest.mark.parametrize("make", [PATTERNS["union"], PATTERNS["causal window"]])
def test_a_pattern_that_only_the_call_knows_lives_until_its_gradient(make):
    q = torch.randn(1, 4, N, 3).double()

    def loss(q):
        return sparse_attention(q, q, q, make()).pow(3).sum()

    want = torch.autograd.grad(loss(leaf := q.clone().requires_grad_()), leaf)[0]
    assert torch.dist(torch.func.grad(loss)(q), want) < 2.0**-30 < want.norm()

    def by_definition(q):
        logits = (q @ q.mT) / q.shape[-1] ** 0.5
        mask = torch.from_numpy(make().step(0).mask())
        return (logits.masked_fill(~mask, -torch.inf).softmax(-1) @ q).pow(3).sum()

    few = q[:, :1, :, :2]
    twice = [torch.func.jacrev(torch.func.jacrev(each))(few) for each in (loss, by_definition)]
    assert torch.dist(*twice) < 2.0**-30 < twice[1].norm()


@pytest.mark.parametrize("name", PATTERNS)
def test_dropout_of_the_last_rows(name):
    pattern = tp.strided(N, 5).union() if name == "multihead" else PATTERNS[name]()
    q, (k, v) = torch.randn(1, 2, 3, 4).double(), torch.randn(2, 1, 2, N, 4).double()

    def loss(q):
        return sparse_attention(q, k, v, pattern, dropout_p=Dropout(0.5, seed=1)).square().sum()

    want = torch.autograd.grad(loss(leaf := q.clone().requires_grad_()), leaf)[0]
    assert torch.dist(torch.func.grad(loss)(q), want) < 2.0**-30 < want.norm()
    assert torch.dist(torch.func.vmap(torch.func.grad(loss), randomness="same")(q[None])[0], want) < 2.0**-30
