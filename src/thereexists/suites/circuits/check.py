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

from thereexists.core.errors import ThereExistsError
from thereexists.core.json_files import read_json
from thereexists.suites.circuits import superposed
from thereexists.suites.circuits.files import read_circuit, read_model, read_names
from thereexists.suites.circuits.make import write_model
from thereexists.suites.folders import Checked, hash_problems


def check_circuits(
    folder: Path, record: dict[str, Any], progress: Callable[[int, int], None] = lambda done, total: None
) -> Checked:
    """Every problem in one sentence."""
    names, seed = read_names(folder, record), record["seed"]
    problems = list(hash_problems(folder, record))
    for done, name in enumerate(names):
        try:
            problems += [f"{name}: {problem}" for problem in _model(folder / "models" / name, seed)]
        except (ThereExistsError, OSError, ValueError, KeyError, TypeError, IndexError) as error:
            problems.append(f"{name}: {error}")
        progress(done + 1, len(names))
    return Checked(len(names), tuple(problems))


def _model(folder: Path, seed: int) -> Iterator[str]:
    from thereexists.certificates.verify import verify

    with tempfile.TemporaryDirectory() as place:
        again = Path(place) / write_model(Path(place), seed, int(folder.name.split("-")[0]))
        files = {file.relative_to(again).as_posix() for file in again.rglob("*") if file.is_file()}
        there = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
        for name in sorted(files | there):
            if name not in files & there or (again / name).read_bytes() != (folder / name).read_bytes():
                yield f"{name} is not what the seed gives"
    for witness in sorted(folder.glob("witness*")):
        if not verify(witness).holds:
            yield f"{witness.name} does not verify"
    if (folder / "superposition.json").is_file():  # proved again, from the weights in the file
        net, _ = read_model(folder)
        steps = read_circuit(folder)["programs"]
        if superposed.proved(net, steps) != read_json(folder / "superposition.json"):
            yield "superposition.json is not what its weights give"
