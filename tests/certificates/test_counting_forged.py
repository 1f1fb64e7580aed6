"""Planted faults in networks that count, with every hash and digest redone: each must be noticed, or change nothing."""

import dataclasses
import itertools
import shutil

import numpy as np
import pytest
import torch

import thereexists as te
from tests.constructions.counting.groups import GROUPS
from tests.hostile import forge_certificate, forge_record, forge_weights, refused
from thereexists.certificates.automaton_certificate import certify_automaton
from thereexists.certificates.counting_rounding import least_lead
from thereexists.constructions.counting.groups import counters_of
from thereexists.constructions.counting.weights import CountingSizes, counting_network, scale_for
from thereexists.constructions.counting.witness import CountingWitness
from thereexists.core.errors import NotProved
from thereexists.reports import report
from thereexists.reports.explore import open_viewer

STAGE = "stages.counting"
N = 13
A = 3  # counters of mod7
FLAG, PLACE, SQUARE, VALUE, SUM = 2 * A + 1, 2 * A + 2, 2 * A + 3, 2 * A + 4, 3 * A + 4


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """An honest witness: numbers modulo 7, letters 0 to 3."""
    folder = tmp_path_factory.mktemp("honest") / "w"
    te.build(GROUPS["mod7"], n=N).save(folder)
    assert te.verify(folder).holds
    return folder


@pytest.fixture
def forged(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "w")


def key_off_by_one(w):
    w["E"][N, PLACE] += 1


def square_off_by_one(w):
    w["E"][N, SQUARE] += 1


def all_keys_off_by_one(w):
    k = torch.arange(N + 1) + 1
    w["E"][:, PLACE], w["E"][:, SQUARE] = k, k * k


def remainder_wrong_at_a_far_position(w):
    w["E"][N, VALUE] = (w["E"][N, VALUE] + 1) % 7


def remainder_of_another_letter(w):
    w["E"][:, [VALUE, VALUE + 1]] = w["E"][:, [VALUE + 1, VALUE]]


def value_too_large(w):
    w["E"][5, VALUE] = 4096


def value_not_whole(w):
    w["E"][5, VALUE] += 0.5


def flag_doubled(w):
    w["E"][0, FLAG] = 2.0


def flag_gone(w):
    w["E"][0, FLAG] = 0.0


def two_flags(w):
    w["E"][1, FLAG] = 1.0


def scale_too_small(w):
    w[f"{STAGE}.attention.W_Q"] /= 2


def scale_no_power(w):
    w[f"{STAGE}.attention.W_Q"] *= 1.5


def scale_of_one_head(w):
    w[f"{STAGE}.attention.W_Q"][1, 2] *= 2


def asks_for_another_count(w):
    part = w[f"{STAGE}.attention.W_Q"][1]
    part[[0, 1]] = part[[1, 0]]


def bias(w):
    w[f"{STAGE}.attention.b_Q"][1, 0, 0] = 1.0


def logits_in_block_1(w):
    w[f"{STAGE}.attention.W_K"][0, 0, 0, PLACE] = 1.0
    w[f"{STAGE}.attention.b_Q"][0, 0, 0] = 2.0**-20


def averages_another_row(w):
    w[f"{STAGE}.attention.W_V"][0, 0, 0, 0] = 0.0
    w[f"{STAGE}.attention.W_V"][0, 0, 0, 1] = 1.0


def half_a_mean(w):
    w[f"{STAGE}.attention.W_O"][0, 0, A, 0] = 0.5


def head_writes_twice(w):
    w[f"{STAGE}.attention.W_O"][1, 1, SUM, 0] = 2.0


def sees_the_next(w):
    w[f"{STAGE}.attention.pattern"][0, 4, 5] = True


def does_not_see_the_first(w):
    w[f"{STAGE}.attention.pattern"][0, 9, 0] = False


def first_block_works(w):
    w[f"{STAGE}.feed_forward.b_2"][0, SUM] = 1.0


def threshold(w):
    w[f"{STAGE}.feed_forward.b_1"][1, 9] -= 0.5


