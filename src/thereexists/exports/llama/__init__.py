"""Automata, data sets, tables, programs and tasks over text as an unmodified ``LlamaForCausalLM`` folder.

layout.py      sizes, and where everything stands in the residual stream
offsets.py     heads that look a fixed number of tokens back, by RoPE
lower.py       a circuit as Llama blocks: the weights
answers.py     which logits say what
tokenizer.py   the tokenizer, made with ``tokenizers``
card.py        README.md
forms.py       one entry a claim
folder.py      the main path: lower, prove, write, run again
reals.py       the same for programs over the reals, which have no tokens
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.format import Shape
from thereexists.certificates.llama.reals.claim import RealClaim
from thereexists.exports.llama.folder import write_symbols
from thereexists.exports.llama.layout import THETA, Layout
from thereexists.exports.llama.reals import shape_of, write_reals


@dataclass(frozen=True)
class _Takes:
    """What takes tokens, or numbers: who writes it, and its sizes."""

    write: Callable[..., Any]
    shape: Callable[[Any], Shape]


_TOKENS = _Takes(write_symbols, lambda claim: Layout.of(claim).shape)
_NUMBERS = {RealClaim: _Takes(write_reals, shape_of)}


def _takes(claim: Any) -> _Takes:
    return _NUMBERS.get(type(claim), _TOKENS)


def write_llama(claim: Any, dtype: str, folder: Path, beside: str = "", named: str = "llama") -> Any:
    """All files but the record, and what was written; of tokens, or of numbers."""
    return _takes(claim).write(claim, dtype, folder, beside, named)


def plan_llama(made_of: Any) -> dict[str, Any]:
    """Layers, sizes and parameters of the checkpoint of a witness, or of a claim, before it is written."""
    claim = made_of if isinstance(made_of, Claim | RealClaim) else made_of.lowerable()
    shape = _takes(claim).shape(claim)
    return {**vars(shape), "parameters": shape.parameters, "rope_theta": THETA}
