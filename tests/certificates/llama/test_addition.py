"""Addition as text: the circuit adds pairs of few digits and rows of carries, and planted faults are caught."""

import itertools

import numpy as np
import pytest

import thereexists as te
from tests.certificates.llama.forging import copied, forge_json, forge_weights, redo
from thereexists.certificates.llama.addition import DIGIT, END, Addition, added
from thereexists.certificates.llama.format import read_checkpoint, read_claim
from thereexists.certificates.llama.verify import proofs
from thereexists.exports import export_addition

pytest.importorskip("transformers")
L = "model.layers.{}.{}.weight"


def said(claim, circuit, a, b):
    """The digits that the circuit makes for operands (m,), highest first; it must end the text in time."""
    rows = circuit.run(claim.text(a[None], b[None])[0])[2 * claim.digits + 2 :]
    assert rows[:, END].tolist() == [0] * (claim.digits + 1) + [1]
    assert (rows[:-1, DIGIT : DIGIT + 10].sum(axis=1) == 1).all()
    assert not rows[-1, DIGIT : DIGIT + 10].any()
    return rows[:-1, DIGIT : DIGIT + 10].argmax(axis=1)


@pytest.mark.parametrize("digits", [1, 2])
def test_the_circuit_adds_all_pairs(digits):
    claim = Addition(digits)
    circuit = claim.circuit()
    circuit.exclusive()
    for a, b in itertools.product(itertools.product(range(10), repeat=digits), repeat=2) if digits == 1 else _some():
        a, b = np.array(a), np.array(b)
        assert np.array_equal(said(claim, circuit, a, b), added(a[None], b[None])[0])


def _some():
    """Every sum of two places, with and without a carry from below."""
    for a, b, low in itertools.product(range(10), range(10), ((0, 0), (4, 5), (9, 9), (5, 5))):
        yield (a, low[0]), (b, low[1])


@pytest.mark.parametrize("digits", [3, 4, 6, 7, 10])
def test_the_circuit_adds_rows_of_carries(digits):
    """Places that make, pass on or stop a carry, in every order where they are few; windows of every shape."""
    claim, rng = Addition(digits), np.random.default_rng(digits)
    circuit, places = claim.circuit(), np.array([(9, 1), (4, 5), (1, 2)])
    rows = list(itertools.product(range(3), repeat=digits))
    for row in rows if digits <= 4 else [rows[k] for k in rng.choice(len(rows), 60)]:
        a, b = places[list(row)].T
        assert np.array_equal(said(claim, circuit, a, b), added(a[None], b[None])[0])


def test_long_addition_is_addition():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 10, (2, 50, 10))
    number = lambda digits: int("".join(map(str, digits)))  # noqa: E731
    assert [number(row) for row in added(a, b)] == [number(x) + number(y) for x, y in zip(a, b, strict=True)]


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama") / "adder"
    assert export_addition(10, folder)["compared"] == 64
    return folder


def test_ten_digits_are_proved_in_both_dtypes(stock):
    verdict = te.verify(stock)
    assert verdict.holds, verdict.reasons
    checkpoint = read_checkpoint(stock, read_claim(stock))
    assert (checkpoint.shape.layers, checkpoint.shape.d_model, checkpoint.shape.parameters) == (6, 64, 355_776)
    assert list(proofs(checkpoint)[0]) == ["float32", "bfloat16"]
    assert "10^20 prompts" in (stock / "README.md").read_text()


def test_generate_answers_as_text(stock):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(stock)
    pairs = [(123, 989), (10**10 - 1, 1), (10**10 - 1, 10**10 - 1), (0, 0), (4999999999, 5000000000), (5, 9999999995)]
    prompts = [f"{a:010}+{b:010}=" for a, b in pairs]
    for dtype in ("float32", "bfloat16"):
        model = AutoModelForCausalLM.from_pretrained(stock, dtype=dtype)
        ids = model.generate(**tokenizer(prompts, return_tensors="pt"))
        assert (ids[:, -1] == tokenizer.eos_token_id).all()
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        assert texts == [f"{p}{a + b:011}" for p, (a, b) in zip(prompts, pairs, strict=True)]


def carry(w):
    down = w[L.format(0, "mlp.down_proj")]
    down[[33, 34]] = down[[34, 33]]  # 3 + 30: the rows G and P


def offset(w):
    w[L.format(4, "self_attn.q_proj")].copy_(w[L.format(3, "self_attn.q_proj")])


def last_digit(w):
    w[L.format(5, "mlp.down_proj")][[3, 4]] = w[L.format(5, "mlp.down_proj")][[4, 3]]


def never_ends(w):
    w["lm_head.weight"][2] = 0.0


def plus(w):
    w["model.embed_tokens.weight"][13, 23] = 0.0


@pytest.mark.parametrize("fault", [carry, offset, last_digit, never_ends, plus], ids=lambda fault: fault.__name__)
def test_a_changed_weight_is_caught(stock, tmp_path, fault):
    verdict = te.verify(forge_weights(copied(stock, tmp_path / "forged"), fault))
    assert verdict.holds is False
    assert verdict.reasons[0].startswith("proof")


def test_other_claims_are_caught(stock, tmp_path):
    more = redo(copied(stock, tmp_path / "more"), lambda record: record["claim"].update(digits=11))
    assert te.verify(more).holds is False
    seen = forge_json(copied(stock, tmp_path / "seen"), "tokenizer.json", lambda t: t.update(decoder={"type": "Fuse"}))
    assert te.verify(seen).holds is False


@pytest.mark.parametrize("digits", [0, 101, True])
def test_digits_are_refused(tmp_path, digits):
    with pytest.raises(te.ThereExistsError, match="from 1 to 100"):
        export_addition(digits, tmp_path / "no")
    assert not (tmp_path / "no").exists()
