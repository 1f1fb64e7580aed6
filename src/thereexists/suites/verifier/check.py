"""Is all of a suite true? Everything is found out again from the files, and compared with what they say.

For every instance: what the seed gives (name, level, parameters, disguise, property, proof, time-out); the network is a
file that the writer would write, and its weights are those of the family's network, which is built and certified
again, in its disguise; the property is parsed, and the verdict proved again for what the *file* asks; ONNX Runtime runs
10,000 points and the counterexample. Pages and schemas are those of this version, and no file is there that belongs to
no instance. Whoever changes anything, and mends every hash, meets one of these.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.suites.folders import (
    MARK,
    Checked,
    gathered,
    hash_problems,
    obstacle,
    page_problems,
    read_suite,
    read_text,
    same_version,
    stray_problems,
)
from thereexists.suites.verifier import onnx_files, vnnlib
from thereexists.suites.verifier.families import FAMILIES
from thereexists.suites.verifier.files import TABLE, TRUTH, Listed, read_table, read_truth
from thereexists.suites.verifier.instance import built, decide, dressed, name_of, power_of_ten, run_checks, stated
from thereexists.suites.verifier.make import FORMAT
from thereexists.suites.verifier.texts import SUITE_SCHEMA, pages

EXACT = ("family", "level", "params", "disguise", "proof", "timeout")  # no machine computes another


def check_verifier(folder: str | Path, progress: Callable[[int, int], None] = lambda done, total: None) -> Checked:
    """Look at everything; whatever is wrong is reported. The first fault does not stop it, an obstacle does."""
    folder = Path(folder)
    record = read_suite(folder)
    if record["format"] != FORMAT:
        raise InvalidInput(f"{folder} is not a {FORMAT}; it says that it is {record['format']!r}.")
    same_version(folder, record, set(SUITE_SCHEMA["required"]))
    entries = read_truth(folder)
    return gathered(len(entries), _problems(folder, record, entries, progress))


def _problems(
    folder: Path, record: dict[str, Any], entries: list[dict[str, Any]], progress: Callable[[int, int], None]
) -> Iterator[str]:
    yield from _files(folder, record, entries)
    for done, entry in enumerate(entries):
        try:
            for problem in _instance(folder, entry, record["seed"]):
                yield f"{entry['name']}: {problem}"
        except (ThereExistsError, KeyError, TypeError, ValueError, IndexError) as error:
            if obstacle(error) is not None:
                raise
            yield f"{entry['name']}: {error if isinstance(error, ThereExistsError) else repr(error)}"
        progress(done + 1, len(entries))


def _files(folder: Path, record: dict[str, Any], entries: list[dict[str, Any]]) -> Iterator[str]:
    """Hashes, pages, names and counts."""
    yield from hash_problems(folder, record)
    yield from page_problems(folder, pages())
    listed = [Listed(entry["name"], entry["timeout"]) for entry in entries]
    yield from stray_problems(folder, {MARK, TRUTH, TABLE, *pages(), *(part for one in listed for part in one.files)})
    if read_table(folder) != listed:
        yield f"{TABLE} does not list the instances of the truth, in their order"
    names = [name_of(number) for number in range(min(record["count"], len(entries)))]
    if names != [one.name for one in listed]:
        yield f"the instances are not the first {record['count']} of the suite: {names[0]}, …, in this order"
    verdicts = [entry["verdict"] for entry in entries]
    counted: dict[str, Any] = {"count": len(entries), "sat": verdicts.count("sat"), "unsat": verdicts.count("unsat")}
    counted["families"] = sorted({entry["family"] for entry in entries})
    if json.dumps({name: record[name] for name in counted}) != json.dumps(counted):  # 9.0 and True are no counts
        yield f"{MARK} counts otherwise: there are {json.dumps(counted)}"


def _instance(folder: Path, entry: dict[str, Any], seed: int) -> Iterator[str]:
    """What the seed gives is compared first; then everything is found out from the files themselves."""
    family, params, listed = FAMILIES[entry["family"]], entry["params"], Listed(entry["name"], entry["timeout"])
    text = read_text(folder / listed.asked)
    yield from _not_of_the_seed(entry, text, seed)
    content, parts = onnx_files.read(folder / listed.network)
    made = built(family, params)
    if not _same(parts, dressed(made.net, entry["disguise"], family.turns)):
        yield "its network is not the one of its family, parameters and disguise"
    if entry["bound"] != made.bound:
        yield f"its bound is {made.bound}, not {entry['bound']}"
    asked = vnnlib.parse(text, (made.net.n, made.net.W_in.shape[0]))
    if asked.outputs != made.net.n * made.net.W_out.shape[1]:
        yield "its property is about another number of outputs than the network has"
        return
    found = decide(family, params, asked)
    if found.verdict != entry["verdict"]:
        yield f"its verdict is said to be {entry['verdict']}, and {found.verdict} is proved"
        return
    if not _near([found.margin], [entry["margin"]]):
        yield f"its margin is {found.margin}, not {entry['margin']}"
    if not _near(found.extremes, entry["extremes"]):
        yield f"its extremes are {list(found.extremes)}, not {entry['extremes']}"
    if (entry["counterexample"] is None) != (found.point is None):
        yield "it has a counterexample and holds, or has none and does not"
        return
    measured = run_checks(parts, content, asked, entry)  # an error of its own
    if not _is_power_of_ten(entry["float32"]):
        yield f"float32 must be a power of ten, and is {entry['float32']}"
    if not measured / 2 <= entry["float32"] < 20 * power_of_ten(measured):  # another machine may differ
        yield f"float32 is {measured} away from the function here, not {entry['float32']}"


def _not_of_the_seed(entry: dict[str, Any], text: str, seed: int) -> Iterator[str]:
    """The name says which instance of the suite it is, and with the seed that says everything that is not measured."""
    number = int((re.findall(r"[0-9]{1,9}$", entry["name"]) or [0])[0])
    if entry["name"] != name_of(number):
        yield f"no instance has its name; number {number} is {name_of(number)}"
    wanted, _, truth = stated(seed, number)
    if text != wanted:
        yield "its property is not the one that the seed gives"
    for key in EXACT:
        if json.dumps(entry[key], sort_keys=True) != json.dumps(truth[key], sort_keys=True):
            yield f"{key} is not what the seed gives, {str(truth[key])[:200]}"


def _near(some: Sequence[float], others: Sequence[float]) -> bool:
    return len(some) == len(others) and bool(np.allclose(some, others, rtol=1e-12, atol=1e-15))


def _is_power_of_ten(value: float) -> bool:
    """The last bits are a machine's own."""
    return value > 0 and math.isclose(value, 10.0 ** round(math.log10(value)), rel_tol=1e-12)


def _same(some: onnx_files.Parts, others: onnx_files.Parts) -> bool:
    return some.keys() == others.keys() and all(
        len(some[k]) == len(others[k]) and all(np.array_equal(a, b) for a, b in zip(some[k], others[k], strict=True))
        for k in some
    )
