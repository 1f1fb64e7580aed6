"""The sparse mixer looks at exactly what the pattern says, in every configuration."""

import numpy as np
import pytest
import torch

from tests.mixers.cases import mixer, rounding, sequences, small
from thereexists.patterns import REGISTRY, build

N = 12


def looks_at(module, n=N):
    """``(n, n)``: whether the output at k depends on the input at j, by derivative."""
    x = sequences(batch=1, n=n).requires_grad_()
    direction = torch.randn(16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = [torch.autograd.grad(module(x)[0, k] @ direction, x)[0][0].abs().amax(-1) for k in range(n)]
    return (torch.stack(rows) != 0).numpy()


def sparse(pattern, layer=0, **more):
    return mixer(small("sparse", {"pattern": pattern, **more}), layer)


def with_oneself(mask):
    return mask | np.eye(len(mask), dtype=bool)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "butterfly"])
@pytest.mark.parametrize("causal", [False, True])
def test_every_pattern_in_turn(name, causal):
    """sequential: block t uses step t mod p; a mirror image where the model mirrors it."""
    pattern = build(name, N)
    for layer in range(pattern.cycle + 1):
        expected = pattern.step(layer % pattern.cycle).mask()
        expected = expected[::-1, ::-1] if name == "star" else expected
        expected = with_oneself(np.tril(expected) if causal else expected)
        module = sparse(name, layer, pattern_config="sequential", is_decoder=causal)
        assert np.array_equal(looks_at(module), expected)


def test_union_sees_all_steps_and_so_does_multihead():
    union = build("strided", N, stride=3).union_step().mask()
    for spread in ("union", "multihead"):
        for layer in (0, 1):
            module = sparse("strided", layer, pattern_options={"stride": 3}, pattern_config=spread)
            assert np.array_equal(looks_at(module), union)


def test_multihead_gives_half_the_heads_to_each_step():
    module = sparse("fixed", pattern_options={"stride": 4}, pattern_config="multihead")
    first, second = (step.mask() for step in build("fixed", N, stride=4).steps)
    with torch.no_grad():
        module.output.weight.copy_(torch.eye(16))
        for heads, expected in ((slice(0, 8), first), (slice(8, 16), second)):
            silent = torch.ones(16, dtype=torch.bool)
            silent[heads] = False
            kept = module.output.weight[silent].clone()
            module.output.weight[silent] = 0
            with torch.enable_grad():
                assert np.array_equal(looks_at(module), expected)
            module.output.weight[silent] = kept


def test_the_relay_of_a_star_comes_first():
    assert looks_at(sparse("star"))[:, 0].all()
    assert looks_at(sparse("star", pattern_options={"mirror": False}))[:, -1].all()
    assert looks_at(sparse("star", is_decoder=True))[:, 0].all()


def test_the_dense_pattern_is_attention():
    dense, attention, x = sparse("dense"), mixer(small("attention")), sequences()
    attention.load_state_dict(dense.state_dict())
    assert torch.allclose(dense(x), attention(x), rtol=0, atol=rounding(100, scale=10))
