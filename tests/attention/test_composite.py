"""A pattern on the config of a model of several models: used by all its parts, or refused by name, never dropped."""

import copy

import pytest
import torch

transformers = pytest.importorskip("transformers")

import thereexists as te  # noqa: E402
from thereexists.core.errors import InvalidInput  # noqa: E402

te.attention.register_with_transformers()  # another test may have imported us before transformers

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
TEXT = SIZES | {"vocab_size": 60, "max_position_embeddings": 32}
VISION = SIZES | {"image_size": 16, "patch_size": 4}
NARROW = {"name": "window", "window": 1}
TOKENS = torch.arange(3, 19)[None]
OTHER = torch.cat([TOKENS[:, :1] + 30, TOKENS[:, 1:]], 1)  # another first token


def llava():
    return transformers.LlavaConfig(
        text_config={"model_type": "llama", "num_key_value_heads": 2} | TEXT,
        vision_config={"model_type": "clip_vision_model"} | VISION,
        image_token_index=59,
    )


def clip():
    return transformers.CLIPConfig(
        text_config=TEXT | {"eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0},
        vision_config=VISION,
        projection_dim=8,
    )


def encoder_decoder():
    decoder = transformers.BertConfig(**TEXT, is_decoder=True, add_cross_attention=True)
    return transformers.EncoderDecoderConfig.from_encoder_decoder_configs(transformers.BertConfig(**TEXT), decoder)


CLASSES = {
    "llava": (llava, transformers.LlavaForConditionalGeneration),
    "clip": (clip, transformers.CLIPModel),
    "encoder-decoder": (encoder_decoder, transformers.EncoderDecoderModel),
}


def built(kind, pattern=None, implementation="thereexists"):
    config = CLASSES[kind][0]()
    if pattern is not None:
        config.thereexists_pattern = pattern
    torch.manual_seed(0)
    return CLASSES[kind][1]._from_config(config, attn_implementation=implementation).double().eval()


def states(kind, model, tokens):
    """The last hidden states (or logits) of the part that reads text; and, where there is one, of the other part."""
    with torch.no_grad():
        if kind == "llava":
            return model(input_ids=tokens).logits
        if kind == "clip":
            return model.text_model(input_ids=tokens).last_hidden_state
        return model.encoder(input_ids=tokens).last_hidden_state


def reaches(kind, model):
    """Which tokens feel the first one: after two layers of a window of 1, those up to place 2."""
    change = (states(kind, model, TOKENS) - states(kind, model, OTHER)).abs().amax(-1)[0]
    return int(torch.nonzero(change)[-1])


@pytest.mark.parametrize("kind", CLASSES)
def test_a_pattern_on_the_outer_config_reaches_the_parts(kind):
    assert reaches(kind, built(kind)) == 15  # documented: no pattern anywhere is dense attention
    assert reaches(kind, built(kind, NARROW)) == 2


@pytest.mark.parametrize("kind", CLASSES)
def test_so_does_one_that_is_set_later(kind):
    model = built(kind)
    model.config.thereexists_pattern = NARROW
    assert reaches(kind, model) == 2
    assert reaches(kind, copy.deepcopy(model)) == 2


@pytest.mark.parametrize("kind", CLASSES)
def test_and_one_on_a_model_that_is_switched(kind):
    model = built(kind, implementation="eager")
    model.config.thereexists_pattern = NARROW
    model.set_attn_implementation("thereexists")
    assert reaches(kind, model) == 2


@pytest.mark.parametrize("kind", CLASSES)
def test_it_comes_back_with_the_model(kind, tmp_path):
    model = built(kind, NARROW)
    model.save_pretrained(tmp_path)
    loaded = CLASSES[kind][1].from_pretrained(tmp_path).double().eval()
    assert reaches(kind, loaded) == 2
    assert torch.equal(states(kind, loaded, TOKENS), states(kind, model, TOKENS))


def test_the_image_tower_uses_it_too():
    pixels = torch.randn(1, 3, 16, 16, dtype=torch.float64)
    changed = pixels.clone()
    changed[..., :4, :4] += 1  # the first patch, token 1
    model = built("clip", NARROW)
    with torch.no_grad():
        change = [model.vision_model(pixel_values=p).last_hidden_state for p in (pixels, changed)]
    assert int(torch.nonzero((change[0] - change[1]).abs().amax(-1)[0])[-1]) == 3


def test_a_part_without_a_pattern_beside_one_with_is_refused_by_name():
    config = clip()
    config.text_config.thereexists_pattern = NARROW
    model = transformers.CLIPModel._from_config(config, attn_implementation="thereexists").double().eval()
    pixels = torch.randn(1, 3, 16, 16, dtype=torch.float64)
    assert reaches("clip", model) == 2
    with pytest.raises(InvalidInput, match=r"CLIPVision.*no pattern.*'dense'"):
        model.vision_model(pixel_values=pixels)
    model.config.vision_config.thereexists_pattern = "dense"
    model.vision_model(pixel_values=pixels)


def test_two_patterns_for_one_part_are_refused_by_name():
    config = clip()
    config.thereexists_pattern, config.text_config.thereexists_pattern = NARROW, {"name": "window", "window": 2}
    model = transformers.CLIPModel._from_config(config, attn_implementation="thereexists").double().eval()
    with pytest.raises(InvalidInput, match=r"CLIPConfig and CLIPTextConfig.*different patterns"):
        states("clip", model, TOKENS)


def test_use_pattern_stays_as_it_was():
    model = built("llava")
    te.attention.use_pattern(model, NARROW)
    assert reaches("llava", model) == 2
    te.attention.use_pattern(model.model.language_model, {"name": "window", "window": 2})
    assert reaches("llava", model) == 4


TEXT_ALONE = {  # types whose text part AutoModelForCausalLM builds alone, from the config inside
    "emu3": lambda: transformers.Emu3Config(text_config=TEXT | {"num_key_value_heads": 2, "pad_token_id": 0}),
    "mllama": lambda: transformers.MllamaConfig(
        text_config=TEXT | {"num_key_value_heads": 2, "cross_attention_layers": [], "pad_token_id": 0}
    ),
}


@pytest.mark.parametrize("kind", TEXT_ALONE)
def test_a_text_part_that_is_built_alone_keeps_the_pattern_of_the_whole(kind, tmp_path):
    config = TEXT_ALONE[kind]()
    config.thereexists_pattern = NARROW
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="thereexists").double().eval()
    changed = TOKENS.clone()
    changed[0, 0] += 1
    model.save_pretrained(tmp_path)
    config.save_pretrained(tmp_path)  # a checkpoint of the whole, of which the text part is loaded
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="thereexists").eval()
    for each in (model, loaded.double()):
        with torch.no_grad():
            change = (each(TOKENS).logits - each(changed).logits).abs().amax(-1)[0]
        assert int(torch.nonzero(change)[-1]) == 2
        assert each.config.thereexists_pattern == NARROW
