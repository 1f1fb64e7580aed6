"""Look-ups: the circuit against the table on every short text; planted faults in gates, places and claims."""

import itertools
import tracemalloc

import numpy as np
import pytest

import thereexists as te
from tests.certificates.llama.forging import copied, forge_json, forge_weights, redo
from tests.certificates.llama.short_claims import BACKWARDS, FOLLOWS, PAIRS, WHOLE, completions_of
from thereexists.certificates.llama.circuit import BITS, LookUp
from thereexists.certificates.llama.claims import read_claimed
from thereexists.certificates.llama.completions import Completions, looked_at
from thereexists.certificates.llama.format import Checkpoint, read_checkpoint, read_claim
from thereexists.certificates.llama.lookup import MOST_READ, Table, code_of
from thereexists.certificates.llama.proof import prove
from thereexists.certificates.llama.rounding import DTYPES
from thereexists.certificates.llama.tokens import BOS, EOS, SYMBOLS
from thereexists.core.errors import InvalidInput, NotProved
from thereexists.exports import export_claim

pytest.importorskip("transformers")
GATE, UP, DOWN, Q, K, V = (
    f"model.layers.0.{part}_proj.weight"
    for part in ("mlp.gate", "mlp.up", "mlp.down", "self_attn.q", "self_attn.k", "self_attn.v")
)


def said_by(circuit, tokens):
    """The token that the rows name after every prefix."""
    rows = {frozenset(case.on): case.right[0][0] for case in circuit.cases}
    named = sorted({row for case in circuit.cases for row in case.on})
    return [rows[frozenset(row for row in named if bits[row])] for bits in circuit.run(np.array(tokens))]


def test_the_circuit_answers_the_set_and_nothing_else():
    circuit, left = WHOLE.circuit(), dict(PAIRS)
    circuit.exclusive()
    for length in range(1, 5):
        for word in itertools.product("ab", repeat=length):
            text, answer = [BOS, *(SYMBOLS + "ab".index(s) for s in word)], left.pop("".join(word), "")
            for token in [*(SYMBOLS + 2 + "xy".index(s) for s in answer), EOS]:
                assert said_by(circuit, text)[-1] == token
                text.append(token)
    assert not left


def test_fewer_places_answer_the_set_too():
    some = completions_of(PAIRS, (0, 1))
    with pytest.raises(InvalidInput, match="look the same"):
        some.circuit()
    chosen = completions_of(PAIRS, (0, 1, 3))
    assert WHOLE.whole
    assert not chosen.whole
    circuit = chosen.circuit()
    for text, prompt in zip(chosen.texts, chosen.pairs, strict=True):
        assert said_by(circuit, text[:-1])[len(prompt[0]) :] == text[len(prompt[0]) + 1 :]


def test_one_long_prompt_does_not_make_the_others_long():
    texts, prompts, places = [[BOS, *[SYMBOLS] * 4000, EOS]] + [[BOS, SYMBOLS, EOS]] * 2000, [4000] + [1] * 2000, (0, 1)
    tracemalloc.start()
    back, follows = looked_at(texts, prompts, places)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert back.tolist() == [[SYMBOLS, SYMBOLS]] + [[SYMBOLS, BOS]] * 2000
    assert (follows == EOS).all()
    assert most < 100 * 8 * sum(map(len, texts)) < 8 * len(texts) * len(texts[0])


def test_what_stands_back_is_read_off_the_text():
    texts, prompts, places = [[BOS, 5, 6, 7, 8, EOS], [BOS, 9, EOS], [BOS, 5, 8, 8, EOS]], [2, 1, 1], (0, 2, 3)
    back, follows = looked_at(texts, prompts, places)
    wanted = [(text, at) for text, given in zip(texts, prompts, strict=True) for at in range(given, len(text) - 1)]
    assert follows.tolist() == [text[at + 1] for text, at in wanted]
    assert back.tolist() == [[text[max(at - place, 0)] for place in places] for text, at in wanted]


def test_a_bit_of_the_embedding_takes_a_byte():
    circuit = WHOLE.circuit()
    assert circuit.embedding.nbytes == len(WHOLE.vocabulary) * circuit.rows


