"""What is said of an input that is no row of a table must be said of every input that somebody can ask for."""

import numpy as np
import pytest

import thereexists as te
from tests.hostile import forge_record, forge_weights

PAIRS = {("a", "b"): ("x", "y"), ("b", "a"): ("y", "x"), ("a", "a"): ("y", "y"), ("b", "b"): ("x", "x")}


def hide(folder, row):
    """Take one stored pair out of the list, leave it in the weights, and call the rest a table."""

    def change(weights):
        keep = ~np.array([stored == row for stored in weights["pairs.inputs"].tolist()])
        for side in ("pairs.inputs", "pairs.outputs"):
            weights[side] = weights[side][keep].clone()

    forge_weights(folder, change, lambda r: r.update(tokens=r["tokens"] | {"purpose": "table"}, info={}))


def refused(folder):
    verdict = te.verify(folder)
    return not verdict.holds and any("must be 'fixed'" in reason for reason in verdict.reasons)


@pytest.mark.parametrize("hidden", [("b",), ("b", "b")])
def test_a_table_with_a_hidden_answer_is_refused(tmp_path, hidden):
    pairs = PAIRS | {("b",): ("x", "x"), hidden: ("SECRET",)}
    te.memorise(list(pairs), list(pairs.values())).save(tmp_path / "w")
    hide(tmp_path / "w", [{"a": 1, "b": 2}[token] for token in hidden] + [0] * (2 - len(hidden)))
    assert refused(tmp_path / "w")
    with pytest.raises(te.ThereExistsError, match="must be 'fixed'"):
        te.load(tmp_path / "w")


def test_a_table_cannot_be_opened_for_shorter_inputs(tmp_path):
    te.build(te.Table(list(PAIRS), list(PAIRS.values())), construction="compact").save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    forge_record(tmp_path / "w", lambda r: r["tokens"].update(fixed=False))
    assert refused(tmp_path / "w")


def test_a_hidden_row_of_full_length_is_found(tmp_path):
    """``fixed`` set too: now all inputs that can be asked for have n tokens, and every one is tried."""
    te.memorise(list(PAIRS), list(PAIRS.values())).save(tmp_path / "w")
    hide(tmp_path / "w", [2, 2])
    forge_record(tmp_path / "w", lambda r: r["tokens"].update(fixed=True))
    assert any(reason.startswith("missing rows: 1 inputs have no row") for reason in te.verify(tmp_path / "w").reasons)


def test_a_data_set_does_not_stand_for_its_orders(tmp_path):
    te.memorise(list(PAIRS), list(PAIRS.values())).save(tmp_path / "w")
    forge_record(tmp_path / "w", lambda r: r["tokens"].update(symmetric=True))
    assert not te.verify(tmp_path / "w").holds


@pytest.mark.parametrize("far", [-50, -3])
def test_a_number_below_all_words_is_no_word(far):
    """Weights may give anything at a row that is not stored: no error, and no word counted from the end."""
    witness = te.memorise([["a", "b"]], [["c", "d", "e"]])
    assert witness._decode(np.array([far, 1, 1])) is None
    assert witness._decode(np.array([2, far, 1])) is None
    assert witness._decode(np.array([4, 2, 1])) == ["e", "c"]
