"""Planted faults, with every hash and digest redone: the verifier must notice, or be right to call it harmless."""

import copy
import dataclasses
import itertools
import re
import shutil

import numpy as np
import pytest
import torch

import thereexists as te
from tests.automata.machines import SMALL
from tests.hostile import forge_certificate, forge_record, forge_weights, refused
from thereexists.certificates.automaton_certificate import certify_automaton
from thereexists.core.errors import NotProved

STAGE = "stages.doubling"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """An honest witness: 13 symbols, 4 blocks."""
    folder = tmp_path_factory.mktemp("honest") / "w"
    te.build(SMALL["swaps"], n=13).save(folder)
    assert te.verify(folder).holds
    return folder


@pytest.fixture
def forged(saved, tmp_path):
    """A copy of it to be changed."""
    return shutil.copytree(saved, tmp_path / "w")


def and_threshold(w):
    w[f"{STAGE}.feed_forward.b_1"][2, 5] = -0.5


def offset(w):
    part = w[f"{STAGE}.attention.W_Q"]
    part[1] = part[0]  # block 2 looks 1 back, not 2


def transition(w):
    w["embedding"][[2, 3]] = w["embedding"][[3, 2]]


def gap_too_small(w):
    w[f"{STAGE}.attention.W_Q"] /= 256
    w[f"{STAGE}.attention.b_Q"] /= 256


def far_position(w):
    w["E"][13] = w["E"][12]  # the last position has the code of the one before


def far_position_scaled(w):
    w["E"][13] *= 0.5


def one_letter_more(w):
    w["embedding"][2, 0] = 1 - w["embedding"][2, 0]


def first_is_not_the_identity(w):
    w["embedding"][1] = w["embedding"][2]


def not_cleared(w):
    w[f"{STAGE}.feed_forward.W_2"][0, 3, -1] = 0.5


def constant(w):
    w[f"{STAGE}.feed_forward.b_2"][3, 0] = 1.0


def sees_symbols(w):
    w[f"{STAGE}.attention.W_K"][2, 0, 0, 1] = 1.0


def values_of_positions(w):
    w[f"{STAGE}.attention.W_V"][1, 0, 0, -1] = 1.0


def writes_into_own(w):
    w[f"{STAGE}.attention.W_O"][1, 0, 0, 0] = 1.0


def unit_reads_positions(w):
    w[f"{STAGE}.feed_forward.W_1"][0, 0, -1] = 1.0


def unit_reads_three(w):
    w[f"{STAGE}.feed_forward.W_1"][0, 0, :9] = 1.0


def product_moved(w):
    part = w[f"{STAGE}.feed_forward.W_2"][1]
    part[:, [0, 1]] = part[:, [1, 0]]


def read_out(w):
    w["W_out"][[0, 1]] = w["W_out"][[1, 0]]


def read_out_of_positions(w):
    w["W_out"][0, -1] = 1.0


def sink(w):
    w[f"{STAGE}.attention.b_Q"][3] *= 2  # everybody attends to position 0


def not_a_number(w):
    w["E"][4, 4] = float("nan")


def nothing_is_something(w):
    w["embedding"][0, 0] = 1.0


def lowest_bit(w):
    w[f"{STAGE}.attention.W_V"][0, 0, 0, 0] += 2.0**-23


FAULTS = {
    "feed-forward": (and_threshold, not_cleared, constant, unit_reads_positions, unit_reads_three, product_moved),
    "logits": (offset, gap_too_small, sees_symbols, sink),
    "values": (values_of_positions, writes_into_own, lowest_bit),
    "positions": (far_position, far_position_scaled),
    "embedding": (transition, one_letter_more, nothing_is_something),
    "first token": (first_is_not_the_identity,),
    "read-out": (read_out, read_out_of_positions),
    "finite": (not_a_number,),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("named", "fault"), [(k, f) for k, faults in FAULTS.items() for f in faults])
def test_a_changed_weight_is_noticed(forged, named, fault):
    forge_weights(forged, fault)
    refused(forged, named)
    with pytest.raises(te.ThereExistsError):
        te.load(forged)


