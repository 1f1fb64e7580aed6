"""The modules against masked dense attention written out token by token, and against the pattern's receptive field."""

import numpy as np
import pytest
import torch

from thereexists.attention.pattern_module import PaperAttention, SparseTransformer
from thereexists.core.errors import InvalidInput
from thereexists.model.probability import PROBABILITY_MAPS
from thereexists.patterns import REGISTRY, build, check, strided, window

EPS = torch.finfo(torch.float64).eps


def token_by_token(layer, x, rows_of_head):
    """The paper's formula on the attended tokens only: no mask, no -inf."""
    out = x.clone()
    for b in range(x.shape[0]):
        for k in range(x.shape[1]):
            for i, rows in enumerate(rows_of_head):
                seen = x[b, rows[k]]
                logits = (seen @ layer.W_K[i].T) @ (layer.W_Q[i] @ x[b, k] + layer.b_Q[i])
                out[b, k] += layer.W_O[i] @ ((seen @ layer.W_V[i].T).T @ layer.rho(logits))
    return out


@pytest.mark.sampled(18)
@pytest.mark.parametrize("rho", PROBABILITY_MAPS)
@pytest.mark.parametrize("name", REGISTRY)
def test_sparse_attention_equals_attention_over_the_rows(name, rho):
    torch.manual_seed(0)
    n, d, h, m = 8, 3, 2, 2
    pattern = build(name, n)
    x = torch.randn(2, n, d, dtype=torch.float64)
    for l in range(min(pattern.cycle, 2)):
        layer = PaperAttention(d, h, m, pattern, l, rho).double()
        torch.nn.init.normal_(layer.b_Q)
        rows = [pattern.step(l).rows(k) for k in range(n)]
        with torch.no_grad():
            want = token_by_token(layer, x, [rows] * h)
            got = layer(x)
        scale = 1 + want.abs().max()
        # Both sum at most n·(m + d) products; logits reach ~50 and enter ρ, whose relative error is that many ulps.
        assert (got - want).abs().max() <= 1e4 * EPS * scale
        weights = layer.attention(x).detach()
        assert (weights[:, :, ~torch.from_numpy(pattern.step(l).mask())] == 0).all()


def test_multihead_heads_use_their_own_steps():
    torch.manual_seed(1)
    pattern = strided(n=9, stride=3).multihead(heads=4)
    layer = PaperAttention(3, 4, 2, pattern).double()
    rows = [[pattern.step(l).rows(k) for k in range(9)] for l in (0, 0, 1, 1)]
    x = torch.randn(1, 9, 3, dtype=torch.float64)
    with torch.no_grad():
        assert (layer(x) - token_by_token(layer, x, rows)).abs().max() <= 1e4 * EPS * (1 + x.abs().max())
    with pytest.raises(InvalidInput, match="made for 4 heads"):
        PaperAttention(3, 2, 2, pattern)


@pytest.mark.parametrize(
    "pattern", [window(9, 2), strided(n=9, stride=3), build("star", 9), build("fixed", 9).as_causal()]
)
def test_the_jacobian_of_t_blocks_is_supported_on_the_receptive_field(pattern):
    """``∂ out_k / ∂ in_j ≠ 0`` exactly for j ∈ S_k^t: the depth of the verdict is the depth of the network."""
    torch.manual_seed(2)
    seen = np.eye(9, dtype=bool)
    for t in range(1, 4):
        seen = (pattern.step((t - 1) % pattern.cycle).mask().astype(int) @ seen) > 0
        net = SparseTransformer(2, 2, 2, 4, pattern, blocks=t).double()
        x = torch.randn(1, 9, 2, dtype=torch.float64)
        jacobian = torch.autograd.functional.jacobian(net, x)[0, :, :, 0]  # (n, d, n, d)
        depends = (jacobian.abs().amax(dim=(1, 3)) > 0).numpy()
        assert np.array_equal(depends, seen)
    depth = check(pattern).depth
    assert depth is None or bool(seen.all()) == (depth <= 3)


@pytest.mark.slow
def test_training_moves_the_loss():
    torch.manual_seed(3)
    net = SparseTransformer(2, 2, 2, 8, build("star", 6), blocks=3, rho="entmax15")
    x = torch.rand(64, 6, 2)
    target = x.flip(1)
    optimiser = torch.optim.Adam(net.parameters(), 1e-2)
    losses = []
    for _ in range(60):
        loss = (net(x) - target).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_bad_input():
    net = SparseTransformer(2, 2, 1, 4, window(5, 1), blocks=2)
    for shape in ((1, 6, 2), (1, 5, 1)):
        with pytest.raises(InvalidInput, match=r"must be \(batch, 5, 2\)"):
            net(torch.zeros(shape))
        for rho in ("softmax", "hardmax"):
            with pytest.raises(InvalidInput, match=r"must be \(batch, 5, 2\)"):
                PaperAttention(2, 2, 1, window(5, 1), rho=rho)(torch.zeros(shape))
    with pytest.raises(InvalidInput, match="positive integer"):
        SparseTransformer(2, 0, 1, 4, window(5, 1), blocks=2)
    with pytest.raises(InvalidInput, match="positive integer"):
        SparseTransformer(2, 2, 1, 4, window(5, 1), blocks=0)