def test_an_ngram_model_is_followed_everywhere():
    claim = FOLLOWS
    assert read_claimed(claim.describe()) == claim
    circuit, table = claim.circuit(), dict(claim.rows)
    circuit.exclusive()
    for word in itertools.product((0, 1), repeat=5):
        wanted = [table.get(claim.context(list(word[:k])), EOS - SYMBOLS) + SYMBOLS for k in range(6)]
        assert said_by(circuit, [BOS, *(SYMBOLS + s for s in word)]) == wanted


def test_the_circuit_reverses_every_word():
    claim = BACKWARDS
    circuit = claim.circuit()
    circuit.exclusive()
    for word in (word for m in range(1, 5) for word in itertools.product(range(3), repeat=m)):
        m, answer = len(word), [SYMBOLS + 4 + letter for letter in word[::-1]]
        text = [BOS, *(SYMBOLS + letter for letter in word), SYMBOLS + 3, *answer]
        assert circuit.run(np.array(text))[m + 1 :, -4:].sum(axis=1).tolist() == [2] * (m + 1)
        assert said_by_last(circuit, text)[m + 1 :] == [*answer, EOS]


def said_by_last(circuit, tokens):
    """The same where other rows of the cases may be anything before the prompt ends."""
    rows = {frozenset(case.on): case.right[0][0] for case in circuit.cases}
    named = sorted({row for case in circuit.cases for row in case.on})
    return [rows.get(frozenset(row for row in named if bits[row])) for bits in circuit.run(np.array(tokens))]


def test_codes_are_no_part_of_each_other():
    for count, weight in ((1, 1), (27, 2), (100, 3)):
        codes = [frozenset(code) for code in code_of(count, weight).tolist()]
        assert len(set(codes)) == count
        assert {len(code) for code in codes} == {weight}


def test_words_that_may_be_there_at_once_are_caught():
    words, follows = np.array([[3, 4, 5], [3, 4, -1]]), np.array([6, 7])
    with pytest.raises(NotProved, match="at once"):
        Table((0, 1, 2), words, follows).circuit(8, 5).exclusive()
    pairs = WHOLE.circuit().layers[0]
    with pytest.raises(NotProved, match="at once"):
        super(LookUp, pairs).exclusive(np.arange(100))


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama") / "set"
    export_claim(WHOLE, folder)
    return folder, read_checkpoint(folder, read_claim(folder))


def one_row_less(w):
    unit = (w[GATE][:, BITS:] != 0).sum(1).argmax()
    w[GATE][unit, BITS + (w[GATE][unit, BITS:] != 0).int().argmax()] = 0.0


def lower_threshold(w):
    w[GATE][:, 0] += 2 * 512 / 8


def unequal(w):
    unit = (w[GATE][:, BITS:] != 0).sum(1).argmax()
    w[GATE][unit, BITS + (w[GATE][unit, BITS:] != 0).int().argmax()] *= 1.5


def negative(w):
    w[GATE][0, BITS + (w[GATE][0, BITS:] == 0).int().argmax()] = -(2.0**20)


def other_answer(w):
    x, y = w[DOWN].any(dim=1).nonzero().flatten().tolist()[:2]
    w[DOWN][[x, y]] = w[DOWN][[y, x]]


def other_place(w):
    """Two heads change their distances, and so what they fetch."""
    w[Q][:64], w[Q][64:128] = w[Q][64:128].clone(), w[Q][:64].clone()


def key_of_a_symbol(w):
    w[K][0, BITS] = 1.0


def last_row(w):
    w["lm_head.weight"][EOS, 0] = 0.0


FAULTS = (one_row_less, lower_threshold, unequal, negative, other_answer, other_place)
FAULTS += (key_of_a_symbol, last_row)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_changed_weight_is_caught(stock, fault):
    """By the proof itself, in both dtypes."""
    checkpoint = stock[1]
    weights = {name: weight.clone() for name, weight in checkpoint.weights.items()}
    fault(weights)
    assert any(not weights[name].equal(weight) for name, weight in checkpoint.weights.items())
    for dtype in DTYPES:
        with pytest.raises(NotProved):
            prove(Checkpoint(**{**vars(checkpoint), "weights": weights}), dtype)


def another_pair(claim):
    claim["pairs"][0][1] = [1, 1]


