"""Soft caps, biases by offset, sinks, log-sum-exp; grouped queries, sizes of values, queries that are the last rows.

The reference is the definition in float64. What is computed in float64 on both sides differs in the order of sums: at
most 64 keys with logits and values below 16, through one softmax and its derivative, is below 2⁻³⁰ by far.
"""

import pytest
import torch

from tests.attention.exactness import relations
from thereexists import patterns as tp
from thereexists.attention import Dropout, explain, functional, sparse_attention
from thereexists.attention.call_options import survivors
from thereexists.core.errors import InvalidInput

N = 37
BOUND = 2.0**-30
CASES = {  # rows, key heads of 4, size of a value, cap, bias, sinks, padding
    "all of it": (N, 2, 6, 2.0, "alibi", True, False),
    "a bias by offset": (N, 4, 8, None, "table", False, True),
    "sinks alone": (N, 2, 8, None, None, True, True),
    "a cap alone": (N, 1, 8, 1.5, None, False, False),
    "the last five rows": (5, 2, 6, 2.0, "table", True, True),
    "a bias of minus infinity": (N, 2, 8, None, "hides", False, True),
    "a bias of minus infinity beside a sink": (5, 2, 8, None, "hides", True, False),
    "the last row": (1, 2, 8, None, None, False, False),
    "the last rows, padded": (3, 4, 6, None, None, False, True),
}
FEW = ("strided-causal-union", "window-causal[0]", "star[0]", "random[0]", "fixed-union", "empty: listed and a hub")


def by_definition(q, k, v, mask, changes, gain=1.0):
    """Output and log-sum-exp; a row without keys gives 0 and −inf."""
    group, n, rows = q.shape[1] // k.shape[1], k.shape[2], q.shape[2]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q.shape[-1] ** -0.5 * q @ k.mT
    s = s if (cap := changes.get("softcap")) is None else cap * torch.tanh(s / cap)
    if (bias := changes.get("bias")) is not None:
        offset = torch.arange(n)[None, :] - torch.arange(n - rows, n)[:, None]
        s = s + (bias[:, offset + n - 1] if bias.ndim == 2 else -bias[:, None, None] * offset.abs())
    e = torch.where(mask, torch.exp(s), 0.0)
    total = e.sum(-1) if (sinks := changes.get("sinks")) is None else e.sum(-1) + torch.exp(sinks)[:, None]
    return (gain * e) @ v / total.masked_fill(total == 0, 1.0)[..., None], torch.log(total)


def asked(case, seed=0):
    rows, kv, size, cap, bias, sinks, padded = CASES[case]
    torch.manual_seed(seed)
    q, k, v = (torch.randn(2, h, m, d).double() for h, m, d in ((4, rows, 8), (kv, N, 8), (kv, N, size)))
    hides = torch.randn(4, 2 * N - 1).double()
    hides[:, ::3] = hides[:2] = -torch.inf  # of two heads every pair, of the others every third offset
    table = {None: None, "hides": hides, "alibi": torch.rand(4).double(), "table": torch.randn(4, 2 * N - 1).double()}[
        bias
    ]
    sink = torch.randn(4).double() if sinks else None
    pad = torch.rand(2, N) > 0.3 if padded else None
    return (q, k, v), {"softcap": cap, "bias": table, "sinks": sink}, pad


def differences(name, step, case):
    """How far output, log-sum-exp and every gradient are from the definition."""
    (q, k, v), changes, pad = asked(case)
    inputs = [x.requires_grad_() for x in (q, k, v, changes["sinks"]) if x is not None]
    mask = torch.from_numpy(step.mask())[-q.shape[2] :]
    mask = mask if pad is None else mask & pad[:, None, None]
    want, sums = by_definition(q, k, v, mask, changes)
    out = sparse_attention(q, k, v, step, key_padding_mask=pad, **changes)
    both, lse = sparse_attention(q, k, v, step, key_padding_mask=pad, return_lse=True, **changes)
    there = torch.isfinite(sums)
    assert torch.equal(lse == -torch.inf, ~there), name
    do, dl = torch.randn_like(want), torch.randn_like(sums)
    wanted = torch.autograd.grad((want * do).sum() + (dl * sums)[there].sum(), inputs, retain_graph=True)
    got = torch.autograd.grad((both * do).sum() + (dl * lse)[there].sum(), inputs)
    plain = torch.autograd.grad((want * do).sum(), inputs)
    alone = torch.autograd.grad((out * do).sum(), inputs)
    pairs = [(out, want), (both, want), (lse[there], sums[there]), *zip(got, wanted, strict=True)]
    apart = ((a - b).detach().abs() for a, b in (*pairs, *zip(alone, plain, strict=True)))
    return max(float(each.amax()) for each in apart if each.numel())  # there may be no row with a log-sum-exp


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_every_change_is_the_definition(case):
    for name in FEW:
        assert differences(name, relations(N)[name], case) <= BOUND, name


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_change_over_every_relation(case):
    for name, step in relations(N).items():
        assert differences(name, step, case) <= BOUND, name


