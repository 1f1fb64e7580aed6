"""Packed sequences: several documents in one row of a batch, none of which sees another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import whole_or_none
from thereexists.patterns.intervals import Documents, Meet
from thereexists.patterns.numbers import shown, vector
from thereexists.patterns.parts import Band
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import MOST_TOKENS, Step


def packed(lengths: Sequence[int] | Any, window: SupportsIndex | None = None, causal: bool = True) -> Pattern:
    """Documents of these ``lengths`` one after the other; their sum is the number of tokens.

        te.patterns.packed([3, 5], window=2)

    A tensor or array that begins with 0 is taken for ``cu_seqlens``, the running sums that kernels for packed sequences
    take. Each token sees its own document, up to itself unless ``causal`` is False, and of that the ``window`` tokens
    before it (as ``te.patterns.window``, and after it where it is not causal).

    Args:
        lengths: of the documents; or ``cu_seqlens``, their running sums.
        window: how many tokens before, None for all.
        causal: whether no token looks ahead.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a length is not a positive whole number.
    """
    sizes = vector(np.asarray(lengths), "The lengths of documents", 0, MOST_TOKENS)
    if len(sizes) and sizes[0] == 0:
        sizes = np.diff(sizes)
    if not len(sizes) or (sizes < 1).any():
        raise InvalidInput(
            f"Each document needs at least one token: give their lengths, or running sums that rise from 0; "
            f"got {shown(sizes[:9])}."
        )
    window = whole_or_none(window, "'window'", 0)
    documents = Documents(np.concatenate(([0], np.cumsum(sizes)[:-1])))
    part = documents if window is None else Meet(documents, Band(-window, window))
    step = Step(int(sizes.sum()), (part,), causal)
    return Pattern("packed", (step,), {"documents": len(sizes), "window": window, "causal": causal})
