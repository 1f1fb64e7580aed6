"""Planted faults in a stock Llama folder, every hash redone: each is caught, by the proof or by a comparison."""

import json

import numpy as np
import pytest
import torch

import thereexists as te
from tests.certificates.llama.forging import copied, forge_json, forge_weights, redo
from thereexists.certificates.llama.card import begins_openly, opening
from thereexists.certificates.llama.format import Checkpoint, read_checkpoint, read_claim
from thereexists.certificates.llama.proof import prove
from thereexists.certificates.llama.rounding import DTYPES
from thereexists.certificates.llama.run import loaded
from thereexists.certificates.llama.tokens import BOS, SYMBOLS, vocabulary_of
from thereexists.certificates.llama.verify import proofs
from thereexists.core.errors import NotProved

pytest.importorskip("transformers")
L = "model.layers.{}.{}.weight"


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    """(ab|ba)* for up to 9 symbols: 4 layers, own rows 3 … , one head."""
    folder = tmp_path_factory.mktemp("llama") / "stock"
    te.export(te.build(te.automata.regex("(ab|ba)*", "ab"), n=9), "llama", folder)
    return folder


@pytest.fixture(scope="module")
def checkpoint(stock):
    return read_checkpoint(stock, read_claim(stock))


def test_it_holds_as_it_is(stock):
    verdict = te.verify(stock)
    assert verdict.holds, verdict.reasons
    assert [check.name for check in verdict.evidence] == ["files", "class", "origin", "proof", "proof", "card", "trial"]


def threshold(w):
    gate = w[L.format(1, "mlp.gate_proj")]
    unit = (gate[:, 3:] != 0).sum(1).argmax()
    gate[unit, 0] += 64.0  # −5/2 becomes −3/2: it is open where one of two is 1


def gate_sign(w):
    w[L.format(2, "mlp.down_proj")][3:, 0] *= -1


def other_factor(w):
    w[L.format(0, "mlp.up_proj")][0, 0] *= 2


def uncleared(w):
    w[L.format(3, "mlp.down_proj")][:, -1] *= 1 - 2.0**-6


def offset(w):
    """The last layer looks 7 tokens back, not 8."""
    q = w[L.format(3, "self_attn.q_proj")]
    z = torch.complex(q[:31, 0], q[32:63, 0]) * torch.exp(1j * 1e6 ** (-torch.arange(31) / 32))
    q[:31, 0], q[32:63, 0] = z.real, z.imag


def weak_sink(w):
    w[L.format(0, "self_attn.q_proj")][31, 0] *= 0.75


def key_of_symbols(w):
    w[L.format(1, "self_attn.k_proj")][0, 4] = 1.0


def value(w):
    v = w[L.format(1, "self_attn.v_proj")]
    v[:, [3, 4]] = v[:, [4, 3]]


def overheard(w):
    w[L.format(1, "self_attn.o_proj")][1, 0] = 2.0**-10  # the first token's mark


def norm(w):
    w[L.format(2, "input_layernorm")][5] = 1.0078125


def last_norm(w):
    w["model.norm.weight"][0] = -1.0


def embedding(w):
    w["model.embed_tokens.weight"][SYMBOLS, 3:] = w["model.embed_tokens.weight"][SYMBOLS + 1, 3:]


def constant(w):
    w["model.embed_tokens.weight"][SYMBOLS, 0] *= 2


def faint_constant(w):
    w["model.embed_tokens.weight"][:, 0] = 4.0


def unmarked(w):
    w["model.embed_tokens.weight"][BOS, 1] = 0.0


def read_out(w):
    head = w["lm_head.weight"]
    head[[5, 6]] = head[[6, 5]]  # accepted and rejected


def louder(w):
    w["lm_head.weight"][SYMBOLS] *= -1


def free_row(w):
    w[L.format(0, "mlp.down_proj")][-1, 0] = 1.0


def huge(w):
    w[L.format(0, "mlp.gate_proj")][0, -1] = 1e30  # on a row that is 0: 0 · ∞ would be no number


WEIGHTS = (threshold, gate_sign, other_factor, uncleared, offset, weak_sink, key_of_symbols, value, overheard, norm)
WEIGHTS += (last_norm, embedding, constant, faint_constant, unmarked, read_out, louder, free_row, huge)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", WEIGHTS, ids=lambda fault: fault.__name__)
def test_a_changed_weight_is_caught(stock, tmp_path, fault):
    verdict = te.verify(forge_weights(copied(stock, tmp_path / "forged"), fault))
    assert verdict.holds is False
    assert verdict.evidence[-1].name in ("proof", "files"), verdict.reasons


