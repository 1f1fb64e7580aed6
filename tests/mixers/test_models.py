"""The BERT-scale models: losses, generation, saving and loading, and what they refuse."""

import json
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
)
from transformers.utils import logging

from tests.mixers.cases import CASES, IDS, SMALL, rounding, small
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.mixers import (
    MIXERS,
    MixerConfig,
    MixerForCausalLM,
    MixerForMaskedLM,
    MixerForSeq2SeqLM,
    MixerForSequenceClassification,
    MixerModel,
    load_model,
    mixer_config,
)
from thereexists.patterns import Step

every_case = pytest.mark.parametrize(("name", "choice"), CASES, ids=IDS)
every_mixer = pytest.mark.parametrize("name", MIXERS)
logging.set_verbosity_error()
logging.disable_progress_bar()


def build(task, config, seed=0):
    torch.manual_seed(seed)
    return task(config).double().eval()


def size(x):
    return float(x.detach().abs())


def words(batch=3, n=12, seed=0):
    return torch.randint(5, 50, (batch, n), generator=torch.Generator().manual_seed(seed))


def mask(batch=3, n=12):
    real = torch.ones(batch, n, dtype=torch.long)
    real[0, 7:] = 0
    return real


def some_labels(share, seed=0):
    chosen = torch.rand(3, 12, generator=torch.Generator().manual_seed(seed)) < share
    return torch.where(chosen, words(), -100)


# ---- masked language modelling ------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@every_case
@pytest.mark.parametrize("norm_first", [False, True])
def test_logits_at_labelled_positions_only_give_the_same_loss(name, choice, norm_first):
    model, labels = build(MixerForMaskedLM, small(name, choice, norm_first=norm_first)), some_labels(0.15)
    plain = model(words(), mask(), labels=labels)
    sparse = model(words(), mask(), labels=labels, sparse_prediction=True)
    assert plain.logits.shape == (3, 12, 50)
    assert torch.allclose(sparse.logits, plain.logits[labels != -100], rtol=0, atol=rounding(200, scale=10))
    assert size(plain.loss - sparse.loss) <= rounding(200, 36, scale=10)
    gradients = [torch.autograd.grad(out.loss, list(model.parameters()), allow_unused=True) for out in (plain, sparse)]
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert torch.allclose(one, other, rtol=0, atol=rounding(2000, 36, scale=10))


@settings(max_examples=15)
@given(share=st.floats(0.05, 1.0), seed=st.integers(0, 99))
def test_labelled_positions_in_any_number(share, seed):
    labels = some_labels(share, seed)
    labels[0, 0] = 7  # at least one
    model = build(MixerForMaskedLM, small("average", sparse_prediction=True))
    sparse, plain = model(words(), labels=labels), model(words(), labels=labels, sparse_prediction=False)
    assert sparse.logits.shape == (int((labels != -100).sum()), 50)
    assert size(plain.loss - sparse.loss) <= rounding(200, 36, scale=10)


def test_without_labels_all_logits_are_there():
    model = build(MixerForMaskedLM, small("average", sparse_prediction=True))
    assert model(words()).logits.shape == (3, 12, 50)


# ---- padding and causality of whole models --------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("norm_first", [False, True])
def test_padding_never_reaches_real_tokens_of_a_model(name, choice, norm_first):
    model, ids, real = build(MixerModel, small(name, choice, norm_first=norm_first)), words(), mask().bool()
    other = torch.where(real, ids, 49 - ids % 7)
    assert not torch.equal(ids, other)
    with torch.no_grad():
        one, two = model(ids, real), model(other, real)
    assert torch.equal(one.last_hidden_state[real], two.last_hidden_state[real])


def test_the_mean_of_the_real_tokens_is_pooled_when_asked_for():
    model, ids, real = build(MixerModel, small("sepconv", pooling="mean")), words(), mask().bool()
    with torch.no_grad():
        out = model(ids, real)
        means = torch.stack([x[kept].mean(0) for x, kept in zip(out.last_hidden_state, real, strict=True)])
        expected = torch.tanh(model.pooler(means))
        assert (out.pooler_output - expected).abs().max() <= 64 * torch.finfo(expected.dtype).eps
        other = torch.where(real, ids, 49 - ids % 7)
        assert torch.equal(model(other, real).pooler_output, out.pooler_output)
        assert not torch.equal(model(ids).pooler_output, out.pooler_output)
    with pytest.raises(InvalidInput, match="pooling"):
        small("sepconv", pooling="last")


