"""The class T^{h,m,r} against independent implementations and against its own algebra."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from thereexists.core.errors import InvalidInput
from thereexists.model import Attention, FeedForward, Stage, ThreePiece, Transformer
from thereexists.model.probability import PROBABILITY_MAPS

hardmax = PROBABILITY_MAPS["hardmax"]
EPS = torch.finfo(torch.float64).eps


def random_stage(depth, h, m, r, d, generator, scale=0.3):
    def array(*shape):
        return scale * torch.randn(*shape, dtype=torch.float64, generator=generator)

    attention = Attention(
        array(depth, h, m, d), array(depth, h, m), array(depth, h, m, d), array(depth, h, m, d), array(depth, h, d, m)
    )
    return Stage(attention, FeedForward(array(depth, r, d), array(depth, r), array(depth, d, r), array(depth, d)))


def random_network(depth=3, h=2, m=1, r=4, d=2, n=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    E = torch.randn(n, d, dtype=torch.float64, generator=generator)
    return Transformer({"blocks": random_stage(depth, h, m, r, d, generator)}, E=E)


def by_stock_torch(network, X):
    """The same network with torch's own attention and linear layers."""
    functional = torch.nn.functional
    Z = X if network.E is None else X + network.E
    for stage in network.stages.values():
        a, f = stage.attention, stage.feed_forward
        for l in range(stage.depth):
            q = (Z[:, None] @ a.W_Q[l].mT) + a.b_Q[l][:, None]  # (batch, h, n, m)
            k, v = Z[:, None] @ a.W_K[l].mT, Z[:, None] @ a.W_V[l].mT
            heads = functional.scaled_dot_product_attention(q, k, v, scale=1.0)
            Z = Z + (heads @ a.W_O[l].mT).sum(1)
            Z = Z + functional.linear(torch.relu(functional.linear(Z, f.W_1[l], f.b_1[l])), f.W_2[l], f.b_2[l])
    return Z


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(0, 10**6))
def test_equals_scaled_dot_product_attention(h, m, r, d, seed):
    network = random_network(h=h, m=m, r=r, d=d, n=4, seed=seed)
    X = torch.rand(5, 4, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        ours, theirs = network(X), by_stock_torch(network, X)
    # Both compute the same sums in some order: a few hundred roundings of numbers no larger than the result's scale.
    assert (ours - theirs).abs().max() <= 1000 * EPS * max(1.0, float(theirs.abs().max()))


def test_equals_multihead_attention_where_it_can_express_the_class():
    """nn.MultiheadAttention fixes m = d/h and scales by 1/√m: with √m in the query it is the same layer."""
    h, m, d, n = 2, 2, 4, 5
    network = random_network(depth=1, h=h, m=m, r=1, d=d, n=n)
    stage = network.stages["blocks"]
    a = stage.attention
    stock = torch.nn.MultiheadAttention(d, h, bias=True, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        stock.in_proj_weight.copy_(torch.cat([w[0].reshape(h * m, d) for w in (a.W_Q * m**0.5, a.W_K, a.W_V)]))
        stock.in_proj_bias.copy_(torch.cat([a.b_Q[0].reshape(-1) * m**0.5, torch.zeros(2 * d, dtype=torch.float64)]))
        stock.out_proj.weight.copy_(a.W_O[0].permute(1, 0, 2).reshape(d, h * m))
        stock.out_proj.bias.zero_()
        X = torch.rand(3, n, d, dtype=torch.float64)
        only_attention = Transformer({"blocks": Stage(attention=a)})
        assert (only_attention(X) - X - stock(X, X, X)[0]).abs().max() <= 1000 * EPS


@given(st.permutations(range(4)), st.integers(0, 10**6))
def test_blocks_are_permutation_equivariant(permutation, seed):
    network = random_network(n=4, seed=seed)
    network.E = None
    X = torch.rand(2, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    gap = (network(X[:, permutation]) - network(X)[:, permutation]).abs().max()
    assert gap <= 1000 * EPS * max(1.0, float(network(X).detach().abs().max()))


def test_blocks_and_back_give_the_same_network():
    network = random_network()
    X = torch.rand(4, 3, 2, dtype=torch.float64)
    blocks = network.blocks()
    Z = X + network.E
    for block in blocks:
        Z = block(Z)
    again = Transformer.from_blocks(blocks, network.E.detach())
    assert torch.equal(network(X), Z)
    assert torch.equal(network(X), again(X))


def test_a_missing_half_is_written_out_as_zeros():
    feed_forward = random_network().stages["blocks"].feed_forward
    network = Transformer({"ff": Stage(feed_forward=feed_forward)})
    block = network.blocks()[0]
    X = torch.rand(2, 3, 2, dtype=torch.float64)
    assert block.W_O.numel() == 0  # no head at all: the class of this network is T^{0,0,4}
    assert torch.equal(block(X), Transformer.from_blocks([block])(X))


def test_hardmax_shares_ties():
    weights = hardmax(torch.tensor([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]]))
    assert torch.equal(weights, torch.tensor([[0.0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]]))


def test_hardmax_is_the_limit_of_softmax():
    logits = torch.tensor([[1.0, 3.0, 2.0, 3.0]], dtype=torch.float64)
    assert torch.equal(hardmax(logits), torch.softmax(2000 * logits, -1))


def test_three_piece_function_picks_the_right_piece():
    def stack(*values):
        return torch.tensor(values, dtype=torch.float64)[None, None]

    phi = ThreePiece(stack(0.0, 1.0), stack(0.0, -1.0, 0.0), stack(0.0, 0.0, 5.0))
    one, zero = torch.ones(1, 1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    network = Transformer({"ff": Stage(feed_forward=FeedForward(one, zero, one, zero, phi))})
    X = torch.tensor([-1.0, 0.0, 0.25, 1.0, 2.0], dtype=torch.float64)[:, None, None]
    assert network(X).flatten().tolist() == [-1.0, 0.0, 0.0, 6.0, 7.0]


def test_a_phi_without_a_constant_piece_is_refused():
    knots = torch.tensor([[[0.0, 1.0]]], dtype=torch.float64)
    ones = torch.ones(1, 1, 3, dtype=torch.float64)
    with pytest.raises(InvalidInput, match="constant piece"):
        ThreePiece(knots, ones, ones)


def test_unknown_probability_map_is_refused():
    with pytest.raises(InvalidInput, match="rho must be one of"):
        Transformer(dict(random_network().stages.items()), rho="nearmax")


def test_gradients_reach_every_weight():
    network = random_network()
    network(torch.rand(4, 3, 2, dtype=torch.float64)).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in network.parameters())
