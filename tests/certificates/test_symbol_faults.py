"""Planted faults in saved programs over symbols, every hash redone: ``verify`` names each."""

import json
import shutil

import numpy as np
import pytest

import thereexists as te
from tests.hostile import forge_certificate, forge_program, forge_record, forge_weights
from thereexists import program as P
from thereexists.certificates import symbol_certificate
from thereexists.constructions.symbols import lookups

DTYPES = ("float64", "float32")


def recoded():
    return P.recode(P.symbols("abc", n=3), {"a": "b", "b": "a"}, "abc").delay(1, fill="d")


def induction():
    return P.previous(P.symbols("ab", n=4), default="?")


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    at = tmp_path_factory.mktemp("symbols")
    te.build(recoded(), dtypes=DTYPES).save(at / "recoded")
    te.build(induction(), dtypes=DTYPES).save(at / "induction")
    return at


@pytest.fixture
def recode(originals, tmp_path):
    return shutil.copytree(originals / "recoded", tmp_path / "w")


@pytest.fixture
def induce(originals, tmp_path):
    return shutil.copytree(originals / "induction", tmp_path / "w")


def failing(folder):
    verdict = te.verify(folder)
    assert verdict.holds is False
    return {check.name for check in verdict.evidence if not check.passed}


def test_the_originals_hold(recode, originals):
    assert te.verify(recode).holds
    assert te.verify(originals / "induction").holds


# ---- alphabets -------------------------------------------------------------------------------------------------------


def in_record(**fields):
    return lambda folder: forge_record(folder, lambda record: record["symbols"].update(fields))


def in_certificate(**fields):
    return lambda folder: forge_certificate(folder, lambda record: record.update(fields))


def in_both(**fields):
    def forge(folder):
        in_record(**fields)(folder)
        in_certificate(**fields)(folder)

    return forge


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("forge", "named"),
    [
        (in_record(alphabet=list("bac")), "alphabets"),
        (in_certificate(alphabet=list("bac")), "alphabets"),
        (in_record(output_alphabet=list("bacd")), "alphabets"),
        (in_both(alphabet=list("abcd"), output_alphabet=list("abc")), "symbols"),
        (in_both(alphabet=list("ab")), "symbols"),
        (in_both(alphabet=list("abcd")), "symbols"),
        (in_both(output_alphabet=list("abc")), "symbols"),
        (in_certificate(lengths=[1, 3]), "lengths"),
        (in_certificate(lengths=[3, 4]), "lengths"),
    ],
)
def test_alphabets_and_lengths(recode, forge, named):
    forge(recode)
    assert failing(recode) == {named}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "symbols",
    [
        {},
        [],
        {"alphabet": list("abc")},
        *(
            {"alphabet": wrong, "output_alphabet": list("abcd")}
            for wrong in ("abc", list("aab"), [1, 2], ["", "a"], [])
        ),
    ],
)
def test_what_is_no_alphabet_is_neither_loaded_nor_verified(recode, symbols):
    forge_record(recode, lambda record: record.update(symbols=symbols))
    assert "alphabets" in failing(recode)
    with pytest.raises(te.ThereExistsError):
        te.load(recode)


def test_a_shortened_alphabet_is_not_loaded(recode):
    in_both(alphabet=list("ab"))(recode)
    with pytest.raises(te.ThereExistsError, match="not one over 2 symbols"):
        te.load(recode)


# ---- dtypes ----------------------------------------------------------------------------------------------------------


def claim(folder, dtype, **figures):
    """A dtype more, in the record and in the certificate."""
    forge_weights(folder, record=lambda r: r["structure"].update(safe=[*r["structure"]["safe"], dtype]))
    forge_certificate(folder, lambda c: c["bounds"].update({dtype: figures}) or c["reasons"].pop(dtype))


def test_a_dtype_whose_bound_is_not_below_a_half(induce):
    """The bound is true, and no string goes wrong: but it does not prove that."""
    claim(induce, "bfloat16", rounding=1e3, bound=1e3)
    assert failing(induce) == {"bound bfloat16", "exact bfloat16"}
    with pytest.raises(te.ThereExistsError, match="less than 1/2"):
        te.load(induce).to("bfloat16")


def test_a_dtype_whose_bound_is_said_to_be_below_a_half(induce):
    claim(induce, "bfloat16", rounding=0.25, bound=0.25)
    assert "bound bfloat16" in failing(induce)
    with pytest.raises(te.ThereExistsError, match="not proved safe in bfloat16"):
        te.load(induce).to("bfloat16")


def test_a_bound_of_a_half(recode):
    forge_certificate(recode, lambda c: c["bounds"]["float32"].update(bound=0.5))
    assert failing(recode) == {"bound float32", "exact float32"}


