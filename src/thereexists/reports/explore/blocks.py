"""Watching a compact network: each block writes into the residual stream; which memory unit answers which token."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thereexists.constructions.compact.blocks import row_counts
from thereexists.constructions.compact.witness import CompactWitness
from thereexists.constructions.program.witness import ProgramWitness
from thereexists.constructions.tokens.witness import TokenWitness
from thereexists.core.authors_word import WORDS, shortened
from thereexists.core.dtypes import dtype_name
from thereexists.core.errors import InvalidInput
from thereexists.functions.target import Target
from thereexists.model import EmbeddedTransformer
from thereexists.model.transformer import Block
from thereexists.reports.explore.columns import starting_point
from thereexists.reports.explore.output_map import Lattice, lattice
from thereexists.reports.explore.rows import MOST_UNITS, Group, groups_of, key_match, program_rows, token_rows
from thereexists.reports.explore.viewer import (
    Viewer,
    check_entries,
    layer_number,
    output_frame,
    sequence,
    short,
    stage_rows,
    wanted,
)
from thereexists.reports.witness.program import title_of
from thereexists.witness.recounted import told_description, told_name, told_sizes

MOST_BLOCKS = 400
MOST_ROWS = 256  # of the residual stream that are sent
CHAPTERS = {  # what the blocks of compact networks do, by the name of their stage
    "edges": "Every number is compared with the edges of the cells: two rows for each edge, exactly 0 on one side.",
    "cells": "The edges become the bits of the cell, written to the slots of the token's own position.",
    "slots": "Every token copies its bits to the slots of its own position.",
    "gather": "Attention averages: every token receives all slots; a bit becomes two literals, one for 1, one for 0.",
    "codes": "The code of every token is multiplied by the code of its position.",
    "sums": "Attention averages the codes; the signs of the mean are the key of the whole sequence.",
    "recall": "A memory with keys: a unit fires if no literal contradicts its key, and writes the stored value.",
    "select": "Every position keeps the digits of its own answer.",
}
MOST_EXAMPLES = 200
MOST_WORDS = 2000
LONGEST_NAME = 20  # of a chapter


class Blocks(Viewer):
    """Every block is a frame: its attention, the stream after it, the read-out, and how many units are active."""

    kind = "blocks"
    network: EmbeddedTransformer

    def _about(self, title: str, text: str, facts: dict[str, Any]) -> dict[str, Any]:
        network = self.network
        shape = network.shape()
        return {
            "kind": self.kind,
            "title": short(title),
            "about": short(text),
            "facts": facts
            | {
                "blocks": network.depth,
                "width": f"{shape['d']:,}",
                "parameters": f"{network.parameter_count:,}",
                "number format": dtype_name(network.dtype),
            },
            "certified": self.proved,
            "chapters": self._chapters(),
            "groups": self.groups(0),
            "map": self.lattice() is not None,
            "depth": network.depth,
            "stages": stage_rows(network),
            "rows": min(shape["d"], MOST_ROWS),
            "rows_left_out": max(0, shape["d"] - MOST_ROWS),
        }

    def groups(self, block: int) -> list[Group]:
        """The names of the rows after a block."""
        return []

    def _chapters(self) -> list[dict[str, str]]:
        """One for each stage, a stage that was cut into several blocks being one, and the output."""
        names = list(dict.fromkeys(_base(name) for name in self.network.stages))
        told = [{"name": name.capitalize().replace("_", " "), "says": CHAPTERS.get(name, "")} for name in names]
        return [*told, {"name": "Output", "says": "What the network answers, beside what was wanted."}]

    def _named(self, frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows of a program are used again: their names are those of the block."""
        return [frame | {"groups": self.groups(frame["layer"])} for frame in frames]

    def _ended(
        self, frames: list[dict[str, Any]], output: np.ndarray, target: np.ndarray | None
    ) -> list[dict[str, Any]]:
        return [*frames, output_frame(frames[-1], self.network.depth, len(self._chapters()) - 1, output, target)]

    def _frames(self, X: Tensor, mask: Tensor | None) -> tuple[list[dict[str, Any]], bool]:
        network, frames = self.network, []
        chapter = {name: k for k, name in enumerate(dict.fromkeys(_base(name) for name in network.stages))}
        with torch.no_grad():
            Z = network.embed(X)
            says = "The input, embedded into the residual stream."
            frames.append(self._frame((0, "input", 0), Z, Z, None) | {"says": says, "attention": None, "chapter": 0})
            for layer, (name, index, block) in enumerate(network.layers(), 1):
                if layer > MOST_BLOCKS:
                    return frames, False
                before, block = Z, _masked(block, mask)
                attention = block.attention_weights(Z)
                read = Z if block.attention is None else dataclasses.replace(block, feed_forward=None)(Z)
                Z = block(before)
                units, fired = None, []
                if block.feed_forward is not None:
                    W_1, b_1 = block.feed_forward[:2]
                    units = torch.nn.functional.linear(read[0], W_1, b_1)  # (n, r)
                    fired = key_match(W_1, units, read[0], MOST_ROWS) if name.startswith("recall") else []
                active = None if units is None else units > 0
                frames.append(
                    self._frame((layer, name, index), before, Z, active)
                    | {
                        "says": _words(name, layer, network.depth, attention is not None, active, before, Z),
                        "attention": None if attention is None else attention[0].double().numpy(),
                        "chapter": chapter[_base(name)],
                        "fired": fired,
                    }
                )
        return frames, True

    def _frame(self, where: tuple[int, str, int], before: Tensor, Z: Tensor, active: Tensor | None) -> dict[str, Any]:
        layer, name, index = where
        return {
            "layer": layer,
            "stage": short(name),
            "index": index,
            "stream": np.round(Z[0, :, :MOST_ROWS].double().numpy(), 6),
            "state": torch.nn.functional.linear(Z, self.network.W_out)[0].double().numpy(),
            "moved": (before != Z).any(-1)[0].nonzero()[:, 0].tolist(),
            "active": None if active is None else active.sum(dim=1).numpy(),
        }


