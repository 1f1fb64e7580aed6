"""A tool's answers against the truth, by family and level."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.suites.verifier.check import read_truth

ANSWERS = ("sat", "unsat", "unknown", "timeout", "error")
OUTCOMES = ("right", "unknown", "timeout", "error", "wrong", "unanswered")


def score_verifier(folder: str | Path, answers: str | Path) -> dict[str, Any]:
    """``answers``: a CSV file of lines onnx, vnnlib, result, seconds. An instance without a line is unanswered."""
    truth = {entry["name"]: entry for entry in read_truth(Path(folder))}
    given = read_answers(Path(answers))
    strange = sorted(given.keys() - truth.keys())
    if strange:
        raise InvalidInput(f"{answers} answers {strange[0]}, which is no instance of {folder}.")
    rows: dict[tuple[str, int], Counter[str]] = {}
    wrong, seconds = [], 0.0
    for name, entry in truth.items():
        answer, took = given.get(name, ("unanswered", 0.0))
        outcome = answer if answer in OUTCOMES else _judged(answer, entry["verdict"])
        rows.setdefault((entry["family"], entry["level"]), Counter())[outcome] += 1
        rows[entry["family"], entry["level"]][f"right {entry['verdict']}"] += outcome == "right"
        seconds += took
        if outcome == "wrong":
            wrong.append({"name": name, "answer": answer, "truth": entry["verdict"]})
    table = [
        {"family": family, "level": level, "instances": sum(counts[o] for o in OUTCOMES)}
        | {outcome: counts[outcome] for outcome in OUTCOMES}
        | {"right_sat": counts["right sat"], "right_unsat": counts["right unsat"]}
        for (family, level), counts in sorted(rows.items())
    ]
    total = {name: sum(row[name] for row in table) for name in ("instances", *OUTCOMES, "right_sat", "right_unsat")}
    return {"total": total | {"seconds": round(seconds, 1)}, "rows": table, "wrong": wrong}


def _judged(answer: str, verdict: str) -> str:
    return "right" if answer == verdict else "wrong"


def read_answers(file: Path) -> dict[str, tuple[str, float]]:
    """By the name of the instance: the answer and the seconds."""
    found: dict[str, tuple[str, float]] = {}
    try:
        lines = list(csv.reader(file.read_text().splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"Cannot read {file}: {getattr(error, 'strerror', None) or error}.") from None
    for number, line in enumerate(lines, 1):
        if line[:1] == ["onnx"]:  # a heading
            continue
        try:
            _, vnnlib, answer, *rest = (part.strip() for part in line)
            name, took = Path(vnnlib).stem, float(rest[0]) if rest else 0.0
        except ValueError:
            raise InvalidInput(
                f"{file}, line {number}: wanted onnx,vnnlib,result,seconds; got {','.join(line)!r}."
            ) from None
        if answer not in ANSWERS:
            raise InvalidInput(f"{file}, line {number}: a result is one of {', '.join(ANSWERS)}; got {answer!r}.")
        if name in found:
            raise InvalidInput(f"{file}, line {number}: {name} is answered twice.")
        found[name] = (answer, took)
    return found


def floor(folder: str | Path, out: str | Path) -> dict[str, int]:
    """The answers of interval propagation, as a CSV file like any other tool's."""
    from thereexists.core.atomic_files import write_beside
    from thereexists.suites.verifier.interval import interval_verdict

    folder, lines, counts = Path(folder), ["onnx,vnnlib,result,seconds"], Counter[str]()
    for line in (folder / "instances.csv").read_text().splitlines():
        network, text, _ = line.split(",")
        answer, seconds = interval_verdict(folder / network, (folder / text).read_text())
        lines.append(f"{network},{text},{answer},{seconds:.3f}")
        counts[answer] += 1
    write_beside(out, "\n".join(lines) + "\n")
    return dict(counts)
