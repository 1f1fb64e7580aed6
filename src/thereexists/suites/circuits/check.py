"""Is all of a circuit suite true? Every model is made again from the seed, with all its checks, and compared.

Making a model proves the program's network, cuts all edges outside of its circuit, and compares the data with the
program (``make.py``). What that shares with whoever made the suite is the code. The certificates are verified by code
of their own, from the files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from safetensors.torch import save

from thereexists.core.errors import Obstructed, ThereExistsError
from thereexists.core.json_files import read_json
from thereexists.core.regular_files import read_regular
from thereexists.suites.circuits import superposed
from thereexists.suites.circuits.files import MOST_WEIGHTS, read_circuit, read_model, read_names, read_tensors
from thereexists.suites.circuits.make import write_model
from thereexists.suites.circuits.stock.model import FOLDER, stock_problems
from thereexists.suites.circuits.texts import SUITE_SCHEMA, pages
from thereexists.suites.folders import (
    MARK,
    Checked,
    files_of,
    gathered,
    hash_problems,
    obstacle,
    page_problems,
    same_version,
    stray_problems,
)
from thereexists.suites.hashes import sha256

MOST_PROBLEMS = 100  # are found: to make a model again takes a second, and a false suite may name a million
DATA = "data.safetensors"
ROUNDING = 2.0**-40  # of outputs, which are at most some hundreds: other machines add up in another order


def check_circuits(
    folder: Path, record: dict[str, Any], progress: Callable[[int, int], None] = lambda done, total: None
) -> Checked:
    """Every problem in one sentence."""
    names = read_names(folder, record)
    same_version(folder, record, set(SUITE_SCHEMA["required"]))
    return gathered(len(names), _problems(folder, record, names, progress))


def _problems(
    folder: Path, record: dict[str, Any], names: list[str], progress: Callable[[int, int], None]
) -> Iterator[str]:
    count = 0
    for problem in _of_the_files(folder, record, names):
        count += 1
        yield problem
    for number, name in enumerate(names):
        if count >= MOST_PROBLEMS:
            yield f"what comes after {name} was not looked at"
            return
        for problem in _of_a_model(folder / "models" / name, record["seed"], number):
            count += 1
            yield f"{name}: {problem}"
        progress(number + 1, len(names))


def _of_the_files(folder: Path, record: dict[str, Any], names: list[str]) -> Iterator[str]:
    yield from hash_problems(folder, record)
    yield from page_problems(folder, pages())
    models = tuple(f"models/{name}/" for name in names)
    inside = {name for name in files_of(folder) if name.startswith(models)}  # ``_model`` looks at these
    yield from stray_problems(folder, {MARK, *pages(), *inside})


def _of_a_model(folder: Path, seed: int, number: int) -> Iterator[str]:
    if not folder.is_dir():  # nothing is made for it
        yield "there is no such folder"
        return
    try:
        yield from _model(folder, seed, number)
    except (ThereExistsError, ValueError, KeyError, TypeError, IndexError) as error:
        if obstacle(error) is not None:
            raise
        yield str(error)


def _same_data(again: Path, given: Path) -> bool:
    """Whether a file of data is the one wanted, up to the rounding of its outputs: byte for byte, once it has these."""
    wanted, found = read_tensors(again), read_tensors(given).get("outputs")
    own = wanted.get("outputs")
    if own is None or found is None or (found.dtype, found.shape) != (own.dtype, own.shape):
        return False
    if not bool(((own - found).abs() <= ROUNDING).all()):
        return False
    return save(wanted | {"outputs": found}) == read_regular(given, MOST_WEIGHTS)


def _model(folder: Path, seed: int, number: int) -> Iterator[str]:
    from thereexists.certificates.verify import verify

    with tempfile.TemporaryDirectory() as place:
        again = Path(place) / write_model(Path(place), seed, number)
        if again.name != folder.name:
            yield f"the seed gives {again.name} in its place"
        files, there = files_of(again), files_of(folder)
        for name in sorted(files | there):
            same = name in files & there and sha256(again / name) == sha256(folder / name)
            if not same and not (name == DATA and name in files & there and _same_data(again / name, folder / name)):
                yield f"{name} is not what the seed gives"
    for witness in sorted([*folder.glob("witness*"), *folder.glob(FOLDER)]):
        verdict = verify(witness)
        if verdict.holds is None:
            raise Obstructed(f"{witness} could not be checked: {verdict.reasons[0]}")
        if not verdict.holds:
            yield f"{witness.name} does not verify"
    if (folder / FOLDER).is_dir():  # every row and edge again, from the weights in the folder
        yield from stock_problems(folder, read_circuit(folder))
    if (folder / "superposition.json").is_file():  # proved again, from the weights in the file
        net, _ = read_model(folder)
        steps = read_circuit(folder)["programs"]
        if superposed.proved(net, steps) != read_json(folder / "superposition.json"):
            yield "superposition.json is not what its weights give"
