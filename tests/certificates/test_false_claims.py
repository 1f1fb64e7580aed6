"""False claims about dtypes and symmetry, every hash redone: ``verify`` accepts none, and no loading believes them."""

import copy
import dataclasses
import itertools

import numpy as np
import pytest
import torch

import thereexists as te
from tests.certificates.compact_mutations import (
    added_and_taken_away,
    dead_unit,
    deep_stage,
    forged,
    mutate,
    permuted_rows,
    split_unit,
)
from tests.hostile import forge_record, forge_weights
from thereexists.certificates import verify_tokens
from thereexists.certificates.safe_dtypes import verdicts
from thereexists.core.dtypes import DTYPES
from thereexists.functions.targets import builtin


@pytest.fixture(scope="module")
def sort():
    return te.build(builtin("sort", n=2), delta=1 / 4, construction="compact")


@pytest.fixture(scope="module")
def memory():
    return te.memorise([["a", "dog"], ["a", "cat"], ["no"]], [["pes"], ["kočka"], ["ne"]])


def failed(verdict):
    return [check.name for check in verdict.evidence if not check.passed]


def answers(network, X, dtype):
    """The plain run in a dtype, whatever is proved of it."""
    network = copy.deepcopy(network)
    network.safe = DTYPES
    network = network.to(getattr(torch, dtype))
    X = torch.from_numpy(X)
    with torch.no_grad():
        found = network(X.to(network.dtype)) if X.is_floating_point() else network(X, X > 0)
    return found.double().numpy()


def off_the_ramps(grid):
    """Every cell: its centre, its lower corner, its last point before the ramp."""
    index = grid.cube(np.arange(grid.cells))
    lower = np.array(grid.origin) + index * np.array(grid.step)
    last = np.nextafter(lower + np.array(grid.step) - grid.ramp, -np.inf)
    return np.concatenate([grid.centre(index), lower, np.where(index == grid.N - 1, lower, last)])


# --- dtypes of token witnesses ---------------------------------------------------------------------------------------


def test_a_constant_added_and_taken_away_makes_a_memory_unsafe(memory, tmp_path):
    network = added_and_taken_away(memory.network, 512.0, "codes", "select")
    claimed = dataclasses.replace(memory, network=network)
    assert claimed.exact("dense").all()  # in float32, as stored
    low = memory.digits.join(answers(network, memory.inputs, "bfloat16"))
    assert not (low == memory.outputs).all(axis=1).any()
    claimed.save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds is False
    assert "dtypes" in failed(verdict)
    for dtype in (None, "bfloat16"):
        with pytest.raises(te.ThereExistsError, match="undecided"):
            te.load(tmp_path / "w", dtype)


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_constant_added_and_taken_away_makes_a_table_unsafe(symmetric, tmp_path):
    table = te.build(te.Table.of(sorted, range(3), 3, symmetric=symmetric), construction="compact")
    claimed = dataclasses.replace(table, network=added_and_taken_away(table.network, 512.0, "gather", "recall"))
    assert claimed.exact("dense").all()
    claimed.save(tmp_path / "w")
    assert "dtypes" in failed(te.verify(tmp_path / "w"))
    with pytest.raises(te.ThereExistsError, match="not safe in bfloat16"):
        te.load(tmp_path / "w", "bfloat16")


def test_slots_of_shorter_inputs_are_not_proved(tmp_path):
    table = te.build(te.Table.of(sorted, range(3), 3), construction="compact")
    table.save(tmp_path / "w")
    claimed = {"fixed": False, "purpose": "memorise"}
    forge_weights(tmp_path / "w", record=lambda r: r.update(tokens=r["tokens"] | claimed, info={}))
    assert "dtypes" in failed(te.verify(tmp_path / "w"))


# --- dtypes of functions of real numbers -----------------------------------------------------------------------------


def claim(witness, network, folder, **sizes):
    """Certified and saved as an honest witness would be, with the old claim about dtypes."""
    network.safe = witness.network.safe
    made = forged(witness, network, **sizes)
    made.save(folder)
    te.certify(made, opinions=1).save(folder)
    return te.verify(folder, opinions=1)