def test_every_single_weight_matters_or_is_harmless(saved):
    """One random weight at a time: whatever the proof lets pass, the network is right on all strings of 4 symbols."""
    witness = te.load(saved)
    rng = np.random.default_rng(0)
    ids = np.array(list(itertools.product((0, 1), repeat=4)))
    states = witness.automaton.run(ids)
    passed = caught = 0
    state = witness.network.state_dict()
    for _ in range(150):
        name = rng.choice(list(state))
        flat = state[name].view(-1)
        k = int(rng.integers(len(flat)))
        before = float(flat[k])
        flat[k] = before + float(rng.choice([1.0, -1.0, 0.5, 2048.0]))
        try:
            certify_automaton(witness.stored)
        except NotProved:
            caught += 1
        else:
            passed += 1
            found = witness.states([["ab"[a] for a in row] for row in ids])
            assert np.array_equal(np.stack(found), states), (name, k)
        flat[k] = before
    assert caught > 100
    assert passed > 0  # such as what the values of rows that are 0 are multiplied by


def test_an_offset_off_by_one_in_the_last_block(saved, forged):
    """The fault is seen by strings of 9 symbols and more only."""
    moduli = te.load(saved).moduli

    def change(w):
        part = w[f"{STAGE}.attention.W_Q"][3, 0]
        start = part.shape[1] - 1 - sum(moduli)
        for m in moduli:
            part[:, start : start + m] = part[:, start : start + m].roll(1, dims=1)
            start += m

    forge_weights(forged, change)
    refused(forged, "block 4, logits: the position 8 before")


def test_a_gap_that_bfloat16_loses_at_the_far_end(saved, forged):
    """A lead of 801 at logits of 393,216: float32 has it, bfloat16 takes the two for equal."""
    code = sum(te.load(saved).moduli)
    K = len(te.load(saved).moduli)

    def change(w):
        w[f"{STAGE}.attention.W_Q"] *= 64
        w[f"{STAGE}.attention.b_Q"][:, 0, code] = K * 64 * 2048 - 801

    forge_weights(forged, change)
    forge_certificate(forged, lambda c: c.update(gap=801.0))
    refused(forged, "dtypes: the certificate says")
    with pytest.raises(te.ThereExistsError, match="more than 8 bits"):
        te.load(forged, "bfloat16")
    witness = te.load(forged)
    words = ["abba" * 3, "bbab" * 3]
    assert witness(words).tolist() == [True, False]
    wrong = copy.deepcopy(witness.network).to(torch.bfloat16)  # as if nobody had refused it
    wrong.safe = ("bfloat16",)
    states = dataclasses.replace(witness, network=wrong).states(words)
    assert any(not np.array_equal(a, b) for a, b in zip(states, witness.states(words), strict=True))
    # Said honestly, it is a witness for the dtypes that have the bits.
    forge_record(forged, lambda r: r["structure"].update(safe=["float64", "float32"]))
    te.certify(te.load(forged)).save(forged)
    assert te.verify(forged).holds
    assert "bfloat16" in te.load(forged).certificate.reasons


def test_a_weight_that_another_dtype_has_not(tmp_path):
    """1e300 times a row that is 0 is 0 in float64; in float32 the weight is infinite, and 0 · ∞ is no number."""
    te.build(SMALL["swaps"], n=5, dtype="float64").save(tmp_path / "w")
    fetched = te.load(tmp_path / "w").maps.own

    def change(w):
        w["W_out"][0, fetched] = 1e300

    forge_weights(tmp_path / "w", change)
    refused(tmp_path / "w", "dtypes: the certificate says")
    with pytest.raises(te.ThereExistsError, match="beyond the range of float32"):
        te.load(tmp_path / "w", "float32")
    assert te.load(tmp_path / "w")("abba")


def test_rows_without_end_are_refused_before_they_are_listed(forged):
    """A record that names thousands of maps, over weights that have no room for them."""
    states = len(te.load(forged).maps.targets)
    some = list(itertools.islice(itertools.product(range(states), repeat=states), 4096))
    dead = te.load(forged).automaton.dead
    labels = [[*row[:dead], -1, *row[dead:]] for row in some]
    forge_record(forged, lambda r: r["maps"].update(kind="monoid", labels=labels))
    refused(forged, "rows")


def test_a_swapped_transition_of_the_record(forged):
    """The table of the record says otherwise than the weights, and the pattern says otherwise than the table."""

    def swap(r):
        table = r["automaton"]["table"]
        table[0] = table[0][::-1]

    forge_record(forged, swap)
    refused(forged, "origin: the automaton is not the minimal one")