def test_a_classifier_that_would_see_one_token_is_refused():
    with pytest.raises(InvalidInput, match="nothing but itself"):
        build(MixerForSequenceClassification, small("attention", is_decoder=True))
    build(MixerForSequenceClassification, small("attention", is_decoder=True, pooling="mean"))


@every_case
def test_a_mask_of_ones_is_no_mask(name, choice):
    model = build(MixerModel, small(name, choice))
    with torch.no_grad():
        assert torch.equal(model(words(), torch.ones(3, 12)).last_hidden_state, model(words()).last_hidden_state)


@every_case
def test_a_decoder_never_looks_ahead(name, choice):
    model, ids = build(MixerForCausalLM, small(name, choice, is_decoder=True)), words()
    later = ids.clone()
    later[:, 6:] = words(seed=1)[:, 6:]
    with torch.no_grad():
        assert torch.equal(model(ids).logits[:, :6], model(later).logits[:, :6])
        assert not torch.equal(model(ids).logits[:, 6:], model(later).logits[:, 6:])


def test_causal_loss_predicts_the_next_token():
    model, ids = build(MixerForCausalLM, small("sepconv", is_decoder=True)), words()
    out = model(ids, labels=ids)
    by_hand = -out.logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None]).mean()
    assert size(out.loss - by_hand) <= rounding(200, scale=10)


# ---- generation ---------------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@every_mixer
def test_greedy_generation_is_the_argmax_one_token_after_the_other(name):
    model, ids = build(MixerForCausalLM, small(name, is_decoder=True, eos_token_id=None)), words(n=4)
    got = model.generate(ids, max_new_tokens=5, do_sample=False, attention_mask=torch.ones_like(ids))
    with torch.no_grad():
        for _ in range(5):
            ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(got, ids)


@pytest.mark.parametrize("name", ["attention", "average", "sepconv"])
def test_a_prompt_padded_on_the_left_is_continued_as_if_it_stood_alone(name):
    model, ids = build(MixerForCausalLM, small(name, is_decoder=True, eos_token_id=None)), words(n=7)
    padded = torch.cat([torch.zeros_like(ids[:, :3]), ids], dim=1)
    real = (torch.arange(10) >= 3).long().expand(len(ids), -1)
    places = (real.cumsum(1) - 1).clamp(min=0)
    how = {"max_new_tokens": 5, "do_sample": False, "output_logits": True, "return_dict_in_generate": True}
    alone = model.generate(ids, attention_mask=torch.ones_like(ids), **how)
    for at in ({}, {"position_ids": places}):
        got = model.generate(padded, attention_mask=real, **at, **how)
        assert torch.equal(got.sequences[:, 10:], alone.sequences[:, 7:])
        for mine, theirs in zip(got.logits, alone.logits, strict=True):
            assert size((mine - theirs).abs().max()) <= rounding(200, scale=10)
    moved = model.generate(padded, attention_mask=real, position_ids=places + 2, **how)
    assert size((moved.logits[0] - alone.logits[0]).abs().max()) > 1e-3  # what is given is not dropped


def test_a_sequence_of_padding_alone_spoils_no_other():
    config = small("attention", pooling="mean", num_labels=2)
    model, ids = build(MixerForSequenceClassification, config), words()
    real = torch.ones_like(ids)
    real[1] = 0
    out = model(ids, attention_mask=real, labels=torch.zeros(len(ids), dtype=torch.long))
    out.loss.backward()
    assert out.logits.isfinite().all()
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in model.parameters())


@pytest.mark.sampled(3)
@every_mixer
def test_greedy_translation_is_the_argmax_one_token_after_the_other(name):
    config = small(name, is_encoder_decoder=True, num_decoder_layers=2, eos_token_id=None)
    model, source = build(MixerForSeq2SeqLM, config), words()
    got = model.generate(source, attention_mask=mask(), max_new_tokens=5, do_sample=False)
    ids = torch.full((3, 1), 2)
    with torch.no_grad():
        for _ in range(5):
            logits = model(source, mask(), decoder_input_ids=ids).logits
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(got, ids)


@torch.no_grad()
def test_beams_find_a_likelier_translation_than_greed():
    model, source = build(MixerForSeq2SeqLM, small("attention", is_encoder_decoder=True, eos_token_id=None)), words()
    for weight in model.parameters():
        weight.mul_(3)  # far from uniform predictions

    def likelihood(ids):
        logits = model(source, decoder_input_ids=ids).logits[:, :-1].log_softmax(-1)
        return logits.gather(-1, ids[:, 1:, None]).sum((1, 2))

    options = {"max_new_tokens": 4, "do_sample": False}
    greedy = likelihood(model.generate(source, **options))
    beams = likelihood(model.generate(source, num_beams=50, length_penalty=0.0, **options))
    assert (beams >= greedy - rounding(2000, scale=100)).all()


