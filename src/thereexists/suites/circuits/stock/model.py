"""One model of the suite: a causal program over letters as a stock Llama folder, with its circuit, checked.

models/0005-induction-stock/
  llama/                     the folder that ``transformers`` and TransformerLens load, with its proof
  circuit.json               components with their rows, units and operations; edges; where each step is computed
  program.txt, program.py    the program in words and in NumPy
  data.safetensors           64 strings as tokens, every value of the program on them, the answers
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.certificates.llama.circuit import BITS
from thereexists.certificates.llama.programs import ProgramClaim
from thereexists.certificates.llama.tokens import BOS, SYMBOLS
from thereexists.certificates.symbol_certificate import Alphabets
from thereexists.constructions.program.saving import to_record
from thereexists.core.errors import CannotBuild, InvalidInput, NotProved
from thereexists.core.json_files import malformed
from thereexists.core.tensor_files import save_tensors
from thereexists.functions.target import Array
from thereexists.suites.circuits.files import read_arrays
from thereexists.suites.circuits.programs import INPUTS, Step, plain_text
from thereexists.suites.circuits.stock import programs
from thereexists.suites.circuits.stock.circuit import stock_circuit
from thereexists.suites.circuits.stock.naming import Names, tokens_of
from thereexists.suites.circuits.stock.network import read_stock

FOLDER = "llama"
D_MODEL, MOST_PARAMETERS, LEAST_LAYERS = 64, 600_000, 2  # of a random program


def claim_of(steps: list[Step]) -> ProgramClaim:
    """What the checkpoint of a program claims."""
    program, _ = programs.written(steps)
    return ProgramClaim.of(to_record(program.number), Alphabets(tuple(programs.LETTERS), program.alphabet))


def draw(rng: np.random.Generator, steps: int) -> list[Step]:
    """A random program whose network is small, but has more than one layer."""
    return programs.random_program(rng, steps, _small)


def _small(steps: list[Step]) -> bool:
    from thereexists.exports import plan_llama

    claim = claim_of(steps)
    try:
        circuit = claim.circuit()
    except NotProved:
        return False
    if BITS + circuit.rows > D_MODEL or len(circuit.layers) < LEAST_LAYERS:
        return False
    return plan_llama(claim)["parameters"] <= MOST_PARAMETERS


def write_stock(folder: Path, steps: list[Step], rng: np.random.Generator) -> None:
    """Prove, look at all strings, find the circuit, and write the folder of a model."""
    from thereexists.exports import export_claim

    claim = claim_of(steps)
    export_claim(claim, folder / FOLDER, "float32")
    strings = programs.every_string()
    some = strings[rng.choice(len(strings), INPUTS, replace=False)]
    (folder / "program.txt").write_text(plain_text(steps))
    (folder / "program.py").write_text(programs.numpy_text(steps))
    record = _record(folder, steps, some)
    about = {"name": folder.name, "dress": "stock", "programs": [steps], "dtype": "float32"}
    (folder / "circuit.json").write_text(json.dumps(about | record, indent=1) + "\n")
    data = {name: torch.from_numpy(array.copy()) for name, array in _data(steps, claim, some, record).items()}
    save_tensors(data, folder / "data.safetensors")


def stock_problems(folder: Path, stored: dict[str, Any]) -> list[str]:
    """What the files of a model show to be wrong: everything is found again from the weights in them."""
    with malformed(folder, "is not a model of a circuit suite"):
        (steps,) = stored["programs"]
        strings = read_tokens(folder)[:, 1:] - SYMBOLS
        try:
            record = json.loads(json.dumps(_record(folder, steps, strings)))
        except CannotBuild as error:
            return [f"{FOLDER}/ is not what circuit.json says: {error}"]
    return [
        f"circuit.json: '{part}' is not what {FOLDER}/ gives" for part in record if stored.get(part) != record[part]
    ]


def read_tokens(folder: Path) -> Array:
    """Of the data: (strings, 1 + n) numbers of tokens, <s> first."""
    file = folder / "data.safetensors"
    tokens = read_arrays(file).get("tokens", np.zeros(0))
    right = tokens.ndim == 2 and tokens.shape[1] == 1 + programs.N and (tokens[:, 0] == BOS).all()
    if not right or not np.isin(tokens[:, 1:], SYMBOLS + np.arange(len(programs.LETTERS))).all():
        raise InvalidInput(f"{file} must hold the tokens of strings of {programs.N} letters, <s> first.")
    return tokens.astype(np.int64)


def _record(folder: Path, steps: list[Step], strings: Array) -> dict[str, Any]:
    """The circuit, from the files: the claim is that of the program, every row says what it should on all strings."""
    net, checkpoint = read_stock(folder / FOLDER)
    claim = claim_of(steps)
    if checkpoint.claim.describe() != claim.describe():
        raise CannotBuild("The checkpoint claims another program.")
    names = Names(steps, claim)
    names.check(net)
    return stock_circuit(net, names).record(net, strings)


def _data(steps: list[Step], claim: ProgramClaim, strings: Array, record: dict[str, Any]) -> dict[str, Array]:
    """Tokens, answers, and every value: of the program's names, and of those inside operations that rows speak of."""
    names = Names(steps, claim)
    which = [int((names.strings == string).all(axis=1).argmax()) for string in strings]
    values = programs.values_of(steps, strings)
    found = {"tokens": tokens_of(strings), "answers": values[steps[-1]["name"]] + claim.first_answer}
    found |= {f"values.{name}": array for name, array in values.items()}
    said = {row["value"].split(" ")[0] for part in record["components"].values() for row in part["rows"]}
    for name in sorted(said & names.tables.keys() - values.keys()):
        table = names.tables[name]
        found[f"values.{name}"] = np.array([float(v) for v in table.values])[names.numbers(table)][which]
    return found
