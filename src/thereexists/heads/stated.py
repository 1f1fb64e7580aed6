"""A head read from a file: its arrays are what they are, and what it says about itself is its author's word.

``false_claims`` asks the verifier again and compares what the file states with what was found:

- leakage, ratio error, largest logit and rounding bound, up to the rounding of another machine;
- the verdict and its reasons, the number of rows, the arithmetic, the theorem's size, the dtype that carries the head;
- the worst row, its figures and the columns named in it: they are as bad as the worst, up to the rounding bound
  (another machine may choose another one of several that are equally bad);
- the report inside the file, which must say what the other entries say; and no entry may be there that no head has.

A head that is right, with a record that claims more, does not hold as saved. How it was made is not checked and stays
its author's word: ``method``, ``seed``, ``settings``, ``seconds``, the device, the version of the package.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from typing import Any

from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.core.plain_text import brief, in_full
from thereexists.core.verdict import Verdict
from thereexists.heads.figures import SLACK, number, same_leakage, same_logit, same_ratio_error, same_rounding
from thereexists.heads.head import Head
from thereexists.heads.precision import UNKNOWN, bits_that_carry
from thereexists.heads.verify import DTYPES, Arithmetic, Verification, comparing_rounds, verify
from thereexists.heads.verify_exact import verify_exact
from thereexists.heads.worst import is_worst

_IN_WORDS = {
    "leakage": "leakage",
    "ratio_error": "ratio error",
    "max_logit": "max logit",
    "rounding": "rounding bound",
}
_RECORD = {"format_version", "kind", "package_version", "report", "method", "eps1", "eps2", "seed", "weights_sha256"}
_RECORD |= {"theorem_hidden_size", "dtype_needed", "seconds", "settings", "verification", "digest"}
_VERIFICATION = {field.name for field in fields(Verification)}
_VERDICT = {field.name for field in fields(Verdict)}
_REPORT = {"length", "k", "gamma", "eps1", "eps2", "method", "hidden_size", "head_size", "theorem_hidden_size"}
_REPORT |= {"leakage", "ratio_error", "max_logit", "rounding", "holds", "reasons", "worst_row", "rows_verified"}
_REPORT |= {"verified_in", "dtype_needed", "seed", "settings", "seconds"}
_STATED = ("leakage", "ratio_error", "max_logit", "rounding", "holds", "reasons", "worst_row", "rows_verified")


@dataclass(frozen=True, repr=False)
class StatedVerdict(Verdict):
    """A verdict that stands in a file. Nobody has checked it, so that it has no truth value; ``holds`` is what it says.

    stated = te.heads.load("h").verdict
    found = te.heads.verify(head.X, head.W_Q, head.W_K, head.target, eps1=head.eps1, eps2=head.eps2).verdict
    """

    def __repr__(self) -> str:
        return brief(f"{type(self).__name__}: {self.in_words()}", *(f"{WORDS}: {line}" for line in self.reasons))

    def in_words(self) -> str:
        return as_its_author_says(super().in_words())

    def __bool__(self) -> bool:
        raise ValueError(
            "This verdict is the word of the head's author and has no truth value: te.heads.verify(…) finds a verdict, "
            "and .holds is what the file says."
        )


@dataclass(frozen=True, repr=False)
class StatedVerification(Verification):
    """A verification that stands in a file: every figure is its author's."""

    def __repr__(self) -> str:
        return brief(f"{type(self).__name__}: {self.verdict.in_words()}", *(f"{WORDS}: {x}" for x in self._found()))


@dataclass(frozen=True, eq=False)
class StatedHead(Head):
    """A head as a file gives it. ``verification``, ``dtype_needed``, ``method``, ``seed`` are stated, not checked."""

    def report(self) -> dict[str, Any]:
        unchecked = [*_STATED, "verified_in", "dtype_needed", "method", "seed", "settings", "seconds"]
        return {**super().report(), WORDS.replace(" ", "_"): unchecked}

    def __repr__(self) -> str:
        return brief(self._size(), *(f"{WORDS}: {line}" for line in self._found()))


def verify_again(head: Head, dtype: str = "float64", device: str = "cpu") -> Verification:
    """Every row, from the arrays: in ``dtype``, or in balls where the head is a sum of words."""
    target, eps1, eps2 = head.target, head.eps1, head.eps2
    if head.words is None:
        arithmetic = Arithmetic(dtype, device)
        return verify(head.X, head.W_Q, head.W_K, target, eps1=eps1, eps2=eps2, arithmetic=arithmetic)
    bits = 53 * len(head.words) + 64
    return verify_exact(head.words, head.W_Q, head.W_K, target, eps1=eps1, eps2=eps2, bits=bits)


