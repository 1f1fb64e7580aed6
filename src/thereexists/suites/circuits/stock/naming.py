"""What every row of the residual stream says: which value of the program, of which token, is one of which.

Whoever wires a program writes down what each row means (``certificates/llama/signals.py``). Here a meaning is put into
words, and *looked at*: on every string of the program, at every token where it says something, the row of the network
in the files must be 1 where the meaning is true and 0 where it is not, and every value of the program what the
program in NumPy has.

A value has rows of its own only if other tokens, or too many others, ask for it. Operations on what stands at one token
are one table otherwise; values between them are nowhere in the network. ``steps`` says of each which it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thereexists.certificates.llama.circuit import BITS
from thereexists.certificates.llama.finite import Atom, Found, Made, Position, Symbol, Table, Taken
from thereexists.certificates.llama.programs import ProgramClaim
from thereexists.certificates.llama.signals import Meaning, Recalls, Remembers, Says
from thereexists.certificates.llama.tokens import BOS, SYMBOLS
from thereexists.constructions.program.graph import Notes, nodes
from thereexists.core.errors import CannotBuild
from thereexists.functions.target import Array
from thereexists.suites.circuits.programs import Step
from thereexists.suites.circuits.stock import programs
from thereexists.suites.circuits.stock.network import StockNet

NEAR = 1 / 16  # what a bit may be off, by ``exports/llama/lower.py``


@dataclass(frozen=True)
class Row:
    """``value``: a name of the program's, with which token it is of; ``says``: one of these."""

    value: str
    says: tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """The values of a program, on all of its strings, and where they are in the tables of its claim."""

    steps: list[Step]
    claim: ProgramClaim

    @cached_property
    def strings(self) -> Array:
        return programs.every_string()

    @cached_property
    def values(self) -> dict[str, Array]:
        return programs.values_of(self.steps, self.strings)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Of every value of the program; and of those inside an operation, ``v3.1``, in the order of the compiler."""
        program, written = programs.written(self.steps)
        order: Notes[int] = Notes()
        for k, node in enumerate(nodes(program.number)):
            order[node] = k
        features = self.claim.wired.features
        found = {name: features[order[value]][0] for name, value in written.items()}
        owner: dict[int, str] = {}
        for name, value in written.items():
            for node in nodes(value):
                owner.setdefault(order[node], name)
        count: dict[str, int] = {}
        named = {order[value] for value in written.values()}
        for k, name in sorted(owner.items()):
            for table in features[k] if k not in named else ():
                count[name] = count.get(name, 0) + 1
                found[f"{name}.{count[name]}"] = table
        return found

    def named(self, table: Table) -> tuple[str, tuple[Any, ...]]:
        """The name of a table's value, and what its numbers stand for."""
        for exact in (True, False):  # two values with the same table may have one set of rows
            for name, known in self.tables.items():
                same = known.atoms == table.atoms and np.array_equal(known.codes, table.codes)
                if same and (known.values == table.values or not exact):
                    return name, known.values
        for name, known in self.tables.items():  # or that of a value which was cut out
            atom = known.atoms[0] if len(known.atoms) == 1 else None
            if isinstance(atom, Made) and atom.table is table:
                return name, tuple(known.values[k] for k in known.codes.tolist())
        raise CannotBuild("A row says something about a value that has no name.")

    # ---- on all strings ----------------------------------------------------------------------------------------------

    @cached_property
    def _known(self) -> dict[Atom | Table, Array]:
        return {}

    def numbers(self, of: Atom | Table) -> Array:
        """(strings, n): which of its values it has."""
        if of not in self._known:
            self._known[of] = self._numbers(of)
        return self._known[of]

    def _numbers(self, of: Atom | Table) -> Array:
        if isinstance(of, Table):
            parts = tuple(self.numbers(atom) for atom in of.atoms)
            return np.broadcast_to(of.codes[parts], self.strings.shape)
        if isinstance(of, Symbol):
            return self.strings
        if isinstance(of, Position):
            return np.broadcast_to(np.arange(programs.N), self.strings.shape)
        if isinstance(of, Taken):
            return self.numbers(of.of)[:, of.places]
        if isinstance(of, Made):
            return self.numbers(of.table)
        if isinstance(of, Found):
            return self._found(of, self.numbers(of.query), programs.N)[1]
        raise CannotBuild("A row says something about a value that has no name.")

    def _found(self, of: Found, asked: Array, window: int) -> tuple[Array, Array]:
        """Whether one of the tokens of the window up to here hits, and the key of the last (first) one."""
        keys, n = self.numbers(of.key), programs.N
        hits = of.hits[asked[:, :, None], keys[:, None, :]] & np.tril(np.ones((n, n), dtype=bool))
        hits = np.logical_and(hits, np.triu(np.ones((n, n), dtype=bool), 1 - window))
        place = n - 1 - hits[:, :, ::-1].argmax(axis=2) if of.last else hits.argmax(axis=2)
        place = np.where(hits.any(axis=2), place, 0)  # where none does, any token up to here
        return np.asarray(hits.any(axis=2)), np.take_along_axis(keys, place, axis=1)

    def truth(self, says: Meaning) -> tuple[Array, Array]:
        """(strings, n): whether it is true, and where it is said at all."""
        everywhere = np.ones(self.strings.shape, dtype=bool)
        if isinstance(says, Recalls):
            asked = self.numbers(says.of.query)
            hit, key = self._found(says.of, asked, programs.N)
            number = np.where(hit, says.value[asked, key], says.miss[asked])
            return np.asarray(np.isin(number, says.which)), everywhere
        if isinstance(says, Remembers):
            hit, key = self._found(says.of, np.full(self.strings.shape, says.asked), says.window)
            true = ~hit if says.nothing else np.logical_and(hit, np.isin(key, says.keys))
            before = np.full_like(true[:, : says.back], says.nothing)  # the beginning: nothing hits there
            return np.concatenate([before, true], axis=1)[:, : programs.N], everywhere
        true: Array = np.isin(self.numbers(says.of), says.which)
        if says.place is not None:
            true = np.repeat(true[:, says.place, None], programs.N, axis=1)
        elif says.back:
            true = np.concatenate([true[:, : says.back], true], axis=1)[:, : programs.N]
        return true, np.broadcast_to(says.where, true.shape)

    # ---- words -------------------------------------------------------------------------------------------------------

    def row(self, says: Meaning) -> Row:
        if isinstance(says, Says):
            return self._row(says)
        step = self._step(says.of)
        query, values = self.values[step["of"][0]], self.values[step["of"][-1]]
        if isinstance(says, Recalls):
            true, _ = self.truth(says)
            return Row(step["name"], self._symbols(step["name"], self.values[step["name"]][true]))
        asked = self._symbols(step["of"][0], query[self.numbers(says.of.query) == says.asked])
        held = self._symbols(step["of"][-1], values[np.isin(self.numbers(says.of.key), says.keys)])
        back = f", {says.back} back" if says.back else ""
        value = f"{step['name']} for {'/'.join(asked)} in the last {says.window}{back}"
        return Row(value, ("nothing",) if says.nothing else held)

    def _row(self, says: Says) -> Row:
        of, where = says.of, f" {says.back} back" if says.back else ""
        where = f" at {says.place}" if says.place is not None else where
        if isinstance(of, Taken):
            of, where = of.of, " elsewhere"
        if isinstance(of, Position):
            return Row("position", tuple(map(str, says.which)))
        if isinstance(of, Symbol):
            return Row(f"x{where}", tuple(programs.LETTERS[k] for k in says.which))
        table = of.table if isinstance(of, Made) else of
        if not isinstance(table, Table):
            raise CannotBuild("A row says something about a value that has no name.")
        name, values = self.named(table)
        if name in self.values:
            return Row(name + where, self._symbols(name, np.array([int(values[k]) for k in says.which])))
        return Row(name + where, tuple(str(values[k]) for k in says.which))

    def _step(self, of: Found) -> Step:
        """The operation that looks up: the one in whose tables this look-up comes first."""
        inside = [name for name, table in self.tables.items() if of in table.atoms]
        names = {name.partition(".")[0] for name in inside}
        found = [step for step in self.steps if step["name"] in names and step["op"] in programs.LOOKS]
        if not found:
            raise CannotBuild("A row says something about a look-up that has no name.")
        return found[0]

    def _symbols(self, name: str, numbers: Array) -> tuple[str, ...]:
        known = programs.symbols_of(programs.gives(self.steps)[name])
        return tuple(known[k] for k in np.unique(numbers).tolist())

    # ---- checks ------------------------------------------------------------------------------------------------------

    def check(self, net: StockNet) -> None:
        """On every string: tables, rows and answers are what is said; refused with the first that is not."""
        for name, values in self.values.items():
            table = self.tables[name]
            if not np.array_equal(np.array([int(v) for v in table.values])[self.numbers(table)], values):
                raise CannotBuild(f"{name} is something else in the tables than in the program.")
        run = net.run(tokens_of(self.strings))
        stream = run.writes["input"].copy()
        self._check_rows(stream, -1, "embedding")
        for i in range(len(net.layers)):
            for j in range(net.shape.heads):
                stream += run.writes[f"a{i}.h{j}"]
            self._check_rows(stream, i, "heads")
            stream += run.writes[f"m{i}"]
            self._check_rows(stream, i, "gates")
        said = run.output[:, 1:].argmax(axis=-1) - self.claim.first_answer
        if not np.array_equal(said, self.values[self.steps[-1]["name"]]):
            raise CannotBuild("The network answers something else than its program.")

    def _check_rows(self, stream: Array, layer: int, half: str) -> None:
        for (t, part, row), says in self.claim.wired.wiring.notes.items():
            if (t, part) == (layer, half):
                true, where = self.truth(says)
                if not (np.abs(stream[:, 1:, BITS + row] - true)[where] <= NEAR).all():
                    raise CannotBuild(f"Row {BITS + row} after the {half} of block {layer} is not {self.row(says)}.")


def tokens_of(strings: Array) -> Array:
    """<s>, then the letters."""
    return np.concatenate([np.full((len(strings), 1), BOS), strings + SYMBOLS], axis=1)
