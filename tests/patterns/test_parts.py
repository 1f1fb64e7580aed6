"""Every way of asking a pattern for its members must agree with the definition, ``contains``."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import thereexists as te
from tests.patterns.agreeing import assert_agree
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.patterns import REGISTRY, build, dilated, from_mask, longformer, random, strided
from thereexists.patterns.parts import Band, BlockBand, Explicit, Offsets, Rect, Residue, Xor
from thereexists.patterns.step import Step

SIZES = (1, 2, 3, 4, 7, 8, 9, 12, 16, 27)


def variants(name, n):
    try:
        p = build(name, n)
    except ThereExistsError:
        return []
    family = [p, p.as_causal()]
    return family + [q.union() for q in family if q.cycle > 1]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", REGISTRY)
def test_library_pattern_answers_agree_with_its_definition(name):
    rng = np.random.default_rng(0)
    for n in SIZES:
        for pattern in variants(name, n):
            for step in pattern.steps:
                assert_agree(step, rng)


def test_random_unions_of_parts_agree_with_their_definition():
    rng = np.random.default_rng(1)
    for _ in range(400):
        n = int(rng.integers(1, 20))
        some = np.flatnonzero(rng.random(n) < 0.3)
        choices = [
            Band(-int(rng.integers(0, 4)), int(rng.integers(0, 4))),
            Band(2, 3),
            BlockBand(
                int(rng.integers(1, 6)), -int(rng.integers(0, 2)), int(rng.integers(0, 2)), int(rng.integers(0, 3))
            ),
            Residue(int(rng.integers(1, 6))),
            Offsets((-5, -2, 0, 3)),
            Xor(int(rng.integers(1, 8))),
            Rect(some, range(0, n, 2)),
            Rect(range(n), some),
            random(n, degree=min(3, n - 1), seed=int(rng.integers(99))).steps[0].parts[0],
        ]
        picked = [choices[i] for i in rng.choice(len(choices), int(rng.integers(1, 4)), replace=False)]
        assert_agree(Step(n, tuple(picked), causal=bool(rng.integers(2))), rng)


def test_paper_definitions_of_strided_fixed_and_star():
    n, s = 12, 3
    k, j = np.mgrid[0:n, 0:n]
    strided_, fixed_, star_ = build("strided", n, stride=s), build("fixed", n, stride=s), build("star", n)
    assert np.array_equal(strided_.mask(), [abs(j - k) <= s, (j - k) % s == 0])
    assert np.array_equal(fixed_.mask(), [j // s == k // s, (j == k) | (j % s == s - 1)])
    ring = (k < n - 1) & (j < n - 1) & np.isin((j - k) % (n - 1), (0, 1, n - 2))
    assert np.array_equal(star_.mask()[0], ring | (k == n - 1) | (j == n - 1))


def test_random_rows_have_the_asked_degree_and_depend_on_the_seed_alone():
    for n, degree in ((50, 3), (50, 40), (5000, 12)):
        p = random(n, degree=degree, seed=7)
        assert (p.step(0).degrees == degree + 1).all()
        assert p.step(0).self_loops.all()
        again, other = random(n, degree=degree, seed=7), random(n, degree=degree, seed=8)
        assert (p.step(0).to_csr() != again.step(0).to_csr()).nnz == 0
        assert (p.step(0).to_csr() != other.step(0).to_csr()).nnz > 0


def test_configurations():
    p = strided(n=64, stride=8)
    assert (p.cycle, p.union().cycle, p.multihead(heads=8).heads) == (2, 1, (4, 4))
    assert np.array_equal(p.union().mask()[0], p.mask().any(0))
    assert p.multihead(heads=8).sequential().heads is None
    with pytest.raises(InvalidInput, match="at least one head"):
        p.multihead(heads=1)


def test_mask_mod_runs_on_torch_tensors_and_equals_the_mask():
    import torch

    n = 16
    q, kv = torch.arange(n)[:, None], torch.arange(n)[None, :]
    zero = torch.tensor(0)
    for name in REGISTRY:
        for pattern in (build(name, n), build(name, n).as_causal()):
            for l in range(pattern.cycle):
                got = pattern.mask_mod(l)(zero, zero, q, kv).expand(n, n)
                assert np.array_equal(got.numpy(), pattern.step(l).mask()), (name, l)
    many = strided(n=n, stride=4).multihead(heads=4)
    for head, l in enumerate((0, 0, 1, 1)):
        got = many.mask_mod()(zero, torch.tensor(head), q, kv)
        assert np.array_equal(got.numpy(), many.step(l).mask())


def test_flex_attention_accepts_the_mask_mod():
    from torch.nn.attention.flex_attention import create_block_mask

    for pattern in (strided(n=256, stride=16), random(256, degree=5), build("fixed", 256)):
        block = create_block_mask(pattern.mask_mod(0), None, None, 256, 256, device="cpu")
        assert block.shape == (1, 1, 256, 256)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_flex_attention_takes_the_mask_mod(backend):
    """In a process of its own: the suite's run-time type checks cannot be traced."""
    command = [sys.executable, Path(__file__).with_name("compiled_flex.py"), backend]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    names = ["both-multihead", "longformer", "bigbird", "packed"]
    assert done.stdout.split() == (names[:1] if backend == "aot_eager" else names)