def false_claims(head: Head, record: dict[str, Any], found: Verification) -> list[str]:
    """Sentences about what the file states and the arrays do not show; ``found`` is a verification of all rows."""
    stated, measured = head.verification, found
    if head.words is None and stated.dtype != found.dtype:
        found = verify_again(head, stated.dtype) if stated.dtype in DTYPES else found
    wrong = [f"the file has entries that no head has: {', '.join(names)}" for names in [_unknown(record)] if names]
    if stated.verdict.holds is not found.verdict.holds:
        wrong.append(f"the file says that the verdict is {stated.verdict.holds}, and it is {found.verdict.holds}")
    if stated.dtype != found.dtype or stated.rows != found.rows:
        wrong.append(
            f"the file says that {stated.rows} rows were verified in {stated.dtype}; there are {found.rows}, in "
            f"{found.dtype}"
        )
    # The middles of balls are the same on every machine, up to exp and log.
    in_balls = head.words is not None
    rho = 0.0 if in_balls else found.rounding
    compared = 0.0 if in_balls else comparing_rounds(found.max_logit, head.target.log_gamma)
    agree = {
        "leakage": same_leakage(stated.leakage, found.leakage, rho),
        "ratio_error": same_ratio_error(stated.ratio_error, found.ratio_error, rho, compared),
        "max_logit": same_logit(stated.max_logit, found.max_logit, rho),
        "rounding": same_rounding(stated.rounding, found.rounding),
    }
    for name in (name for name, fine in agree.items() if not fine):
        claimed, actual = getattr(stated, name), getattr(found, name)
        wrong.append(f"the file states the {_IN_WORDS[name]} {in_full(claimed)}, and it is {in_full(actual)}")
    if stated.verdict.reasons != found.verdict.reasons:
        wrong.append("the file gives other reasons for its verdict than were found")
    if not is_worst(head, stated, found):
        wrong.append("the worst row that the file describes is not the worst, or not as it says")
    if not _same(record.get("theorem_hidden_size"), head.theorem_hidden_size):
        wrong.append(
            f"the file states the theorem's hidden size {str(record.get('theorem_hidden_size'))[:40]}, and it is "
            f"{head.theorem_hidden_size}"
        )
    if not _carries(head, measured):
        wrong.append(f"the file says that {head.dtype_needed} carries the head, and that is not so")
    wrong += [f"its report and its record differ in {name}" for name in _differing(head, record)]
    return wrong


def _carries(head: Head, found: Verification) -> bool:
    """Whether the arithmetic that the file names is enough: run in it, or bounded as ``precision.py`` does.

    ``found`` is what float64, or the balls of a sum of words, show: never what fewer bits would measure. Bits that are
    called unknown claim nothing.
    """
    claimed = head.dtype_needed
    if claimed == UNKNOWN:
        return True
    if claimed in DTYPES:
        return head.words is None and verify_again(head, claimed).verdict.holds is True
    number, _, unit = claimed.partition(" ")
    if unit != "bits" or not (number.isascii() and number.isdecimal()):
        return False
    enough = bits_that_carry(head.X, head.W_Q, head.W_K, found, head.eps1, head.eps2)
    return enough is not None and int(number) >= enough


def _differing(head: Head, record: dict[str, Any]) -> list[str]:
    """Keys of the record's report that say something else than its other fields and its arrays."""
    report, actual = record.get("report"), Head.report(head)
    if not isinstance(report, dict):
        return ["everything"]
    return [name for name, value in actual.items() if not _same(report.get(name), value, name == "gamma")]


def _same(stated: Any, value: Any, computed: bool = False) -> bool:
    """Whether an entry is ``value``, of the same kind: 2.0 is no count, 1 is not true. ``computed``: up to rounding."""
    if not isinstance(value, float):
        return json.dumps(stated, sort_keys=True) == json.dumps(value, sort_keys=True)
    told = number(stated)
    if told is None:
        return False
    return (
        told == value or (math.isnan(told) and math.isnan(value)) or (computed and abs(told - value) <= SLACK * value)
    )


def _unknown(record: dict[str, Any]) -> list[str]:
    """Entries of the record, at any depth but in the settings, that no head has."""
    verification = record.get("verification")
    verification = verification if isinstance(verification, dict) else {}
    parts = (
        ("", record, _RECORD),
        ("verification.", verification, _VERIFICATION),
        ("verification.verdict.", verification.get("verdict"), _VERDICT),
        ("report.", record.get("report"), _REPORT),
    )
    return [
        f"{place}{name}"[:60] for place, part, known in parts if isinstance(part, dict) for name in part.keys() - known
    ]
