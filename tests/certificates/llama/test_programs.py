"""Causal programs over symbols as circuits: every string against the interpreter; planted faults in a folder."""

import random
import time

import numpy as np
import pytest
import torch

import thereexists as te
from tests.certificates.llama.forging import copied, forge_weights, redo
from tests.certificates.llama.small_programs import claim_of, drawn, programs, strings
from tests.hostile import forge_record
from thereexists import program as P
from thereexists.certificates.llama.claims import read_claimed
from thereexists.certificates.llama.format import Checkpoint, read_checkpoint, read_claim
from thereexists.certificates.llama.rounding import DTYPES
from thereexists.certificates.llama.run import loaded
from thereexists.certificates.llama.tokens import BOS, SYMBOLS
from thereexists.certificates.llama.verify import proofs
from thereexists.core.errors import CannotBuild, NotProved, ThereExistsError

pytest.importorskip("transformers")


def said(claim, words):
    """What the circuit says after every prefix of strings of numbers; an answer behind it breaks no group either."""
    circuit = claim.circuit()
    circuit.exclusive()
    symbol = {frozenset(case.on): case.right[0][0] - claim.first_answer for case in circuit.cases if not case.done}
    rows = sorted({row for on in symbol for row in on})
    found = []
    for word in words:
        X = circuit.run(np.array([BOS, *(SYMBOLS + a for a in word), claim.first_answer]))
        found.append([symbol.get(frozenset(row for row in rows if X[j, row])) for j in range(1, len(word) + 1)])
    return found


def numbers(alphabet, string):
    return [alphabet.index(a) for a in string]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", programs())
def test_the_circuit_is_the_program_on_every_string(name):
    program = programs()[name]
    claim, words = claim_of(program), strings("ab", 4)
    wanted = P.interpret(program, words)
    found = said(claim, [numbers("ab", word) for word in words])
    assert found == [numbers(program.alphabet, string) for string in wanted]
    assert read_claimed(claim.describe()) == claim


@pytest.mark.slow
def test_random_programs():
    rng, done = random.Random(0), 0
    for _ in range(300):
        program = drawn(rng)
        claim = claim_of(program)
        tokens = claim.drawn(np.random.default_rng(done), 12)[:, 1:] - SYMBOLS
        letters = claim.alphabets.alphabet
        wanted = P.interpret(program, ["".join(letters[a] for a in word) for word in tokens])
        assert said(claim, tokens) == [numbers(program.alphabet, string) for string in wanted]
        done += 1
    assert done > 200


