"""A witness of a function of numbers: it has the function, a grid on its domain, and perhaps a measured distance."""

from __future__ import annotations

import dataclasses
import functools
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from thereexists.certificates.certificate import FILE, load_certificate
from thereexists.certificates.function_certificate import FunctionCertificate
from thereexists.core.authors_word import WORDS
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.plain_text import in_full
from thereexists.core.regular_files import is_regular
from thereexists.core.rounded_figures import rounded_down
from thereexists.evaluate import Choice
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target, standing_in
from thereexists.model import Transformer
from thereexists.witness.distance import Distance, Exactness, cell_values, estimate_distance, exactness
from thereexists.witness.inputs import real_inputs
from thereexists.witness.plan import FunctionPlan
from thereexists.witness.samples import chosen
from thereexists.witness.witness import Samples, Witness, require_float64


@dataclasses.dataclass(frozen=True, repr=False)
class FunctionWitness(Witness):
    """The witness of a function on a grid: ``te.build`` of a ``te.Target`` returns one.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        witness.grid.cells, witness.target.lipschitz

    ``answers_equal_columns`` says whether the network has f's value where two columns share a cell.

    Attributes:
        network: the network itself.
        plan: its grid, its sizes and the predicted error.
        target: the function that it computes, with its claims.
        distance: the measured d_p; None if it was not measured.
        folder: where it was loaded from; None if it was built here.
        proved: the certificate that a build for ``epsilon`` made; None otherwise.
    """

    answers_equal_columns: ClassVar[bool]

    network: Transformer
    plan: FunctionPlan
    target: Target
    distance: Distance | None = None
    folder: Path | None = dataclasses.field(default=None, compare=False)
    proved: FunctionCertificate | None = dataclasses.field(default=None, compare=False)

    @property
    def grid(self) -> Grid:
        return self.plan.grid.on(self.target.region)

    @property
    def n(self) -> int:
        return self.grid.n

    @property
    def certificate(self) -> FunctionCertificate | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The one that a build for ``epsilon`` made; or the one in the folder it was loaded from, as its author wrote
        it: ``te.verify`` checks it.

        None if it is about another function or about other weights, as after the network was converted or changed.
        """
        return self.its_own(self.proved or self._read_certificate)

    @functools.cached_property
    def _read_certificate(self) -> FunctionCertificate | None:
        if self.folder is None or not is_regular(self.folder / FILE):
            return None
        return load_certificate(self.folder, self.kind.certificates)

    def to_compute(self) -> dict[str, Any]:
        return self.target.describe()

    def knowing(self, target: Target | None) -> Self:
        """The same witness, where a target brings the code that its domain is made of; one of another is refused."""
        region = standing_in(target, self.target).region
        if region is None:
            return self
        return dataclasses.replace(self, target=dataclasses.replace(self.target, domain=region))

    def __call__(self, x: Any, engine: str = "auto") -> Any:
        """Run on (batch, n, d) or one sequence (n, d); NumPy in NumPy out, torch in torch out.

        ``engine`` is auto, reference, fused or skip (see ``te.evaluate``); gradients go through ``witness.network``.
        """
        if isinstance(x, torch.Tensor):
            return torch.from_numpy(self(real_inputs(x, self.grid.n, self.grid.d), engine)).to(x.device)
        X, single = self.checked_input(x)
        Y = self.run(X, engine)
        return Y[0] if single else Y

    def epsilon(self, p: float) -> float | None:
        """The d_p that was asked for when it was built; None if a grid was, or another p."""
        plan = self.plan
        return plan.epsilon if plan.error is not None and plan.error.p == p else None

    def save(self, path: str | Path) -> None:
        """As every witness; with the certificate that a build for ``epsilon`` made of it."""
        super().save(path)
        if self.proved is not None and self.certificate is not None:
            self.certificate.save(path)

    @abstractmethod
    def run(self, X: np.ndarray, engine: str = "auto") -> np.ndarray:
        """The network on a checked batch."""

    @abstractmethod
    def explain(self, X: np.ndarray, engine: str = "auto") -> Choice:
        """Which engine runs a checked batch, and how."""

    @abstractmethod
    def counted(self) -> dict[str, Any]:
        """What of ``plan.own()`` is counted on the network, not read from a record."""

    def checked_input(self, x: Any) -> tuple[np.ndarray, bool]:
        """The batch (batch, n, d) in float64, and whether one sequence was given; the rest is refused."""
        n, d = self.grid.n, self.grid.d
        X = real_inputs(x, n, d)
        single = X.ndim == 2
        X = X[None] if single else X
        if X.ndim != 3 or X.shape[1:] != (n, d) or len(X) == 0:
            raise InvalidInput(
                f"The input must have the shape (batch, {n}, {d}) or ({n}, {d}), with at least one sequence; "
                f"got {X.shape[1:] if single else X.shape} instead."
            )
        if self.target.compact_support and np.isfinite(X).all():  # the network itself answers 0 outside
            most = self.largest_input()
            if np.abs(X).max() > most:
                raise InvalidInput(
                    f"This witness takes numbers up to {rounded_down(most, 3)} in its dtype; got "
                    f"{in_full(float(np.abs(X).max()))}, whose distance to an edge of a cell, in ramp widths, would "
                    "overflow."
                )
            return X, single
        if self.target.region is not None and np.isfinite(X).all():
            self._check_region(X)
            return X, single
        low, high = self.target.low, self.target.high
        inside = (low <= X) & (high >= X)  # False for NaN
        if not inside.all():
            row, token, feature = (int(i) for i in np.argwhere(~inside)[0])
            raise InvalidInput(
                f"The input must lie in the domain [{in_full(float(low[feature]))}, {in_full(float(high[feature]))}]; "
                f"sequence {row}, token {token}, feature {feature} is {in_full(float(X[row, token, feature]))}."
            )
        return X, single

    def _check_region(self, X: np.ndarray) -> None:
        """Refuse what lies outside a domain that is not a box."""
        inside = self.target.contains(X)
        if not inside.all() and self.target.region is not None:
            row = int(inside.argmin())
            raise InvalidInput(
                f"The input must lie in the domain, {self.target.region.words()}; sequence {row}, {X[row].tolist()}, "
                "is outside."
            )

    def largest_input(self) -> float:
        """What may be asked of a witness that takes numbers outside its box: any float64."""
        return float(np.finfo(np.float64).max)

    def samples(self) -> Samples:
        """The centres of all cubes, or of many."""
        inputs = self.grid.centre(self.grid.cube(chosen(self.grid.cells)))
        return Samples(((inputs, self.run(inputs)),), "cells")

    def cell_values(self, X: np.ndarray) -> np.ndarray:
        """f̄(X): the value this network was built to have on the cube of X."""
        return cell_values(self.target, self.grid, X, self.answers_equal_columns)

    def estimate_distance(self, p: float = 1.0, samples: int = 4096, seed: int = 0) -> Distance:
        """d_p between the target and this network, estimated with a confidence interval."""
        return estimate_distance(self.target, self.run, p, samples, seed)

    def exactness(self, samples: int = 10_000, seed: int = 0) -> Exactness:
        """The largest |g − f̄| on random inputs off the ramps."""
        return exactness(self.target, self.grid, self.run, samples, seed, self.answers_equal_columns)

    def lowerable(self) -> Any:
        raise CannotBuild(
            "A network for a function has no stock Llama checkpoint: its heads see all n tokens, and those of Llama "
            "only the tokens up to their own; it goes to onnx, hf or torch."
        )

    def describe(self) -> dict[str, Any]:
        """Plain data about the witness, as ``build --json`` and witness.json give it."""
        return {
            "target": self.target.name,
            **self.plan.describe(),
            "class": self.network.shape() | {"positional": self.network.E is not None},
            "distance": None if self.distance is None else self.distance.describe(),
        }

    def facts(self) -> list[str]:
        region = self.target.region
        box = (
            f"[{in_full(float(self.target.low.min()))}, {in_full(float(self.target.high.max()))}]"
            if region is None
            else region.words()
        )
        sizes = f"n = {self.grid.n}, d = {self.grid.d}: Theorem {self.plan.theorem}"
        told = f"{self.target.name} on {box}, delta = {float(self.grid.delta):g}"
        return [sizes, told if self.folder is None else f"{WORDS}: {told}"]

    def contents(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        require_float64(self.network)
        return {
            "target": self.target.describe(),
            "grid": self.grid.describe(),
            "plan": self.plan.describe(),
            "distance": None if self.distance is None else self.distance.describe(),
        }, {}
