"""The result: inputs ``X`` for a fixed attention head, what was asked, what was verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from thereexists.core.errors import InvalidInput
from thereexists.core.notebook import InNotebook
from thereexists.core.plain_text import brief
from thereexists.core.verdict import Verdict
from thereexists.heads.matrix import AttentionMatrix
from thereexists.heads.verify import CHANGED, Verification
from thereexists.model.unchanged import version_of

_NEVER = ()  # the version of no arrays


@dataclass(frozen=True, eq=False)
class _About:
    """What a verification is about: these very arrays, as they are now, and these tolerances."""

    verification: Verification
    target: AttentionMatrix
    tolerances: tuple[float, float]
    arrays: tuple[torch.Tensor, ...]
    version: tuple | None

    @classmethod
    def of(cls, head: Head) -> _About:
        arrays = tuple(head.arrays())
        return cls(head.verified, head.target, (head.eps1, head.eps2), arrays, version_of(arrays))

    def is_about(self, head: Head) -> bool:
        """A tensor is its own address and no other's as long as it is held here."""
        now = _About.of(head)
        same = (self.version, self.tolerances, len(self.arrays)) == (now.version, now.tolerances, len(now.arrays))
        pairs = [(self.verification, now.verification), (self.target, now.target)]
        return same and all(a is b for a, b in [*pairs, *zip(self.arrays, now.arrays, strict=True)])


@dataclass(frozen=True, eq=False)
class Head(InNotebook):
    """``softmax(X W_Q W_K^T X^T)`` is row-wise the target up to ``eps1``, ``eps2``: see ``verification``.

        head = te.heads.fit(te.heads.random_matrix(16, 2))
        head.hidden_size, head.verification.leakage

    ``words``: when float64 does not hold the head, ``X`` is the sum of these float64 arrays (first one largest), and
    the verification was run on that sum in multiprecision; ``X`` is then only its leading word.

    Args:
        X: (length, d), what the head looks at.
        W_Q: (d, m).
        W_K: (d, m).
        target: the matrix that it shows.
        method: how it was found.
        eps1: the leakage that was allowed.
        eps2: the relative error of a ratio that was allowed.
        seed: of what was random.
        verified: what was found of every row when the head was made; ``verification`` is what still is so.
        theorem_hidden_size: what the paper asks for.
        dtype_needed: the narrowest in which it holds.
        seconds: how long it took.
        settings: what was asked.
        words: ``X`` as a sum, where float64 does not hold it.
    """

    X: torch.Tensor
    W_Q: torch.Tensor
    W_K: torch.Tensor
    target: AttentionMatrix
    method: str
    eps1: float
    eps2: float
    seed: int
    verified: Verification
    theorem_hidden_size: int
    dtype_needed: str
    seconds: float
    settings: dict[str, Any] = field(default_factory=dict)
    words: torch.Tensor | None = None
    _: KW_ONLY
    _about: _About | None = field(default=None, repr=False)  # ``dataclasses.replace`` hands it on

    def __post_init__(self) -> None:
        """A verification that came with another head is still about that one's arrays."""
        if self._about is None or self._about.verification is not self.verified:
            object.__setattr__(self, "_about", _About.of(self))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_about": self.is_as_verified}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy has other tensors, with counts of their own."""
        vars(self).update(state)
        about = _About.of(self)
        object.__setattr__(self, "_about", about if state["_about"] else replace(about, version=_NEVER))

    def arrays(self) -> Iterator[torch.Tensor]:
        """All that the verification read of the head."""
        yield from (self.X, self.W_Q, self.W_K)
        if self.words is not None:
            yield self.words

    @property
    def is_as_verified(self) -> bool:
        """Whether these are the arrays and tolerances of the verification, and torch has seen no change of them."""
        return self._about is not None and self._about.is_about(self)

    @property
    def verification(self) -> Verification:
        """Of every row; of arrays and tolerances that were changed since, nothing is known."""
        return self.verified if self.is_as_verified else self.verified.of_changed_arrays()

    @property
    def hidden_size(self) -> int:
        """``d``: the columns of ``X``."""
        return self.X.shape[1]

    @property
    def head_size(self) -> int:
        """``m``: the width of a query."""
        return self.W_Q.shape[1]

    @property
    def verdict(self) -> Verdict:
        return self.verification.verdict

    def report(self) -> dict[str, Any]:
        """Everything measured, as plain data."""
        v = self.verification
        return {
            "length": self.target.length,
            "k": self.target.k,
            "gamma": self.target.gamma,
            "eps1": self.eps1,
            "eps2": self.eps2,
            "method": self.method,
            "hidden_size": self.hidden_size,
            "head_size": self.head_size,
            "theorem_hidden_size": self.theorem_hidden_size,
            "leakage": v.leakage,
            "ratio_error": v.ratio_error,
            "max_logit": v.max_logit,
            "rounding": v.rounding,
            "holds": v.verdict.holds,
            "reasons": list(v.verdict.reasons),
            "worst_row": v.verdict.evidence,
            "rows_verified": v.rows,
            "verified_in": v.dtype,
            "dtype_needed": self.dtype_needed,
            "seed": self.seed,
            "settings": self.settings,
            "seconds": self.seconds,
        }

    def save(self, path: str | Path) -> None:
        """Write ``head.safetensors`` and ``head.json`` into a directory, atomically."""
        from thereexists.heads.io import save_head

        if not self.is_as_verified:
            raise InvalidInput(f"A head is saved with its verification, and of this one {CHANGED}: fit it again.")
        save_head(self, path)

    def module(self) -> torch.nn.Module:
        """The fixed attention as ``nn.Module``; feed it ``X``. Refused where float64 does not hold the head."""
        from thereexists.heads.module import FixedAttention

        self.check_that_float64_holds_it()
        return FixedAttention(self.W_Q, self.W_K)

    def check_that_float64_holds_it(self) -> None:
        """A head of words was verified as their sum, in balls; a module computes in float64, from one of them."""
        if self.words is not None:
            raise InvalidInput(
                f"No module of torch attends like this head: it needs {self.dtype_needed}, and its X is a sum of "
                f"float64 arrays ({len(self.words)}, in head.words). Fit with another method, such as 'corrected', or "
                "with a larger eps2."
            )

    def __repr__(self) -> str:
        return brief(self._size(), *self._found())

    def _size(self) -> str:
        return (
            f"{type(self).__name__}: {self.target.length:,} tokens, k = {self.target.k}, "
            f"hidden size {self.hidden_size} (theorem {self.theorem_hidden_size:,})"
        )

    def _found(self) -> tuple[str, ...]:
        """Lines that are marked, where they are a file's, as a whole."""
        if not self.is_as_verified:
            return (CHANGED,)
        v = self.verification
        return (
            f"by the method {self.method}, needs {self.dtype_needed}",
            f"{v.errors()}: {Verdict.in_words(v.verdict)}",
        )
