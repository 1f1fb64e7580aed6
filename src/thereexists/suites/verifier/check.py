"""Is all of a suite true? Everything is found out again from the files, and compared with what they say.

For every instance: the hashes; the network is a file that the writer would write, and its weights are those of the
family's network, which is built and certified again, in its disguise; the property is parsed, and the verdict proved
again for what the *file* asks; ONNX Runtime runs 10,000 points and the counterexample. Whoever changes a verdict, a
limit, a weight or a counterexample, and mends every hash, meets one of these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput, Obstructed, ThereExistsError
from thereexists.suites.folders import MARK, Checked, hash_problems, read_suite, read_text
from thereexists.suites.verifier import onnx_files, vnnlib
from thereexists.suites.verifier.families import FAMILIES
from thereexists.suites.verifier.files import TABLE, Listed, read_table, read_truth
from thereexists.suites.verifier.instance import built, decide, dressed, run_checks
from thereexists.suites.verifier.make import FORMAT


def check_verifier(folder: str | Path, progress: Callable[[int, int], None] = lambda done, total: None) -> Checked:
    """Look at everything; whatever is wrong is told, and nothing stops at the first."""
    folder = Path(folder)
    record = read_suite(folder)
    if record.get("format") != FORMAT:
        raise InvalidInput(f"{folder} is not a {FORMAT}; it says that it is {record.get('format')!r}.")
    entries = read_truth(folder)
    problems = list(_files(folder, record, entries))
    for done, entry in enumerate(entries):
        try:
            for problem in _instance(folder, entry):
                problems.append(f"{entry['name']}: {problem}")
        except Obstructed:  # a package is missing: nothing is known of the suite
            raise
        except (ThereExistsError, KeyError, TypeError, ValueError, IndexError) as error:
            problems.append(f"{entry['name']}: {error if isinstance(error, ThereExistsError) else repr(error)}")
        progress(done + 1, len(entries))
    return Checked(len(entries), tuple(problems))


def _files(folder: Path, record: dict[str, Any], entries: list[dict[str, Any]]) -> Iterator[str]:
    """Hashes, names and counts."""
    yield from hash_problems(folder, record)
    if read_table(folder) != [Listed(entry["name"], entry["timeout"]) for entry in entries]:
        yield f"{TABLE} does not list the instances of the truth, in their order"
    verdicts = [entry["verdict"] for entry in entries]
    counted = {"count": len(entries), "sat": verdicts.count("sat"), "unsat": verdicts.count("unsat")}
    if any(record.get(name) != number for name, number in counted.items()):
        yield f"{MARK} counts otherwise: there are {json.dumps(counted)}"


def _instance(folder: Path, entry: dict[str, Any]) -> Iterator[str]:
    family, params = FAMILIES[entry["family"]], entry["params"]
    content, parts = onnx_files.read(folder / "onnx" / f"{entry['name']}.onnx")
    made = built(family, params)
    if not _same(parts, dressed(made.net, entry["disguise"], family.turns)):
        yield "its network is not the one of its family, parameters and disguise"
    if entry["bound"] != made.bound:
        yield f"its bound is {made.bound:g}, not {entry['bound']}"
    text = read_text(folder / "vnnlib" / f"{entry['name']}.vnnlib")
    asked = vnnlib.parse(text, (made.net.n, made.net.W_in.shape[0]))
    if asked.outputs != made.net.n * made.net.W_out.shape[1]:
        yield "its property is about another number of outputs than the network has"
        return
    found = decide(family, params, asked)
    if found.verdict != entry["verdict"]:
        yield f"its verdict is said to be {entry['verdict']}, and {found.verdict} is proved"
        return
    if not np.isclose(found.margin, entry["margin"], rtol=1e-6, atol=1e-9):
        yield f"its margin is {found.margin:g}, not {entry['margin']}"
    run_checks(parts, content, asked, entry)  # an error of its own


def _same(some: onnx_files.Parts, others: onnx_files.Parts) -> bool:
    return some.keys() == others.keys() and all(
        len(some[k]) == len(others[k]) and all(np.array_equal(a, b) for a, b in zip(some[k], others[k], strict=True))
        for k in some
    )
