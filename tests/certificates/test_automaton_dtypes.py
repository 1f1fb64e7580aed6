"""What is right over the real numbers and wrong in a dtype: the certificate must not name that dtype."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

import thereexists as te
from tests.automata.machines import SMALL
from tests.certificates.automaton_mutations import (
    forged_at_random,
    more_units,
    ways_it_is_wrong,
    weights_of,
    wider_heads,
    with_weights,
    wrong_in,
)
from tests.hostile import forge_certificate, forge_record
from thereexists.certificates.automaton_certificate import certify_automaton
from thereexists.certificates.automaton_proof import Proof, _Rows
from thereexists.certificates.verify_automaton import _trial
from thereexists.core.dtypes import DTYPES
from thereexists.core.errors import NotProved
from thereexists.core.verdict import Verdict


@pytest.fixture(scope="module")
def rare():
    """A language of one word: random strings never come to most of its rows."""
    return te.build(te.automata.regex("open", alphabet="enopx"), n=8)


def row_of(witness, word):
    """The fetched row (start, state after ``word``), and the own rows that become it."""
    to = witness.automaton.states(word)[-1]
    k = witness.maps.state_labels.tolist().index([witness.automaton.start, to])
    return k, np.flatnonzero(witness.maps.projection() == k)


def written_by_nothing(witness, big, small, copies):
    """W_V = 2^big and W_O = 2^small in as many head dimensions as add up to 1, in one rare row."""
    w, (k, own) = weights_of(witness), row_of(witness, "op")
    m = wider_heads(w, copies)
    w["W_V"] *= 2.0**big
    w["W_O"] *= 2.0**-big
    w["W_V"][:, 0, k] = 0
    w["W_O"][:, 0, :, k] = 0
    for o in own:
        w["W_V"][:, 0, m:, o] = 2.0**big
    w["W_O"][:, 0, witness.maps.own + k, m:] = 2.0**small
    return w


def units_of_nothing(witness, big, small, copies):
    """The same in the feed-forward half: units of 2^big, written with 2^small, clear one rare row."""
    w, row = weights_of(witness), int(row_of(witness, "op")[1][0])
    clears = (w["W_1"][0, :, row] == 1) & (w["b_1"][0] == 0)
    for name, power in (("W_1", big - 1), ("b_1", big - 1), ("W_2", 1 - big)):
        w[name] *= 2.0**power
    w["W_2"][:, row, clears] = 0
    r = more_units(w, copies)
    w["W_1"][:, r:, row] = 2.0**big
    w["W_2"][:, row, r:] = -(2.0**small)
    return w


@pytest.mark.parametrize(
    ("forger", "dtype", "big", "small"),
    [
        (written_by_nothing, "bfloat16", 127, -134),
        (written_by_nothing, "float16", 15, -25),
        (units_of_nothing, "bfloat16", 127, -134),
    ],
)
def test_weights_that_a_dtype_takes_for_0(rare, forger, dtype, big, small):
    """128 products of 2^127 and 2^−134 are 1, and 2^−134 is 0 in bfloat16: so is the row that they write."""
    forged = with_weights(rare, forger(rare, big, small, 2 ** -(big + small)))
    word = [rare.automaton.word("open")]
    assert wrong_in(forged, dtype, word)
    assert not wrong_in(forged, "float64", word)
    found = certify_automaton(forged.stored)
    assert dtype not in found.dtypes
    assert "beyond the range" in found.reasons[dtype]


def test_a_folder_that_claims_such_a_dtype_is_refused(rare, tmp_path):
    forged = with_weights(rare, written_by_nothing(rare, 127, -134, 128))
    forged.network.safe = DTYPES[:3]
    dataclasses.replace(forged, made=certify_automaton(forged.stored)).save(tmp_path / "w")
    forge_record(tmp_path / "w", lambda r: r["structure"].update(safe=list(DTYPES[:3])))
    float16 = "weights: sums up to 1.70141e+38 in steps of 1.32923e+36 are beyond the range of float16"
    forge_certificate(tmp_path / "w", lambda c: c.update(dtypes=list(DTYPES[:3]), reasons={"float16": float16}))
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds is False
    assert "dtypes: the certificate says" in " ".join(verdict.reasons)
    with pytest.raises(te.ThereExistsError, match="beyond the range of bfloat16"):
        te.load(tmp_path / "w", "bfloat16")


def test_the_trial_comes_to_rows_that_random_strings_do_not_meet(rare):
    """As if the proof had let it pass: the one word of the language is among the strings that are tried."""
    forged = with_weights(rare, written_by_nothing(rare, 127, -134, 128))
    fine = Verdict(True, ())
    claimed = Proof(1024.0, 3, {name: Verdict(name != "float16", ()) for name in DTYPES})
    forged.network.safe = DTYPES
    assert not _trial(forged.stored, claimed).passed
    assert _trial(rare.stored, dataclasses.replace(claimed, dtypes=dict.fromkeys(DTYPES, fine))).passed


def test_weights_that_float32_rounds(rare):
    """2^−127 − 3·2^−150, and 2^−150 thrice: 2^−150 is no number of float32."""
    k, _ = row_of(rare, "op")
    w = written_by_nothing(rare, 127, -150, 3)
    w["W_V"][:, 0, k] = w["W_V"][:, 0, -1]
    w["W_O"][:, 0, rare.maps.own + k, k] = 2.0**-127 - 3 * 2.0**-150
    forged = with_weights(rare, w)
    assert not wrong_in(forged, "float64", [rare.automaton.word("open")])
    assert set(certify_automaton(forged.stored).dtypes) == {"float64"}


def test_a_subnormal_weight_is_0_on_some_machines(rare):
    """W_V = 2^127 and W_O = 2^−127: float32 has both, and a machine that flushes subnormals has one."""
    forged = with_weights(rare, written_by_nothing(rare, 127, -127, 1))
    found = certify_automaton(forged.stored)
    assert set(found.dtypes) == {"float64"}
    flushes = torch.set_flush_denormal(True)
    try:
        assert not flushes or wrong_in(forged, "float32", [rare.automaton.word("open")])
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("name", ["W_Q", "W_K", "W_V", "W_out"])
def test_a_weight_that_meets_nothing_but_0(rare, name):
    """Whatever it is multiplied with, it must be a number of the dtype: 0 · ∞ is none."""
    for value, lost in ((70000.0, {"float16", "bfloat16"}), (1 + 2.0**-9, {"bfloat16"}), (2.0**-130, set(DTYPES[1:]))):
        w = weights_of(rare)
        w[name][..., rare.maps.own] = value  # a fetched row, 0 when it is read
        found = certify_automaton(with_weights(rare, w).stored)
        assert set(DTYPES) - set(found.dtypes) == lost


def many_leaders(witness_dtype="float64"):
    """Of 521 keys the first 512 are one tile of torch's kernel; in it 99 equal logits lead, whose values are 2^126."""
    from thereexists.constructions.automata.maps import choose_maps
    from thereexists.constructions.automata.weights import Sizes, network_of
    from thereexists.constructions.automata.witness import AutomatonWitness

    n, M = 520, 631
    sizes = Sizes(n, choose_maps(SMALL["swaps"], "auto"), (2, M), 10, False)
    witness = AutomatonWitness(network_of(sizes, torch.float32), sizes.maps, n, sizes.moduli)
    w, code = weights_of(witness), sizes.maps.own + sizes.maps.fetched + 2
    w["W_V"] *= 2.0**126
    w["W_O"] *= 2.0**-126
    w["W_Q"][0], w["b_Q"][0] = 0, 0
    r = np.arange(M)
    for back, logit in [(1, 4096.0), *((k, 2048.0) for k in range(2, 101))]:
        w["W_Q"][0, 0, 2 + (r - back) % M, code + r] = logit
    w["b_Q"][0, 0, M + 2] = 1024.0  # position 0
    return with_weights(witness, w, witness_dtype)


