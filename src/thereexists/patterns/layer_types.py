"""Families that are not known by name: ``layer_types``, ``sliding_window`` and ``attention_chunk_size`` say it all.

transformers gives a layer of type ``sliding_attention`` a window of ``sliding_window`` tokens, itself included, and one
of type ``chunked_attention`` its chunk of ``attention_chunk_size`` (``masking_utils``), for every family alike; where
layers look ahead a window reaches ``sliding_window`` to either side. What such a file does not say is whether they do.
They do not where ``is_causal`` says so, or ``architectures`` names a model "…ForCausalLM"; types whose tiny models were
compared (``DECODERS``, ``ENCODERS``; a test does) need neither. What else could mean another mask is refused, and so is
every other type of the installed transformers (``OTHERWISE``, ``UNREAD``): only types that no list has, those of
tomorrow, are believed without a comparison, and their patterns say so (``configs``).
"""

from __future__ import annotations

from thereexists.core.errors import InvalidInput
from thereexists.patterns.config_fields import Config, build_layers, is_causal, layer_count
from thereexists.patterns.nested_models import NESTED
from thereexists.patterns.step import Step
from thereexists.patterns.unread_models import UNREAD

DECODERS = (
    *("afmoe", "beam", "cohere2_moe", "cwm", "dots1", "exaone_moe", "flint", "granite_swa"),
    *("granitemoe_swa", "kolibri1", "laguna", "mellum", "mimo_v2_flash", "muse_glimmer_text"),
    *("muse_spark_text", "smollm3"),
)
ENCODERS = ("embedding_gemma2_text", "ultrabert")  # whatever 'is_causal' says, which they do not look at
LAST_IS_FULL = ("embedding_gemma2_text",)  # whatever the file says
SWITCHED = ("smollm3",)  # a window counts in every attention implementation only with ``use_sliding_window``
# Their layers are not what the names of types say: a window in full layers, none in sliding ones, or another mask.
OTHERWISE = (
    *("axk2", "bailing_hybrid", "bigbird_pegasus", "cohere_compass_text", "deepseek_v32", "deepseek_v4", "doge"),
    *("glm5_next_text", "glm_moe_dsa", "granitemoehybrid", "hy_v4", "inkling_text", "kimi_linear", "minimax"),
    *("minimax_m3_vl_text", "mistral_large4_text", "moshi", "muse_glimmer_assistant", "neomme", "olmo_hybrid"),
    *("pegasus_x", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next", "qwen3_vl_moe_text", "qwen4_exp_text"),
    *("recurrent_gemma", "voxtral_realtime_encoder", "voxtral_realtime_text", "zaya"),
)
_OTHER_WINDOWS = ("sliding_window_size", "local_attention", "attention_window", "window_size", "attention_window_size")


def generic_steps(config: Config, n: int) -> list[Step]:
    """One step for each of the file's ``layer_types``."""
    family, kinds = config.get("model_type"), config["layer_types"]
    count = layer_count(config)
    if not isinstance(kinds, list) or len(kinds) != count or not all(isinstance(kind, str) for kind in kinds):
        raise InvalidInput(f"'layer_types' must name each of the {count} layers of this {family!r} model.")
    if family in OTHERWISE or family in UNREAD or family in NESTED:
        raise InvalidInput(
            f"Nothing shows that the layers of a {family!r} model are what 'layer_types' says: most such types of "
            "transformers do not look at it, or mean something else by it, and none was compared; build the pattern "
            "with te.patterns.from_mask or from_csr instead."
        )
    if family in LAST_IS_FULL:
        kinds = [*kinds[:-1], "full_attention"]
    if config.get("use_bidirectional_attention") or config.get("is_encoder_decoder"):
        raise InvalidInput(
            f"This {family!r} model is an encoder with a decoder, or looks both ways in a way of its own, and its type "
            "is not known here; build the pattern with te.patterns.from_mask or from_csr instead."
        )
    for name in _OTHER_WINDOWS:
        if config.get(name) is not None and "sliding_attention" in kinds:
            raise InvalidInput(
                f"This {family!r} model states a window as '{name}', which means one thing in one family and another "
                "in the next, and its type is not known here; build the pattern with te.patterns.from_mask instead."
            )
    if "sliding_attention" in kinds and not config.get("use_sliding_window", family not in SWITCHED):
        raise InvalidInput(
            f"This {family!r} model has sliding layers and no 'use_sliding_window', which some attention "
            "implementations of transformers look at and others do not; set it to true, or name the layers "
            "'full_attention'."
        )
    causal = family not in ENCODERS and is_causal(config)
    named = config.get("architectures") or ()
    decoder = family in DECODERS or any(isinstance(a, str) and a.endswith("ForCausalLM") for a in named)
    if "is_causal" not in config and not decoder and family not in ENCODERS:
        raise InvalidInput(
            f"This {family!r} model does not say whether its layers look ahead, and its type is not known here: its "
            "'architectures' name no model …ForCausalLM; set 'is_causal' in the config to true or false."
        )
    if "chunked_attention" in kinds and (not causal or family in (*DECODERS, *ENCODERS)):
        raise InvalidInput(
            f"Chunked layers in a {family!r} model, or with 'is_causal': false, have no pattern that is known here."
        )
    return build_layers(config, n, kinds, config.get("sliding_window"), causal)