def bend(w):
    w[f"{STAGE}.feed_forward.W_2"][1, SUM + 1, 17] += 1.0


def unit_reads_positions(w):
    w[f"{STAGE}.feed_forward.W_1"][1, 3, PLACE] = 1.0


def writes_beside(w):
    w[f"{STAGE}.feed_forward.W_2"][1, 0, 3] = 1.0


def swapped_letters(w):
    w["embedding"][[3, 4]] = w["embedding"][[4, 3]]


def counted_twice(w):
    w["embedding"][3, 1] = 1.0
    w["embedding"][3, 0] = 1.0


def not_counted(w):
    w["embedding"][3] = 0.0


def letter_with_a_number(w):
    w["embedding"][3, SUM] = 1.0


def first_is_counted(w):
    w["embedding"][1, 0] = 1.0


def nothing_is_something(w):
    w["embedding"][0, 0] = 1.0


def starts_elsewhere(w):
    w["embedding"][1, SUM] = 1.0


def read_out(w):
    w["W_out"][[0, 1]] = w["W_out"][[1, 0]]


def read_out_of_sums(w):
    w["W_out"][0, SUM] = 1.0


def not_a_number(w):
    w["E"][4, PLACE] = float("nan")


FAULTS = {
    "k and k²": (key_off_by_one, square_off_by_one, all_keys_off_by_one),
    "same sum": (remainder_wrong_at_a_far_position, remainder_of_another_letter),
    "whole number": (value_too_large, value_not_whole),
    "flagged": (flag_doubled, flag_gone, two_flags),
    "gap: the certificate says": (scale_too_small,),
    "look-up": (scale_no_power, scale_of_one_head, asks_for_another_count, bias, head_writes_twice),
    "block 1": (logits_in_block_1, averages_another_row, half_a_mean, first_block_works),
    "the mask": (sees_the_next, does_not_see_the_first),
    "feed-forward": (threshold, bend, unit_reads_positions, writes_beside, letter_with_a_number, starts_elsewhere),
    "counted": (swapped_letters, not_counted),
    "embedding": (counted_twice, first_is_counted, nothing_is_something),
    "read-out": (read_out, read_out_of_sums),
    "finite": (not_a_number,),
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("named", "fault"), [(k, f) for k, faults in FAULTS.items() for f in faults])
def test_a_changed_weight_is_noticed(forged, named, fault):
    forge_weights(forged, fault)
    if fault is swapped_letters:  # letters 1 and 2: it counts the one as the other
        named = "same sum"
    refused(forged, named)
    with pytest.raises(te.ThereExistsError):
        te.load(forged)


def test_every_single_weight_matters_or_is_harmless(saved):
    """One random weight at a time: whatever the proof lets pass, the network is right on all strings of 3 symbols."""
    witness = te.load(saved)
    rng = np.random.default_rng(0)
    ids = np.array(list(itertools.product(range(4), repeat=3)))
    states = witness.automaton.run(ids)
    state, caught = witness.network.state_dict(), 0
    for _ in range(150):
        name = rng.choice([name for name in state if not name.endswith("pattern")])
        flat = state[name].view(-1)
        k = int(rng.integers(len(flat)))
        before = float(flat[k])
        flat[k] = before + float(rng.choice([1.0, -1.0, 0.5, 2048.0]))
        try:
            certify_automaton(witness.stored)
        except NotProved:
            caught += 1
        else:
            found = witness.states([["0123"[a] for a in row] for row in ids])
            assert np.array_equal(np.stack(found), states), (name, k)
        flat[k] = before
    assert caught > 140


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_scale_that_float32_loses_at_the_far_end(tmp_path, dtype):
    """Half the scale at n = 1,024: in float64 the right count leads by 2,046, in float32 by 508 only."""
    te.build(GROUPS["parity"], n=1024, dtype=dtype).save(tmp_path / "w")
    scale = scale_for(1024)
    forge_weights(tmp_path / "w", scale_too_small)
    forge_certificate(tmp_path / "w", lambda c: c.update(gap=least_lead("float64", 1024, scale / 2)))
    refused(tmp_path / "w", "dtypes: the certificate says")
    with pytest.raises(te.ThereExistsError, match=r"508.* only in float32"):
        te.load(tmp_path / "w", "float32")
    if dtype == "float64":  # said honestly, it is a witness for the dtype that has the bits
        forge_record(tmp_path / "w", lambda r: r["structure"].update(safe=["float64"]))
        te.certify(te.load(tmp_path / "w")).save(tmp_path / "w")
        assert te.verify(tmp_path / "w").holds