def test_a_dtype_that_has_not_all_the_numbers(tmp_path):
    te.build(P.symbols([f"w{k}" for k in range(300)], n=1), dtypes=("bfloat16",)).save(tmp_path / "w")
    claim(tmp_path / "w", "bfloat16", rounding=0.0, bound=0.0)
    assert "exact bfloat16" in failing(tmp_path / "w")
    with pytest.raises(te.ThereExistsError, match="300 symbols"):
        te.load(tmp_path / "w").to("bfloat16")


def test_bounds_of_strings_are_none_of_reals(recode):
    """The same files as a program over the reals, with bounds that hold at whole numbers only."""
    kept = {}

    def relabel(record):
        record["construction"] = "program"
        record.pop("symbols")

    def of_reals(c):
        for name in ("alphabet", "output_alphabet", "lengths"):
            kept[name] = c.pop(name)
        c.update(kind="program", epsilon=None)

    forge_record(recode, relabel)
    forge_certificate(recode, of_reals)
    assert {"bound float64", "bound float32"} <= failing(recode)


# ---- record and weights ----------------------------------------------------------------------------------------------


def a_node(record, operation):
    return next(node for node in record["program"]["nodes"] if node["operation"] == operation)


def test_a_table_entry_changed_in_the_record_only(recode):
    forge_program(recode, lambda r: a_node(r, "interp")["settings"]["values"].__setitem__(2, 1.0))
    assert failing(recode) == {"meaning"}


def test_a_table_entry_changed_in_the_weights_only(recode):
    def change(weights):
        name = next(name for name in sorted(weights) if name.endswith("feed_forward.W_2"))
        place = tuple(np.argwhere(weights[name].numpy() != 0)[0])  # (the last bend is at the end of the range)
        weights[name][place] += 1.0

    forge_weights(recode, change)
    assert failing(recode) == {"meaning"}


def test_a_step_moved_by_a_half_in_the_record_only(induce):
    def move(record):
        steps = [n for n in record["program"]["nodes"] if n["settings"].get("knots") == [0.25, 0.75]]
        steps[-1]["settings"]["knots"] = [0.75, 1.25]

    forge_program(induce, move)
    assert failing(induce) == {"meaning"}


def build_unproved(program, folder, monkeypatch):
    """Files of a builder that does not look at symbols, but does everything else as it should."""
    monkeypatch.setattr(symbol_certificate, "prove_symbols", lambda program, alphabets: None)
    te.build(program, dtypes=DTYPES).save(folder)
    monkeypatch.undo()


def test_a_step_moved_by_a_half_in_record_and_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(lookups, "step", lambda bits: P.interp(bits, [0.75, 1.25], [0.0, 1.0]))
    build_unproved(induction(), tmp_path / "w", monkeypatch)
    assert failing(tmp_path / "w") >= {"symbols"}


@pytest.mark.parametrize("S", [0, 2])
def test_a_look_up_that_is_too_blunt(S, tmp_path, monkeypatch):
    """(n − 1)·exp(−2) = 0.41 for 4 tokens, beyond the quarter that the step forgives."""
    monkeypatch.setattr(lookups, "sharpness", lambda n: S)
    build_unproved(induction(), tmp_path / "w", monkeypatch)
    assert failing(tmp_path / "w") >= {"symbols"}


def test_positions_that_are_not_told_apart(tmp_path, monkeypatch):
    honest = lookups._last_feature
    monkeypatch.setattr(lookups, "_last_feature", lambda numbers, before: honest(np.minimum(numbers, 2), before))
    build_unproved(induction(), tmp_path / "w", monkeypatch)
    assert failing(tmp_path / "w") >= {"symbols"}


def test_a_step_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(lookups, "step", lambda bits: bits)
    build_unproved(induction(), tmp_path / "w", monkeypatch)
    assert "symbols" in failing(tmp_path / "w")


def test_a_program_that_is_no_symbol_at_some_string(tmp_path, monkeypatch):
    s = P.symbols("abc", n=2)
    build_unproved(P.Symbols(("a", "b", "c"), 0.5 * s.number + 0.5), tmp_path / "w", monkeypatch)
    assert {"symbols"} == failing(tmp_path / "w")
    with pytest.raises(te.ThereExistsError, match=r"may be 0\.5"):
        te.certify(tmp_path / "w")


def test_weights_that_give_a_number_beyond_the_alphabet_are_not_read_as_symbols(recode):
    forge_weights(recode, lambda weights: weights["W_out"].mul_(40))
    with pytest.raises(te.ThereExistsError, match="not the number of one of the 4 output symbols"):
        te.load(recode)("abc")


def test_the_claim_stands_in_the_file(recode):
    stored = json.loads((recode / "certificate.json").read_text())
    assert stored["kind"] == "symbols"
    assert (stored["alphabet"], stored["output_alphabet"], stored["lengths"]) == (list("abc"), list("abcd"), [3, 3])
