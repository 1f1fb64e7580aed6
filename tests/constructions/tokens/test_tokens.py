"""Tables and data sets: exact recall, nothing invented, padding inert, every safe dtype, bad input named."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import thereexists as te
from thereexists.constructions.tokens.memorise import distinct_keys
from thereexists.core.dtypes import DTYPES
from thereexists.evaluate.recall import KeyIndex
from thereexists.functions.vocabulary import Digits


def build(table):
    return te.build(table, construction="compact")


# --- tables ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 4), st.integers(1, 4), st.floats(0.3, 1.0), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_a_random_table_is_exact_and_a_missing_row_finds_nothing(V, n, kept, seed):
    rng = np.random.default_rng(seed)
    everything = list(itertools.product(range(V), repeat=n))
    rows = [x for x in everything if rng.random() < kept] or everything[:1]
    outputs = [tuple(rng.integers(0, 6, n).tolist()) for _ in rows]
    witness = build(te.Table(rows, outputs))
    stored = {x: list(y) for x, y in zip(rows, outputs, strict=True)}
    known = [x for x in everything if set(x) <= set(witness.vocabulary.tokens)]
    assert witness(known, engine="dense") == [stored.get(x) for x in known]
    assert witness.network.depth <= 4


def test_sort_over_five_values_as_a_plain_table():
    witness = build(te.Table.of(sorted, range(5), 5))
    everything = list(itertools.product(range(5), repeat=5))
    ids = witness.vocabulary.encode(everything, 5, first=1, fill=0)
    wanted = witness.output_vocabulary.encode([sorted(x) for x in everything], 5, first=2, fill=1)
    for dtype in ("float32", "bfloat16"):
        assert np.array_equal(witness.to(dtype).run(ids, "dense"), wanted)


def test_sort_over_five_values_at_length_ten_by_counts():
    witness = build(te.Table.of(sorted, range(5), 10, symmetric=True))
    assert witness.network.depth == 2
    assert len(witness.inputs) == 1001
    rng = np.random.default_rng(0)
    for dtype in ("float64", "float32", "bfloat16"):
        shuffled = rng.permuted(witness.inputs, axis=1)
        assert np.array_equal(witness.to(dtype).run(shuffled, "dense"), witness.outputs)


def test_equal_outputs_share_units():
    witness = build(te.Table.of(lambda x: [x[0]] * 3, range(4), 3))
    assert witness.info["units"] == 9  # three values of the first token for each position; a bias carries the fourth


def test_a_symmetric_table_must_be_one():
    with pytest.raises(te.ThereExistsError, match="not symmetric"):
        te.Table([[0, 1], [1, 0]], [[0, 1], [1, 0]], symmetric=True)
    for function in (list, lambda x: [x[0]] * 3):
        with pytest.raises(te.ThereExistsError, match="not symmetric"):
            te.Table.of(function, range(3), 3, symmetric=True)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([], [], "no pairs"),
        ([[0], [0]], [[1], [2]], r"1 inputs have contradicting outputs: '0' \(pairs 0, 1\)"),
        ([[0, 1], [0]], [[1, 1], [1]], "row 1 has 1 and 1"),
        ([[0, 1]], [[1]], "row 0 has 2 and 1"),
        ([[]], [[]], "at least one token; pair 0"),
        ([[0.5]], [[0]], "a string or an integer; got 0.5"),
        ([[float("nan")]], [[0]], "got nan"),
        ([[True]], [[0]], "got True"),
        ([[0]], [[0], [1]], "got 1 and 2"),
        ("ab", [[0]], "list of sequences"),
        ([3], [[0]], "must be a list of tokens; got 3"),
    ],
)
def test_bad_tables_are_refused_with_the_reason(inputs, outputs, message):
    with pytest.raises(te.ThereExistsError, match=message):
        te.Table(inputs, outputs)


def test_a_table_needs_its_own_construction_and_a_function_that_works():
    table = te.Table([[0]], [[1]])
    assert te.build(table)([[0]]) == te.build(table, construction="compact")([[0]]) == [[1]]
    with pytest.raises(te.ThereExistsError, match="must be one of compact"):
        te.build(table, construction="faithful")
    with pytest.raises(te.ThereExistsError, match="'delta' is not an option of Stored, which takes no options"):
        te.build(table, delta=1 / 2)
    with pytest.raises(te.ThereExistsError, match="is the function symmetric"):
        te.Table.of(sorted, range(5), 12)
    with pytest.raises(te.ThereExistsError, match="failed: ZeroDivisionError"):
        te.Table.of(lambda x: [1 // v for v in x], range(2), 1)
    with pytest.raises(te.ThereExistsError, match="n ≥ 1"):
        te.Table.of(sorted, range(2), 0)
    with pytest.raises(te.ThereExistsError, match="'values' must be a list of tokens; got 5"):
        te.Table.of(sorted, 5, 2)  # pyright: ignore[reportArgumentType]


# --- data sets -------------------------------------------------------------------------------------------------------


def corpus(pairs=400, words=60, n=9, seed=0):
    rng = np.random.default_rng(seed)
    inputs = {tuple(f"w{i}" for i in rng.integers(0, words, rng.integers(1, n + 1))) for _ in range(pairs)}
    outputs = [[int(i) for i in rng.integers(0, 5000, rng.integers(0, n + 1))] for _ in inputs]
    return [list(x) for x in sorted(inputs)], outputs


@pytest.fixture(scope="module")
def memorised():
    inputs, outputs = corpus()
    return inputs, outputs, te.memorise(inputs, outputs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("engine", ["dense", "indexed"])
def test_every_pair_is_recalled_in_every_dtype(memorised, dtype, engine):
    inputs, outputs, witness = memorised
    assert witness.verdicts()[dtype].holds
    assert witness.to(dtype)(inputs, engine=engine) == outputs


def test_both_engines_give_the_same_numbers_on_anything(memorised):
    inputs, _, witness = memorised
    assert KeyIndex.of(witness.network) is not None  # the fast way is really taken
    rng = np.random.default_rng(1)
    ids = rng.integers(1, len(witness.vocabulary) + 1, (300, witness.n))
    ids[np.arange(witness.n) >= rng.integers(1, witness.n + 1, (300, 1))] = 0
    assert np.array_equal(witness.run(ids, "dense"), witness.run(ids, "indexed"))
    assert witness([["w1", "w1", "w1", "w1"]]) == [None]
    with pytest.raises(te.ThereExistsError, match="'engine' must be one of"):
        witness(inputs[:1], engine="magic")


def test_a_padded_position_influences_nobody(memorised):
    inputs, _, witness = memorised
    ids, mask = torch.from_numpy(witness.inputs[:50]), torch.from_numpy(witness.inputs[:50] > 0)
    random = torch.randint(1, len(witness.vocabulary) + 1, ids.shape, generator=torch.manual_seed(0))
    noise = torch.where(mask, ids, random)
    with torch.no_grad():
        assert torch.equal(witness.network(noise, mask), witness.network(ids, mask))
        assert not torch.equal(witness.network(noise, torch.ones_like(mask)), witness.network(ids, mask))
    longer = te.memorise(*corpus()[:2], n=witness.n + 5)
    assert longer(inputs[:20], engine="dense") == witness(inputs[:20])


def test_a_broken_key_is_caught_by_the_recall_check(memorised):
    _, _, witness = memorised
    copy = witness.to("float64")
    keys = copy.network.stages["recall"].feed_forward.W_1
    with torch.no_grad():
        keys[0, 7, [0, copy.info["signs"]]] = -1 - keys[0, 7, [0, copy.info["signs"]]]  # one bit of one key
    assert copy.exact("dense").sum() == len(copy.inputs) - 1


def test_save_load_verify(memorised, tmp_path):
    inputs, outputs, witness = memorised
    witness.to("bfloat16").save(tmp_path / "w")
    loaded = te.load(tmp_path / "w")
    assert loaded.network.dtype == torch.bfloat16
    assert loaded(inputs) == outputs
    assert te.load(tmp_path / "w", "float32").network.dtype == torch.float32
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds, verdict.reasons
    with pytest.raises(te.ThereExistsError, match="no distance to certify"):
        te.certify(loaded)


def test_contradictions_are_named_dropped_or_resolved():
    inputs, outputs = [["a"], ["b"], ["a"], ["b"]], [["x"], ["y"], ["z"], ["y"]]
    with pytest.raises(te.ThereExistsError, match=r"'a' \(lines 10, 30\)"):
        te.memorise(inputs, outputs, lines=[10, 20, 30, 40])
    for how, answer in (("drop", None), ("first", ["x"]), ("last", ["z"])):
        witness = te.memorise([*inputs, ["a", "a"]], [*outputs, ["w"]], on_conflict=how)
        assert witness([["a"], ["b"]]) == [answer, ["y"]]
        assert witness.info["conflicts"] == [{"input": ["a"], "pairs": [0, 2]}]
    with pytest.raises(te.ThereExistsError, match="'on_conflict' must be one of"):
        te.memorise(inputs, outputs, on_conflict="ignore")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([1], "must have one number in 'lines' each; got 2 and 1"),
        ([1, 2, 3], "got 2 and 3"),
        (5, "'lines' must be a list of whole numbers; got 5"),
        ("12", "'lines' must be a list"),
        ([1, "2"], "whole number from 0 .*; got '2'"),
        ([1, 10**150], "A number in 'lines' must be a whole number"),
    ],
)
def test_numbers_of_lines_that_are_none_are_refused(lines, message):
    with pytest.raises(te.ThereExistsError, match=message):
        te.memorise([["a"], ["b"]], [["x"], ["y"]], lines=lines)
    with pytest.raises(te.ThereExistsError, match=message):
        te.Table([[0], [1]], [[0], [1]], lines=lines)


def test_numbers_of_lines_may_be_an_array(tmp_path):
    inputs, outputs = [["a"], ["b"], ["a"]], [["x"], ["y"], ["z"]]
    witness = te.memorise(inputs, outputs, on_conflict="drop", lines=np.arange(1, 4))
    assert witness.info["conflicts"] == [{"input": ["a"], "lines": [1, 3]}]
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ([["w1", "unheard"]], "The token 'unheard' of sequence 0 is not in the vocabulary"),
        ([[]], "1 to 9 tokens; sequence 0 has 0"),
        ([["w1"], ["w1"] * 10], "sequence 1 has 10"),
        ([], "at least one sequence"),
        ([[None]], "got None"),
    ],
)
def test_bad_questions_are_refused(memorised, sequences, message):
    with pytest.raises(te.ThereExistsError, match=message):
        memorised[2](sequences)


def test_n_must_hold_the_longest_sequence():
    for n in (0, 1):
        with pytest.raises(te.ThereExistsError, match="'n' must be an integer of at least 2"):
            te.memorise([["a", "b"]], [["c"]], n=n)


def test_keys_are_distinct_and_a_collision_would_be_seen():
    x = np.array([[1, 2], [2, 1], [1, 0]])
    *_, keys, draws = distinct_keys(x, 2, seed=0)
    assert len(np.unique(keys, axis=0)) == 3
    assert draws >= 1
    with pytest.raises(te.ThereExistsError, match="tell the 2 inputs apart"):
        distinct_keys(np.array([[1, 2], [1, 2]]), 2, seed=0)


@given(st.integers(1, 10**9))
def test_digits_are_small_and_give_the_number_back(amount):
    digits = Digits.for_numbers(amount)
    assert digits.base <= 128
    numbers = np.array([0, amount // 2, amount - 1])
    assert np.array_equal(digits.join(digits.split(numbers).astype(float)), numbers)


def test_too_long_for_a_dtype_is_said():
    witness = build(te.Table.of(sorted, range(2), 16, symmetric=True))
    verdict = witness.verdicts()["bfloat16"]
    assert verdict.holds is False
    assert "average over 16 tokens" in verdict.reasons[0]
    with pytest.raises(te.ThereExistsError, match="not safe in bfloat16"):
        witness.to("bfloat16")
    assert witness.to("float32").exact("dense").all()
