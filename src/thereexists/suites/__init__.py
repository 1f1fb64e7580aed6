"""Ground truth for other people's tools: networks whose behaviour is known, with a proof, in formats that others read.

``verifier/``  ONNX networks and VNN-LIB properties with known verdicts
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def checked(folder: str | Path, progress: Callable[[int, int], None] = lambda done, total: None) -> Any:
    """Whether everything in a suite is true, with every problem."""
    from thereexists.suites.verifier.check import check_verifier

    return check_verifier(folder, progress)


def scored(folder: str | Path, answers: str | Path) -> dict[str, Any]:
    """A tool's answers against the truth."""
    from thereexists.suites.verifier.score import score_verifier

    return score_verifier(folder, answers)