def one_pair_more(claim):
    claim["pairs"].append([[0, 0, 0], [1]])


def fewer_places(claim):
    claim["places"] = [0, 1, 2, 3]


def twice(claim):
    claim["pairs"].append(claim["pairs"][0])


def other_texts(claim):
    claim["answers"] = ["y", "x"]


def falling(claim):
    claim["places"] = [0, 2, 1, 3, 4]


@pytest.mark.parametrize(
    "change", [another_pair, one_pair_more, fewer_places, twice, other_texts, falling], ids=lambda c: c.__name__
)
def test_another_claim_is_caught(stock, tmp_path, change):
    forged = redo(copied(stock[0], tmp_path / "forged"), lambda record: change(record["claim"]))
    assert te.verify(forged).holds is False


HOSTILE = (
    {"kind": "completions", "symbols": ["a"], "answers": ["x"], "pairs": [[[0], [1]]], "places": [0, 1]},
    {"kind": "completions", "symbols": ["a"], "answers": ["x"], "pairs": [[[], [0]]], "places": [0, 1]},
    {"kind": "completions", "symbols": ["a"], "answers": ["x"], "pairs": [[[True], [0]]], "places": [0, 1]},
    {"kind": "completions", "symbols": ["a"], "answers": ["x"], "pairs": [[[0], [0]]], "places": [0, 10**9]},
    {"kind": "ngram", "symbols": ["a"], "rows": [[[0], 0], [[0], 0]], "order": 2, "n": 4, "more": 4},
    {"kind": "ngram", "symbols": ["a"], "rows": [[[0, 0, 0], 0]], "order": 2, "n": 4, "more": 4},
    {"kind": "ngram", "symbols": ["a"], "rows": [[[0], 0]], "order": 2, "n": 10**9, "more": 4},
    {"kind": "reverse", "letters": [chr(k) for k in range(1000, 3000)], "n": 4},
    {"kind": "reverse", "letters": ["a", "="], "n": 4},
    {"kind": "recall", "keys": ["a", "b"], "values": ["1"], "n": 3},
    {"kind": "other"},
)


@pytest.mark.parametrize("stored", HOSTILE, ids=lambda stored: stored["kind"])
def test_claims_that_are_none_are_refused(stored):
    with pytest.raises(InvalidInput):
        read_claimed(stored)


def test_a_claim_that_is_too_wide_is_refused_before_anything_is_made():
    many = tuple(str(k) for k in range(5000))
    pairs = tuple(((k,) * 31, (0,)) for k in range(len(many)))
    with pytest.raises(InvalidInput, match="too many"):
        Completions(many, ("x",), pairs, tuple(range(32))).circuit()


def test_files_are_compared(stock, tmp_path):
    verdict = te.verify(stock[0])
    assert verdict.holds, verdict.reasons
    assert [check.name for check in verdict.evidence] == ["files", "class", "proof", "proof", "card", "trial"]
    swapped = forge_weights(copied(stock[0], tmp_path / "swapped"), other_answer)
    assert te.verify(swapped).reasons[0].startswith("proof")
    decoder = lambda t: t["decoder"]["decoders"].reverse()  # noqa: E731
    assert te.verify(forge_json(copied(stock[0], tmp_path / "decoder"), "tokenizer.json", decoder)).holds is False


def test_a_gate_of_many_rows_that_err_is_not_proved():
    """32 rows may err by 5/16 together; were each off by 2^-6 the gates would not be shut any more."""
    from thereexists.certificates.llama import proof

    prompts = [[0] * 31, [1] * 31]
    claim = Completions(("a", "b"), ("x",), tuple((tuple(p), (0,)) for p in prompts), tuple(range(MOST_READ)))
    from thereexists.exports.llama.answers import answers_by_case
    from thereexists.exports.llama.layout import EPS, THETA, Layout
    from thereexists.exports.llama.lower import lowered

    layout = Layout.of(claim)
    checkpoint = Checkpoint(layout.shape, THETA, EPS, lowered(layout, answers_by_case(claim)), claim)
    assert prove(checkpoint, "bfloat16").error < 1 / 8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "WEIGHT", 2.0**-5)
        with pytest.raises(NotProved, match="gate"):
            prove(checkpoint, "bfloat16")