def test_the_flags_of_a_pattern_are_said(tmp_path):
    """An author may choose them: 'ab' with re.IGNORECASE accepts AB, and 'a #b' with re.VERBOSE accepts a."""
    for pattern, flags, word in (("ab", re.IGNORECASE, "AB"), ("a #b", re.VERBOSE | re.IGNORECASE, "A")):
        machine = te.automata.regex(pattern, "abAB# ", flags)
        assert machine.accepts(word)
        assert not re.fullmatch(pattern, word)
        witness = te.build(machine, n=4)
        folder = tmp_path / str(int(flags))
        witness.save(folder)
        told = next(check.detail for check in te.verify(folder).evidence if check.name == "origin")
        names = " | ".join(f"re.{flag.name}" for flag in re.RegexFlag if flag & flags)
        assert f"{pattern!r} with {names} over its alphabet" in told
    forge_record(folder, lambda r: r["automaton"]["origin"].update(flags=int(flags) | 1 << 20))
    refused(folder, "'flags' may hold")


def test_weights_and_table_of_another_language_under_the_same_pattern(forged, tmp_path):
    other = te.build(te.automata.regex("(ab|ba)*a?", "ab"), n=13)
    other.save(tmp_path / "o")

    def lie(r):
        r["automaton"]["origin"]["pattern"] = "(ab|ba)*"

    forge_record(tmp_path / "o", lie)
    refused(tmp_path / "o", "origin: the automaton is not the minimal one")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: c.update(n=14), "n: the certificate says 14"),
        (lambda c: c.update(dtypes=["float64"]), "dtypes: the certificate says"),
        (lambda c: c.update(gap=4096.0), "gap"),
        (lambda c: c.update(assumptions=[]), "assumptions"),
        (lambda c: c.update(kind="approximate"), "kind"),
        (lambda c: c.update(automaton_sha256="0" * 64), "automaton sha256"),
        (lambda c: c.update(weights_sha256="0" * 64), "weights"),
        (lambda c: c.update(about="program"), "must not hold 'about'"),
        (lambda c: c.update(more=1), "must not hold 'more'"),
        (lambda c: c.update(states=True), "wrong type"),
        (lambda c: c.update(dtypes=["float64", "int8"]), "wrong type"),
    ],
)
def test_every_word_of_the_certificate_is_checked(forged, change, named):
    forge_certificate(forged, change)
    refused(forged, named)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["doubling"].update(n=14),
        lambda r: r["doubling"].update(n=True),
        lambda r: r["doubling"].update(moduli=[3, 6]),
        lambda r: r["doubling"].update(moduli=[]),
        lambda r: r["doubling"].update(more=1),
        lambda r: r["maps"].update(kind="other"),
        lambda r: r["maps"]["labels"].reverse(),
        lambda r: r["maps"]["labels"].append(r["maps"]["labels"][0]),
        lambda r: r["maps"]["targets"].reverse(),
        lambda r: r["maps"]["targets"].append([99, -1]),
        lambda r: r["automaton"].update(start=1),
        lambda r: r["automaton"].update(accept=[0, 1]),
        lambda r: r["automaton"].update(accept=[0, 0]),
        lambda r: r["automaton"].update(alphabet=["b", "a"]),
        lambda r: r["automaton"].update(alphabet=["a"]),
        lambda r: r["automaton"].update(table=[[0, 0]]),
        lambda r: r["automaton"].update(table="no"),
        lambda r: r["automaton"]["table"][0].append(1),
        lambda r: r["automaton"].update(before=3),
        lambda r: r["automaton"].update(names=[1, 2, 3, 4]),
        lambda r: r["automaton"]["origin"].update(flags="x"),
        lambda r: r["automaton"].pop("origin"),
        lambda r: r.update(dtype="float64"),
        lambda r: r["structure"].update(safe=["float64"]),
        lambda r: r.update(program={}),
    ],
)
def test_a_forged_record_is_refused_in_words(forged, change):
    forge_record(forged, change)
    verdict = refused(forged)
    assert "cannot be checked" not in " ".join(verdict.reasons)


def test_the_moduli_must_tell_positions_apart(tmp_path):
    """Moduli that are not coprime, and weights to match: two positions look the same."""
    from thereexists.constructions.automata.maps import choose_maps
    from thereexists.constructions.automata.weights import Sizes, network_of
    from thereexists.constructions.automata.witness import AutomatonWitness

    sizes = Sizes(13, choose_maps(SMALL["swaps"], "auto"), (4, 6), 4, False)
    network = network_of(sizes, torch.float32)
    with pytest.raises(NotProved, match="logits"):
        certify_automaton(AutomatonWitness(network, sizes.maps, 13, (4, 6)).stored)
    too_few = Sizes(13, sizes.maps, (3, 4, 5), 3, False)
    with pytest.raises(NotProved, match="3 blocks reach 8 symbols back"):
        certify_automaton(AutomatonWitness(network_of(too_few, torch.float32), sizes.maps, 13, (3, 4, 5)).stored)
