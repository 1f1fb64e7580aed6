"""Watching a program over symbols: what every block leaves in its rows, for one string."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from thereexists.constructions.symbols.strings import Lengths
from thereexists.constructions.symbols.witness import SymbolWitness
from thereexists.core.errors import InvalidInput
from thereexists.reports.explore.blocks import MOST_WORDS, NAMED, Blocks, told_blocks
from thereexists.reports.explore.rows import Group, program_rows
from thereexists.reports.explore.viewer import check_entries, layer_number, short
from thereexists.reports.witness.program import title_of

_EXAMPLES = 5


class Strings(Blocks):
    """Symbols in, symbols out."""

    def __init__(self, witness: SymbolWitness):
        self.witness, self.network = witness, witness.network

    def about(self) -> dict[str, Any]:
        witness, alphabets = self.witness, self.witness.alphabets
        drawn = np.random.default_rng(0).integers(0, len(alphabets.alphabet), (_EXAMPLES, witness.n))
        examples = [[short(alphabets.alphabet[k]) for k in row] for row in drawn.tolist()]
        facts = {"tokens": witness.n, "symbols": len(alphabets.alphabet), "writes": len(alphabets.output_alphabet)}
        text = f"A program over symbols, compiled to standard blocks. {NAMED}"
        return self._about(title_of(witness), text, facts) | {
            "n": witness.n,
            "fixed": not witness.shorter,
            "vocabulary": [short(symbol) for symbol in alphabets.alphabet[:MOST_WORDS]],
            "examples": examples,
            "start": examples[0],
        }

    def groups(self, block: int) -> list[Group]:
        return program_rows(self.witness.places, block)

    def _chapters(self) -> list[dict[str, str]]:
        return told_blocks(self.witness.places, super()._chapters())

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        word, X = self._given(asked)
        frames, complete = self._frames(torch.from_numpy(self.witness.padded(X)).to(self.network.dtype), None)
        answer, meant = self.witness(word), self.witness.meant(word)
        output = self.witness.run(X)[0]
        same = complete and bool(np.array_equal(np.asarray(frames[-1]["state"])[: X.shape[1]], output))
        return {
            "frames": self._ended(self._named(frames), output, None),
            "complete": complete,
            "same": same,
            "words": [short(symbol) for symbol in word[0]],
            "answer": [short(symbol) for symbol in answer[0]],
            "stored": [short(symbol) for symbol in meant[0]],
        }

    def attention(self, asked: dict[str, Any]) -> dict[str, Any]:
        layer = layer_number(asked, self.network.depth)
        frames = self.run(asked)["frames"]
        return {"heads": frames[layer]["attention"] if layer < len(frames) else None}

    def _given(self, asked: dict[str, Any]) -> tuple[list[list[str]], np.ndarray]:
        """The symbols of a request, each by itself; characters may stand together. One string, and its numbers."""
        given = asked.get("words")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not all(isinstance(word, str) for word in texts):
            raise InvalidInput("A request must have 'words', a list of texts.")
        known = self.witness.alphabets.alphabet
        word = [symbol for text in texts for symbol in ([text] if text in known else text)]
        Lengths.of(self.witness.source).check(len(word), 0)  # before they are many
        numbers, _ = self.witness.words([word])
        return [word], numbers[0].astype(np.float64)[None, :, None]


def symbol_viewer(witness: SymbolWitness, target: None) -> Strings:
    check_entries(witness.n, 1)
    return Strings(witness)
