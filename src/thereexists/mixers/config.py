"""The configuration of a BERT-scale model whose attention is replaced by a mixer, and the three published sizes.

Field names are BERT's, so that what is known about BERT configurations holds here. The parameter counts on the poster
of paper A (Yun et al., *Are Transformers universal approximators of sequence-to-sequence functions?*, ICLR 2020) fix
the layouts: see ``docs/mixers.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from transformers.activations import ACT2FN
from transformers.configuration_utils import PretrainedConfig

from thereexists.core.errors import InvalidInput, ThereExistsError

SIZES: dict[str, dict[str, int]] = {  # as the published BERT-tiny, -mini and -base
    "tiny": {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 512},
    "mini": {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
    "base": {"num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
}
DTYPES = ("float32", "bfloat16", "float16", "float64")
PATTERN_CONFIGS = ("union", "multihead", "sequential")
MOST_LAYERS = 1000
_SIZES = {  # what must be positive, and how large it may be: numbers beyond build for hours before they fail
    "vocab_size": 1 << 26,
    "hidden_size": 1 << 20,
    "num_hidden_layers": MOST_LAYERS,
    "num_attention_heads": 1 << 20,
    "intermediate_size": 1 << 22,
    "max_position_embeddings": 1 << 24,
    "type_vocab_size": 1 << 20,
    "kernel_size": 1 << 20,
}
BPROJ_LENGTH = 384  # the only n with 12·n² more parameters than average attention giving the poster's 90.0M


class MixerConfig(PretrainedConfig):
    """BERT's fields, and which mixer takes the place of attention.

        te.mixers.MixerConfig(mixer="sepconv", kernel_size=5).hidden_size  # 768, as BERT-base

    Args:
        **given: the fields. Those that BERT does not have are

            - ``mixer``: attention, average, bproj, sepconv, sparse or hybrid.
            - ``hybrid_blocks``: of a hybrid, how many blocks, counted from the input, are SepConv.
            - ``kernel_size``: of SepConv.
            - ``norm_first``: LayerNorm before each sublayer (trains without a long warm-up), not after it as in BERT.
            - ``is_decoder``: causal.
            - ``pattern``: of sparse, the name of a pattern of ``te.patterns``.
            - ``pattern_options``: its sizes, as ``te.patterns.build`` takes them, and ``mirror``, which
              reads it from the right end.
            - ``pattern_config``: union, multihead or sequential: how its steps are spread over layers and heads.
            - ``sparse_prediction``: in masked language modelling, logits at labelled positions only.
            - ``pooling``: ``first`` or ``mean``: what a classifier reads.
            - ``num_decoder_layers``: of an encoder–decoder; None for as many as the encoder has.

    Raises:
        InvalidInput: a field has a value that it cannot have.
    """

    model_type = "thereexists-mixer"

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    classifier_dropout: float | None = None
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    decoder_start_token_id: int | None = None
    tie_word_embeddings: bool = True
    mixer: str = "attention"
    hybrid_blocks: int = 0
    kernel_size: int = 9
    norm_first: bool = False
    is_decoder: bool = False
    pattern: str | None = None
    pattern_options: dict[str, Any] = None  # type: ignore[assignment]  # each configuration gets its own
    pattern_config: str = "union"
    sparse_prediction: bool = False
    pooling: str = "first"
    is_encoder_decoder: bool = False
    num_decoder_layers: int | None = None

    def __init__(self, **given: Any):
        own = {name: given.pop(name, getattr(MixerConfig, name)) for name in FIELDS}
        options = own["pattern_options"]  # from a config.json it may be anything
        if not isinstance(options, dict | None):
            raise InvalidInput(f"'pattern_options' must be a dictionary of sizes; got {type(options).__name__}.")
        own["pattern_options"] = dict(options or {})
        self._set(own)
        self._check()
        for name in ("dtype", "torch_dtype"):
            if given.get(name) not in (None, *DTYPES, *(getattr(torch, kind) for kind in DTYPES)):
                raise InvalidInput(f"{name!r} must be one of {', '.join(DTYPES)}; got {repr(given[name])[:60]}.")
        try:
            super().__init__(is_encoder_decoder=self.is_encoder_decoder, **given)
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            if isinstance(error, ThereExistsError):
                raise
            why = (str(error).splitlines() or [""])[0][:200]
            raise InvalidInput(f"transformers does not take this configuration ({why}); see MixerConfig.") from error
        self._set(own)  # again: some versions of the base class have defaults of their own for a few of these
        self.use_cache = False  # most mixers have nothing to cache: generation runs the whole prefix again

    def _set(self, own: dict[str, Any]) -> None:
        for name, value in own.items():
            setattr(self, name, value)

    def _check(self) -> None:
        """A config.json may be a stranger's: every field is of exactly its kind, and of a size that can be built."""
        for name, kind in _DECLARED.items():
            _of_kind(name, getattr(self, name), kind)
        for name, most in _SIZES.items():
            _positive(name, getattr(self, name), most)
        if self.num_decoder_layers is not None:
            _positive("num_decoder_layers", self.num_decoder_layers, MOST_LAYERS)
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"):
            if not 0 <= (getattr(self, name) or 0) < 1:
                raise InvalidInput(f"{name!r} must lie in [0, 1); got {getattr(self, name)}.")
        for name in ("layer_norm_eps", "initializer_range"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name!r} must lie in [0, 1]; got {getattr(self, name)}.")
        if self.pad_token_id is not None and not 0 <= self.pad_token_id < self.vocab_size:
            raise InvalidInput(f"'pad_token_id' must be one of {self.vocab_size} tokens; got {self.pad_token_id}.")
        if self.hidden_act not in ACT2FN:
            raise InvalidInput(f"'hidden_act' must be an activation of transformers; got {self.hidden_act[:40]!r}.")
        if self.hidden_size % self.num_attention_heads:
            raise InvalidInput(
                f"'hidden_size' must be a multiple of 'num_attention_heads'; got {self.hidden_size} and "
                f"{self.num_attention_heads}."
            )
        if self.pooling not in ("first", "mean"):
            raise InvalidInput(f"'pooling' must be first (BERT's) or mean; got {self.pooling!r}.")
        if self.kernel_size % 2 == 0:
            raise InvalidInput(f"'kernel_size' must be odd, so that a kernel has a middle; got {self.kernel_size}.")
        if type(self.hybrid_blocks) is not int or not 0 <= self.hybrid_blocks <= self.num_hidden_layers:
            raise InvalidInput(
                f"'hybrid_blocks' must lie in 0..{self.num_hidden_layers}, the number of blocks; "
                f"got {self.hybrid_blocks!r}."
            )
        if self.pattern_config not in PATTERN_CONFIGS:
            raise InvalidInput(
                f"'pattern_config' must be one of {', '.join(PATTERN_CONFIGS)}; got {self.pattern_config!r}."
            )
        from thereexists.mixers.registry import mixer_kind

        mixer_kind(self.mixer).check(self)