s = P.symbols("ab", n=4)
REFUSED = {
    "'sort'": s.sort(),
    "'flip' looks at later tokens": s.flip(),
    "'roll' looks at later tokens": s.roll(1),
    "'sum' is taken over all tokens": P.argmax(P.counts(s), "ab"),
    "'find' looks at all tokens": P.find(s, s.delay(1, fill="-"), s, default="?"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_not_causal_is_refused_by_name(why):
    with pytest.raises(CannotBuild, match=why):
        te.build(REFUSED[why], dtypes=("float64",)).lowerable()


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama") / "induction"
    te.export(te.build(programs()["induction"], dtypes=("float64",)), "llama", folder)
    return folder


def other_default(record):
    record["claim"]["symbols"]["output_alphabet"][2:] = ["!"]


def swapped(record):
    record["claim"]["symbols"]["output_alphabet"][:2] = ["b", "a"]


def longer(record):
    record["claim"]["program"]["n"] = 5


def other_table(record):
    node = next(node for node in record["claim"]["program"]["nodes"] if node["operation"] == "interp")
    node["settings"]["values"].reverse()


def the_first(record):
    """Found is the first token with the key, and not the last."""
    node = [node for node in record["claim"]["program"]["nodes"] if node["operation"] == "constant"]
    array = next(n["settings"]["array"] for n in node if len({tuple(row) for row in n["settings"]["array"]}) == 4)
    array.reverse()


def from_the_end(record):
    node = next(node for node in record["claim"]["program"]["nodes"] if node["operation"] == "take")
    node["settings"]["source"][1] = -1


def sees_all(record):
    node = next(node for node in record["claim"]["program"]["nodes"] if node["operation"] == "attend")
    node["settings"]["causal"] = False


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "forged", [other_default, swapped, longer, other_table, the_first, from_the_end, sees_all], ids=lambda f: f.__name__
)
def test_a_forged_claim_is_caught(stock, tmp_path, forged):
    folder = redo(copied(stock, tmp_path / "forged"), forged)
    try:
        assert te.verify(folder).holds is False
    except ThereExistsError as error:
        assert "truncated or changed" in str(error) or "is not a complete" in str(error)  # noqa: PT017


def test_it_holds_and_a_changed_weight_does_not(stock, tmp_path):
    verdict = te.verify(stock)
    assert verdict.holds, verdict.reasons
    assert [check.name for check in verdict.evidence] == ["files", "class", "proof", "proof", "card", "trial"]

    def changed(w):
        W = w["model.layers.2.mlp.down_proj.weight"]
        W[tuple(W.nonzero()[5])] *= -1

    assert te.verify(forge_weights(copied(stock, tmp_path / "weights"), changed)).holds is False


@pytest.mark.slow
@pytest.mark.parametrize("name", ["induction", "count", "largest"])
def test_single_weights_are_caught_or_change_nothing(tmp_path, name):
    te.export(te.build(programs()[name], dtypes=("float64",)), "llama", tmp_path / "stock")
    checkpoint = read_checkpoint(tmp_path / "stock", read_claim(tmp_path / "stock"))
    tokens = np.array([[BOS, *(SYMBOLS + a for a in numbers("ab", word))] for word in strings("ab", 4)])
    models, rng = (
        {dtype: loaded(tmp_path / "stock", dtype) for dtype in DTYPES},
        np.random.default_rng(0),
    )
    names, passed = sorted(checkpoint.weights), 0
    for _ in range(60):
        which = names[rng.integers(len(names))]
        weight = checkpoint.weights[which].clone()
        places = weight.nonzero() if weight.count_nonzero() else torch.zeros((1, weight.ndim), dtype=torch.int64)
        at = tuple(places[rng.integers(len(places))].tolist())
        weight[at] = weight[at] * float(rng.choice([1.01, 1.05, 1.25, 0.5, -1.0])) + float(rng.choice([0.0, 0.0, 1.0]))
        found, _ = proofs(Checkpoint(**{**vars(checkpoint), "weights": {**checkpoint.weights, which: weight}}))
        for dtype in found:
            passed += 1
            there = models[dtype].get_parameter(which)
            kept = there.data.clone()
            there.data.copy_(weight)
            with torch.no_grad():
                logits = models[dtype](torch.from_numpy(tokens)).logits.float().numpy()
            assert checkpoint.claim.answers_right(tokens, logits), (which, at, dtype)
            there.data.copy_(kept)
    assert passed < 120


def settings_of(record, operation):
    return next(node["settings"] for node in record["program"]["nodes"] if node["operation"] == operation)


SIZES = {
    "a place missing": lambda r: settings_of(r, "take")["source"].pop(),
    "a place too many": lambda r: settings_of(r, "take")["source"].append(0),
    "a place beyond the string": lambda r: settings_of(r, "take")["source"].__setitem__(3, 99),
    "a place from the end": lambda r: settings_of(r, "take")["source"].__setitem__(3, -1),
    "a row missing": lambda r: settings_of(r, "constant")["array"].pop(),
    "a row too many": lambda r: settings_of(r, "constant")["array"].append([0.0]),
    "a column too many": lambda r: [row.append(0.0) for row in settings_of(r, "constant")["array"]],
    "a ragged row": lambda r: settings_of(r, "constant")["array"][1].append(0.0),
    "other features": lambda r: r["program"]["nodes"][-1].update(d=2),
}


@pytest.mark.parametrize("fault", SIZES)
def test_a_witness_with_other_sizes_is_not_exported(tmp_path, fault):
    """Planted faults, with the digest redone: one sentence from every verb that reads the program as tables."""
    program = P.recode(P.symbols("abc", n=4).delay(1, fill="z"), {"a": "x"})
    te.build(program, dtypes=("float32",)).save(tmp_path / "w")
    forge_record(tmp_path / "w", SIZES[fault])
    with pytest.raises(ThereExistsError):
        te.export(te.load(tmp_path / "w"), "llama", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_many_large_look_ups_are_refused_in_time():
    """1,024 symbols, and look-ups over all pairs of them: a file of 22 kB that once asked for hours."""
    S, nodes = 1024, []

    def node(operation, arguments, d, /, **settings):
        nodes.append({"operation": operation, "arguments": arguments, "d": d, "settings": settings})
        return len(nodes) - 1

    def together(first, second):
        parts = [node("mix", [first], 2, matrix=[[1.0], [0.0]]), node("mix", [second], 2, matrix=[[0.0], [1.0]])]
        return node("linear", parts, 2, coefficients=[1.0, 1.0])

    tokens = node("tokens", [], 1, d=1, low=0, high=S - 1, shorter=False)
    place, one = node("constant", [], 1, array=[[0.0], [1.0]]), node("constant", [], 1, array=[[1.0], [1.0]])
    query = together(node("linear", [tokens], 1, coefficients=[4096.0]), one)
    key = together(tokens, place)
    start = [dict(each) for each in nodes]

    def claim(look_ups):
        nodes[:] = start
        found = [node("attend", [query, key, tokens], 1, causal=True, called="find") for _ in range(look_ups)]
        node("linear", [tokens, *found], 1, coefficients=[1.0] + [0.0] * look_ups)
        letters = [chr(0x4E00 + k) for k in range(S)]
        stated = {"n": 2, "nodes": nodes}
        return read_claimed(
            {"kind": "program", "program": stated, "symbols": {"alphabet": letters, "output_alphabet": letters}}
        )

    began = time.process_time()
    claim(4).circuit()
    with pytest.raises(NotProved, match="no more are written out"):
        claim(20).circuit()
    assert time.process_time() - began < 20  # one look-up alone took twice that