def test_a_mask_mod_made_for_one_device_names_the_other():
    import torch

    on_meta = torch.zeros(1, device="meta")
    with pytest.raises(InvalidInput, match="made for cpu; got a tensor on meta"):
        longformer(8, 2, globals=[0, 5]).mask_mod(0, device="cpu")(0, 0, on_meta, on_meta)


def test_sizes_at_a_million_tokens_need_no_edges():
    n = 1_000_000
    assert build("window", n, window=2).connections == (5 * n - 6,)
    assert build("dense", n).connections == (n * n,)
    assert build("fixed", n, stride=1000).connections == (n * 1000, n * 1000 + n - 1000)
    assert build("strided", n, stride=1000).union().connections[0] == 2001 * n - 1_001_000 + 1_000 * n - 3 * n + 2_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: build("butterfly", 12), "power of two"),
        (lambda: build("axial", 10, columns=4), "multiple of 'columns'"),
        (lambda: build("bigbird", 10, block=4), "multiple of its block"),
        (lambda: build("bigbird", 16, block=4, random_blocks=4), "random_blocks"),
        (lambda: build("window", 0), "whole number from 1"),
        (lambda: build("window", 8, window=0), "positive integer"),
        (lambda: build("window", 8, stride=2), "no parameter 'stride'"),
        (lambda: build("widow", 8), "no pattern named"),
        (lambda: build("random", 8, degree=8), "degree"),
        (lambda: random(8, sparsity=1.5), "sparsity"),
        (lambda: build("longformer", 8, window=2, globals=[9]), "Global tokens"),
        (lambda: dilated(8, 2, []), "empty list"),
        (lambda: strided(n=8, stride=2).step(2), "Step 2 does not exist"),
        (lambda: strided(n=8, stride=2).rows(8), "Token 8 does not exist"),
        (lambda: from_mask(np.zeros((3, 3), bool)), "attends to no token"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ThereExistsError, match=message):
        make()


def test_listed_rows_stay_what_they_were_when_the_arrays_change():
    indptr, indices = np.array([0, 1, 2]), np.array([0, 1])
    step = Step(2, (Explicit(indptr, indices),))
    indices[:] = indices[::-1].copy()
    assert step.mask().tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint64])
def test_membership_is_the_same_in_every_type_of_whole_numbers(kind):
    k, j = np.divmod(np.arange(144), 12)
    for part in (Band(-3, 1), BlockBand(4, -1, 0, 2), Residue(3), Offsets((-8, -1, 0)), Xor(5)):
        for step in (Step(12, (part,)), Step(12, (part,), causal=True)):
            wanted = step.contains(k, j)
            assert (step.contains(k.astype(kind), j.astype(kind)) == wanted).all()
            seen = te.patterns.Pattern("one", (step, step), heads=(1, 1)).mask_mod(device="cpu")
            tensors = (torch.from_numpy(x.astype(kind)) for x in (k, j))
            assert (seen(0, torch.tensor(0), *tensors).numpy() == wanted).all()


def test_tokens_that_no_signed_number_holds_are_refused():
    with pytest.raises(InvalidInput, match="whole numbers below 2"):
        Step(12, (Band(-3, 1),)).contains(np.array([2**63 + 1], np.uint64), np.array([0]))
    with pytest.raises(InvalidInput, match="whole numbers below 2"):
        Step(12, (Band(-3, 1),)).contains(np.array([0.5]), np.array([0]))