def test_sums_over_some_of_the_keys_are_finite_too():
    forged = many_leaders()
    word = np.tile(SMALL["swaps"].word("abba"), 130)[None]
    assert wrong_in(forged, "float32", word)  # ∞ · exp(−2048)
    found = certify_automaton(forged.stored)
    assert not {"float32", "bfloat16"} & set(found.dtypes)
    assert "some of the keys" in found.reasons["float32"]


def test_rows_that_are_too_many_to_be_numbered_in_pairs(rare):
    """Pairs of rows in pairs of groups have numbers below d^4, which 64 bits must hold."""
    moduli = (997,) * 40
    with pytest.raises(NotProved, match="at most 32,768 are understood"):
        _Rows.of(rare.maps, moduli, rare.maps.own + rare.maps.fetched + sum(moduli) + 1)


def test_logits_near_the_largest_number(rare):
    """Kernels that compute with powers of 2 multiply a logit by log2 e."""
    w = weights_of(rare)
    w["W_Q"] *= 2.0**114  # 2^125, and several of them
    w["b_Q"] *= 2.0**114
    found = certify_automaton(with_weights(rare, w).stored)
    assert "some of the keys" in found.reasons["float32"]


def test_a_random_forger_never_gets_a_dtype_in_which_it_is_wrong():
    """Changes that keep the function over the real numbers; all strings of six symbols, and four ways to run each."""
    rng, witness = np.random.default_rng(7), te.build(SMALL["swaps"], n=6)
    torch.manual_seed(7)
    ids = np.array(list(itertools.product((0, 1), repeat=6)))
    claims = refusals = 0
    for _ in range(40):
        forged, done = forged_at_random(rng, witness)
        try:
            dtypes = certify_automaton(forged.stored).dtypes
        except NotProved:
            dtypes = []
        for name in dtypes:
            assert ways_it_is_wrong(forged, name, ids) == [], (done, name)
        claims, refusals = claims + len(dtypes), refusals + len(DTYPES) - len(dtypes)
    assert claims > 20
    assert refusals > 20


@pytest.mark.sampled(4)
@pytest.mark.parametrize("saturating", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_honest_networks_hold_in_all_dtypes(name, saturating):
    found = te.build(SMALL[name], n=20, saturating=saturating, construction="doubling").certificate
    assert found.dtypes == list(DTYPES), found.reasons