def test_counts_that_a_dtype_cannot_tell_apart_are_not_claimed(tmp_path):
    """The same network at n = 1,300 in float64: float32 is not among its dtypes, and saying so is refused."""
    witness = te.build(GROUPS["parity"], n=1300, dtype="float64")
    assert witness.certificate.dtypes == ["float64"]
    assert "cannot be told apart in float32" in witness.certificate.reasons["float32"]
    witness.save(tmp_path / "w")
    forge_record(tmp_path / "w", lambda r: r["structure"].update(safe=["float64", "float32"]))
    forge_certificate(tmp_path / "w", lambda c: c.update(dtypes=["float64", "float32"]))
    refused(tmp_path / "w")


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["counting"].update(n=14),
        lambda r: r["counting"].update(n=True),
        lambda r: r["counting"].update(more=1),
        lambda r: r.update(counting=[13]),
        lambda r: r["automaton"].update(start=1),
        lambda r: r["automaton"].update(accept=[0, 1]),
        lambda r: r["automaton"].update(alphabet=["1", "0", "2", "3"]),
        lambda r: r["automaton"]["table"].reverse(),
        lambda r: r["automaton"]["table"][0].reverse(),
        lambda r: r["automaton"].update(table=[[0, 0, 0, 0]] * 7),
        lambda r: r.update(construction="automaton"),
        lambda r: r.update(dtype="float64"),
        lambda r: r["structure"].update(safe=["float64"]),
        lambda r: r["structure"]["stages"]["counting"].update(pattern=False),
    ],
)
def test_a_forged_record_is_refused_in_words(forged, change):
    forge_record(forged, change)
    refused(forged)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: c.update(n=14), "n: the certificate says 14"),
        (lambda c: c.update(gap=4096.0), "gap"),
        (lambda c: c.update(blocks=1), "blocks"),
        (lambda c: c.update(assumptions=[]), "assumptions"),
        (lambda c: c.update(dtypes=["float64", "float32", "bfloat16"]), "dtypes: the certificate says"),
        (lambda c: c.update(automaton_sha256="0" * 64), "automaton sha256"),
    ],
)
def test_every_word_of_the_certificate_is_checked(forged, change, named):
    forge_certificate(forged, change)
    refused(forged, named)


def test_units_beyond_all_bounds(tmp_path):
    """1e300 times a sum, cleared by −1e300 of another unit: infinite before it is cleared."""
    te.build(GROUPS["mod7"], n=N, dtype="float64").save(tmp_path / "w")

    def change(w):
        w[f"{STAGE}.feed_forward.W_1"][1, 3:5, SUM] = 1e308
        w[f"{STAGE}.feed_forward.W_2"][1, SUM + 1, 3], w[f"{STAGE}.feed_forward.W_2"][1, SUM + 1, 4] = 1e10, -1e10

    forge_weights(tmp_path / "w", change)
    refused(tmp_path / "w", "feed-forward")


def test_letters_that_do_not_commute(tmp_path):
    """Another machine under the same weights: its letters permute, but not as those of a commutative group."""
    te.build(GROUPS["both at once"], n=9).save(tmp_path / "w")

    def change(r):
        r["automaton"]["table"] = [[1, 2, 3], [0, 3, 2], [3, 1, 1], [2, 0, 0]]

    forge_record(tmp_path / "w", change)
    refused(tmp_path / "w", "do not commute")