@every_mixer
def test_translation_reads_its_source_but_not_its_padding(name):
    model, source = build(MixerForSeq2SeqLM, small(name, is_encoder_decoder=True)), words()
    target, real = words(seed=3), mask().bool()
    with torch.no_grad():
        plain = model(source, mask(), labels=target)
        padded = model(torch.where(real, source, 49 - source % 7), mask(), labels=target)
        other = model(source.flip(1), labels=target)
    assert torch.equal(plain.logits, padded.logits)
    assert not torch.equal(plain.logits, other.logits)
    assert plain.loss.isfinite()


def test_decoder_inputs_are_the_labels_one_place_to_the_right():
    model = build(MixerForSeq2SeqLM, small("average", is_encoder_decoder=True))
    labels = torch.tensor([[7, 8, 9, -100]])
    assert model.prepare_decoder_input_ids_from_labels(labels).tolist() == [[2, 7, 8, 9]]
    assert model.prepare_decoder_input_ids_from_labels(labels.flip(1)).tolist() == [[2, 0, 9, 8]]


# ---- classification -------------------------------------------------------------------------------------------------


@every_mixer
def test_classification(name):
    model = build(MixerForSequenceClassification, small(name, num_labels=3))
    labels = torch.tensor([0, 2, 1])
    out = model(words(), mask(), labels=labels)
    by_hand = -out.logits.log_softmax(-1)[torch.arange(3), labels].mean()
    assert out.logits.shape == (3, 3)
    assert size(out.loss - by_hand) <= rounding(200, scale=10)


def test_regression_and_several_labels():
    one = build(MixerForSequenceClassification, small("average", num_labels=1))
    target = torch.tensor([0.5, 1.0, 2.0])
    out = one(words(), labels=target)
    assert size(out.loss - ((out.logits[:, 0] - target) ** 2).mean()) <= rounding(200, scale=10)
    many = build(MixerForSequenceClassification, small("average", num_labels=2))
    wanted = torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    out = many(words(), labels=wanted)
    sigmoid = torch.sigmoid(out.logits)
    by_hand = -(wanted * sigmoid.log() + (1 - wanted) * (1 - sigmoid).log()).mean()
    assert size(out.loss - by_hand) <= rounding(200, scale=10)


# ---- on the ecosystem's rails ---------------------------------------------------------------------------------------


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("auto", "task", "more"),
    [
        (AutoModel, MixerModel, {}),
        (AutoModelForMaskedLM, MixerForMaskedLM, {}),
        (AutoModelForSequenceClassification, MixerForSequenceClassification, {"num_labels": 3}),
        (AutoModelForCausalLM, MixerForCausalLM, {"is_decoder": True}),
        (AutoModelForSeq2SeqLM, MixerForSeq2SeqLM, {"is_encoder_decoder": True}),
    ],
)
@every_mixer
def test_saved_and_loaded_by_the_auto_classes(auto, task, more, name, tmp_path):
    model = build(task, small(name, **more))
    model.save_pretrained(tmp_path)
    assert [file.name for file in tmp_path.glob("*.safetensors")] == ["model.safetensors"]
    again = auto.from_pretrained(tmp_path, dtype=torch.float64).eval()
    assert type(again) is task
    state = again.state_dict()
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert AutoConfig.from_pretrained(tmp_path).mixer == name


def test_a_configuration_survives_json():
    config = small("sparse", {"pattern": "dilated", "pattern_options": {"window": 2, "dilation": [1, 2]}})
    again = MixerConfig.from_dict(json.loads(config.to_json_string()))
    assert again.to_dict() == config.to_dict()
    assert torch.isfinite(MixerModel(again)(words()).last_hidden_state).all()


def test_the_head_is_tied_to_the_word_embeddings(tmp_path):
    model = build(MixerForMaskedLM, small("average"))
    assert model.head.decoder.weight is model.model.embeddings.word_embeddings.weight
    model.save_pretrained(tmp_path)
    again = load_model(tmp_path, MixerForMaskedLM)
    assert again.head.decoder.weight is again.model.embeddings.word_embeddings.weight


