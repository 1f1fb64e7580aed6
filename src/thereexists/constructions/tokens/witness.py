"""A witness on tokens: a network for a finite function or a data set, with its vocabularies and the pairs it stores.

    witness = te.memorise([["a", "dog"], ["a", "cat"]], [["pes"], ["kočka"]])
    witness([["a", "cat"]])  # [["kočka"]]

An input that is no row of a table gets None. An input that is not in a memorised data set gets None too, unless its
key, the signs of a random sum, happens to be that of a stored input: only the stored pairs are promised.

Inputs are padded to n positions; a padded position is masked out of the attention, so it influences no other. It
answers like any other: an output may be longer than its input.
"""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
import torch

from thereexists.certificates.llama.completions import Completions
from thereexists.certificates.stored_tokens import StoredTokens, read_tokens
from thereexists.constructions.compact.trace import trace_blocks
from thereexists.constructions.tokens.completions import completions, in_all_orders
from thereexists.constructions.tokens.plan import TokensPlan
from thereexists.core.dtypes import as_dtype, dtype_name
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.plain_text import counted
from thereexists.functions.vocabulary import END, FIRST, check_sequences
from thereexists.witness.samples import chosen
from thereexists.witness.trace import StageTrace
from thereexists.witness.witness import Samples, Witness

# What ``describe`` counts on the network and the pairs: nothing that a file says beside them takes its place.
COUNTED = frozenset(
    (
        "kind",
        "n",
        "lengths",
        "pairs",
        "vocabulary",
        "output_vocabulary",
        "blocks",
        "d_model",
        "widths",
        "parameters",
        "dtype",
        "safe",
    )
)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class TokenTrace(StageTrace):
    """``words`` in, and the ``answer``: the stored words, or None where nothing is stored."""

    words: list[Any]
    answer: list[Any] | None

    def facts(self) -> list[str]:
        return [f"words {self.words!r}", f"answer {self.answer!r}", *super().facts()[1:]]

    def describe(self) -> dict[str, Any]:
        return {"words": self.words, "answer": self.answer, **super().describe()}


