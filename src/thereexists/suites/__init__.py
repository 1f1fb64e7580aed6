"""Ground truth for other people's tools: networks whose behaviour is known, with a proof, in formats that others read.

``verifier/``  ONNX networks and VNN-LIB properties with known verdicts      ``circuits/``  models with known circuits
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def checked(folder: str | Path, progress: Callable[[int, int], None] = lambda done, total: None) -> Any:
    """Whether everything in a suite is true, with every problem."""
    from thereexists.suites.circuits import make as circuits
    from thereexists.suites.circuits.check import check_circuits
    from thereexists.suites.folders import read_suite
    from thereexists.suites.verifier.check import check_verifier

    record = read_suite(Path(folder))
    if record.get("format") == circuits.FORMAT:
        return check_circuits(Path(folder), record, progress)
    return check_verifier(folder, progress)


def scored(folder: str | Path, answers: str | Path) -> dict[str, Any]:
    """A tool's answers against the truth, which is its author's word: only ``checked`` finds out whether it is true."""
    from thereexists.suites.circuits import make as circuits
    from thereexists.suites.circuits.score import score_circuits
    from thereexists.suites.folders import read_suite
    from thereexists.suites.verifier.score import score_verifier

    record = read_suite(Path(folder))
    score = score_circuits if record["format"] == circuits.FORMAT else score_verifier
    found = score(Path(folder), record, Path(answers))
    return found | {"as_its_author_says": list(found)}
