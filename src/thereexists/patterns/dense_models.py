"""Model types without a sparse layer: every layer sees all tokens, or all up to its own.

Of encoder-decoders (T5, BART and their kin) it is the encoder; their decoders are causal and dense.
"""

from __future__ import annotations

from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.patterns.parts import Rect
from thereexists.patterns.step import Step

CAUSAL = (
    *("llama", "gpt2", "gpt_neox", "gptj", "opt", "phi", "gemma", "olmo", "olmo2", "granite", "stablelm", "cohere"),
    *("nemotron", "glm", "falcon", "bloom", "mpt", "gpt_bigcode", "persimmon", "deepseek_v2", "deepseek_v3"),
)
BOTH_WAYS = (
    *("bert", "roberta", "distilbert", "electra", "albert", "xlm-roberta", "camembert", "mpnet", "deberta-v2", "ernie"),
    *("t5", "mt5", "umt5", "bart", "mbart", "marian", "pegasus"),
)

MAY_DECODE = ("bert", "roberta", "electra", "xlm-roberta", "camembert", "ernie")  # causal with ``is_decoder``


def dense_steps(family: str, config: dict[str, Any], n: int, layers: int) -> list[Step]:
    """One step for all layers. A switch that some types read and others do not is refused where it is turned."""
    causal = family in CAUSAL or (family in MAY_DECODE and bool(config.get("is_decoder")))
    turned = "is_decoder" if family in BOTH_WAYS and family not in MAY_DECODE and config.get("is_decoder") else None
    turned = "use_bidirectional_attention" if config.get("use_bidirectional_attention") else turned
    turned = "is_causal" if config.get("is_causal", causal) is not causal else turned
    if turned is not None:
        raise InvalidInput(f"What '{turned}' makes of a {family!r} model is not known here; remove it from the config.")
    return [Step(n, (Rect(range(n), range(n)),), causal)] * layers
