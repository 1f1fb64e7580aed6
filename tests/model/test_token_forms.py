"""Recall by key, safe dtypes and records of token witnesses: the weights decide, and a forged file is caught."""

import copy
import dataclasses
import itertools

import numpy as np
import pytest
import torch

import thereexists as te
from tests.hostile import forge_weights
from thereexists.certificates.stored_tokens import sums_of
from thereexists.core.errors import BadWitnessFile, InvalidInput
from thereexists.evaluate.recall import KeyIndex
from thereexists.functions.pairs import read_table
from thereexists.model import Attention, EmbeddedTransformer, FeedForward, Stage


@pytest.fixture(scope="module")
def rare():
    """200 pairs; the token "zebra" is in one of them."""
    rng = np.random.default_rng(0)
    inputs = [("zebra", "w1")] + [tuple(f"w{i}" for i in rng.integers(0, 30, rng.integers(2, 5))) for _ in range(199)]
    inputs = list(dict.fromkeys(inputs))
    return te.memorise(inputs, [x[::-1] for x in inputs])


def part(network, stage, name):
    return getattr(network.stages[stage].feed_forward, name)[0]


def out_row(network):
    return int(network.W_out.argmax(1)[0])


def value_row(network):
    return int(part(network, "recall", "W_2").any(1).nonzero()[0, 0])


def embedding_writes_out(network, zebra):
    network.embedding[zebra, out_row(network)] += 1


def embedding_writes_value(network, zebra):
    network.embedding[zebra, value_row(network)] += 1


def read_out_doubles(network, zebra):
    network.W_out *= 2


def bias_on_out(stage):
    def change(network, zebra):
        part(network, stage, "b_2")[out_row(network)] += 1

    return change


def select_reads_a_code(network, zebra):
    part(network, "select", "W_1")[:, 0] = 8.0


def sums_write_out(network, zebra):
    part(network, "sums", "W_2")[out_row(network), 0] = 1.0


def codes_write_value(network, zebra):
    part(network, "codes", "W_2")[value_row(network), :] = 1.0


def literal_reads_a_code(network, zebra):
    part(network, "sums", "W_1")[0, 0] = -40.0


def attention_writes_out(network, zebra):
    network.stages["sums"].attention.W_O[0, 0, out_row(network), 0] = 8.0


def two_units_alike(network, zebra):
    part(network, "recall", "W_1")[1] = part(network, "recall", "W_1")[0]


def recall_writes_out(network, zebra):
    part(network, "recall", "W_2")[out_row(network)] = 1.0


