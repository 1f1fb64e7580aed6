"""One proof step per file."""

from thereexists.constructions.quantise import quantise
from thereexists.constructions.selective_shift import (
    context,
    contextual_mapping,
    global_shift,
    selective_shift,
    shifted_ids,
)
from thereexists.constructions.softmax_limit import softmax_limit
from thereexists.constructions.value_mapping import ValueTable, tabulate, value_mapping

__all__ = [
    "ValueTable",
    "context",
    "contextual_mapping",
    "global_shift",
    "quantise",
    "selective_shift",
    "shifted_ids",
    "softmax_limit",
    "tabulate",
    "value_mapping",
]