_DECLARED: dict[str, str] = vars(MixerConfig)["__annotations__"]  # what is declared above, as it is written there
FIELDS = tuple(_DECLARED)  # anything else is the base class's


def mixer_config(size: str, mixer: str = "attention", **overrides: Any) -> MixerConfig:
    """The configuration of a published BERT size with the given mixer; ``overrides`` are fields of ``MixerConfig``.

        te.mixers.mixer_config("mini", "sepconv")

    ``mixer_config("base", "bproj")`` has 384 positions, the poster's length; everything else has BERT's 512.

    Args:
        size: one of ``te.mixers.SIZES``.
        mixer: one of ``te.mixers.MIXERS``.
        **overrides: fields of ``MixerConfig``.

    Returns:
        The configuration.

    Raises:
        InvalidInput: there is no such size, mixer or field.
    """
    if size not in SIZES:
        raise InvalidInput(f"There is no size named {size!r}. Known: {', '.join(SIZES)}.")
    unknown = sorted(set(overrides) - {*FIELDS, "num_labels", "id2label", "label2id", "problem_type", "dtype"})
    if unknown:
        raise InvalidInput(f"A mixer configuration has no field {unknown[0]!r}; see MixerConfig for the fields.")
    length = {"max_position_embeddings": BPROJ_LENGTH} if mixer == "bproj" else {}
    return MixerConfig(**{**SIZES[size], **length, "mixer": mixer, **overrides})


def _positive(name: str, value: int, most: int) -> None:
    if value < 1:
        raise InvalidInput(f"{name!r} must be a positive integer; got {value}.")
    if value > most:
        shown = f"{value:,}" if value < 10**20 else f"a number of {len(str(value))} digits"
        raise InvalidInput(f"{name!r} must be at most {most:,}; got {shown}.")


def _of_kind(name: str, value: Any, kind: str) -> None:
    """``kind`` is an annotation, read narrowly: 2.0 and true are no int, 1 and "no" are no bool."""
    wanted, _, or_none = kind.partition(" | ")
    if value is None and or_none:
        return
    fits, words = _KINDS[wanted]
    if not fits(value):
        raise InvalidInput(f"{name!r} must be {words}; got {repr(value)[:60]}.")


def _is_number(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "int": (lambda value: type(value) is int and abs(value) < 10**100, "an integer"),
    "float": (_is_number, "a finite number"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "dict[str, Any]": (lambda value: isinstance(value, dict), "a dictionary"),
}
