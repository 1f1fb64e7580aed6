"""Alternatives to attention and the BERT-scale models made of them (paper A, section on experiments).

    from thereexists.mixers import MixerForMaskedLM, mixer_config

    model = MixerForMaskedLM(mixer_config("mini", "sepconv", vocab_size=8192))
    model(input_ids=ids, labels=labels).loss.backward()

Importing this module registers the models with the Auto classes of transformers.
"""

from transformers.models.auto.configuration_auto import AutoConfig
from transformers.models.auto.modeling_auto import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
)

from thereexists.mixers.config import SIZES, MixerConfig, mixer_config
from thereexists.mixers.costs import MixerRow, mixer_table, model_flops_per_token, model_parameters
from thereexists.mixers.from_bert import config_from_bert, from_bert, state_from_bert
from thereexists.mixers.kinds import Attention, Average, BProj, SepConv, Sparse
from thereexists.mixers.load import load_model, saved_config
from thereexists.mixers.model import MixerModel
from thereexists.mixers.registry import MIXERS, Mixer, MixerKind, mixer_kind, register_mixer
from thereexists.mixers.seq2seq import MixerForSeq2SeqLM
from thereexists.mixers.tasks import MixerForCausalLM, MixerForMaskedLM, MixerForSequenceClassification

AutoConfig.register(MixerConfig.model_type, MixerConfig)
AutoModel.register(MixerConfig, MixerModel)
AutoModelForMaskedLM.register(MixerConfig, MixerForMaskedLM)
AutoModelForSequenceClassification.register(MixerConfig, MixerForSequenceClassification)
AutoModelForCausalLM.register(MixerConfig, MixerForCausalLM)
AutoModelForSeq2SeqLM.register(MixerConfig, MixerForSeq2SeqLM)

__all__ = [
    "MIXERS",
    "SIZES",
    "Attention",
    "Average",
    "BProj",
    "Mixer",
    "MixerConfig",
    "MixerForCausalLM",
    "MixerForMaskedLM",
    "MixerForSeq2SeqLM",
    "MixerForSequenceClassification",
    "MixerKind",
    "MixerModel",
    "MixerRow",
    "SepConv",
    "Sparse",
    "config_from_bert",
    "from_bert",
    "load_model",
    "mixer_config",
    "mixer_kind",
    "mixer_table",
    "model_flops_per_token",
    "model_parameters",
    "register_mixer",
    "saved_config",
    "state_from_bert",
]
