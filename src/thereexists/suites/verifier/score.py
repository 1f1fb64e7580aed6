"""A tool's answers against the truth, by family and level. Whoever says sat with an input is taken at that input.

A line of the answers is ``onnx,vnnlib,result,seconds`` and, if the tool has one, the name of a file with its
counterexample, in the form of VNN-COMP: ``((X_0 0.25) (X_1 0.5) … (Y_0 …))``; what it says of Y is not read. ONNX
Runtime runs the network on that input. If it is outside of the boxes, or its output is not unsafe, the answer is wrong,
whatever the truth is. Both may be off by ``TOLERANCE``, which is far below the margin of every instance, so that no
property that holds has an input so near. Should one be found that is unsafe all the same, the truth is *disputed*, and
that is said, not hidden: float32 and real arithmetic would differ by more than the margin, or the proof would be wrong.

Every file that is read has the hash that suite.json says. Whether the truth is true, only ``suite check`` finds out.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.suites.folders import read_suite, read_text, require_hashes
from thereexists.suites.verifier import onnx_files, vnnlib
from thereexists.suites.verifier.files import TABLE, TRUTH, Listed, read_table, read_truth

ANSWERS = ("sat", "unsat", "unknown", "timeout", "error")
OUTCOMES = ("right", "unknown", "timeout", "error", "wrong", "disputed", "unanswered")
TOLERANCE = 1e-6
HEADING = "onnx,vnnlib,result,seconds,counterexample"


@dataclass(frozen=True)
class Answer:
    """What a tool says of an instance; ``shown``, the file of its counterexample, if it has one."""

    result: str
    seconds: float
    shown: Path | None


def score_verifier(folder: Path, record: dict[str, Any], answers: Path) -> dict[str, Any]:
    """``answers``: a CSV file as above. An instance without a line is unanswered."""
    truth = {entry["name"]: entry for entry in read_truth(folder)}
    require_hashes(folder, record, [TRUTH])
    given = read_answers(answers)
    strange = sorted(given.keys() - truth.keys())
    if strange:
        raise InvalidInput(f"{answers} answers {strange[0]}, which is not an instance of {folder}.")
    rows: dict[tuple[str, int], Counter[str]] = {}
    wrong = []
    for name, entry in truth.items():
        counts = rows.setdefault((entry["family"], entry["level"]), Counter())
        if name not in given:
            counts["unanswered"] += 1
            continue
        outcome, why = _judged(folder, record, entry, given[name])
        counts[outcome] += 1
        counts[f"right {entry['verdict']}"] += outcome == "right"
        counts["shown"] += outcome == "right" and given[name].shown is not None
        if why:
            wrong.append({"name": name, "answer": given[name].result, "truth": entry["verdict"], "why": why})
    table = [
        {"family": family, "level": level, "instances": sum(counts[o] for o in OUTCOMES)}
        | {outcome: counts[outcome] for outcome in OUTCOMES}
        | {"right_sat": counts["right sat"], "right_unsat": counts["right unsat"], "shown": counts["shown"]}
        for (family, level), counts in sorted(rows.items())
    ]
    total = {name: sum(row[name] for row in table) for name in table[0] if name not in ("family", "level")}
    seconds = round(sum(answer.seconds for answer in given.values()), 1)
    return {"total": total | {"seconds": seconds}, "rows": table, "wrong": wrong}


def _judged(folder: Path, record: dict[str, Any], entry: dict[str, Any], answer: Answer) -> tuple[str, str]:
    """The outcome, and why it is wrong or disputed."""
    if answer.result not in ("sat", "unsat"):
        return answer.result, ""
    if answer.result == "sat" and answer.shown is not None:
        one = Listed(entry["name"], entry["timeout"])
        require_hashes(folder, record, one.files)
        fault = _fault(folder, one, answer.shown)
        if fault:
            return "wrong", fault
        if entry["verdict"] == "unsat":
            return "disputed", f"ONNX Runtime confirms the counterexample of {answer.shown}"
    right = answer.result == entry["verdict"]
    return ("right", "") if right else ("wrong", f"it is {entry['verdict']}")


def _fault(folder: Path, one: Listed, shown: Path) -> str:
    """What is wrong with a counterexample; nothing, if ONNX Runtime confirms it."""
    content, parts = onnx_files.read(folder / one.network)
    shape = (parts["E"][0].shape[0], parts["W_in"][0].shape[0])
    asked = vnnlib.parse(read_text(folder / one.asked), shape)
    X = read_counterexample(shown, int(np.prod(shape))).reshape(1, *shape)
    near = [(low - X, X - high) for low, high in asked.boxes]
    outside = [float(np.max(sides)) for sides in near]
    box = int(np.argmin(outside))
    if not outside[box] <= TOLERANCE:
        return f"its counterexample is outside of the inputs by {outside[box]:.3g}"
    inside = np.clip(X, *asked.boxes[box]).astype(np.float32)
    (Y,) = onnx_files.session(content).run(None, {"X": inside})
    depth = float(asked.depth(Y.astype(np.float64))[0])
    return "" if depth >= -TOLERANCE else f"the output for its counterexample is safe, by {-depth:.3g}"


def read_counterexample(file: Path, inputs: int) -> np.ndarray:
    """X_0 … in their order, from a file of VNN-COMP's form; the first line may be the word sat."""
    try:
        found = re.findall(r"\(\s*X_(\d+)\s+([^\s()]+)\s*\)", read_text(file))
        values = {int(index): float(value) for index, value in found}
    except ValueError as error:
        raise InvalidInput(f"Cannot read the counterexample {file}: {error}.") from None
    if len(found) != len(values) or values.keys() != set(range(inputs)) or not np.isfinite(list(values.values())).all():
        raise InvalidInput(
            f"{file} must give each of X_0 … X_{inputs - 1} a finite number, once: ((X_0 0.25) (X_1 …) …)."
        )
    return np.array([values[i] for i in range(inputs)])