@final
@dataclasses.dataclass(frozen=True, repr=False)
class TokenWitness(StoredTokens, Witness):
    """``witness(sequences)`` answers; ``witness.to("bfloat16")``; ``witness.save("w")`` and ``te.load("w")``."""

    construction = "tokens"
    certificate: ClassVar[None] = None  # recalled exactly or not at all: ``te.verify`` asks for every pair

    @property
    def plan(self) -> TokensPlan:  # pyright: ignore[reportIncompatibleVariableOverride]
        return TokensPlan.of(self.network, len(self.inputs))

    def __call__(self, sequences: Any, engine: str = "indexed") -> list[list[Any] | None]:
        """The stored output of every sequence, or None where nothing is stored for it."""
        return [self._decode(row) for row in self.run(self.numbers(sequences), engine)]

    def numbers(self, sequences: Any) -> np.ndarray:
        """The sequences as the network takes them (batch, n); the rest is refused."""
        checked = check_sequences(sequences, "The input")
        if not checked:
            raise InvalidInput("The input must hold at least one sequence; got none.")
        for row, sequence in enumerate(checked):
            if not sequence or len(sequence) > self.n or (self.fixed and len(sequence) != self.n):
                wanted = self.lengths if self.fixed else f"1 to {self.n} tokens"
                raise InvalidInput(f"A sequence must have {wanted}; sequence {row} has {len(sequence)}.")
        return self.vocabulary.encode(checked, self.n, first=1, fill=0)

    def _decode(self, row: np.ndarray) -> list[Any] | None:
        """None where something is not a word: 0, and whatever else weights may give at a row that is not stored."""
        if (row < END).any() or (row >= FIRST + len(self.output_vocabulary)).any():
            return None
        return [self.output_vocabulary.tokens[i - FIRST] for i in row.tolist() if i != END]

    def trace(self, x: Any) -> TokenTrace:
        """One sequence of words, block by block; ``ids``: how many hidden units of a block are active at each token."""
        ids = self.numbers([x])
        X = torch.from_numpy(ids)
        watched = trace_blocks(self.network, ids[0], self.network.embed(X), X > 0)
        return TokenTrace(ids[0], watched.states, watched.ids, watched.moves, list(x), self([x])[0])

    def samples(self) -> Samples:
        """All stored pairs, or many."""
        rows = chosen(len(self.inputs))
        wanted = self.digits.split(self.outputs[rows]).astype(np.float64)
        return Samples(((self.inputs[rows], wanted),), "pairs")

    def vocabularies(self) -> dict[str, Any]:
        """As an export says them; ``exports/alone/words.py`` reads them."""
        return {
            "n": self.n,
            "fixed": self.fixed,
            "base": self.digits.base,
            "digits": self.digits.count,
            "vocabulary": list(self.vocabulary.tokens),
            "output_vocabulary": list(self.output_vocabulary.tokens),
        }

    @property
    def lengths(self) -> str:
        """How many tokens an input has, in words."""
        return f"{'exactly' if self.fixed else 'up to'} {counted(self.n, 'token')}"

    def lowerable(self) -> Completions:
        """The pairs as completions, each row of a symmetric table in all its orders."""
        asked, told = self.inputs, self.outputs
        if self.symmetric:
            asked, told = in_all_orders(asked, told)
        words, said = self.vocabulary.tokens, self.output_vocabulary.tokens
        return completions(
            [[words[i - 1] for i in row if i > 0] for row in asked.tolist()],
            [[said[i - FIRST] for i in row if i >= FIRST] for row in told.tolist()],
        )

    def to(self, dtype: torch.dtype | str) -> TokenWitness:
        """The witness in another dtype. One that is not safe for it is refused, with the reason."""
        wanted = as_dtype(dtype)
        name = dtype_name(wanted)
        found = self.verdicts()
        if not found[name].holds:
            raise CannotBuild(f"This witness is not safe in {name}: {found[name].reasons[0]}.")
        network = copy.deepcopy(self.network).to(wanted)  # no weight is rounded: it is the same network
        network.safe = tuple(other for other, verdict in found.items() if verdict.holds)
        return dataclasses.replace(self, network=network)

    def describe(self) -> dict[str, Any]:
        shape = self.network.shape()
        return {
            **{key: value for key, value in self.info.items() if key not in COUNTED},
            "kind": self.purpose,
            "n": self.n,
            "lengths": self.lengths,
            "pairs": len(self.inputs),
            "vocabulary": len(self.vocabulary),
            "output_vocabulary": len(self.output_vocabulary),
            "blocks": self.network.depth,
            "d_model": shape["d"],
            "widths": {k: s.feed_forward.W_1.shape[1] for k, s in self.network.stages.items() if s.feed_forward},
            "parameters": self.network.parameter_count,
            "dtype": dtype_name(self.network.dtype),
            "safe": list(self.safe()),
        }

    def facts(self) -> list[str]:
        return [
            f"{self.purpose}: {len(self.inputs):,} pairs of {self.lengths}, vocabularies of "
            f"{len(self.vocabulary):,} and {len(self.output_vocabulary):,}"
        ]

    def contents(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        record = {
            "vocabulary": list(self.vocabulary.tokens),
            "output_vocabulary": list(self.output_vocabulary.tokens),
            "tokens": {
                "n": self.n,
                "base": self.digits.base,
                "digits": self.digits.count,
                "sums": self.sums,
                "fixed": self.fixed,
                "symmetric": self.symmetric,
                "purpose": self.purpose,
            },
            "info": self.info,
        }
        sides = {"inputs": self.inputs, "outputs": self.outputs}
        return record, {f"pairs.{side}": torch.from_numpy(ids.astype(np.int32)) for side, ids in sides.items()}


def load_tokens(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> TokenWitness:
    """As the file has it, its dtypes claimed and not yet proved: ``to`` proves the one that is wanted."""
    return TokenWitness(**vars(read_tokens(path, record, weights)))