FAULTS = {
    "the embedding writes an out row": embedding_writes_out,
    "the embedding writes a value row": embedding_writes_value,
    "the read-out doubles": read_out_doubles,
    **{f"{stage} adds a constant to an out row": bias_on_out(stage) for stage in ("codes", "sums", "recall", "select")},
    "select reads a code row": select_reads_a_code,
    "the sums layer writes an out row": sums_write_out,
    "the codes layer writes a value row": codes_write_value,
    "a literal reads a token's own code": literal_reads_a_code,
    "the attention writes an out row": attention_writes_out,
    "two units with one key": two_units_alike,
    "the memory writes an out row": recall_writes_out,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_network_of_another_form_is_not_recalled_by_key(rare, fault, tmp_path):
    network = copy.deepcopy(rare.network)
    zebra = 1 + rare.vocabulary.number["zebra"]
    assert KeyIndex.of(network) is not None
    with torch.no_grad():
        FAULTS[fault](network, zebra)
    forged = dataclasses.replace(rare, network=network)
    assert KeyIndex.of(network) is None
    assert not forged.exact("dense").all()
    assert np.array_equal(forged.run(forged.inputs), forged.run(forged.inputs, "dense"))
    forged.save(tmp_path / "w")
    verdict = te.verify(tmp_path / "w")  # also where one pair of 200 is wrong, which a sample may miss
    assert verdict.holds is False
    assert "recall" in [check.name for check in verdict.evidence if not check.passed]


def again(stage, attention=None):
    weights = [w.detach() for w in stage.feed_forward.parameters_list()]
    if attention is None:
        return Stage(None, FeedForward(*(torch.cat([w, w]) for w in weights)))
    return Stage(attention, stage.feed_forward)


@pytest.mark.parametrize("how", ["attention", "depth"])
def test_extra_attention_or_a_second_layer_is_not_recalled_by_key(rare, how):
    old = rare.network
    extra = None
    if how == "attention":
        extra = Attention(*(w.detach().clone() for w in old.stages["sums"].attention.parameters_list()))
        with torch.no_grad():
            extra.W_O.zero_()
            extra.W_V[0, 0, 0, 0], extra.W_O[0, 0, out_row(old), 0] = 1.0, 8.0
    stages = {name: again(s, extra) if name == "select" else s for name, s in old.stages.items()}
    network = EmbeddedTransformer(
        stages, old.W_out.detach(), embedding=old.embedding.detach(), E=old.E.detach(), safe=old.safe
    )
    forged = dataclasses.replace(rare, network=network)
    assert KeyIndex.of(network) is None
    assert not forged.exact().all()
    assert np.array_equal(forged.run(forged.inputs), forged.run(forged.inputs, "dense"))


def test_the_index_follows_the_weights(rare):
    witness = rare.to("float64")
    assert witness.exact().all()
    with torch.no_grad():
        part(witness.network, "recall", "W_2").zero_()
    assert not witness.exact().any()


# --- what is summed, and the dtypes that follow ----------------------------------------------------------------------


def test_the_weights_say_what_is_summed(rare):
    assert sums_of(rare.network) == rare.sums == "codes"
    rows = list(itertools.product(range(3), repeat=3))
    for symmetric in (False, True):
        function = sorted if symmetric else lambda x: x[::-1]
        table = te.build(te.Table(rows, [list(function(x)) for x in rows], symmetric=symmetric), construction="compact")
        for dtype in ("float64", "bfloat16"):
            assert sums_of(table.to(dtype).network) == table.sums == ("counts" if symmetric else "slots")


def test_a_forged_label_does_not_make_a_dtype_safe(tmp_path):
    table = te.build(te.Table.of(sorted, range(2), 16, symmetric=True), construction="compact")
    for label in ("slots", "codes"):
        forged = dataclasses.replace(table, sums=label)
        assert forged.verdicts()["bfloat16"].holds is False
        forged.save(tmp_path / label)
        assert te.verify(tmp_path / label).holds is False
        with pytest.raises(te.ThereExistsError, match="its weights sum counts"):
            te.load(tmp_path / label, "bfloat16")
    other = copy.deepcopy(table.network)
    with torch.no_grad():
        part(other, "gather", "W_1")[0, 0] += 1.0  # no known form any more: nothing is proved of it
    assert sums_of(other) is None
    assert dataclasses.replace(table, network=other, sums="codes").verdicts()["float64"].holds is None


# --- records and tables ----------------------------------------------------------------------------------------------

RECORDS = {
    "a token that is no token": (lambda r: r["vocabulary"].__setitem__(0, [1]), "a string or an integer"),
    "a token twice": (lambda r: r["vocabulary"].__setitem__(0, r["vocabulary"][1]), "every token once"),
    "no vocabulary": (lambda r: r.update(output_vocabulary="words"), "must be a list of tokens"),
    "half a surrogate pair": (lambda r: r["vocabulary"].__setitem__(0, "\ud800"), "valid Unicode"),
    "n of another type": (lambda r: r["tokens"].update(n="4"), "'n' must be a positive whole number"),
    "another n": (lambda r: r["tokens"].update(n=99), r"pairs must be whole numbers \(pairs, 99\)"),
    "base 0": (lambda r: r["tokens"].update(base=0), "'base' must be"),
    "digits true": (lambda r: r["tokens"].update(digits=True), "'digits' must be"),
    "unknown sums": (lambda r: r["tokens"].update(sums="all"), "'sums' must be"),
    "fixed 1": (lambda r: r["tokens"].update(fixed=1), "'fixed' must be"),
    "symmetric null": (lambda r: r["tokens"].update(symmetric=None), "'symmetric' must be"),
    "info a list": (lambda r: r.update(info=[]), "must be objects"),
    "tokens a list": (lambda r: r.update(tokens=[]), "must be objects"),
    "structure a list": (lambda r: r.update(structure=[]), "not a complete witness"),
    "stages a list": (lambda r: r["structure"].update(stages=[]), "not a complete witness"),
}


@pytest.mark.parametrize("fault", RECORDS)
def test_a_record_that_no_witness_has_is_refused(rare, fault, tmp_path):
    change, message = RECORDS[fault]
    rare.save(tmp_path / "w")
    forge_weights(tmp_path / "w", record=change)
    with pytest.raises(BadWitnessFile, match=message):
        te.load(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds is False


def test_half_a_surrogate_pair_is_no_token():
    with pytest.raises(InvalidInput, match="valid Unicode text"):
        te.memorise([["\ud800"]], [["a"]])


def test_columns_are_taken_by_their_numbers(tmp_path):
    header, row = "y2,x10,x2,y1,x1,x3,x4,x5,x6,x7,x8,x9", "102,10,2,101,1,3,4,5,6,7,8,9"
    header, row = header + "".join(f",y{k}" for k in range(3, 11)), row + "".join(f",{100 + k}" for k in range(3, 11))
    (tmp_path / "t.csv").write_text(f"{header}\n{row}\n")
    assert read_table(tmp_path / "t.csv")[:2] == ([list(range(1, 11))], [list(range(101, 111))])


@pytest.mark.parametrize("header", ["x1,x3,y1,y2", "x0,x1,y1,y2", "x1,x1,y1,y2", "x,y", "x1,x2,y1", "x1,y1,z1"])
def test_a_header_with_other_numbers_is_refused(tmp_path, header):
    (tmp_path / "t.csv").write_text(f"{header}\n" + ",".join("0" * len(header.split(","))) + "\n")
    with pytest.raises(InvalidInput, match="x1 to xn"):
        read_table(tmp_path / "t.csv")