def test_a_masked_language_model_goes_on_as_a_classifier(tmp_path):
    model = build(MixerForMaskedLM, small("sepconv"))
    model.save_pretrained(tmp_path)
    classifier = load_model(tmp_path, MixerForSequenceClassification, mixer="sepconv", num_labels=3)
    assert classifier.classifier.out_features == 3
    trained, loaded = model.model.state_dict(), classifier.model.state_dict()
    assert all(torch.equal(value, loaded[key].double()) for key, value in trained.items())


@every_case
def test_gradient_checkpointing_changes_nothing(name, choice):
    model = build(MixerForMaskedLM, small(name, choice)).train()
    losses = []
    for _ in range(2):
        model.zero_grad()
        loss = model(words(), mask(), labels=words()).loss
        loss.backward()
        losses.append((loss.detach(), model.model.embeddings.word_embeddings.weight.grad.clone()))
        model.gradient_checkpointing_enable({"use_reentrant": False})
    assert torch.equal(losses[0][0], losses[1][0])
    assert torch.equal(losses[0][1], losses[1][1])


def test_hidden_states_on_request():
    for norm_first in (False, True):
        out = build(MixerModel, small("average", norm_first=norm_first))(words(), output_hidden_states=True)
        assert len(out.hidden_states) == 4
        assert torch.equal(out.hidden_states[-1], out.last_hidden_state)


def test_the_same_seed_gives_the_same_weights():
    one, two = (build(MixerForMaskedLM, small("bproj"), seed=4) for _ in range(2))
    other = build(MixerForMaskedLM, small("bproj"), seed=5)
    name = "model.encoder.layer.0.mixer.weight"
    assert torch.equal(one.state_dict()[name], two.state_dict()[name])
    assert not torch.equal(one.state_dict()[name], other.state_dict()[name])


def test_initial_weights_have_the_stated_spread():
    model = build(MixerModel, small("bproj", max_position_embeddings=200))
    weight = model.encoder.layer[0].mixer.weight
    # the standard deviation of m = 40,000 normal entries is known to a relative 1/√(2m); five of these
    assert size(weight.std() * 200**0.5 - 1) <= 5 / (2 * weight.numel()) ** 0.5


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mixer": "fourier"}, "no mixer named 'fourier'"),
        ({"mixer": "hybrid", "hybrid_blocks": 4}, r"'hybrid_blocks' must lie in 0\.\.3.*got 4"),
        ({"hybrid_blocks": -1}, "'hybrid_blocks' must lie"),
        ({"mixer": "sparse"}, "needs a 'pattern'"),
        ({"mixer": "sparse", "pattern": "spiral"}, "no pattern named 'spiral'"),
        ({"mixer": "sparse", "pattern": "star", "pattern_options": {"stride": 2}}, "'star' has no option 'stride'"),
        ({"mixer": "sparse", "pattern": "star", "pattern_config": "all"}, "'pattern_config' must be one of union"),
        ({"kernel_size": 4}, "'kernel_size' must be odd"),
        ({"num_attention_heads": 5}, "multiple of 'num_attention_heads'"),
        ({"vocab_size": 0}, "'vocab_size' must be a positive integer; got 0"),
    ],
)
def test_a_wrong_configuration(fields, message):
    with pytest.raises(InvalidInput, match=message):
        MixerConfig(**{**SMALL, **fields})


STATED = [  # patterns of a stranger's config.json: (name, sizes)
    ("alternating", {"period": 10**9}),
    ("dilated", {"window": 2, "dilation": [1] * 10**6}),
    ("dilated", {"window": "x"}),
    ("random", {"seed": {"a": 1}}),
    (["star"], {}),
    ("star", [1]),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "sizes"), STATED)
def test_a_pattern_of_a_downloaded_config_is_bounded_before_it_is_built(name, sizes, tmp_path, monkeypatch):
    build(MixerForMaskedLM, small("sparse", {"pattern": "star"})).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "pattern": name, "pattern_options": sizes}))
    monkeypatch.setattr(Step, "__init__", lambda *args, **kwargs: pytest.fail("a pattern was built"))
    with pytest.raises(ThereExistsError):
        load_model(tmp_path, MixerForMaskedLM)


def test_a_pattern_is_bounded_again_at_the_length_at_hand(monkeypatch):
    """A config that was changed after its check, or that states a length which no sequence has."""
    config = small("sparse", {"pattern": "alternating"})
    config.pattern_options = {"period": 10**9}
    model = build(MixerModel, config)
    monkeypatch.setattr(Step, "__init__", lambda *args, **kwargs: pytest.fail("a pattern was built"))
    with pytest.raises(InvalidInput, match="pairs to list"):
        model(words(n=8))


