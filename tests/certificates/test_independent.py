"""The promise of an independent verifier, at run time: every kind is verified where nothing that builds can be had."""

from pathlib import Path

import pytest

import thereexists as te
import thereexists.program as P
from tests.hostile import forge_record

SCRIPT = Path(__file__).with_name("without_builders.py")


def certified(witness, folder):
    witness.save(folder)
    te.certify(witness).save(folder)


def faithful(folder):
    certified(te.build(te.targets.builtin("sort", n=2), delta=1 / 2), folder)


def sparse(folder):
    pattern = te.patterns.build("window", n=3, window=1)
    certified(te.build(te.targets.builtin("sort", n=3), delta=1 / 2, pattern=pattern), folder)


def compact(folder):
    certified(te.build(te.targets.builtin("sort", n=2), delta=1 / 2, construction="compact"), folder)


def table(folder):
    te.build(te.Table([[0, 0], [0, 1], [1, 0]], [[0, 0], [0, 1], [0, 1]]), construction="compact").save(folder)


def symmetric_table(folder):
    te.build(te.Table([[0, 0], [0, 1]], [[0, 0], [1, 1]], symmetric=True), construction="compact").save(folder)


def memory(folder):
    te.memorise([["a", "dog"], ["a", "cat"]], [["pes"], ["kočka"]]).save(folder)


def program(folder):
    te.build(P.sort(P.tokens(3))).save(folder)


def symbols(folder):
    te.build(P.previous(P.symbols("ab", n=3), default="?")).save(folder)


def automaton(folder):
    te.build(te.automata.regex("(ab|ba)*", "ab"), n=5).save(folder)


def stock_llama(folder):
    te.export(te.build(te.automata.regex("(ab|ba)*", "ab"), n=5), "llama", folder)


def stock_reals(folder):
    te.export(te.build(P.cummax(P.tokens(3))), "llama", folder)


MADE = (
    faithful,
    sparse,
    compact,
    table,
    symmetric_table,
    memory,
    program,
    symbols,
    automaton,
    stock_llama,
    stock_reals,
)
KINDS = {kind.__name__: kind for kind in MADE}
SLOW = {"stock_reals"}  # which imports what stock_llama does; that no builder is imported is a house rule too


@pytest.fixture
def verified_alone(fresh):
    """Verify a folder in an interpreter that has loaded nothing of ours."""

    def verify(folder, *planted):
        found = fresh(SCRIPT, folder, *planted, warm=True)
        return found.returncode, found.stdout + found.stderr

    return verify


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in SLOW else []) for kind in KINDS]
)
def test_every_kind_is_verified_without_what_built_it(kind, tmp_path, verified_alone):
    KINDS[kind](tmp_path / "w")
    code, said = verified_alone(tmp_path / "w")
    assert code == 0, said


@pytest.mark.parametrize(
    "builder", ["thereexists.constructions.faithful.quantise", "thereexists.constructions.program.lowering"]
)
def test_a_verifier_that_needs_a_builder_is_noticed(builder, tmp_path, verified_alone):
    faithful(tmp_path / "w")
    code, said = verified_alone(tmp_path / "w", builder)
    assert code == 1
    assert "a verifier must not need it" in said


@pytest.mark.parametrize("kind", ["program", "symbols", "memory", "automaton"])
def test_a_function_that_nobody_would_look_at_is_refused(kind, tmp_path):
    """``verify w --function my.py:f`` of a program must not say that f is what the network computes."""
    KINDS[kind](tmp_path / "w")
    target = te.targets.builtin("sort", n=3)
    with pytest.raises(te.ThereExistsError, match="without a function"):
        te.verify(tmp_path / "w", target)
    forge_record(tmp_path / "w", lambda record: record.update(target=target.describe()))
    for given in (target, None):
        verdict = te.verify(tmp_path / "w", given)
        assert verdict.holds is False
        assert "must not hold 'target'" in verdict.reasons[0]
    with pytest.raises(te.ThereExistsError, match="must not hold 'target'"):
        te.load(tmp_path / "w")
