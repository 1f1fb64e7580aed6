"""A sparsity pattern: a cycle of steps over n tokens, symbolic from end to end.

Paper B (Yun et al., *O(n) Connections are Expressive Enough*, NeurIPS 2020): block number ``t`` lets token ``k`` attend
to ``A_k^l`` with ``l = (t−1 mod p) + 1``. Steps are numbered from 0 here, tokens too: ``pattern.step(0)`` is ``A^1``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.notebook import InNotebook
from thereexists.core.numbered import Numbered
from thereexists.core.plain_numbers import whole
from thereexists.core.plain_text import brief
from thereexists.core.rounded_figures import cut
from thereexists.patterns.numbers import as_tokens
from thereexists.patterns.parts import Rect, as_causal_part
from thereexists.patterns.step import Step

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Pattern(Numbered, InNotebook):
    """A cycle of steps.

        pattern = te.patterns.strided(n=16, stride=4)
        pattern.n, pattern.connections, pattern.sparsity

    ``heads`` is None when every head of block ``t`` uses the same step (*sequential*, the paper's definition, and
    *union* with its one step). Otherwise (*multihead*) every block has ``heads[l]`` heads that use step ``l``, for
    every ``l`` at once; the theorem then reads the steps as a schedule, block ``t`` using the heads of step ``l`` and
    zero weights in the others.

    Args:
        name: what it is called.
        steps: the cycle.
        parameters: the sizes that it was built with.
        heads: how many heads use each step, None if all use the same.
        layers: how many a model with it has, if that is known.
    """

    name: str
    steps: tuple[Step, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    heads: tuple[int, ...] | None = None
    layers: int | None = None  # the depth of the model that the pattern was read from

    def __post_init__(self) -> None:
        if not self.steps:
            raise InvalidInput("A pattern needs at least one step; got none.")
        sizes = {step.n for step in self.steps}
        if len(sizes) > 1:
            raise InvalidInput(f"All steps of a pattern must have the same number of tokens; got {sorted(sizes)}.")
        for l, step in enumerate(self.steps):
            if any(part.holds_itself(step.n) for part in step.parts):
                continue  # k ≤ k, so that a causal step keeps it
            empty = np.flatnonzero(step.degrees == 0)
            if len(empty):
                raise InvalidInput(
                    f"Token {empty[0]} attends to no token in step {l} of '{self.name}'; every row needs at least one "
                    "entry, because a probability map has no distribution over nothing. Add the token itself."
                )
        if self.heads is not None and (len(self.heads) != len(self.steps) or min(self.heads) < 1):
            raise InvalidInput(f"'heads' must give each of the {len(self.steps)} steps a head; got {self.heads}.")

    # ---- the paper's objects ----------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        return self.steps[0].n

    @property
    def cycle(self) -> int:
        """``p``, the number of steps."""
        return len(self.steps)

    def step(self, l: int) -> Step:
        """Step ``l`` of the cycle, from 0; block ``t`` (from 0) uses ``step(t % cycle)``."""
        if not 0 <= whole(l, "A step") < self.cycle:
            raise InvalidInput(f"Step {l} does not exist: '{self.name}' has steps 0..{self.cycle - 1}.")
        return self.steps[l]

    @property
    def config(self) -> str:
        """``union`` for a pattern made by ``union()``, else ``multihead`` or ``sequential``."""
        if self.heads is not None:
            return "multihead"
        return "union" if self.cycle == 1 and self.name.endswith("-union") else "sequential"

    @property
    def causal(self) -> bool:
        """Whether no token ever attends to a later one."""
        return all(step.causal or looks_ahead(step) is None for step in self.steps)

    def union_step(self) -> Step:
        """``∪_l A^l`` as one step."""
        if self.cycle == 1:
            return self.steps[0]
        if all(step.causal for step in self.steps) or not any(step.causal for step in self.steps):
            return Step(self.n, tuple(part for step in self.steps for part in step.parts), self.steps[0].causal)
        parts = [as_causal_part(part, self.n) if step.causal else part for step in self.steps for part in step.parts]
        whole = [p for p in parts if isinstance(p, Rect) and len(p.rows) == len(p.cols) == self.n]
        return Step(self.n, tuple(whole[:1] or parts))

    # ---- configurations ---------------------------------------------------------------------------------------

    def union(self) -> Pattern:
        """Every head of every block sees ``∪_l A^l``."""
        return replace(self, name=self.name + "-union", steps=(self.union_step(),), heads=None)

    def multihead(self, heads: int = 8) -> Pattern:
        """Every block has ``heads`` heads, shared out evenly among the steps."""
        if whole(heads, "'heads'") < self.cycle:
            raise InvalidInput(
                f"multihead needs at least one head for each of the {self.cycle} steps of '{self.name}'; got {heads}."
            )
        share = tuple(heads // self.cycle + (l < heads % self.cycle) for l in range(self.cycle))
        return replace(self, name=self.name + "-multihead", heads=share)

    def sequential(self) -> Pattern:
        """The paper's cycle: block ``t`` uses step ``t mod p`` in all its heads."""
        return replace(self, heads=None)

    def as_causal(self) -> Pattern:
        """The causal version: ``A_k ∩ {0..k}`` in every step."""
        parameters = {**self.parameters, "causal": True}
        steps = tuple(step.as_causal() for step in self.steps)
        return replace(self, name=self.name + "-causal", steps=steps, parameters=parameters)

    # ---- sizes ------------------------------------------------------------------------------------------------

    @property
    def connections(self) -> tuple[int, ...]:
        """Number of pairs (token, attended token) of each step."""
        return tuple(step.connections for step in self.steps)

    @property
    def sparsity(self) -> float:
        """The share of the n² pairs that is *not* used, averaged over the steps."""
        return 1 - sum(self.connections) / (self.cycle * self.n**2)

    # ---- materialised, on request -----------------------------------------------------------------------------

    def rows(self, k: int) -> tuple[np.ndarray, ...]:
        """What token ``k`` attends to, step by step."""
        return tuple(step.rows(k) for step in self.steps)

    def mask(self) -> np.ndarray:
        """Boolean ``(p, n, n)``: ``mask[l, k, j]`` says whether token ``k`` attends to ``j`` in step ``l``."""
        if self.cycle * self.n**2 > 1 << 31:
            raise CannotBuild(
                f"Dense masks for {self.cycle} steps at n = {self.n} need {self.cycle * self.n**2 / 2**30:.1f} GiB, "
                "more than 2 GiB; use to_csr(), rows(k) or mask_mod()."
            )
        return np.stack([step.mask() for step in self.steps])

    def to_csr(self) -> list[csr_array]:
        """One scipy CSR array per step; row ``k`` = what token ``k`` attends to."""
        return [step.to_csr() for step in self.steps]

    def mask_mod(self, l: int = 0, device: Any = None) -> Callable[..., Any]:
        """``mask_mod(b, h, q, kv)`` for FlexAttention: step ``l``, or for multihead the step of head ``h``.

        Its tables (listed tokens, explicit rows) are tensors on ``device``; left out, on the CPU and on the GPU.
        """
        from thereexists.patterns.tables import steps_on_devices

        if self.heads is None:
            one = steps_on_devices([self.step(l)], device)
            return lambda b, h, q, kv: one(q)[0](as_tokens(q), as_tokens(kv))
        spans = list(zip(np.cumsum((0, *self.heads[:-1])).tolist(), self.heads, strict=True))
        every = steps_on_devices(list(self.steps), device)

        def mask_mod(b: Any, h: Any, q: Any, kv: Any) -> Any:
            found, k, j = h < 0, as_tokens(q), as_tokens(kv)  # no token yet
            for (first, count), contains in zip(spans, every(q), strict=True):
                found = found | ((h >= first) & (h < first + count) & contains(k, j))
            return found

        return mask_mod

    def __repr__(self) -> str:
        counts = ", ".join([f"{count:,}" for count in self.connections[:8]] + ["…"] * (self.cycle > 8))
        return brief(
            f"Pattern: {self.name}, n = {self.n:,}, {self.cycle} step{'s' if self.cycle > 1 else ''}",
            f"{counts} connections, sparsity {cut(self.sparsity, 4)}",
        )


def looks_ahead(step: Step) -> tuple[int, int] | None:
    """A pair ``(k, j)`` with ``j ∈ A_k`` and ``j > k``, or None: a row looks ahead when its causal part is smaller."""
    if step.causal:
        return None
    ahead = np.flatnonzero(step.degrees > step.as_causal().degrees)
    if not len(ahead):
        return None
    k = int(ahead[0])
    return k, int(step.rows(k)[-1])
