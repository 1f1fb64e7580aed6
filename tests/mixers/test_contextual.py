"""What BProj can tell apart and average attention cannot (docs/mixers.md), in exact arithmetic: integers in float64."""

import itertools

import pytest
import torch

import thereexists as te
from tests.mixers.cases import small
from thereexists.mixers import MIXERS

N, CELLS = 4, 3


def integer_mixer(name, d=1, seed=0, **more):
    """A mixer of width d whose weights are integers: W_O the identity, W_P entries up to 10⁶, so nothing is rounded."""
    config = small(name, hidden_size=d, num_attention_heads=1, max_position_embeddings=N, **more)
    module = MIXERS[name].build(config, 0).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        module.output.weight.copy_(torch.eye(d))
        module.output.bias.zero_()
        if name == "bproj":
            module.weight.copy_(torch.randint(1, 10**6, (N, N), generator=generator))
    return module


def contexts():
    """Every sequence of N cells out of CELLS but the zero sequence, which every linear map sends to zero."""
    return torch.tensor(list(itertools.product(range(CELLS), repeat=N))[1:], dtype=torch.float64)[..., None]


@torch.no_grad()
def test_one_changed_token_changes_every_token_and_each_differently():
    """(X₁ − X₂) W_P = δ e_iᵀ W_P, row i of W_P scaled: dense, with distinct entries, for every pair of contexts."""
    module, X = integer_mixer("bproj"), contexts()
    pairs = 0
    for i in range(N):
        for other in range(1, CELLS):
            changed = X.clone()
            changed[:, i] = (X[:, i] + other) % CELLS
            difference = (module(X) - module(changed))[..., 0]  # (contexts, N)
            assert (difference != 0).all()
            apart = difference.sort(dim=1).values.diff(dim=1)
            assert (apart != 0).all()
            pairs += len(X)
    assert pairs == N * (CELLS - 1) * (CELLS**N - 1)


@torch.no_grad()
def test_average_changes_every_token_alike():
    module, X = integer_mixer("average"), contexts()
    changed = X.clone()
    changed[:, 0] = (X[:, 0] + 1) % CELLS
    difference = (module(X) - module(changed))[..., 0]
    assert (difference == difference[:, :1]).all()


@torch.no_grad()
def test_bproj_gives_every_token_of_every_context_an_id_of_its_own():
    """Stronger than the claim about pairs: on this finite set, X W_P is a contextual mapping in the full sense."""
    X = contexts()
    verdict = te.is_contextual_mapping(integer_mixer("bproj")(X)[..., 0].numpy(), X.numpy())
    assert verdict.holds, verdict.reasons


@torch.no_grad()
def test_average_cannot_even_with_the_token_itself():
    """{0, 1, 4} and {0, 2, 3} have equal sums: their token 0 sees the same, itself and the mean, in both contexts."""
    X = torch.tensor(list(itertools.combinations(range(5), 3)), dtype=torch.float64)[..., None]  # no equal tokens
    seen = torch.cat([X, integer_mixer("average")(X) * 3], dim=-1).round()  # (token, sum) is all a block can use
    verdict = te.is_contextual_mapping((seen[..., 0] * 100 + seen[..., 1]).numpy(), X.numpy(), equivariant=True)
    assert not verdict.holds
    (i, j), (k, l) = verdict.evidence
    assert torch.equal(seen[i, j], seen[k, l])
    assert sorted(X[i].flatten().tolist()) != sorted(X[k].flatten().tolist())


@torch.no_grad()
def test_the_check_notices_a_bproj_that_cannot():
    """W_P with two equal columns gives two tokens of every context the same id."""
    module, X = integer_mixer("bproj"), contexts()
    module.weight[1] = module.weight[0]  # stored transposed
    assert not te.is_contextual_mapping(module(X)[..., 0].numpy(), X.numpy()).holds


@torch.no_grad()
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_sepconv_carries_a_change_k_half_tokens_further_with_every_block(layers):
    """A change of one token reaches layers·(k − 1) + 1 tokens, and exactly those."""
    n, k, at = 31, 5, 15
    config = small("sepconv", max_position_embeddings=n, kernel_size=k)
    torch.manual_seed(0)
    x = torch.randn(1, n, 16, dtype=torch.float64)
    changed = x.clone()
    changed[:, at] += 1
    for _ in range(layers):
        module = MIXERS["sepconv"].build(config, 0).double()
        for weight in module.parameters():
            weight.normal_(std=0.5)
        x, changed = x + module(x), changed + module(changed)
    reached = (x != changed).any(dim=-1)[0].nonzero().flatten().tolist()
    assert reached == list(range(at - layers * (k // 2), at + layers * (k // 2) + 1))
