"""Each task: its figure of merit against another way to compute it, and that it can be learnt at all."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.experiments.small_data import SMALL
from thereexists.core.errors import InvalidInput
from thereexists.experiments.sampling import IGNORED, Place
from thereexists.experiments.scoring import bleu, score_result
from thereexists.experiments.settings import Budget, Settings
from thereexists.experiments.task import create
from thereexists.experiments.tasks.copy import layer_masks, receptive_field
from thereexists.experiments.tasks.mt import greedy
from thereexists.experiments.tasks.nli import cut_longest
from thereexists.experiments.tokenizer import PAD, SEP
from thereexists.experiments.training import Execution, train

CPU = Place(torch.device("cpu"))


def text_settings(task, data, **changes):
    paths = {"corpus": str(data / "wikipedia/wiki_train_1.txt"), "valid": str(data / "wikipedia/wiki_valid.txt")}
    fields = {"length": 16, "batch": 16, "precision": "fp32", "lr": 1e-2, "options": {"vocabulary": 200}}
    return Settings(task, Budget(steps=60), dict(SMALL), paths, **(fields | changes))


def copy_settings(pattern, layers, n=16, steps=1, config="union", **options):
    model = SMALL | {"num_hidden_layers": layers, "hidden_dropout_prob": 0.0, "pattern_config": config}
    model |= {"mixer": "attention"} if pattern is None else {"mixer": "sparse", "pattern": pattern}
    model |= {"pattern_options": options} if options else {}
    return Settings(
        "copy", Budget(steps=steps), model, options={"symbols": 8}, length=n, batch=64, lr=1e-2, precision="fp32"
    )


def run(settings, out, cache):
    return train(settings, out, Execution("cpu", cache, quiet=True, tensorboard=False))


# ---- copying -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_copying_is_learnt_where_the_source_is_in_sight_and_guessed_where_it_is_not(tmp_path, cache):
    """window ±1 with 2 layers sees 2 tokens away; the source is n/2 = 6 away. Dense sees it in one layer."""
    near = run(copy_settings("window", 2, 12, steps=150, window=1), tmp_path / "near", cache)["metrics"]
    dense = run(copy_settings(None, 2, 12, steps=150), tmp_path / "dense", cache)["metrics"]
    assert (near["reachable"], near["accuracy_bound"]) == (0.0, 1 / 8)
    # 8 test batches of 64 sequences of 5 symbols, all independent: Hoeffding's 1 − 1e-6 margin.
    margin = math.sqrt(math.log(1e6) / (2 * near["predictions"]))
    assert near["accuracy"] < near["accuracy_bound"] + margin
    assert dense["reachable"] == 1.0
    assert dense["accuracy"] > 0.9


PATTERNS = [
    ("strided", "union"),
    ("strided", "sequential"),
    ("fixed", "multihead"),
    ("star", "union"),
    ("random", "union"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("pattern", "config"), PATTERNS)
@pytest.mark.parametrize("layers", [1, 2])
def test_the_stated_receptive_field_is_the_models(pattern, config, layers, cache):
    """Changing token j changes the output at k exactly for the pairs that the task says can communicate."""
    n = 16
    options = {"degree": 2} if pattern == "random" else {}
    settings = copy_settings(pattern, layers, n, config=config, **options)
    torch.manual_seed(0)
    model = create(settings, CPU, cache).model().double().eval()
    ids = torch.randint(1, 9, (1, n))
    embedded = model.get_input_embeddings()(ids).detach()
    jacobian = torch.autograd.functional.jacobian(
        lambda x: model.model(inputs_embeds=x).last_hidden_state.sum((0, 2)), embedded
    )  # (k, 1, j, d)
    # LayerNorm makes plain sums of its output constant; a random projection would do too, the head's weights are one.
    projected = torch.autograd.functional.jacobian(
        lambda x: (model.model(inputs_embeds=x).last_hidden_state * torch.arange(32)).sum((0, 2)), embedded
    )
    influence = (projected.abs().sum((1, 3)) > 0) | (jacobian.abs().sum((1, 3)) > 0)
    field = receptive_field(layer_masks(settings.model, n, layers))
    np.testing.assert_array_equal(influence.numpy(), field)


def test_copying_refuses_odd_lengths(cache):
    with pytest.raises(InvalidInput, match="even length"):
        create(copy_settings(None, 1, n=9), CPU, cache)


# ---- language modelling --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_masked_lm_learns_and_its_loss_is_the_models_own(data, cache, tmp_path):
    settings = text_settings("mlm", data, batch=32).with_(budget=Budget(steps=200))
    result = run(settings, tmp_path / "a", cache)
    assert result["metrics"]["accuracy"] > 5 / 75  # 75 equally frequent words
    task = create(settings, CPU, cache)
    model = task.model().double().eval()
    batch = task.batch(3)
    ours = task.objective(model)(**batch)
    labels = torch.full_like(batch["input_ids"], IGNORED).scatter(1, batch["positions"], batch["labels"])
    theirs = model(input_ids=batch["input_ids"], labels=labels).loss
    # Two orders of adding the same float32 numbers (the loss is taken in float32): 2 · count · 2^-24 relative.
    assert abs(ours - theirs) <= 2 * labels.numel() * 2**-24 * theirs
    assert result["data"]["corpus"]["tokens"] > 0
    assert len(result["data"]["corpus"]["sha256"]) == 64


def test_perplexity_is_the_exponential_of_the_models_mean_loss(data, cache, tmp_path):
    settings = text_settings("lm", data)
    result = run(settings, tmp_path / "a", cache)
    assert result["metrics"]["perplexity"] < 75  # better than guessing among the words
    task = create(settings, CPU, cache)
    torch.manual_seed(0)
    model = task.model().eval()
    with torch.inference_mode():
        measured = task.evaluate(model)
        losses = [model(input_ids=row[None].long(), labels=row[None].long()).loss.item() for row in task.held_out]
    assert measured["predictions"] == task.held_out[:, 1:].numel()
    assert abs(measured["loss"] - np.mean(losses)) <= 2 * task.held_out.numel() * 2**-24 * measured["loss"]
    assert measured["perplexity"] == math.exp(measured["loss"])


def test_without_held_out_text_the_end_of_the_corpus_is_held_out(data, cache):
    settings = text_settings("lm", data)
    settings = settings.with_(data={"corpus": settings.data["corpus"]})
    task = create(settings, CPU, cache)
    assert task.valid_record["name"] == "the last 1 % of the corpus"
    assert len(task.pieces) + len(task.held_out) == len(task.train_stream.tokens) // 16
    with pytest.raises(InvalidInput, match="needs a text"):
        create(settings.with_(data={}), CPU, cache)


# ---- classification ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_classification_from_a_pretrained_run(data, cache, tmp_path):
    run(text_settings("mlm", data, length=32), tmp_path / "a", cache)
    settings = Settings(
        "nli", Budget(epochs=20), {}, {"data": str(data / "mnli")}, start=str(tmp_path / "a"), length=32, batch=16,
        precision="fp32", lr=1e-2,
    )  # fmt: skip
    result = run(settings, tmp_path / "b", cache)
    assert result["metrics"]["accuracy"] > 0.6  # one word gives the label away; by chance 1/3, above 0.6 once in 10^4
    assert result["metrics"]["examples"] == 64

    task = create(settings, CPU, cache)
    model = task.model().eval()
    stored = load_file(tmp_path / "a/model.safetensors")
    begun = model.state_dict()
    shared = [name for name in stored if name.startswith("model.")]
    assert len(shared) > 10
    assert all(torch.equal(begun[name], stored[name]) for name in shared)  # it does begin where the other ended
    with torch.inference_mode():
        measured = task.evaluate(model)["accuracy"]
        batch = task.dev.batch(torch.arange(64), 32)  # all at once, fully padded: padding changes nothing
        labels = batch.pop("labels")
        plain = (model(**batch).logits.argmax(-1) == labels).float().mean().item()
    assert abs(measured - plain) < 1 / 64 / 2  # not one example differs

    with pytest.raises(InvalidInput, match="'attention', and 'sepconv' is asked for"):
        create(settings.with_(model={"mixer": "sepconv"}), CPU, cache)
    with pytest.raises(InvalidInput, match="at most 32 tokens; got --length 64"):
        create(settings.with_(length=64), CPU, cache)
    with pytest.raises(InvalidInput, match="no trained run"):
        create(settings.with_(start=str(tmp_path)), CPU, cache)


def test_an_epoch_uses_every_example_once_whatever_its_length(data, cache):
    settings = Settings("nli", Budget(epochs=1), dict(SMALL), {"data": str(data / "mnli")}, length=64, batch=8)
    task = create(settings, CPU, cache)
    plan = task._plan(0)
    assert {size for size, _ in plan} == {32, 64}
    used = np.concatenate([examples for _, examples in plan])
    assert len(set(used.tolist())) == len(used) == 200
    assert all((task.train.lengths_on_host[examples] <= size).all() for size, examples in plan)
    assert task.tokens_until(len(plan)) == sum(8 * size for size, _ in plan)


def test_sst2_has_two_classes(data, cache):
    settings = Settings("nli", Budget(epochs=1), dict(SMALL), {"data": str(data / "sst2")}, length=32, batch=8)
    task = create(settings, CPU, cache)
    assert task.model().config.num_labels == 2
    assert set(task.batch(0)["token_type_ids"].flatten().tolist()) == {0}


@pytest.mark.parametrize(
    ("lengths", "room", "kept"),
    [([3, 4], 10, [3, 4]), ([9, 2], 6, [4, 2]), ([5, 5], 6, [3, 3]), ([7], 4, [4]), ([2, 9], 3, [1, 2])],
)
def test_the_longest_part_gives_way(lengths, room, kept):
    out = cut_longest(lengths, room)
    assert sum(out) == min(room, sum(lengths))
    assert sorted(out) == sorted(kept)


# ---- translation ---------------------------------------------------------------------------------------------------


def mt_settings(data, **model):
    folders = [str(data / name) for name in ("multi30k_en_cs", "wmt_en_cs")]
    return Settings("mt", Budget(steps=3), SMALL | model, {"data": folders}, options={"vocabulary": 150}, length=16,
                    batch=16, precision="fp32")  # fmt: skip


def test_translation_writes_a_line_for_a_line_and_scores_it(data, cache, tmp_path):
    result = run(mt_settings(data, mixer="sparse", pattern="fixed"), tmp_path / "a", cache)
    assert set(result["hypotheses"]) == {"multi30k_en_cs/test_2016_flickr", "wmt_en_cs/newstest2015"}
    assert all(len(lines) == 12 for lines in result["hypotheses"].values())
    late = score_result(
        result | {"metrics": {}}, {"wmt_en_cs/newstest2015": data / "wmt_en_cs/newstest2015.cs"}
    )  # as where sacrebleu was missing
    name = "wmt_en_cs/newstest2015"
    assert late["metrics"]["bleu"][name] == result["metrics"]["bleu"][name]


def test_greedy_decoding_is_what_generate_does(data, cache):
    settings = mt_settings(data)
    task = create(settings, CPU, cache)
    torch.manual_seed(3)
    model = task.model().eval()
    source = task.left[:6].long()
    with torch.inference_mode():
        ours = greedy(model, source, 12)
        theirs = model.generate(
            input_ids=source, attention_mask=(source != PAD).long(), max_new_tokens=12, do_sample=False, num_beams=1
        )[:, 1:]
    for mine, other in zip(ours.tolist(), theirs.tolist(), strict=True):
        mine = mine[: mine.index(SEP)] if SEP in mine else mine
        other = other[: other.index(SEP)] if SEP in other else other
        assert mine == other


def test_bleu_is_sacrebleus(data):
    import sacrebleu

    hypotheses, references = ["the cat sat on the mat", "a dog"], ["the cat sat on a mat", "a dog barks"]
    assert bleu(hypotheses, references)["score"] == sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert bleu(references, references)["score"] == pytest.approx(100, abs=100 * 8 * 2**-52)  # a product of 5 floats
    with pytest.raises(InvalidInput, match="2 hypotheses for 1"):
        bleu(hypotheses, references[:1])


def test_missing_translation_data_is_said(data, cache):
    settings = mt_settings(data)
    with pytest.raises(InvalidInput, match="no test set 'nonsense'"):
        create(settings.with_(options={"tests": ["nonsense"]}), CPU, cache)
    with pytest.raises(InvalidInput, match=r"no train\.en"):
        create(settings.with_(data={"data": [str(data / "mnli")]}), CPU, cache)
