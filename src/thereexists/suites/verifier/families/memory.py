"""What is memorised: ``Table``, a function of all strings of n tokens; ``Pairs``, a data set of some of them.

A token is given as numbers near 0 and 1: its bits, for a table; one number for each token of the vocabulary (one-
hot), for a data set. A box is all inputs within r of a stored one. The output at a token is the number of the answer
there: 2 for the first answer of the vocabulary, 3 for the next (0 is for an input that is not stored).

**Extremes of Table** (``slot_network`` in ``constructions/tokens/token_memory.py``), r ≤ 3/16. A bit x in [0, 1]
reaches its slot as ReLU(1 + x − 1) = x, and no other, as ReLU(x − 1) = 0; the sum over the tokens is x, to which the
token itself adds its own slot again: s = x or 2x. The literals are ReLU(4s − 3/2) and ReLU(5/2 − 4s): for x ≤ 3/16
the first is 0 and the second at least 1, for x ≥ 13/16 the other way round. A unit that recalls is ReLU(1 − the
literals that contradict it): 1 if there are none, 0 if there is one, for every such x. So the output is that of the
string itself, for which the certificate of the table has it. ∎

**Extremes of Pairs** (``code_network`` there), n·V·r ≤ 1/4 for V tokens of the vocabulary. The signs t of a token are
off by at most V·r =: e. With a position's sign k, |t + k| − 1 is off from ±1 by at most e: if t = k it is 1 + (t̃ −
t)k, if t = −k it is |t̃ − t| − 1. The sum of the n codes and 1/2 is at least 1/2 from 0, as the codes are ±1, so with
n·e ≤ 1/4 its sign does not change, and the literals, 4 times the sum, are 0 on one side and at least 1 on the other.
From here on as above. ∎
"""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from typing import Any, ClassVar, final

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Array
from thereexists.suites.net import Net, blocks_of
from thereexists.suites.plain import is_number, is_whole
from thereexists.suites.verifier.families.base import Built, Family, Params, Question
from thereexists.suites.verifier.families.hypotheses import Hypotheses, has_just

ANSWERS = 8  # tokens 0 … 7
MOST_ROWS = 512


class Memory(Family):
    """``params["inputs"]`` and ``params["outputs"]``: strings of digits, one token each, of the same length n."""

    margins = (2**-1, 2**-2, 2**-4)
    vocabulary: ClassVar[str]  # the parameter that says how many tokens there are

    @abstractmethod
    def spelt(self, params: Params, ids: Array) -> Array:
        """Tokens (rows, n) as the network gets them: (rows, n, features) of 0 and 1."""

    @abstractmethod
    def witness(self, params: Params) -> Any: ...

    @abstractmethod
    def furthest(self, params: Params) -> float:
        """The largest r of the proof above."""

    @abstractmethod
    def tokens(self, params: Params) -> Hypotheses:
        """What is assumed of the vocabulary, and of which strings are stored."""

    def hypotheses(self, params: Params) -> Hypotheses:
        yield has_just(params, self.vocabulary, "radius", "boxes", "inputs", "outputs")
        x, y = params["inputs"], params["outputs"]
        yield f"inputs are 1 … {MOST_ROWS} strings of digits, each as long as the first", _are_strings(x, "0-9")
        yield f"outputs are strings of digits below {ANSWERS}", _are_strings(y, f"0-{ANSWERS - 1}")
        yield "there is an output for every input, as long as it", len(x) == len(y) and len(x[0]) == len(y[0])
        yield "no input is stored twice", len(set(x)) == len(x)
        yield from self.tokens(params)
        size = self.spelt(params, np.zeros((1, len(x[0])), dtype=np.int64)).size
        yield "an input has at most 62 numbers", size <= 62  # ``_packed``
        yield f"0 ≤ radius ≤ {self.furthest(params)}", is_number(params["radius"], 0, self.furthest(params))
        yield "boxes is a whole number of at least 1", is_whole(params["boxes"], 1, MOST_ROWS)

    def build(self, params: Params) -> Built:
        witness = self.witness(params)
        x, y = self._stored(params)
        kept = np.array_equal(witness.inputs, x + 1) and np.array_equal(witness.outputs, y)
        if (
            not kept
            or witness.digits.count != 1
            or not witness.verdicts()["float64"].holds
            or not witness.exact().all()
        ):
            raise CannotBuild("This network is not proved to answer every stored input.")
        network = witness.network
        table = network.embedding.detach().double().numpy()[1:]
        units = self.spelt(params, np.arange(len(table))[:, None])[:, 0]  # (V, features)
        W_in = units.T @ table if len(units) == units.shape[1] else table[1 << np.arange(units.shape[1])]
        if not np.array_equal(units @ W_in, table):
            raise CannotBuild("The embedding is not linear in these features.")
        W_out = network.W_out.detach().double().numpy().T
        net = Net(W_in, network.E.detach().double().numpy(), blocks_of(network), W_out)
        return Built(net, 0.0, "every stored pair is recalled exactly; inputs near one are taken for it")

    def _stored(self, params: Params) -> tuple[Array, Array]:
        """Tokens and numbers of answers, (rows, n) each."""
        x, said = np.array(_rows(params["inputs"])), np.array(_rows(params["outputs"]))
        return x, 2 + np.searchsorted(np.unique(said), said)

    def reference(self, params: Params, X: Array) -> Array:
        """The answer to the stored input that is next."""
        x, y = self._stored(params)
        names = _packed(self.spelt(params, x))
        order = np.argsort(names)
        return y[order[np.searchsorted(names[order], _packed(X))]][..., None].astype(np.float64)

    def ask(self, params: Params, rng: np.random.Generator) -> Question:
        """About the inputs near some of the stored ones."""
        x, _ = self._stored(params)
        rows = np.sort(rng.choice(len(x), min(params["boxes"], len(x)), replace=False))
        points, r = self.spelt(params, x[rows]), params["radius"]
        boxes = tuple((np.maximum(u - r, 0.0), np.minimum(u + r, 1.0)) for u in points)
        return Question(boxes, (int(rng.integers(x.shape[1])), 0), int(rng.choice([-1, 1])))

    def extreme(self, params: Params, question: Question) -> tuple[float, float, Array]:
        sides = np.stack([np.stack(box) for box in question.boxes])  # (boxes, 2, n, features)
        points, r = np.rint(sides.mean(axis=1)), self.furthest(params)
        known = np.isin(_packed(points), _packed(self.spelt(params, self._stored(params)[0]))).all()
        if not known or (np.abs(sides - points[:, None]) > r).any() or (sides < 0).any() or (sides > 1).any():
            raise CannotBuild(f"Nothing is proved about this box: it is further than {r} from a stored input.")
        values = self.reference(params, points)[(slice(None), *question.output)]
        best = int(np.argmax(question.sense * values))
        return float(values[best]), 0.0, points[best]