FAULTS = {
    "a unit split into 2^30 and the rest": (lambda network: split_unit(network, "recall", 0, 2.0**30), {}),
    "layers behind the first of a stage": (lambda network: deep_stage(network, 2.0**30), {"max_width": 10**6}),
    "a unit that never fires and overflows": (lambda network: dead_unit(network, "recall", 1e100), {}),
    "a constant added and taken away": (lambda net: added_and_taken_away(net, 2.0**30, "cells", "recall"), {}),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_float32_claim_follows_from_all_weights(sort, fault, tmp_path):
    change, sizes = FAULTS[fault]
    network = change(sort.network)
    X = off_the_ramps(sort.grid)
    exact = answers(network, X, "float64")
    assert np.array_equal(exact, sort.run(X))
    assert not (np.abs(answers(network, X, "float32") - exact) <= 0.1).all()
    verdict = claim(sort, network, tmp_path / "w", **sizes)
    assert verdict.holds is False
    assert "dtypes" in failed(verdict)
    loaded = te.load(tmp_path / "w")
    with pytest.raises(te.ThereExistsError, match="not safe in float32"):
        loaded.to("float32")
    with pytest.raises(te.ThereExistsError, match="not safe in float32"):  # behind the witness's back
        loaded.network.to(torch.float32)(torch.zeros(1, 2, 1))


def test_a_maximal_width_does_not_lift_the_depth(sort, tmp_path):
    verdict = claim(sort, deep_stage(sort.network, 0.0), tmp_path / "w", max_width=10**6)
    assert "class" in failed(verdict)


def test_an_honest_maximal_width_holds(tmp_path):
    witness = te.build(builtin("sort", n=2), delta=1 / 4, construction="compact", max_width=3)
    assert witness.network.depth > 4
    verdict = claim(witness, witness.network, tmp_path / "w")
    assert verdict.holds, verdict.reasons


def test_dtypes_claimed_in_the_plan_are_checked(sort, tmp_path):
    claim(sort, sort.network, tmp_path / "w")
    forge_record(tmp_path / "w", lambda r: r["plan"]["sizes"].update(safe=["float64", "float32", "bfloat16"]))
    assert failed(te.verify(tmp_path / "w", opinions=1)) == ["dtypes"]


# --- symmetric tables ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_order_wrong():
    """Sorting four of four values by slots, wrong on (3, 2, 1, 0) alone, and called symmetric."""
    rows = list(itertools.product(range(4), repeat=4))
    outputs = [[0, 0, 0, 0] if x == (3, 2, 1, 0) else sorted(x) for x in rows]
    table = te.build(te.Table(rows, outputs), construction="compact")
    ordered = [i for i, x in enumerate(rows) if list(x) == sorted(x)]
    return dataclasses.replace(
        table, symmetric=True, inputs=table.inputs[ordered], outputs=table.outputs[ordered]
    )  # fmt: skip


def test_a_table_wrong_on_one_order_is_not_symmetric(one_order_wrong, tmp_path):
    one_order_wrong.save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds is False
    assert failed(verdict) == ["symmetry"]
    assert "1 of 256 orders" in verdict.reasons[0]


def test_too_many_orders_are_undecided(one_order_wrong, tmp_path, monkeypatch):
    monkeypatch.setattr(verify_tokens, "_MOST_ORDERS", 255)
    one_order_wrong.save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds is False
    assert "undecided" in verdict.reasons[0]


def test_a_unit_that_sees_its_own_token_is_not_symmetric(tmp_path):
    """Of counts, but a unit of the first position falls silent where the token there is a 3: some orders are wrong."""
    table = te.build(te.Table.of(sorted, range(4), 4, symmetric=True), construction="compact")
    every = np.array(list(itertools.product(range(4), repeat=4))) + 1
    token = int(table.network.stages["gather"].attention.W_V[0, 0, 2].argmax())  # [own token ≥ 3]
    place = int(((table.network.E[0] == 1) & (table.network.E[1] == 0)).nonzero()[0, 0])
    right = table.run(every)
    for unit in table.network.stages["recall"].feed_forward.W_1[0, :, place].nonzero().flatten().tolist():
        network = copy.deepcopy(table.network)
        with torch.no_grad():
            network.stages["recall"].feed_forward.W_1[0, unit, token] = -1.0
        claimed = dataclasses.replace(table, network=network)
        if claimed.exact("dense").all() and not np.array_equal(claimed.run(every), right):
            break
    else:
        raise AssertionError("no unit makes such a fault")
    claimed.save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds is False
    assert failed(verdict) == ["dtypes", "symmetry"]


@pytest.mark.parametrize("n", [1, 3])
def test_honest_symmetric_tables_are_proved(n, tmp_path):
    te.build(te.Table.of(sorted, range(3), n, symmetric=True), construction="compact").save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds, verdict.reasons
    assert any(check.name == "symmetry" and "nothing else" in check.detail for check in verdict.evidence)


def test_a_symmetric_table_by_slots_is_tried_in_all_orders(tmp_path):
    table = te.build(te.Table.of(sorted, range(3), 3), construction="compact")
    ordered = (np.diff(table.inputs, axis=1) >= 0).all(axis=1)
    claimed = dataclasses.replace(
        table, symmetric=True, inputs=table.inputs[ordered], outputs=table.outputs[ordered]
    )  # fmt: skip
    claimed.save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds, verdict.reasons


# --- no accepted claim is wrong --------------------------------------------------------------------------------------


def fuzz(count, seed):
    """(accepted and right, accepted and wrong, refused although right, refused and wrong) over mutated networks."""
    rng = np.random.default_rng(seed)
    features = [te.build(builtin(name, n=2), delta=1 / 4, construction="compact") for name in ("sort", "soft-rank")]
    tables = [te.build(te.Table.of(sorted, range(3), 2, symmetric=s), construction="compact") for s in (False, True)]
    pairs = list(itertools.product(range(3), repeat=2))
    tables.append(te.memorise(pairs, [x[::-1] for x in pairs]).to("float64"))
    cases = [(w, off_the_ramps(w.grid)) for w in features] + [(w, np.array(pairs) + 1) for w in tables]
    tally, wrong = np.zeros((2, 2), dtype=int), []
    for _ in range(count):
        witness, X = cases[rng.integers(len(cases))]
        name, changed = mutate(witness.network, rng)
        grid = getattr(witness, "grid", None)
        exact = answers(changed, X, "float64")
        asked = dataclasses.replace(witness, network=changed)
        found = asked.verdicts() if grid is None else verdicts(changed, grid)
        for dtype in ("float32", "bfloat16", "float16"):
            kept = torch.from_numpy(exact).to(getattr(torch, dtype)).double().numpy() if grid is not None else exact
            right = np.array_equal(answers(changed, X, dtype), kept)
            tally[int(not found[dtype].holds), int(not right)] += 1
            if found[dtype].holds and not right:
                wrong.append((name, dtype))
    return tally, wrong


@pytest.mark.parametrize("count", [75, pytest.param(600, marks=pytest.mark.slow)])
def test_no_accepted_claim_is_wrong(count):
    tally, wrong = fuzz(count, 0)
    assert wrong == []
    assert tally[0, 0] > count / 5  # some are proved
    assert tally[1, 1] > count / 5  # and some break


def test_rows_in_another_order_are_the_same_network(sort):
    for name, verdict in verdicts(permuted_rows(sort.network, np.random.default_rng(1)), sort.grid).items():
        assert verdict.holds == (name in sort.network.safe)


def test_tokens_are_verified_without_the_builder(memory, tmp_path, fresh):
    memory.save(tmp_path / "w")
    code = (
        "import sys\nfrom thereexists.certificates import verify\n"
        f"assert verify({str(tmp_path / 'w')!r}).holds\n"
        "sys.exit(any(m.startswith('thereexists.constructions') for m in sys.modules))"
    )
    assert fresh("-c", code, warm=True).returncode == 0


# --- pairs, rows and words of token witnesses ------------------------------------------------------------------------


def test_a_stored_input_with_padding_before_a_token_is_refused(memory, tmp_path):
    """Shown as "no dog", asked for as "no dog", it would be another input: nobody can ask for what is stored."""
    holes = memory.inputs.copy()
    row = int(np.flatnonzero(holes[:, 1] == 0)[0])
    holes[row] = [0, holes[row, 0]]
    dataclasses.replace(memory, inputs=holes).save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds is False
    longer = te.memorise([["a", "b", "c"], ["b", "a"]], [["x"], ["y"]])
    inputs = longer.inputs.copy()
    row = int(np.flatnonzero(inputs[:, 2] == 0)[0])
    inputs[row] = [inputs[row, 0], 0, inputs[row, 1]]
    dataclasses.replace(longer, inputs=inputs).save(tmp_path / "hole")
    verdict = te.verify(tmp_path / "hole")
    assert verdict.holds is False
    assert "padding before a token" in verdict.reasons[0]
    with pytest.raises(te.ThereExistsError, match="padding before a token"):
        te.load(tmp_path / "hole")


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_table_that_answers_missing_rows_does_not_hold(symmetric, tmp_path):
    whole = te.build(te.Table.of(sorted, range(3), 2, symmetric=symmetric), construction="compact")
    whole.save(tmp_path / "whole")
    assert te.verify(tmp_path / "whole").holds
    dataclasses.replace(whole, inputs=whole.inputs[:2], outputs=whole.outputs[:2]).save(tmp_path / "cut")
    verdict = te.verify(tmp_path / "cut")
    assert failed(verdict) == ["missing rows"]
    rows = [tuple(x) for x in itertools.product(range(3), repeat=2) if x != (1, 2) and x != (2, 1)]
    partial = te.Table(rows, [sorted(x) for x in rows])
    te.build(partial, construction="compact").save(tmp_path / "partial")
    assert te.verify(tmp_path / "partial").holds


def test_a_symmetric_table_does_not_count_orders_as_rows(tmp_path):
    whole = te.build(te.Table.of(sorted, range(3), 2, symmetric=True), construction="compact")
    inputs = np.concatenate([whole.inputs, whole.inputs[:, ::-1]])
    inputs, first = np.unique(inputs, axis=0, return_index=True)
    outputs = np.concatenate([whole.outputs, whole.outputs])[first]
    dataclasses.replace(whole, inputs=inputs, outputs=outputs).save(tmp_path / "w")
    assert "pairs" in failed(te.verify(tmp_path / "w"))


@pytest.mark.parametrize("word", ["recalled", "witness", "verified"])
def test_a_record_says_nothing_in_our_words(word, memory, tmp_path):
    dataclasses.replace(memory, info={**memory.info, word: 3}).save(tmp_path / "w")
    with pytest.raises(te.ThereExistsError, match="which no saved witness does"):
        te.load(tmp_path / "w")


def test_a_seed_is_no_shell_command(memory, tmp_path):
    dataclasses.replace(memory, info={**memory.info, "seed": "0; touch x #"}).save(tmp_path / "w")
    with pytest.raises(te.ThereExistsError, match="'seed' in 'info'"):
        te.report(tmp_path / "w")


def test_exports_keep_every_layer_of_a_stage(sort, tmp_path):
    """A stage of two layers is two blocks; the comparison draws cells that nobody can foresee."""
    from thereexists.exports.stock import stock_network
    from thereexists.witness.samples import chosen

    network = deep_stage(sort.network, 1.0)
    deep = next(stage for stage in network.stages.values() if stage.depth == 3)
    with torch.no_grad():
        deep.feed_forward.b_2[2] = 0.0  # so that the second layer is seen in the output
    X = torch.from_numpy(sort.grid.centre(sort.grid.cube(np.arange(sort.grid.cells))))
    stock = stock_network(network, sort.grid.n)
    assert len(stock.blocks) == network.depth
    with torch.no_grad():
        assert torch.equal(stock(X), network(X))
    first, second = (chosen(1 << 20) for _ in range(2))
    assert len(np.unique(first)) == len(first) == 1 << 16
    assert not np.array_equal(first, second)
