"""Memorise a data set: N pairs of sequences, recalled exactly by four blocks with one hidden unit for every pair.

The construction is in ``constructions/token_memory.py``. How far is it from the best possible? Kim, Kim and Mozafari
(*Provable Memorization Capacity of Transformers*, ICLR 2023) memorise N sequences of length n with about n + √(nN)
parameters up to logarithmic factors, which no network can undercut by more than such factors; Vardi, Yehudai and Shamir
(ICLR 2022) showed √N for plain ReLU networks. Those networks need weights with many significant bits; this one spends
parameters linear in N and keeps every number below 256. ``witness.info`` says both figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from thereexists.constructions.tokens.token_memory import code_network, sequence_keys
from thereexists.constructions.tokens.witness import TokenWitness
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.neutral import neutral
from thereexists.core.plain_numbers import seed_from, shown
from thereexists.functions.pairs import distinct_pairs
from thereexists.functions.vocabulary import END, FIRST, Digits, Vocabulary

MOST_SIGNS = 1024
MOST_NUMBERS = 1 << 28  # of one array
_DRAWS = 4


@neutral()
def memorise(
    inputs: Any,
    outputs: Any,
    n: int | None = None,
    seed: int = 0,
    on_conflict: str = "error",
    dtype: str = "float32",
    lines: Iterable[int] | None = None,
) -> TokenWitness:
    """A network that recalls every pair exactly.

        witness = te.memorise([["a", "dog"], ["a", "cat"]], [["pes"], ["kočka"]])

    Args:
        inputs: sequences of tokens, strings or integers; their lengths may differ.
        outputs: one sequence for every input.
        n: the most tokens of a sequence; default: the longest.
        seed: of the random codes.
        on_conflict: what to do with contradicting pairs: error, drop, first or last.
        dtype: of the weights.
        lines: where the pairs come from, for messages.

    Returns:
        A witness that answers a stored input with its output, and any other with None.

    Raises:
        InvalidInput: the pairs contradict each other, or there are none; ``seed`` or ``lines`` is not what it must be.
        CannotBuild: the codes could not be told apart in this dtype.
    """
    seed = seed_from(seed)
    pairs = distinct_pairs(inputs, outputs, lines, on_conflict)
    if not any(pairs.outputs):
        raise InvalidInput("Every answer is empty: there is nothing to recall. Give at least one with a token.")
    longest = max(max(map(len, pairs.inputs)), max(map(len, pairs.outputs)))
    n = longest if n is None else n
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < longest:
        raise InvalidInput(
            f"'n' must be an integer of at least {longest}, the longest sequence; got {shown(n)} instead."
        )
    n = int(n)
    if 2 * n * n > MOST_NUMBERS:
        raise CannotBuild(
            f"A network for {n:,} positions has more than 2·n² = {2 * n * n:.3g} weights, and at most {MOST_NUMBERS:,} "
            "are built. Choose a smaller n."
        )
    vocabulary, answers = Vocabulary.of(pairs.inputs), Vocabulary.of(pairs.outputs)
    x = vocabulary.encode(pairs.inputs, n, first=1, fill=0)
    y = answers.encode(pairs.outputs, n, first=FIRST, fill=END)
    digits = Digits.for_numbers(FIRST + len(answers))
    token_signs, position_signs, keys, draws = distinct_keys(x, len(vocabulary), seed)
    network = code_network(token_signs, position_signs, keys, digits.split(y), digits.base)
    tokens = sum(map(len, pairs.outputs))
    info = {
        "seed": seed,
        "signs": keys.shape[1],
        "draws": draws,
        "repeated": pairs.repeated,
        "conflicts": pairs.conflicts,
        "on_conflict": on_conflict,
        "memorised_tokens": tokens,
        "parameters_per_token": network.parameter_count / tokens if tokens else None,
        "lower_bound_up_to_logs": math.sqrt(n * len(x)),
    }
    witness = TokenWitness(
        network,
        vocabulary,
        answers,
        n,
        digits,
        x,
        y,
        "codes",
        fixed=False,
        symmetric=False,
        purpose="memorise",
        info=info,
    )
    network.safe = tuple(name for name, verdict in witness.verdicts().items() if verdict.holds)
    return witness.to(dtype)


def distinct_keys(x: np.ndarray, V: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Draw signs until all sequences have different keys: four times for each number of signs, then 16 more signs."""
    rng = np.random.default_rng(seed)
    D = 16 * math.ceil((2 * math.log2(len(x) + 1) + 24) / 16)
    draws = 0
    while D <= MOST_SIGNS:
        for _ in range(_DRAWS):
            draws += 1
            token_signs, position_signs = (
                (2 * rng.integers(0, 2, (rows, D), dtype=np.int8) - 1) for rows in (V, x.shape[1])
            )
            keys = sequence_keys(token_signs, position_signs, x)
            if len(np.unique(np.packbits(keys, axis=1), axis=0)) == len(x):
                return token_signs, position_signs, keys, draws
        D += 16
    raise CannotBuild(f"No {MOST_SIGNS} random signs tell the {len(x):,} inputs apart after {draws} draws.")
