"""A head read from a file: its arrays are what they are, and what it says about itself is its author's word.

``recheck`` asks the verifier again and compares every figure that the file states: a head that is right, with a record
that claims more, does not hold as saved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from thereexists.authors_word import WORDS
from thereexists.heads.head import Head
from thereexists.heads.precision import bits_needed, room_left, size_of, steps_of
from thereexists.heads.verify import DTYPES, Verification, verify
from thereexists.heads.verify_exact import verify_exact

SLACK = 1e-9  # relative: another machine's exp and log
_STATED = ("leakage", "ratio_error", "max_logit", "rounding", "holds", "reasons", "worst_row", "rows_verified")


@dataclass(frozen=True, eq=False)
class StatedHead(Head):
    """A head as a file gives it. ``verification``, ``dtype_needed``, ``method``, ``seed`` are stated, not checked."""

    def report(self) -> dict[str, Any]:
        unchecked = [*_STATED, "verified_in", "dtype_needed", "method", "seed", "settings", "seconds"]
        return {**super().report(), WORDS.replace(" ", "_"): unchecked}

    def __repr__(self) -> str:
        v = self.verification
        return (
            f"Head(length={self.target.length}, k={self.target.k}, hidden_size={self.hidden_size} "
            f"(theorem {self.theorem_hidden_size:,}); {WORDS}: method={self.method!r}, leakage={v.leakage:.2e}, "
            f"ratio_error={v.ratio_error:.2e}, dtype_needed={self.dtype_needed!r}, holds={v.verdict.holds})"
        )


def verify_again(head: Head, dtype: str = "float64", device: str = "cpu") -> Verification:
    """Every row, from the arrays: in ``dtype``, or in balls where the head is a sum of words."""
    target, eps1, eps2 = head.target, head.eps1, head.eps2
    if head.words is None:
        return verify(head.X, head.W_Q, head.W_K, target, eps1=eps1, eps2=eps2, dtype=dtype, device=device)
    bits = 53 * len(head.words) + 64
    return verify_exact(head.words, head.W_Q, head.W_K, target, eps1=eps1, eps2=eps2, bits=bits)


def false_claims(head: Head, record: dict[str, Any], found: Verification) -> list[str]:
    """Sentences about what the file states and the arrays do not show; ``found`` is a verification of all rows."""
    stated = head.verification
    if head.words is None and stated.dtype != found.dtype:
        found = verify_again(head, stated.dtype) if stated.dtype in DTYPES else found
    wrong = []
    if stated.verdict.holds is not found.verdict.holds:
        wrong.append(f"the file says that the verdict is {stated.verdict.holds}, and it is {found.verdict.holds}")
    if stated.dtype != found.dtype or stated.rows != found.rows:
        wrong.append(
            f"the file says that {stated.rows} rows were verified in {stated.dtype}; there are {found.rows}, in "
            f"{found.dtype}"
        )
    # Two evaluations of one logit are within 2ρ of each other, whatever their order of summation.
    slack = math.expm1(min(4 * found.rounding, 700.0)) + SLACK
    for name in ("leakage", "ratio_error", "max_logit"):
        claimed, actual = getattr(stated, name), getattr(found, name)
        extra = 1.0 if name == "ratio_error" else 0.0
        if not _near(claimed + extra, actual + extra, slack):
            wrong.append(f"the file states the {name.replace('_', ' ')} {claimed:.6g}, and it is {actual:.6g}")
    if record.get("theorem_hidden_size") != head.theorem_hidden_size:
        wrong.append(
            f"the file states the theorem's hidden size {record.get('theorem_hidden_size')}, and it is "
            f"{head.theorem_hidden_size}"
        )
    if not _carries(head, found):
        wrong.append(f"the file says that {head.dtype_needed} carries the head, and that is not so")
    wrong += [f"its report and its record differ in {name}" for name in _differing(head, record)]
    return wrong


def _carries(head: Head, found: Verification) -> bool:
    """Whether the arithmetic that the file names is enough: run in it, or bounded as ``precision.py`` does."""
    claimed = head.dtype_needed
    if claimed in DTYPES:
        return head.words is None and verify_again(head, claimed).verdict.holds is True
    number, _, unit = claimed.partition(" ")
    if unit != "bits" or not number.isdecimal():
        return False
    room = room_left(found, head.eps1, head.eps2)
    if not room > 0:  # the head does not hold: nothing is said about what would carry it
        return found.verdict.holds is not True
    return int(number) >= bits_needed(size_of(head.X, head.W_Q, head.W_K), steps_of(head.W_Q), room)


def _differing(head: Head, record: dict[str, Any]) -> list[str]:
    """Keys of the record's report that say something else than its other fields and its arrays."""
    report, actual = record.get("report"), Head.report(head)
    if not isinstance(report, dict):
        return ["everything"]
    differing = []
    for name, value in actual.items():
        stated = report.get(name)
        if isinstance(value, float) and isinstance(stated, int | float):
            same = _near(float(stated), value, SLACK)
        elif isinstance(value, float):
            same = stated == str(value)  # infinities are stored as words
        else:
            same = name in ("worst_row", "reasons", "settings") or stated == value
        differing += [] if same else [name]
    return differing


def _near(claimed: float, actual: float, slack: float) -> bool:
    return claimed == actual or abs(claimed - actual) <= slack * abs(actual) + 1e-300