def _packed(X: Array) -> Array:
    """Numbers near 0 and 1 as one whole number for each input; below 2^63."""
    bits = (X > 0.5).reshape(len(X), -1).astype(np.int64)
    return bits @ (1 << np.arange(bits.shape[1], dtype=np.int64))


def _rows(strings: list[str]) -> list[list[int]]:
    return [list(map(int, row)) for row in strings]


def _are_strings(rows: Any, digits: str) -> bool:
    if type(rows) is not list or not 1 <= len(rows) <= MOST_ROWS or type(rows[0]) is not str:
        return False
    form = re.compile(f"[{digits}]{{{min(max(len(rows[0]), 1), 64)}}}")
    return all(type(row) is str and form.fullmatch(row) is not None for row in rows)


def _strings(rows: Array) -> list[str]:
    return ["".join(map(str, row)) for row in rows.tolist()]


@final
class Table(Memory):
    name = "table"
    vocabulary = "bits"

    def draw(self, rng: np.random.Generator, level: int) -> Params:
        n, bits = ((2, 1), (2, 2), (3, 2), (4, 2), (3, 3))[level - 1]
        inputs = np.array(list(itertools.product(range(1 << bits), repeat=n)))
        return {
            "bits": bits,
            "radius": (1 / 64, 1 / 32, 1 / 16, 1 / 8, 3 / 16)[level - 1],
            "boxes": level,
            "inputs": _strings(inputs),
            "outputs": _strings(rng.integers(0, ANSWERS, inputs.shape)),
        }

    def tokens(self, params: Params) -> Hypotheses:
        """The first layer tells every string from every other: so every one must be stored."""
        yield "bits is 1, 2 or 3", is_whole(params["bits"], 1, 3)
        x, size = params["inputs"], 1 << params["bits"]
        yield f"every token is below {size}", all(int(digit) < size for row in x for digit in row)
        yield "every string is stored", len(x) == size ** len(x[0])

    def spelt(self, params: Params, ids: Array) -> Array:
        return (ids[..., None] >> np.arange(params["bits"]) & 1).astype(np.float64)

    def witness(self, params: Params) -> Any:
        from thereexists.constructions.build import build
        from thereexists.constructions.tokens.table import Table as Stored

        return build(Stored(_rows(params["inputs"]), _rows(params["outputs"])), construction="compact")

    def furthest(self, params: Params) -> float:
        return 3 / 16


@final
class Pairs(Memory):
    name = "pairs"
    vocabulary = "tokens"

    def draw(self, rng: np.random.Generator, level: int) -> Params:
        n, V, N = ((2, 3, 4), (2, 4, 8), (3, 4, 16), (3, 6, 32), (4, 8, 64))[level - 1]
        strings = np.array(list(itertools.product(range(V), repeat=n)))
        inputs = strings[np.sort(rng.choice(len(strings), N, replace=False))]
        inputs[:V, 0] = np.arange(V)  # every token occurs
        inputs = np.unique(inputs, axis=0)
        return {
            "tokens": V,
            "radius": (2**-8, 2**-8, 2**-7, 2**-8, 2**-8)[level - 1],
            "boxes": level,
            "inputs": _strings(inputs),
            "outputs": _strings(rng.integers(0, ANSWERS, inputs.shape)),
        }

    def tokens(self, params: Params) -> Hypotheses:
        yield "tokens is one of 1 … 10", is_whole(params["tokens"], 1, 10)
        said = sorted({int(digit) for row in params["inputs"] for digit in row})
        yield f"the tokens 0 … {params['tokens'] - 1} occur, and no others", said == list(range(params["tokens"]))

    def spelt(self, params: Params, ids: Array) -> Array:
        return np.eye(params["tokens"])[ids]

    def witness(self, params: Params) -> Any:
        from thereexists.constructions.tokens.memorise import memorise

        return memorise(_rows(params["inputs"]), _rows(params["outputs"]))

    def furthest(self, params: Params) -> float:
        return 1 / (4 * len(params["inputs"][0]) * params["tokens"])
