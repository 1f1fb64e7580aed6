"""Programs over the reals as stock checkpoints: plain Llama keeps the bound, and the bound is worth saying."""

import copy
import random

import numpy as np
import pytest
import torch

import thereexists as te
from thereexists import program as P
from thereexists.certificates.program_numpy import run_reals
from thereexists.core.errors import CannotBuild, ThereExistsError

pytest.importorskip("transformers")
from tests.certificates.llama.reals.real_programs import (
    checkpoint_of,
    claim_of,
    drawn,
    everything,
    model_of,
    operations,
)
from thereexists.certificates.llama.reals.claim import real_claim
from thereexists.certificates.llama.reals.verify import drawn as inputs
from thereexists.certificates.llama.reals.verify import far_off, real_proofs

WORST = 4000  # how many times what is seen a bound in float32 may be, where nothing else than rounding is in it


def ratios(program, seed=0):
    """In each dtype: the bound over what is seen, which it must keep, on all lengths of random inputs."""
    claim, rng = claim_of(program), np.random.default_rng(seed)
    found, reasons = real_proofs(checkpoint_of(claim))
    X, ratio = inputs(claim, rng, 64), {}
    for dtype, proof in found.items():
        off = far_off(claim, model_of(claim, dtype), X)
        assert off <= proof.bound, (dtype, off, proof.bound)
        ratio[dtype] = proof.bound / max(off, 2.0**-26)
    return ratio, reasons


def test_every_operation_at_once_keeps_its_bound():
    program = everything()
    found, reasons = ratios(program)
    assert "float32" in found, reasons
    x = np.random.default_rng(1).uniform(-1, 1, (4, 5, 2))
    record = claim_of(program).program
    assert np.abs(run_reals(record, x) - P.interpret(program, x)).max() < 0.1  # functions there, splines here


@pytest.mark.parametrize("ends", [(0.0, 1e9), (-1e30, 0.25), (-1e9, 1e9), (-2.0, 2.0), (-1.0, 1.0)])
def test_an_end_of_clip_may_lie_far_outside(ends):
    """It is never reached, and no weight has to hold it."""
    x = P.tokens(n=2, low=-1.0, high=1.0)
    found, reasons = ratios(P.clip(x, *ends))
    assert found.keys() == {"float32", "bfloat16"}, reasons
    near = real_proofs(checkpoint_of(claim_of(P.clip(x, *np.clip(ends, -2, 2).tolist()))))[0]
    far = real_proofs(checkpoint_of(claim_of(P.clip(x, *ends))))[0]
    assert {name: proof.bound for name, proof in far.items()} == {name: proof.bound for name, proof in near.items()}


@pytest.mark.parametrize("ends", [(3.0, 1e9), (-1e9, -3.0), (1.5, 1e9)])
def test_a_clip_that_is_constant(ends):
    x = P.tokens(n=3, low=-1.0, high=1.0)
    found, reasons = ratios(x + 0.125 * P.clip(x, *ends))
    assert "float32" in found, reasons


@pytest.mark.slow
@pytest.mark.parametrize("name", operations())
def test_every_operation(name):
    found, reasons = ratios(operations()[name])
    assert "float32" in found, reasons
    assert found["float32"] < WORST


@pytest.mark.slow
def test_random_programs_keep_their_bounds():
    rng, done = random.Random(5), 0
    for seed in range(150):
        try:
            program = drawn(rng)
            claim_of(program)
        except ThereExistsError:
            continue  # a range that no operation takes
        done += "float32" in ratios(program, seed)[0]
    assert done > 100


@pytest.mark.slow
def test_a_hundred_tokens_and_all_their_lengths():
    claim = claim_of(P.cummax(P.tokens(n=100)))
    found, _ = real_proofs(checkpoint_of(claim))
    model, X = model_of(claim, "float32"), inputs(claim, np.random.default_rng(0), 4)
    wanted = run_reals(claim.program, X)
    for length in (1, 2, 63, 64, 65, 99):
        E = model.model.embed_tokens.weight[:length].expand(4, -1, -1).clone()
        E[..., claim.network.inputs] = torch.from_numpy(X[:, :length]).float()
        y = model(inputs_embeds=E).logits[..., :1].double().numpy()
        assert np.abs(y - wanted[:, :length]).max() <= found["float32"].bound


x = P.tokens(n=4)
REFUSED = {
    "'sort' is taken over all tokens": P.sort(x),
    "'mean' is taken over all tokens": P.mean(x),
    "'flip' looks at later tokens": P.flip(x),
    "'roll' looks at later tokens": P.roll(x, 1),
    "'soft_largest' weighs tokens by data": P.soft_largest(x, sharpness=10.0),
    "only its author's word": P.apply(lambda v: v**2, x, curvature=2.0),
    "as large as": 2.0**60 * x,
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_run_is_refused_in_a_sentence(why):
    with pytest.raises(CannotBuild, match=why) as refused:
        claim_of(REFUSED[why])
    assert str(refused.value).count(". ") == 0


def test_a_dtype_without_a_useful_bound_is_not_claimed():
    x = P.tokens(n=4, low=0.0, high=1.0)
    found, reasons = real_proofs(checkpoint_of(claim_of(P.clip(1000 * (x - 0.5), 0.0, 1.0))))
    assert list(found) == ["float32"]
    assert "the middle of the range" in reasons["bfloat16"]


def test_a_witness_of_a_program_over_reals_says_its_sizes():
    from thereexists.exports import plan_llama

    planned = plan_llama(te.build(P.cumsum(P.tokens(n=4)), dtypes=("float64",)))
    assert (planned["layers"], planned["d_model"], planned["positions"]) == (3, 64, 4)


@pytest.mark.parametrize("flag", [[1, 1, 1], [0, 0, 0], [0, 1, 0]])
def test_a_forged_range_of_where_is_in_the_bound(flag):
    """Planted: the file's own ends of `where` cut off half of its values. The bound covers what they make of it."""
    x = P.tokens(n=3, low=-1.0, high=1.0)
    record = copy.deepcopy(claim_of(P.where(np.array(flag, float)[:, None], x, 2 * x)).program)
    settings = next(node["settings"] for node in record["nodes"] if node["operation"] == "where")
    settings.update(bottom=0.25, height=0.5)
    claim = real_claim(record)
    found, _ = real_proofs(checkpoint_of(claim))
    off = far_off(claim, model_of(claim, "float32"), inputs(claim, np.random.default_rng(0), 64))
    assert off > 0.5
    assert "float32" not in found or found["float32"].bound >= off