CONFIG = {
    "rms_norm_eps": 100000.0,
    "rope_theta": 10000.0,
    "num_key_value_heads": 2,
    "num_attention_heads": 2,
    "tie_word_embeddings": True,
    "hidden_act": "gelu",
    "attention_bias": True,
    "mlp_bias": True,
    "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    "num_hidden_layers": 3,
    "head_dim": 32,
    "max_position_embeddings": 8,
    "attention_dropout": 0.5,
    "eos_token_id": 5,
    "architectures": ["LlamaForSequenceClassification"],
    "model_type": "mistral",
    "auto_map": {"AutoModelForCausalLM": "modeling.Other"},
    "quantization_config": {"quant_method": "bitsandbytes"},
    "pretraining_tp": 2,
}


@pytest.mark.parametrize("field", CONFIG)
def test_a_changed_config_is_caught(stock, tmp_path, field):
    folder = copied(stock, tmp_path / "forged")
    assert (
        te.verify(forge_json(folder, "config.json", lambda config: config.update({field: CONFIG[field]}))).holds
        is False
    )


@pytest.mark.parametrize("field", ["rope_theta", "rope_scaling", "pretraining_tp", "dtype", "initializer_range"])
def test_a_config_that_leaves_something_to_the_loader_is_caught(stock, tmp_path, field):
    """transformers 4 reads ``rope_theta`` only: without it, another base than the one that was proved."""
    verdict = te.verify(forge_json(copied(stock, tmp_path / "forged"), "config.json", lambda config: config.pop(field)))
    assert verdict.holds is False
    assert f"{field} of config.json is missing" in verdict.reasons[0]


def test_another_theta_that_is_said_twice_is_caught_by_the_proof(stock, tmp_path):
    def change(config):
        config["rope_theta"] = config["rope_parameters"]["rope_theta"] = 2.0

    verdict = te.verify(forge_json(copied(stock, tmp_path / "forged"), "config.json", change))
    assert verdict.holds is False
    assert "leads by" in verdict.reasons[0]


def test_a_large_epsilon_is_caught_by_the_proof(checkpoint):
    large = Checkpoint(**{**vars(checkpoint), "eps": 2.0**14})
    for dtype in DTYPES:
        with pytest.raises(NotProved):
            prove(large, dtype)


OTHERS = {
    "generation_config.json": lambda g: g.update(do_sample=True),
    "tokenizer_config.json": lambda t: t.update(padding_side="right"),
    "tokenizer.json": lambda t: t["model"]["vocab"].update({"a": 4, "b": 3}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_changed_file_beside_the_weights_is_caught(stock, tmp_path, name):
    assert te.verify(forge_json(copied(stock, tmp_path / "forged"), name, OTHERS[name])).holds is False


def test_a_tokenizer_without_its_first_token_is_caught(stock, tmp_path):
    change = lambda t: t["post_processor"].update(single=t["post_processor"]["single"][1:])  # noqa: E731
    assert te.verify(forge_json(copied(stock, tmp_path / "forged"), "tokenizer.json", change)).holds is False


def test_a_card_that_says_more_is_caught(stock, tmp_path):
    folder = copied(stock, tmp_path / "forged")
    text = (folder / "README.md").read_text()
    (folder / "README.md").write_text(text.replace("at most 9 symbols", "at most 900 symbols"))
    verdict = te.verify(redo(folder))
    assert verdict.holds is False
    assert verdict.reasons[0].startswith("card")


def test_another_regular_expression_is_caught(stock, tmp_path):
    """The card and the record name it; the automaton and the weights are those of the first."""
    folder = copied(stock, tmp_path / "forged")
    card = (folder / "README.md").read_text()
    assert "`(ab|ba)*`" in card
    (folder / "README.md").write_text(card.replace("`(ab|ba)*`", "`a*b*`"))
    redo(folder, lambda record: record["claim"]["automaton"]["origin"].update(pattern="a*b*"))
    verdict = te.verify(folder)
    assert not verdict.holds
    assert "not the minimal one of 'a*b*'" in " ".join(verdict.reasons)


def test_no_text_is_read_as_an_answer():
    """Neither a word that looks like one nor a symbol with a special token in it."""
    words = vocabulary_of(te.automata.dfa({0: {"one": 0, "two": 0}}, 0, [0]))
    assert all(" " in words.texts[k] for k in range(words.outputs.start, len(words)))
    with pytest.raises(te.ThereExistsError, match=r"'<s>x' cannot be used"):
        vocabulary_of(te.automata.dfa({0: {"<s>x": 0, "two": 0}}, 0, [0]))


def test_a_claim_of_more_is_caught(stock, tmp_path):
    longer = redo(copied(stock, tmp_path / "longer"), lambda record: record["claim"].update(n=17))
    assert te.verify(longer).holds is False
    other = redo(copied(stock, tmp_path / "other"), lambda record: record["claim"]["automaton"].update(accept=[1]))
    assert te.verify(other).holds is False
    half = redo(
        copied(stock, tmp_path / "half"), lambda record: record.update(dtypes=["float32", "bfloat16", "float16"])
    )
    assert te.verify(half).holds is False


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors.index.json", "adapter_config.json", "x.py"])
def test_a_file_that_a_loader_may_prefer_is_caught(stock, tmp_path, name):
    folder = copied(stock, tmp_path / "forged")
    (folder / name).write_text("{}")
    assert te.verify(folder).holds is False


def test_a_changed_byte_is_caught_without_the_proof(stock, tmp_path):
    folder = copied(stock, tmp_path / "forged")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config))
    verdict = te.verify(folder)
    assert verdict.holds is False
    assert "SHA-256" in verdict.reasons[0]