class Features(Blocks):
    """A compact witness of a function of numbers."""

    def __init__(self, witness: CompactWitness, target: Target):
        self.witness, self.target, self.network = witness, target, witness.network

    def about(self) -> dict[str, Any]:
        grid, target = self.witness.grid, self.target
        about = told_name(self.witness), told_description(self.witness), told_sizes(self.witness)
        return self._about(*about) | {
            "n": grid.n,
            "d": grid.d,
            "low": target.low,
            "high": target.high,
            "start": starting_point(target),
        }

    def groups(self, block: int) -> list[Group]:
        return groups_of(row_counts(self.witness.grid), self.network.shape()["d"])

    def lattice(self, coarse: bool = False) -> Lattice | None:
        target, grid = self.target, self.witness.grid
        if target.region is not None:
            return None
        return lattice(grid.n, np.array([target.low, target.high]), self.witness.run, grid, coarse)

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        x = sequence(asked, self.witness)
        frames, complete = self._frames(torch.from_numpy(x[None]).to(self.network.dtype), None)
        output = self.witness.run(x[None])[0]
        same = bool(np.array_equal(np.asarray(frames[-1]["state"]), output)) if complete else False
        target = wanted(self.target, x)
        frames = self._ended(frames, output, target)
        return {"frames": frames, "complete": complete, "same": same, "output": output, "target": target}

    def attention(self, asked: dict[str, Any]) -> dict[str, Any]:
        layer = layer_number(asked, self.network.depth)
        frames = self.run(asked)["frames"]
        return {"heads": frames[layer]["attention"] if layer < len(frames) else None}


