"""Recall by an induction head: the circuit on short prompts, and planted faults in the head that looks for a key."""

import itertools

import numpy as np
import pytest
import torch

import thereexists as te
from tests.certificates.llama.forging import copied, redo
from tests.certificates.llama.short_claims import RECALLED as CLAIM
from thereexists.certificates.llama.circuit import BITS, FIRST
from thereexists.certificates.llama.claims import read_claimed
from thereexists.certificates.llama.format import Checkpoint, read_checkpoint, read_claim
from thereexists.certificates.llama.proof import prove
from thereexists.certificates.llama.rounding import DTYPES
from thereexists.certificates.llama.run import loaded
from thereexists.certificates.llama.tokens import BOS, SYMBOLS
from thereexists.core.errors import NotProved
from thereexists.exports import export_claim

modeling = pytest.importorskip("transformers.models.llama.modeling_llama")
Q, K, V = (f"model.layers.1.self_attn.{part}_proj.weight" for part in "qkv")


def test_the_circuit_recalls():
    circuit, out = CLAIM.circuit(), slice(-2, None)
    circuit.exclusive()
    for keys in itertools.permutations(range(4), 3):
        for values in itertools.product((0, 1), repeat=2):
            pairs = [t for k, v in zip(keys, values, strict=False) for t in (SYMBOLS + k, SYMBOLS + 7 + v)]
            for k, key in enumerate(keys):
                wanted = np.eye(2)[values[k]] if k < 2 else np.zeros(2)
                text = [BOS, *pairs, SYMBOLS + key, CLAIM.first_answer]
                assert circuit.run(np.array(text))[-2:, out].tolist() == [wanted.tolist(), [0, 0]]
    with pytest.raises(NotProved, match="two tokens"):
        circuit.run(np.array([BOS, *[SYMBOLS, SYMBOLS + 7] * 2, SYMBOLS]))


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama") / "recall"
    export_claim(CLAIM, folder)
    return folder, read_checkpoint(folder, read_claim(folder))


def test_it_holds_and_other_claims_do_not(stock, tmp_path):
    verdict = te.verify(stock[0])
    assert verdict.holds, verdict.reasons
    assert read_claimed(CLAIM.describe()) == CLAIM
    more = redo(copied(stock[0], tmp_path / "more"), lambda record: record["claim"].update(n=6))
    assert te.verify(more).holds is False


def other_code(w):
    w[K][:, [BITS + 4, BITS + 5]] = w[K][:, [BITS + 5, BITS + 4]]


def forgotten_row(w):
    w[Q][:, BITS] = 0.0


def loud_first(w):
    w[K][31, FIRST] *= 2


def faint_first(w):
    w[K][31, FIRST] /= 2


def faint(w):
    w[Q] /= 64


def fast(w):
    """A row of the code stands on a frequency that turns by half a radian a token."""
    for W in (w[Q], w[K]):
        W[[30, 1]] = W[[1, 30]]


def imaginary(w):
    w[Q][[30, 62]] = w[Q][[62, 30]]


def negative(w):
    w[Q][:, BITS] *= -1
    w[K][:, BITS + 5] *= -1


def looks_at_values(w):
    w[K][20, BITS + 10] = 1.0


def other_value(w):
    w[V][[0, 1]] = w[V][[1, 0]]


FAULTS = (other_code, forgotten_row, loud_first, faint_first, faint, fast, imaginary, negative, looks_at_values)


@pytest.mark.parametrize("fault", [*FAULTS, other_value], ids=lambda fault: fault.__name__)
def test_a_changed_weight_is_caught(stock, fault):
    weights = {name: weight.clone() for name, weight in stock[1].weights.items()}
    fault(weights)
    assert any(not weights[name].equal(weight) for name, weight in stock[1].weights.items())
    for dtype in DTYPES:
        with pytest.raises(NotProved):
            prove(Checkpoint(**{**vars(stock[1]), "weights": weights}), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_right_key_leads_by_no_less_than_is_proved(stock, dtype):
    """Logits of the second layer as transformers makes them, at the last key of random prompts."""
    folder, checkpoint = stock
    proof, model, rng = prove(checkpoint, dtype), loaded(folder, dtype), np.random.default_rng(0)
    layer, least = model.model.layers[1], np.inf
    for row in CLAIM.drawn(rng, 20):
        last = int(np.flatnonzero((row >= SYMBOLS) & (row < CLAIM.first_answer))[-1])
        tokens = torch.from_numpy(row[None, : last + 1])
        with torch.no_grad():
            X = model(tokens, output_hidden_states=True).hidden_states[1]
            x = layer.input_layernorm(X)
            q, k = layer.self_attn.q_proj(x)[:, None], layer.self_attn.k_proj(x)[:, None]
            q, k = modeling.apply_rotary_pos_emb(q, k, *model.model.rotary_emb(X, torch.arange(last + 1)[None]))
            S = (torch.matmul(q, k.transpose(2, 3)) * layer.self_attn.scaling)[0, 0, -1].double().numpy()
        there = np.flatnonzero(row[:last] == row[last])
        right = int(there[0]) + 1 if len(there) else 0
        least = min(least, S[right] - np.delete(S, right).max())
    assert proof.lead <= least