def test_a_dtype_without_a_proof_is_not_claimed(checkpoint):
    """A query that leads by enough in float32 only."""
    weights = {name: weight.clone() for name, weight in checkpoint.weights.items()}
    for t in range(checkpoint.shape.layers):
        weights[L.format(t, "self_attn.q_proj")] /= 16
    found, reasons = proofs(Checkpoint(**{**vars(checkpoint), "weights": weights}))
    assert list(found) == ["float32"]
    assert "leads by" in reasons["bfloat16"]


def test_single_weights_are_caught_or_change_nothing(stock, checkpoint):
    """A random forger: whatever passes must still be right on every string of 9 symbols, in both dtypes."""
    rng = np.random.default_rng(0)
    ids = np.array(np.meshgrid(*[[0, 1]] * 9)).reshape(9, -1).T
    tokens = torch.from_numpy(np.concatenate([np.full((len(ids), 1), BOS), ids + SYMBOLS], axis=1))
    claim, models = checkpoint.claim, {dtype: loaded(stock, dtype) for dtype in DTYPES}
    names, passed = sorted(checkpoint.weights), 0
    for _ in range(30):
        name = names[rng.integers(len(names))]
        weights = dict(checkpoint.weights)
        changed = weights[name] = weights[name].clone()
        at = tuple(rng.integers(0, size) for size in changed.shape)
        changed[at] = (
            float(rng.choice([0.0, 1.0, -1.0, 2.0, 512.0])) if rng.random() < 0.5 else changed[at] * 1.25 + 0.125
        )
        found, _ = proofs(Checkpoint(**{**vars(checkpoint), "weights": weights}))
        for dtype in found:
            passed += 1
            model = models[dtype]
            kept = model.get_parameter(name).data.clone()
            model.get_parameter(name).data.copy_(changed)
            with torch.no_grad():
                assert claim.answers_right(tokens.numpy(), model(tokens).logits.float().numpy()), (name, at, dtype)
            model.get_parameter(name).data.copy_(kept)
    assert 0 < passed < 50


LIE = "In float16 too, for every prompt of any length, the answer is right. Nothing is assumed.\n\n"
FALSE = f"# What is proved\n\n{LIE}"
CARDS = {
    "in a comment": lambda front, claim, rest: f"{front}{FALSE}<!--\n\n{claim}\n{rest}",
    "in a fence": lambda front, claim, rest: f"{front}{FALSE}~~~\n\n{claim}{rest}",
    "in a fence that a tab closes": lambda front, claim, rest: f"{front}```\nx\n```\t\n\n{FALSE}```\n\n{claim}{rest}",
    "folded away": lambda front, claim, rest: f"{front}{FALSE}\\`<details>\\`\n\n{claim}{rest}",
    "behind an entity": lambda front, claim, rest: f"{front}{FALSE.replace('v', '&#118;')}{claim}{rest}",
    "behind other line ends": lambda front, claim, rest: f"{front}```\r```\r\r{FALSE}<details>\r\r```\n\n{claim}{rest}",
    "with more words": lambda front, claim, rest: f"{front}{claim[:-1]}{LIE}{rest}",
    "as a heading": lambda front, claim, rest: f"{front}{claim}{rest.replace('# ', '===', 1)}",
    "in a quotation": lambda front, claim, rest: f"{front}> {claim}{rest}",
    "with other facts in front": lambda front, claim, rest: (
        front.replace("tags", "license: proved everywhere\ntags") + claim + rest
    ),
    "without the last sentence": lambda front, claim, rest: f"{front}{claim}{rest.partition(chr(10) * 2)[2]}",
    "in other bytes": lambda front, claim, rest: f"{front}{claim.replace(' ', chr(160), 1)}{rest}",
    "of a model of numbers": lambda front, claim, rest: opening(claim, speaks=False) + rest,
}


@pytest.mark.parametrize("name", CARDS)
def test_a_card_begins_with_what_is_proved(name):
    section = "In float32, for every prompt: so.\n\n- assumed: `<s>`;\n"
    begin, more = opening(section, speaks=True), "A title\n\n## Sizes\n\n1 layer.\n"
    assert begins_openly((begin + more).encode(), section, speaks=True)
    front, _, _ = begin.partition("# What is proved")
    claim = f"# What is proved\n\n{section}"
    forged = CARDS[name](front, claim, (begin + more).partition(section)[2])
    assert not begins_openly(forged.encode(), section, speaks=True)
