"""The head in real modules: what PyTorch computes is the target."""

import dataclasses
import math

import pytest
import torch

import thereexists.heads as heads
from thereexists.core.errors import InvalidInput


@pytest.fixture(scope="module", params=["moments", "corrected", "descent"])
def head(request):
    size = {"hidden_size": 8} if request.param == "descent" else {}
    return heads.fit(heads.random_matrix(40, 2, 2.0, 0), method=request.param, **size)


def worst_weight_error(weights, head):
    """Largest difference of an attention weight from the normalised target's."""
    wanted = torch.from_numpy(head.target.to_scipy().toarray())
    return float((weights - wanted).abs().max())


def allowed(head):
    """On the support the ratios are within 1+eps2, and (L-k) zeros weigh at most eps1 each: weights move by no more."""
    return head.eps2 + head.target.length * head.eps1


def test_the_module_attends_like_the_target(head):
    weights = head.module()(head.X)
    assert worst_weight_error(weights, head) <= allowed(head)
    assert (weights.sum(-1) - 1).abs().max() <= head.target.length * torch.finfo(torch.float64).eps


def test_a_stock_multihead_attention_attends_like_the_target_and_like_the_module(head):
    stock = heads.multihead_attention(head)
    with torch.no_grad():
        out, weights = stock(head.X[None], head.X[None], head.X[None], need_weights=True)
    assert worst_weight_error(weights[0], head) <= allowed(head)
    # The factor sqrt(d) in and out costs four more roundings of the logits.
    drift = 4 * head.hidden_size * head.verification.rounding + 1e-13
    assert (weights[0] - head.module()(head.X)).abs().max() <= math.expm1(2 * drift)
    assert (out[0] - weights[0] @ head.X).abs().max() <= 1e-12 * head.X.abs().max() * head.hidden_size


def test_shuffled_tokens_shuffle_the_attention(head):
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    weights, shuffled = head.module()(head.X), head.module()(head.X[order])
    assert (shuffled - weights[order][:, order]).abs().max() <= math.expm1(4 * head.verification.rounding) + 1e-15


def test_a_batch_goes_through(head):
    batch = torch.stack([head.X, head.X.flip(0)])
    assert head.module()(batch).shape == (2, 40, 40)


def test_the_wrong_hidden_size_is_refused(head):
    with pytest.raises(InvalidInput, match="hidden size"):
        head.module()(head.X[:, 1:])


def test_nothing_is_trainable(head):
    assert not list(head.module().parameters())
    assert not any(p.requires_grad for p in heads.multihead_attention(head).parameters())


@pytest.mark.parametrize("attending", [heads.Head.module, heads.multihead_attention])
def test_a_head_of_words_has_no_module(attending, made):
    """Its leading word alone attends otherwise, whatever the verdict on the sum says."""
    head = heads.load(made / "words")
    with pytest.raises(InvalidInput, match=r"head\.words"):
        attending(head)


def test_queries_wider_than_the_inputs_are_refused():
    head = heads.fit(heads.random_matrix(8, 1))
    pad = torch.zeros(head.hidden_size, 8, dtype=torch.float64)
    wide = dataclasses.replace(head, W_Q=torch.cat([head.W_Q, pad], 1), W_K=torch.cat([head.W_K, pad], 1))
    assert worst_weight_error(wide.module()(wide.X), wide) <= allowed(wide)
    with pytest.raises(InvalidInput, match="no wider"):
        heads.multihead_attention(wide)