class Programs(Blocks):
    """A program over the reals: what every block leaves in its rows."""

    def __init__(self, witness: ProgramWitness):
        self.witness, self.network = witness, witness.network
        self.box = [float(witness.source.settings[end]) for end in ("low", "high")]

    def about(self) -> dict[str, Any]:
        witness, (low, high) = self.witness, self.box
        facts = {"tokens": witness.n, "features": witness.d, "outputs": witness.program.d}
        text = f"A program over the reals, compiled to standard blocks. {NAMED}"
        start = low + (high - low) * np.linspace(0.9, 0.1, witness.n * witness.d).reshape(witness.n, witness.d)
        return self._about(title_of(witness), text, facts) | {
            "n": witness.n,
            "d": witness.d,
            "low": [low] * witness.d,
            "high": [high] * witness.d,
            "start": start,
        }

    def groups(self, block: int) -> list[Group]:
        return program_rows(self.witness.places, block)

    def _chapters(self) -> list[dict[str, str]]:
        return told_blocks(self.witness.places, super()._chapters())

    def lattice(self, coarse: bool = False) -> Lattice | None:
        low, high = (np.full(self.witness.d, end) for end in self.box)
        return lattice(self.witness.n, np.array([low, high]), self.witness.run, None, coarse)

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        x = sequence(asked, self.witness)
        frames, complete = self._frames(torch.from_numpy(self.witness.padded(x[None])).to(self.network.dtype), None)
        output = self.witness.run(x[None])[0]
        same = complete and bool(np.array_equal(np.asarray(frames[-1]["state"])[: len(x)], output))
        meant = self.witness.interpret(x[None])[0]
        frames = self._ended(self._named(frames), output, meant)
        return {"frames": frames, "complete": complete, "same": same, "output": output, "target": meant}

    def attention(self, asked: dict[str, Any]) -> dict[str, Any]:
        layer = layer_number(asked, self.network.depth)
        frames = self.run(asked)["frames"]
        return {"heads": frames[layer]["attention"] if layer < len(frames) else None}


class Tokens(Blocks):
    """A table or a memorised data set: words in, words out."""

    def __init__(self, witness: TokenWitness):
        self.witness, self.network = witness, witness.network
        self._stored = {self._key(row).tobytes(): k for k, row in enumerate(witness.inputs)}

    def about(self) -> dict[str, Any]:
        witness = self.witness
        facts = {"pairs": f"{len(witness.inputs):,}", "tokens": witness.n, "vocabulary": f"{len(witness.vocabulary):,}"}
        words = [short(token) for token in witness.vocabulary.tokens[:MOST_WORDS]]
        examples = [[short(word) for word in self._words_of(row)] for row in witness.inputs[:MOST_EXAMPLES]]
        text = "A finite function, stored as a table." if witness.purpose == "table" else "A memorised data set."
        return self._about(witness.purpose, text, facts) | {
            "n": witness.n,
            "fixed": witness.fixed,
            "vocabulary": words,
            "examples": examples,
            "start": examples[0] if examples else [],
        }

    def groups(self, block: int) -> list[Group]:
        return token_rows(self.network, self.witness.n)

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        ids = self._numbers(asked)
        frames, complete = self._frames(torch.from_numpy(ids), torch.from_numpy(ids > 0))
        numbers = self.witness.run(ids)
        answer = self.witness._decode(numbers[0])
        same = complete and np.array_equal(self.witness.digits.join(frames[-1]["state"][None]), numbers)
        stored = self._stored.get(self._key(ids[0]).tobytes())
        tokens = self.witness.output_vocabulary.tokens
        known = None if stored is None else [tokens[i - 2] for i in self.witness.outputs[stored].tolist() if i >= 2]
        return {
            "frames": self._ended(frames, frames[-1]["state"], None),
            "complete": complete,
            "same": bool(same),
            "words": [short(word) for word in self._words_of(ids[0])],
            "answer": None if answer is None else [short(word) for word in answer],
            "stored": None if known is None else [short(word) for word in known],
        }

    def attention(self, asked: dict[str, Any]) -> dict[str, Any]:
        ids, layer = self._numbers(asked), layer_number(asked, self.network.depth)
        frames, _ = self._frames(torch.from_numpy(ids), torch.from_numpy(ids > 0))
        return {"heads": frames[layer]["attention"] if layer < len(frames) else None}

    def _key(self, row: np.ndarray) -> np.ndarray:
        return np.sort(row) if self.witness.symmetric else np.ascontiguousarray(row)

    def _numbers(self, asked: dict[str, Any]) -> np.ndarray:
        """Words of the request as numbers (1, n). Words are strings; one that reads as a stored integer is it."""
        words = asked.get("words")
        if not isinstance(words, list) or not all(isinstance(w, str) for w in words):
            raise InvalidInput("A request must have 'words', a list of texts.")
        n, known = self.witness.n, self.witness.vocabulary.number
        if not 1 <= len(words) <= n or (self.witness.fixed and len(words) != n):
            wanted = f"exactly {n}" if self.witness.fixed else f"1 to {n}"
            raise InvalidInput(f"A sequence must have {wanted} tokens; got {len(words)}.")
        tokens = [w if w in known or not w.lstrip("-").isdecimal() else int(w) for w in words]
        return self.witness.vocabulary.encode([tokens], n, first=1, fill=0)

    def _words_of(self, row: np.ndarray) -> list[Any]:
        tokens = self.witness.vocabulary.tokens
        return [tokens[i - 1] for i in row.tolist() if 1 <= i <= len(tokens)]