def read_answers(file: Path) -> dict[str, Answer]:
    """By the name of the instance."""
    found: dict[str, Answer] = {}
    try:
        lines = list(csv.reader(read_text(file).splitlines()))
    except csv.Error as error:
        raise InvalidInput(f"Cannot read {file}: {error}.") from None
    for number, line in enumerate(lines, 1):
        if line[:1] == ["onnx"]:  # a heading
            continue
        try:
            _, name, result, *rest = (part.strip() for part in line)
            took, shown = float(rest[0]) if rest else 0.0, rest[1] if len(rest) > 1 else ""
            if not 0 <= took < math.inf:
                raise ValueError
        except ValueError:
            raise InvalidInput(f"{file}, line {number}: wanted {HEADING}; got {','.join(line)!r}.") from None
        if result not in ANSWERS:
            raise InvalidInput(f"{file}, line {number}: a result is one of {', '.join(ANSWERS)}; got {result!r}.")
        if Path(name).stem in found:
            raise InvalidInput(f"{file}, line {number}: {Path(name).stem} is answered twice.")
        found[Path(name).stem] = Answer(result, took, file.parent / shown if shown else None)
    return found


def floor(folder: str | Path, out: str | Path) -> dict[str, int]:
    """The answers of interval propagation, as a CSV file like any other tool's."""
    from thereexists.core.atomic_files import write_beside
    from thereexists.suites.verifier.interval import interval_verdict

    folder, lines, counts = Path(folder), ["onnx,vnnlib,result,seconds"], Counter[str]()
    record, table = read_suite(folder), read_table(folder)
    require_hashes(folder, record, [TABLE, *(file for one in table for file in one.files)])
    for one in table:
        answer, seconds = interval_verdict(folder / one.network, read_text(folder / one.asked))
        lines.append(f"{one.network},{one.asked},{answer},{seconds:.3f}")
        counts[answer] += 1
    write_beside(out, "\n".join(lines) + "\n")
    return dict(counts)
