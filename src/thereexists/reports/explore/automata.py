"""Watching an automaton's network: which segment's map every position holds after each block."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from thereexists.automata.automaton import expression_of
from thereexists.certificates.automaton_proof import FIRST, SYMBOLS
from thereexists.constructions.automata.running import MachineWitness
from thereexists.constructions.automata.trace import Held, held_maps
from thereexists.constructions.automata.witness import AutomatonWitness
from thereexists.core.authors_word import as_its_author_says
from thereexists.core.dtypes import dtype_name
from thereexists.core.errors import InvalidInput
from thereexists.reports.automaton_pictures import lively_string
from thereexists.reports.explore.viewer import Viewer, layer_number, output_frame, short, stage_rows

MOST_SYMBOLS = 48  # of a string on the page
MOST_WORDS = 200


class Machines(Viewer):
    """Any network of an automaton: every block is a frame."""

    says: str  # what the blocks do

    def __init__(self, witness: MachineWitness):
        self.witness, self.network = witness, witness.network

    @abstractmethod
    def frames(self, ids: np.ndarray) -> list[dict[str, Any]]:
        """What the blocks do with the symbols of a string; the last one has the states."""

    def about(self) -> dict[str, Any]:
        witness, machine = self.witness, self.witness.automaton
        lengths = [min(witness.n, k) for k in (8, 3, 5, 12, 16)]
        words = [lively_string(machine, k, seed) for seed, k in enumerate(lengths)]
        rng = np.random.default_rng(0)
        words.append([machine.alphabet[a] for a in rng.integers(0, len(machine.alphabet), lengths[0])])
        examples = [[short(symbol) for symbol in word] for word in words]
        facts = {
            "states": machine.size,
            "symbols": len(machine.alphabet),
            "strings": f"up to {witness.n:,}",
            "blocks": self.network.depth,
            "parameters": f"{self.network.parameter_count:,}",
            "number format": dtype_name(self.network.dtype),
        }
        expression = expression_of(machine.origin)
        title = as_its_author_says(short(expression)) if expression else f"an automaton of {machine.size} states"
        return {
            "kind": self.kind,
            "title": title,
            "about": self.says,
            "facts": facts | self.more_facts(),
            "certified": self.proved,
            "chapters": [*self.chapters(), {"name": "Output", "says": "What the states say about the string."}],
            "depth": self.network.depth,
            "stages": stage_rows(self.network),
            "n": min(witness.n, MOST_SYMBOLS),
            "fixed": False,
            "compared": "automaton",
            "offered": "or an example",
            "vocabulary": [short(symbol) for symbol in machine.alphabet[:MOST_WORDS]],
            "examples": examples,
            "start": examples[0],
        }

    def chapters(self) -> list[dict[str, str]]:
        """One for each block."""
        return [{"name": f"Block {t}", "says": ""} for t in range(1, self.network.depth + 1)]

    def more_facts(self) -> dict[str, Any]:
        """What only one construction has."""
        return {}

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        word, ids = self._word(asked)
        frames = [frame | {"chapter": max(frame["layer"] - 1, 0)} for frame in self.frames(ids)]
        machine = self.witness.automaton
        states, meant = self.witness.states([word])[0], machine.states(word)
        answer, known = (
            self._told(self.witness([word])[0]),
            self._told(machine.transduce(word) if machine.writes else machine.accepts(word)),
        )
        end = output_frame(frames[-1], self.network.depth, self.network.depth, states, None)
        end |= {"says": f"The output: {' '.join(answer)}; the automaton says {' '.join(known)}."}
        return {
            "frames": [*frames, end],
            "complete": True,
            "same": bool(np.array_equal(states, meant)) and frames[-1]["states"] == meant.tolist(),
            "words": [short(symbol) for symbol in word],
            "answer": [*answer, f"(states {' '.join(map(str, states.tolist()))})"],
            "stored": [*known, f"(states {' '.join(map(str, meant.tolist()))})"],
        }

    def attention(self, asked: dict[str, Any]) -> dict[str, Any]:
        layer = layer_number(asked, self.network.depth)
        return {"heads": self.run(asked)["frames"][layer]["attention"]}

    def _told(self, answer: Any) -> list[str]:
        if self.witness.automaton.writes:
            return [short(symbol) for symbol in answer]
        return ["accepted" if answer else "rejected"]

    def _word(self, asked: dict[str, Any]) -> tuple[list[Any], np.ndarray]:
        """Symbols between spaces; characters may stand together."""
        given = asked.get("words")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not all(isinstance(word, str) for word in texts):
            raise InvalidInput("A request must have 'words', a list of texts.")
        known = {str(symbol): symbol for symbol in self.witness.automaton.alphabet}
        word: list[Any] = []
        for piece in texts:
            word += [known[piece]] if piece in known else [known.get(character, character) for character in piece]
        most = min(self.witness.n, MOST_SYMBOLS)
        if len(word) > most:
            raise InvalidInput(f"The page shows strings of up to {most} symbols; got {len(word)}.")
        return word, self.witness.automaton.word(word)


class Automata(Machines):
    """Who fetched whose map, and what each position holds then."""

    kind = "doubling"
    says = "After block t every position holds the map of its last 2^t symbols."
    witness: AutomatonWitness

    def chapters(self) -> list[dict[str, str]]:
        says = "Every position composes its map with the one that ends where its own begins: 2^t symbols after block t."
        return [{"name": f"Maps of {2**t}", "says": says} for t in range(1, self.network.depth + 1)]

    def frames(self, ids: np.ndarray) -> list[dict[str, Any]]:
        blocks, heads = held_maps(self.network, self.witness.maps, np.concatenate([[FIRST], ids + SYMBOLS]))
        return [self._frame(t, block, heads[t - 1] if t else None) for t, block in enumerate(blocks)]

    def _frame(self, t: int, block: tuple[Held, ...], heads: np.ndarray | None) -> dict[str, Any]:
        start, dead = self.witness.automaton.start, self.witness.automaton.dead
        says = "Every position holds the map of its own symbol; position 0 holds the identity."
        if t:
            says = (
                f"Block {t} of {self.network.depth}: every position fetches the map that ends {2 ** (t - 1)} before it "
                f"(before the beginning: the identity, at position 0) and holds the map of its last {2**t} symbols."
            )
        return {
            "layer": t,
            "stage": "doubling" if t else "input",
            "index": max(t - 1, 0),
            "held": [vars(held) for held in block],
            "states": [dead if held.map[start] is None else held.map[start] for held in block],
            "moved": [h.position for h in block],
            "says": says,
            "attention": heads,
        }


def automaton_viewer(witness: AutomatonWitness, target: None) -> Automata:
    return Automata(witness)
