"""The circuit of a stock folder: which head fetches and which hidden units compute what, and what every edge carries.

The lowering says which head and which units belong to which row (``exports/llama/layout.py``), and the wiring what a
row says. Here both are held against the weights, from which the edges are read as in ``circuits/graph.py``: a place
reads the rows where its matrices are not 0 (of a head's values, those of its output and value matrix together). A row
that is written and has no meaning, a unit or head that writes another row than it is said to, is refused.

Bits are bits up to what RMSNorm and silu leave of them, so outputs are equal up to ``SAME``: a logit of an answer is 32
(``exports/llama/answers.py``), and what a cut edge changes is either far less than 1 or far more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.certificates.llama.circuit import BITS, DONE, FIRST
from thereexists.certificates.llama.circuit import CONSTANT as TOP
from thereexists.core.errors import CannotBuild
from thereexists.exports.llama.layout import fetches, units
from thereexists.functions.target import Array
from thereexists.suites.circuits.graph import Circuit, Stream
from thereexists.suites.circuits.stock.naming import Names, Row, tokens_of
from thereexists.suites.circuits.stock.network import StockNet

SAME = 0.5  # of a logit
ORDERS = 4  # of all strings, to cut an edge on that does nothing on some of them
STILL = 2.0**-10  # a row that was removed holds less
CLEARS = "clears"


@dataclass(frozen=True)
class StockCircuit:
    """The circuit, and for every component what the rows that it writes say."""

    circuit: Circuit
    rows: dict[str, dict[int, Row]]
    names: Names

    def record(self, net: StockNet, strings: Array) -> dict[str, Any]:
        """Plain data, with what cutting each edge does; if that is nothing on these strings, then on all."""
        few, many = ((tokens_of(some), tokens_of(np.roll(some, 1, axis=0))) for some in (strings, self._mixed()))
        found = self.circuit.record(net.run, few, many, SAME)
        for edge in found["edges"]:
            edge["effect"] = round(edge["effect"], 2)  # what is less is the norm's
        for name, component in found["components"].items():
            component["rows"] = [
                {"row": row, "value": said.value, "is": list(said.says)} for row, said in self.rows[name].items()
            ]
        return found | {"steps": self._steps()}

    def _mixed(self) -> Array:
        """All strings, several times, each time before another one."""
        orders = [np.random.default_rng(seed).permutation(len(self.names.strings)) for seed in range(ORDERS)]
        return self.names.strings[np.concatenate(orders)]

    def _steps(self) -> dict[str, Any]:
        """Of every value of the program: which components write rows of it; or which values it is a part of."""
        made = {step["name"]: [] for step in self.names.steps}
        for component, rows in self.rows.items():
            for name in {row.value for row in rows.values()} & made.keys():
                made[name].append(component)
        found: dict[str, Any] = {}
        for step in reversed(self.names.steps):
            name = step["name"]
            readers = [other["name"] for other in self.names.steps if name in other["of"]]
            parts = {part for reader in readers for part in found[reader]["part_of"] or [reader]}
            found[name] = {"in": sorted(made[name]), "part_of": [] if made[name] else sorted(parts)}
        return dict(reversed(found.items()))


def stock_circuit(net: StockNet, names: Names) -> StockCircuit:
    """From the weights, with the lowering's and the wiring's word for them."""
    layers, wiring = names.claim.circuit().layers, names.claim.wired.wiring
    state = net.run(tokens_of(names.strings)).writes
    stream = Stream(state["input"], STILL)
    rows: dict[str, dict[int, Row]] = {"input": {row: _embedded(names, row) for row in stream.since}}
    made_by: dict[str, dict[str, list[int]]] = {}

    def said(layer: int, half: str, row: int) -> Row:
        note = wiring.notes.get((layer, half, row - BITS))
        if note is not None:
            return names.row(note)
        if half == "gates" and row - BITS in layers[layer].cleared:
            return Row(CLEARS, ())
        raise CannotBuild(f"Row {row} is written by the {half} of block {layer}, and has no meaning.")

    for i, (weights, layer) in enumerate(zip(net.layers, layers, strict=True)):
        heads: dict[str, list[int]] = {}
        told = {(int(h), int(row) + BITS) for h, row in zip(fetches(net.shape, layer).head, layer.target, strict=True)}
        seen = {(j, row) for j, O in enumerate(weights.O) for row in _some(O.any(axis=1))}
        if told != seen:
            raise CannotBuild(f"A head of block {i} writes another row than it is said to: {sorted(told ^ seen)[0]}.")
        for j, O in enumerate(weights.O):
            if O.any():
                name = f"a{i}.h{j}"
                for way, W in zip("qkv", (weights.Q[j], weights.K[j], O @ weights.V[j]), strict=True):
                    stream.reads(f"{name}.{way}", _some(W.any(axis=0)))
                heads[name] = _some(O.any(axis=1))
                rows[name] = {row: said(i, "heads", row) for row in heads[name]}
        stream.wrote(heads, state)
        stream.reads(f"m{i}", _some(weights.gate.any(axis=0) | weights.up.any(axis=0)))
        rows[f"m{i}"] = {row: said(i, "gates", row) for row in _some(weights.down.any(axis=1))}
        made_by[f"m{i}"] = _units(weights.down, layer, rows[f"m{i}"], i)
        stream.wrote({f"m{i}": list(rows[f"m{i}"])}, state)
    stream.reads("output", _some(net.W_out.any(axis=0)))
    values = {name: {row: word.value for row, word in some.items()} for name, some in rows.items()}
    return StockCircuit(Circuit(stream.carries, values, made_by), rows, names)


def _units(down: Array, layer: Any, rows: dict[int, Row], i: int) -> dict[str, list[int]]:
    """Value → the hidden units that make it, by the lowering; those that remove rows apart."""
    made, removes = units(layer)
    found: dict[str, set[int]] = {}
    told: set[tuple[int, int]] = set()
    for row, pair in zip((layer.z + BITS).tolist(), made.tolist(), strict=True):
        found.setdefault(rows[row].value, set()).update(pair)
        told |= {(unit, row) for unit in pair}
    for row, unit in zip((layer.cleared + BITS).tolist(), removes.tolist(), strict=True):
        found.setdefault(CLEARS, set()).add(unit)
        told.add((unit, row))
    seen = {(int(unit), int(row)) for row, unit in zip(*np.nonzero(down), strict=True)}
    if told != seen:
        raise CannotBuild(
            f"A hidden unit of block {i} writes another row than it is said to: {sorted(told ^ seen)[0]}."
        )
    return {value: sorted(some) for value, some in found.items()}


def _embedded(names: Names, row: int) -> Row:
    """Of the embedding: the constant, the mark of <s>, that of a letter, or which letter it is."""
    wiring = names.claim.wired.wiring
    note = wiring.notes.get((-1, "embedding", row - BITS))
    if note is not None:
        return names.row(note)
    if row == TOP:
        return Row("constant", ())
    if row in (FIRST, BITS + wiring.start) or row - BITS in wiring.nothing:
        return Row("start", ("<s>",))
    if row == BITS + wiring.here:
        return Row("x", tuple(names.claim.alphabets.alphabet))
    raise CannotBuild(f"Row {row} of the embedding has no meaning{' but that of an answer' if row == DONE else ''}.")


def _some(flags: Any) -> list[int]:
    """Where an array of flags is true."""
    return [int(k) for k in np.flatnonzero(flags)]