def test_what_is_written_belongs_to_the_symbol(tmp_path):
    """A transducer: two symbols that move alike and write differently, with their numbers exchanged."""
    machine = te.automata.mealy(lambda q, a: ((q + int(a)) % 2, q and "xyz"[int(a)]), states=[0, 1], alphabet="012")
    te.build(machine, n=9, construction="counting").save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    total = te.load(tmp_path / "w").network.shape()["h"] * 3 + 4

    def change(w):
        w["embedding"][[2, 4], total] = w["embedding"][[4, 2], total]

    forge_weights(tmp_path / "w", change)
    refused(tmp_path / "w", "the answer is not the automaton's")


def test_a_network_of_another_author(tmp_path):
    """A state that nothing reaches: the builder refuses it, the proof does not need it, and no page falls over it."""
    machine, accept = GROUPS["parity"], np.array([True, False, True])
    table = np.concatenate([machine.table, [[2, 2]]])
    more = te.automata.Automaton(("a", "b"), table, 0, accept, np.full((3, 2), -1), (), tuple("stu"), 3)
    sizes = CountingSizes(9, dataclasses.replace(counters_of(machine), automaton=more), scale_for(9))
    witness = CountingWitness(counting_network(sizes, torch.float32), more, 9)
    witness = dataclasses.replace(witness, made=certify_automaton(witness.stored))
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    assert te.load(tmp_path / "w").plan.parameters == witness.network.parameter_count
    assert "What is counted" in str(report(tmp_path / "w"))
    assert open_viewer(tmp_path / "w").about()["facts"]["counts of"] == "a"


def test_the_answer_before_the_first_symbol_counts_what_the_heads_fetch_there(tmp_path):
    """Parity with values 1 and 2 for even and odd counts, and a first token of number 1: there the sum is 2, "odd"."""
    te.build(GROUPS["parity"], n=8).save(tmp_path / "w")
    value, total = 2 * 1 + 4, 3 * 1 + 4
    answers = [[1, 0, 1], [1, 0, 1], [0, 1, 0]]  # of the sums 0, 1, 2: even, odd, accepted

    def change(w, first):
        w["E"][:, value] += 1
        w["embedding"][1, total] = first
        d, r = w["W_out"].shape[1], len(answers) - 1
        W_1, b_1, W_2, b_2 = torch.zeros(2, r, d), torch.zeros(2, r), torch.zeros(2, d, r), torch.zeros(2, d)
        table = torch.tensor(answers, dtype=torch.float32)
        W_1[1, :, total], b_1[1] = 1.0, -torch.arange(r, dtype=torch.float32)
        W_2[1, total + 1 :] = table.diff(dim=0).diff(dim=0, prepend=torch.zeros(1, 3)).T
        b_2[1, total + 1 :] = table[0]
        for name, weight in {"W_1": W_1, "b_1": b_1, "W_2": W_2, "b_2": b_2}.items():
            w[f"{STAGE}.feed_forward.{name}"] = weight.to(w["E"].dtype)

    def forge(first):
        forge_weights(tmp_path / "w", lambda w: change(w, first), lambda r: r["class"].update(r=2))

    forge(1.0)
    with pytest.raises(te.ThereExistsError, match="the answer at the first position is not the start"):
        te.load(tmp_path / "w")
    forge_weights(tmp_path / "w", lambda w: w["E"][:, value].sub_(1))
    forge(0.0)  # the same shift without the first token's number: right, and proved
    te.certify(te.load(tmp_path / "w")).save(tmp_path / "w")
    assert te.load(tmp_path / "w").accepts([""]) == [True]
    assert te.verify(tmp_path / "w").holds


@pytest.mark.parametrize("other", [2, 255])
def test_a_truth_value_is_0_or_1(forged, other):
    """2 is true and its negation in torch is true as well: such a mask would hide what it shows."""

    def spoil(w):
        name = f"{STAGE}.attention.pattern"
        w[name] = torch.where(w[name], other, 0).to(torch.uint8).view(torch.bool)

    forge_weights(forged, spoil)
    verdict = te.verify(forged)
    assert verdict.holds is False
    assert "neither 0 nor 1" in verdict.reasons[0]
    with pytest.raises(te.ThereExistsError, match=r"in the array stages\.counting\.attention\.pattern"):
        te.load(forged)
