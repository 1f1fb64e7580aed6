"""A decoding step touches the keys of its rows, and nothing else of the cache."""

import pytest
import torch

from thereexists import patterns as tp
from thereexists.attention import by_rows, sparse_attention
from thereexists.patterns.parts import Part

BOUND = 2.0**-18  # float32, a softmax over a hundred keys in two orders


def cache(n, rows=1, kv=2):
    torch.manual_seed(0)
    return torch.randn(2, 4, rows, 8), torch.randn(2, kv, n, 8), torch.randn(2, kv, n, 8)


@pytest.mark.parametrize("how", [{}, {"sinks": torch.zeros(4)}, {"softcap": 3.0}, {"return_lse": True}])
@pytest.mark.parametrize("rows", [1, 3])
def test_keys_outside_the_rows_are_not_read(rows, how):
    """They are NaN, which no sum forgets; the same numbers come from a cache that has nothing else."""
    n, window = 1 << 14, 16
    q, k, v = cache(n, rows)
    poisoned = [x.clone().index_fill(2, torch.arange(n - window - rows), torch.nan) for x in (k, v)]
    out = sparse_attention(q, *poisoned, tp.window(n, window).as_causal(), **how)
    short = slice(-window - rows, None)
    m = window + rows
    want = sparse_attention(q, k[:, :, short], v[:, :, short], tp.window(m, window).as_causal(), **how)
    for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (out, want)), strict=True):
        assert (a - b).abs().max() <= BOUND


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("how", [{"sinks": torch.zeros(4)}, {"return_lse": True}], ids=str)
def test_entries_that_do_not_lie_side_by_side(how, which):
    """The stock kernel below reads whatever lies next to the first entry."""
    qkv = list(cache(40, rows=3))
    pattern = tp.dense(40)
    with torch.no_grad():
        want = sparse_attention(*qkv, pattern, **how)
        qkv[which] = qkv[which].mT.contiguous().mT
        out = sparse_attention(*qkv, pattern, **how)
    for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (out, want)), strict=True):
        assert (a - b).abs().max() <= BOUND


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_a_row_without_keys_beside_a_sink_has_gradients_of_0_twice(size):
    """Its logits are of no key; whatever they are, and however far from the sink, no 0 · ∞ comes of them."""
    torch.manual_seed(0)
    pad = torch.tensor([[True] * 5 + [False] * 3])  # the last row of a window of two has only padding before it
    q, k, v = (size * torch.randn(1, 1, m, 4) for m in (3, 8, 8))
    given = [x.requires_grad_() for x in (q, k, v, torch.zeros(1))]
    out = sparse_attention(*given[:3], tp.window(8, 1).as_causal(), sinks=given[3], key_padding_mask=pad)
    first = torch.autograd.grad(out.sum(), given, create_graph=True)
    second = torch.autograd.grad(sum(x.square().sum() for x in first), given)
    assert not out[:, :, -1].any()
    assert not first[0][:, :, -1].any()
    assert not second[0][:, :, -1].any()
    assert all(x.isfinite().all() for x in (*first, *second))


def test_a_stride_reads_its_class():
    n, stride = 4096, 64
    q, k, v = cache(n)
    step = tp.strided(n, stride).as_causal().union_step()
    keys = torch.from_numpy(step.rows(n - 1))
    others = torch.ones(n, dtype=torch.bool).index_fill(0, keys, False).nonzero()[:, 0]
    out = sparse_attention(q, *(x.clone().index_fill(2, others, torch.nan) for x in (k, v)), step)
    want = torch.nn.functional.scaled_dot_product_attention(q, k[:, :, keys], v[:, :, keys], enable_gqa=True)
    assert (out - want).abs().max() <= BOUND


def test_no_plan_and_no_count_of_the_whole_length(monkeypatch):
    """A new length each token: neither the pattern nor the call asks any part about all its rows."""
    asked = []
    for kind in _kinds(Part):
        for name in ("interval", "entries", "count"):
            if name in kind.__dict__:
                own = kind.__dict__[name]
                monkeypatch.setattr(
                    kind, name, lambda self, n, k, *rest, _own=own: asked.append(len(k)) or _own(self, n, k, *rest)
                )
    monkeypatch.setattr(by_rows, "_PAIRS", 1 << 20)
    for n in (1 << 12, 1 << 15):
        for pattern in (tp.window(n, 8), tp.block_local(n, 64), tp.strided(n, 512).union(), tp.longformer(n, 8, 1)):
            sparse_attention(*cache(n), pattern.as_causal())
    assert max(asked, default=0) <= 1


def _kinds(kind):
    return {kind}.union(*(_kinds(sub) for sub in kind.__subclasses__()))


def test_what_holds_itself_is_what_it_says():
    """The shortcut that spares counting the rows of a pattern, against the diagonal."""
    from tests.attention.cases import steps
    from thereexists.patterns.intervals import Documents, Meet
    from thereexists.patterns.parts import Band

    n = 12
    parts = {id(p): p for step in steps(n).values() for p in step.parts}
    parts |= {1: Documents([0, 5]), 2: Meet(Documents([0, 5]), Band(-2, 0)), 3: Meet(Band(1, 2), Band(-2, 2))}
    diagonal = torch.arange(n).numpy()
    for part in parts.values():
        assert not part.holds_itself(n) or part.contains(diagonal, diagonal).all(), part
    assert sum(part.holds_itself(n) for part in parts.values()) > 10