def test_heads_with_steps_of_their_own_share_keys():
    """Three heads and one of a multihead pattern over two key heads: a group is cut in two."""
    (q, k, v), changes, _ = asked("all of it")
    pattern = tp.strided(N, 5).multihead(4)
    masks = torch.stack(
        [torch.from_numpy(s.mask()) for s, c in zip(pattern.steps, (3, 1), strict=True) for _ in range(c)]
    )
    cut = type(pattern)("cut", pattern.steps, heads=(3, 1))
    inputs = [x.requires_grad_() for x in (q, k, v, changes["sinks"])]
    for rows in (N, 4):
        want = by_definition(q[:, :, -rows:], k, v, masks[:, -rows:], changes)[0]
        got = sparse_attention(q[:, :, -rows:], k, v, cut, **changes)
        do = torch.randn_like(want)
        assert (got - want).abs().max() <= BOUND
        for a, b in zip(torch.autograd.grad(got, inputs, do), torch.autograd.grad(want, inputs, do), strict=True):
            assert (a - b).abs().max() <= BOUND


def test_the_last_rows_drop_the_pairs_that_all_rows_drop():
    (q, k, v), _, _ = asked("a bias by offset")
    step = tp.window(N, 4).as_causal().step(0)
    whole = sparse_attention(q, k, v, step, dropout_p=Dropout(0.3, 5))
    last = sparse_attention(q[:, :, -6:], k, v, step, dropout_p=Dropout(0.3, 5))
    assert (whole[:, :, -6:] - last).abs().max() <= BOUND
    assert survivors(5, 1 << 31, 0, torch.arange(9).numpy(), torch.zeros(9).numpy()).any()


def test_gradients_of_gradients_with_sinks_and_a_cap():
    torch.manual_seed(1)
    step = tp.strided(4, 2).as_causal().union_step()
    q, k, v = (torch.randn(1, h, 4, 2, dtype=torch.float64, requires_grad=True) for h in (2, 1, 1))
    sinks = torch.randn(2, dtype=torch.float64, requires_grad=True)

    def run(q, k, v, sinks):
        return sparse_attention(q, k, v, step, sinks=sinks, softcap=1.5, bias=torch.tensor([0.5, 0.1]), return_lse=True)

    assert torch.autograd.gradgradcheck(run, (q, k, v, sinks), fast_mode=True)


def test_long_prefills_are_cut_into_blocks(monkeypatch):
    """More rows than a block, and keys that fill more than one: the same numbers, and gradients through all blocks."""
    from thereexists.attention import by_rows

    (q, k, v), changes, pad = asked("the last five rows")
    step, results = tp.strided(N, 5).as_causal().union_step(), []
    for rows, pairs in ((128, 1 << 24), (2, 1 << 24), (128, 300)):
        monkeypatch.setattr(by_rows, "_ROWS", rows)
        monkeypatch.setattr(by_rows, "_PAIRS", pairs)
        inputs = [x.detach().requires_grad_() for x in (q, k, v)]
        out, lse = sparse_attention(*inputs, step, key_padding_mask=pad, return_lse=True, **changes)
        results.append((out, lse, *torch.autograd.grad(out.square().sum() + lse.sum(), inputs)))
    for other in results[1:]:
        assert all((a - b).abs().max() <= BOUND for a, b in zip(results[0], other, strict=True))


def test_what_is_refused():
    (q, k, v), _, _ = asked("sinks alone")
    step = tp.window(N, 4).step(0)
    wrong = {
        "one logit for each of 4": {"sinks": torch.zeros(2)},
        "a slope for each of 4": {"bias": torch.zeros(4, N)},
        "positive number": {"softcap": 0.0},
        "as a constant": {"bias": torch.zeros(4, requires_grad=True)},
    }
    for message, changes in wrong.items():
        with pytest.raises(InvalidInput, match=message):
            sparse_attention(q, k, v, step, **changes)
    with pytest.raises(TypeError, match="sink"):
        sparse_attention(q, k, v, step, sink=torch.zeros(4))


def test_wrong_kinds_are_refused_by_name(fresh):
    done = fresh("-m", "tests.attention.wrong_kinds")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "9"


def test_explain_says_what_no_kernel_has(monkeypatch):
    pattern = tp.window(4096, 64)
    told = explain(pattern, "cpu", queries=1)
    assert told.ways == ("rows",)
    assert "last rows only" in str(told)
    assert explain(pattern, "cpu", changed=["softcap", "sinks"]).ways == ("pieces",)
    monkeypatch.setattr("thereexists.attention.ways.backend_has", lambda *_: False)
    assert "the cuda kernels have no softcap" in str(explain(pattern, "cuda", changed=["softcap"]))
    assert explain(pattern, "cuda", changed=["sinks", "return_lse"]).ways == ("pieces",)
    (q, _, v), _, _ = asked("sinks alone")
    monkeypatch.setattr(functional, "backend_has", lambda *_: False)
    assert functional._in_kernels(q.half(), v, functional.Changes(sinks=torch.zeros(4)))
    assert not functional._in_kernels(q.half(), v, functional.Changes(softcap=2.0))
    assert not functional._in_kernels(torch.zeros(1, 1, 4, 512, dtype=torch.half), v, functional.Changes())