NAMED = f"What its blocks and rows are called, it is called {WORDS}."


def told_blocks(places: Any, chapters: list[dict[str, str]]) -> list[dict[str, str]]:
    """What every block of a program computes, as its record has it."""
    made: dict[int, list[str]] = {}
    for place in places:
        made.setdefault(int(place["block"]), []).extend(str(name) for name, _ in place["made"])
    told = []
    for k, chapter in enumerate(chapters[:-1], 1):
        words = ", ".join(dict.fromkeys(made.get(k, [])))
        name = ", ".join(dict.fromkeys(part.partition(":")[0] for part in made.get(k, [])))  # sort, not sort: partner
        says = short(f"Block {k} computes {words}: {WORDS}.")
        told.append({"name": shortened(name, LONGEST_NAME), "says": says} if words else chapter)
    return [*told, chapters[-1]]


def _base(stage: str) -> str:
    """``recall_2`` is a part of ``recall``; the blocks of a program are numbered."""
    name, _, number = stage.rpartition("_")
    return name if number.isdecimal() and name in CHAPTERS else stage


def _masked(block: Block, mask: Tensor | None) -> Block:
    """Padded positions are masked out of the attention, as in ``EmbeddedTransformer.forward``."""
    if mask is None or block.attention is None:
        return block
    return dataclasses.replace(block, attention=(*block.attention[:-1], mask[:, None, None, :]))


def _words(name: str, layer: int, depth: int, attends: bool, active: Tensor | None, before: Tensor, Z: Tensor) -> str:
    changed = int((before != Z).any(dim=(0, 1)).sum())
    called = "" if name.startswith("block_") else f", {short(name)}"
    parts = [f"Block {layer} of {depth}{called}: "]
    parts.append("every token receives a mixture of all tokens; " if attends else "")
    parts.append(f"{changed:,} row{'s' if changed != 1 else ''} of the stream change{'' if changed != 1 else 's'}")
    if active is not None:
        units = [active[j].nonzero()[:, 0].tolist() for j in range(len(active))]
        most = max((len(u) for u in units), default=0)
        if name.startswith("recall") and most <= MOST_UNITS:
            said = ", ".join(f"unit {'+'.join(map(str, u))} answers token {j}" for j, u in enumerate(units) if u)
            parts.append(f"; {said}" if said else "; no memory unit answers: the default stays")
        else:
            parts.append(f"; up to {most:,} of {active.shape[1]:,} units are active at a token")
    return "".join(parts) + "."


def features_viewer(witness: CompactWitness, target: Target | None) -> Features:
    check_entries(witness.grid.n, witness.grid.d)
    return Features(witness.knowing(target), target or witness.target)


def tokens_viewer(witness: TokenWitness, target: None) -> Tokens:
    return Tokens(witness)


def program_viewer(witness: ProgramWitness, target: None) -> Programs:
    check_entries(witness.n, witness.d)
    return Programs(witness)