def test_a_wrong_size_or_field():
    with pytest.raises(InvalidInput, match="no size named 'huge'"):
        mixer_config("huge")
    with pytest.raises(InvalidInput, match="no field 'width'"):
        mixer_config("tiny", width=3)


@every_mixer
def test_a_sequence_that_is_too_long(name):
    with pytest.raises(InvalidInput, match="20 positions; got a sequence of 21 tokens"):
        build(MixerModel, small(name))(words(n=21))


def test_a_pattern_that_does_not_fit():
    model = build(MixerModel, small("sparse", {"pattern": "butterfly"}))
    assert model(words(n=8)).last_hidden_state.shape == (3, 8, 16)
    with pytest.raises(InvalidInput, match="power of two; got n = 12"):
        model(words())


def test_the_wrong_kind_of_configuration_for_a_task():
    with pytest.raises(InvalidInput, match="looks both ways"):
        MixerForMaskedLM(small("average", is_decoder=True))
    with pytest.raises(InvalidInput, match="must not look ahead"):
        MixerForCausalLM(small("average"))
    with pytest.raises(InvalidInput, match="'is_encoder_decoder' set to True"):
        MixerForSeq2SeqLM(small("average"))


def test_wrong_inputs():
    model = build(MixerModel, small("average"))
    with pytest.raises(InvalidInput, match="either 'input_ids' or 'inputs_embeds'"):
        model()
    with pytest.raises(InvalidInput, match="must have the shape"):
        model(words(), torch.ones(3, 1, 1, 12))
    with pytest.raises(InvalidInput, match="keeps no attention matrices"):
        model(words(), output_attentions=True)
    with pytest.raises(InvalidInput, match="needs 'labels' or 'decoder_input_ids'"):
        build(MixerForSeq2SeqLM, small("average", is_encoder_decoder=True))(words())


def test_a_checkpoint_of_another_mixer(tmp_path):
    build(MixerForMaskedLM, small("sepconv")).save_pretrained(tmp_path)
    with pytest.raises(InvalidInput, match="has the mixer 'sepconv', not 'attention'"):
        load_model(tmp_path, MixerForMaskedLM, mixer="attention")
    with pytest.raises(InvalidInput, match="has the mixer 'sepconv', not 'bproj'"):
        MixerForMaskedLM.from_pretrained(tmp_path, config=small("bproj"))
    with pytest.raises(InvalidInput, match="has the mixer 'sepconv', not 'average'"):
        MixerForMaskedLM.from_pretrained(tmp_path, mixer="average")
    assert load_model(tmp_path, MixerForMaskedLM, mixer="sepconv").config.mixer == "sepconv"


def test_a_checkpoint_of_another_kind_of_model(tmp_path):
    build(MixerForSeq2SeqLM, small("average", is_encoder_decoder=True)).save_pretrained(tmp_path)
    with pytest.raises(InvalidInput, match=r"is not a MixerForMaskedLM: it lacks \d+ weights, such as model"):
        load_model(tmp_path, MixerForMaskedLM)


def test_other_sizes_than_the_checkpoint_has(tmp_path):
    build(MixerForMaskedLM, small("average")).save_pretrained(tmp_path)
    with pytest.raises(InvalidInput, match="other sizes than intermediate_size asks for"):
        load_model(tmp_path, MixerForMaskedLM, intermediate_size=32)


def test_a_checkpoint_that_lost_a_weight(tmp_path):
    build(MixerForMaskedLM, small("average")).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights.pop("model.encoder.layer.1.up.weight")
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidInput, match=r"lacks 1 weights, such as model\.encoder\.layer\.1\.up\.weight"):
        load_model(tmp_path, MixerForMaskedLM)


def test_a_folder_that_is_no_checkpoint(tmp_path):
    with pytest.raises(InvalidInput, match="no checkpoint in"):
        load_model(tmp_path / "nothing", MixerModel)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidInput, match="not valid JSON"):
        load_model(tmp_path, MixerModel)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    with pytest.raises(InvalidInput, match="model of type 'bert'"):
        load_model(tmp_path, MixerModel)
    small("average").save_pretrained(tmp_path)
    with pytest.raises(InvalidInput, match="no weights"):
        load_model(tmp_path, MixerModel)
    (tmp_path / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_model(tmp_path, MixerModel)


def test_the_example_of_the_documentation_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "docs" / "mixers.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    exec(compile(block, "docs/mixers.md", "exec"), {})
    assert (tmp_path / "build" / "mlm" / "model.safetensors").is_file()
