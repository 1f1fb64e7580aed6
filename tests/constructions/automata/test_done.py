"""What was promised: everyday patterns against ``re``, A5 at 16,384 symbols, sums of 64 digits, a random machine."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import thereexists as te
from tests.automata.machines import adder, adversarial, alternating_group, drawn

EVERYDAY = json.loads(Path(__file__).with_name("everyday.json").read_text())["patterns"]
QUICK = ("no aa", "integer", "even numbers of a and of b", "ends in ing", "quoted field", "time")
BATCH = 500
LARGE = 4_000_000  # parameters beyond which a processor's bfloat16 is too slow for more than a thousand strings


def verified(witness, folder):
    witness.save(folder)
    verdict = te.verify(folder)
    assert verdict.holds, verdict.reasons


def answers(witness, words):
    """In order of length, so that short strings are not padded to long ones."""
    order = sorted(range(len(words)), key=lambda k: len(words[k]))
    found = [None] * len(words)
    for start in range(0, len(words), BATCH):
        part = order[start : start + BATCH]
        for k, answer in zip(part, witness([words[k] for k in part]), strict=True):
            found[k] = answer
    return found


def agrees_with_re(row, count, folder):
    machine = te.automata.regex(row["pattern"], row["alphabet"])
    words = ["".join(word) for word in adversarial(machine, count, 32, seed=5)]
    wanted = [bool(re.fullmatch(row["pattern"], word)) for word in words]
    assert 0.2 < np.mean(wanted) < 0.95
    witness = te.build(machine, n=32, construction="doubling")
    verified(witness, folder)
    for dtype in ("float32", "bfloat16"):
        some = slice(None, None, 10 if dtype == "bfloat16" and witness.plan.parameters > LARGE else 1)
        assert answers(witness.to(dtype), words[some]) == wanted[some]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", [row for row in EVERYDAY if row["name"] in QUICK], ids=lambda row: row["name"])
def test_everyday_patterns_are_right_on_some_strings(row, tmp_path):
    agrees_with_re(row, 240, tmp_path / "w")


@pytest.mark.slow
@pytest.mark.parametrize("row", EVERYDAY, ids=lambda row: row["name"])
def test_everyday_patterns_are_right_on_ten_thousand_strings(row, tmp_path):
    assert len(EVERYDAY) == 20
    agrees_with_re(row, 10_000, tmp_path / "w")


def sums(witness, digits, count, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 10, (2, count, digits))
    a[0], b[0] = 9, 0
    b[0, 0] = 1  # the carry goes all the way
    words = [[f"{x}{y}" for x, y in zip(*pair, strict=True)] for pair in zip(a.tolist(), b.tolist(), strict=True)]
    wanted = []
    for x, y in zip(a, b, strict=True):
        total = sum((int(u) + int(v)) * 10**k for k, (u, v) in enumerate(zip(x, y, strict=True)))
        wanted.append([total // 10**k % 10 for k in range(digits)])
    return answers(witness, words) == wanted


def test_addition_of_two_numbers_of_64_digits(tmp_path):
    witness = te.build(adder(10), n=64)
    assert witness.network.depth == 6
    verified(witness, tmp_path / "w")
    for dtype in ("float32", "bfloat16"):
        assert sums(witness.to(dtype), 64, 50, seed=1)


@pytest.mark.slow
def test_ten_thousand_additions():
    witness = te.build(adder(10), n=64)
    for dtype in ("float32", "bfloat16"):
        assert sums(witness.to(dtype), 64, 10_000, seed=2)


def test_the_word_problem_of_A5_at_16384_symbols(tmp_path):
    machine = alternating_group()
    witness = te.build(machine, n=16_384)
    assert witness.network.depth == 14
    assert len(machine.alphabet) == 60
    assert set(witness.certificate.dtypes) >= {"float32", "bfloat16"}
    words = adversarial(machine, 90, 64, seed=3)
    for dtype in ("float32", "bfloat16"):
        assert answers(witness.to(dtype), words) == [machine.accepts(word) for word in words]


@pytest.mark.slow
def test_ten_thousand_words_of_A5_and_one_of_full_length(tmp_path):
    machine = alternating_group()
    witness = te.build(machine, n=16_384)
    verified(witness, tmp_path / "w")
    words = adversarial(machine, 10_000, 32, seed=4)
    long = np.random.default_rng(5).integers(0, 60, 16_384)
    for dtype, length in (("float32", 16_384), ("bfloat16", 4096)):
        converted, spelled = witness.to(dtype), [machine.alphabet[a] for a in long[:length]]
        assert answers(converted, words) == [machine.accepts(word) for word in words]
        assert np.array_equal(converted.states(spelled), machine.states(spelled))


@pytest.mark.slow
def test_a_random_machine_of_16_states_and_26_letters(tmp_path):
    machine = drawn(16, 26, seed=6)
    assert machine.size == 16
    witness = te.build(machine, n=64)
    verified(witness, tmp_path / "w")
    words = adversarial(machine, 10_000, 24, seed=7)
    assert answers(witness, words) == [machine.accepts(word) for word in words]
    assert answers(witness.to("bfloat16"), words[::10]) == [machine.accepts(word) for word in words[::10]]
