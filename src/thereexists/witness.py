"""A witness: the network, how it was built, and what it was built from. It runs, saves and loads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists import storage
from thereexists._version import __version__
from thereexists.distance import Distance, Exactness, cell_values, estimate_distance, exactness
from thereexists.errors import CannotBuild, InvalidInput
from thereexists.evaluate import Choice, check_engine, evaluate, explain
from thereexists.grid import RAMP_SHARE, Grid
from thereexists.json_files import malformed
from thereexists.model import EmbeddedTransformer, Transformer
from thereexists.plan import ErrorBudget, Plan, describe
from thereexists.precision import in_dtype, run_embedded, verdicts
from thereexists.sizes import check_plan, check_sizes
from thereexists.target import Target
from thereexists.targets import restore

_CHUNK = 1 << 14


@dataclasses.dataclass(frozen=True)
class Witness:
    """``witness(x)`` runs the network; ``witness.network`` is it; ``witness.save("w")`` and ``te.load("w")``."""

    network: Transformer
    plan: Plan
    target: Target
    distance: Distance | None = None

    @property
    def grid(self) -> Grid:
        return self.plan.grid

    def __call__(self, x: Any, engine: str = "auto") -> Any:
        """Run on (batch, n, d) or one sequence (n, d); NumPy in NumPy out, torch in torch out.

        ``engine`` is auto, reference, fused or skip (see ``te.evaluate``); gradients go through ``witness.network``.
        """
        if isinstance(x, torch.Tensor):
            return torch.from_numpy(self(x.detach().cpu().numpy(), engine)).to(x.device)
        X, single = self.checked_input(x)
        Y = self.run(X, engine)
        return Y[0] if single else Y

    def run(self, X: np.ndarray, engine: str = "auto") -> np.ndarray:
        """The network on a checked batch, where its weights are, a tile at a time: the working set stays small."""
        check_engine(engine)
        if isinstance(self.network, EmbeddedTransformer):
            return run_embedded(self.network, X)  # four blocks: there is one way to run them
        device = next(self.network.parameters()).device
        with torch.no_grad(), _one_thread():
            tiles = (torch.from_numpy(part).to(device) for part in _tiles(X))
            return np.concatenate([evaluate(self.network, part, engine).cpu().numpy() for part in tiles])

    def explain(self, X: np.ndarray, engine: str = "auto") -> Choice:
        """Which engine runs a checked batch, and how."""
        with torch.no_grad():
            device = next(self.network.parameters()).device
            return explain(self.network, torch.from_numpy(X[:_CHUNK]).to(device), engine)

    def to(self, dtype: torch.dtype | str) -> Witness:
        """The witness in another dtype. One that is not safe for it is refused, with the reason."""
        name = str(dtype).removeprefix("torch.")
        if isinstance(self.network, EmbeddedTransformer):
            return dataclasses.replace(self, network=in_dtype(self.network, name, self.grid))
        if name == "float64":
            return self
        carried = {"float32": 24, "bfloat16": 8, "float16": 11}.get(name)
        if carried is None:
            raise InvalidInput(f"'dtype' must be a floating-point type of torch; got {dtype!r} instead.")
        raise CannotBuild(
            f"This witness is not safe in {name}: its ids need {self.plan.id_bits:.0f} bits and the ramps of its "
            f"quantiser {-int(np.log2(RAMP_SHARE))} more, and {name} carries {carried}. Run it in float64."
        )

    def checked_input(self, x: Any) -> tuple[np.ndarray, bool]:
        """The batch (batch, n, d) in float64, and whether one sequence was given; the rest is refused."""
        n, d = self.grid.n, self.grid.d
        try:
            if np.iscomplexobj(np.asarray(x)):
                raise TypeError("complex numbers")
            X = np.array(x, dtype=np.float64)
        except (ValueError, TypeError):
            raise InvalidInput(
                f"The input must be real numbers in an array (batch, {n}, {d}); these cannot be made into one "
                "(are all sequences of one length?)."
            ) from None
        single = X.ndim == 2
        X = X[None] if single else X
        if X.ndim != 3 or X.shape[1:] != (n, d) or len(X) == 0:
            raise InvalidInput(
                f"The input must have the shape (batch, {n}, {d}) or ({n}, {d}), with at least one sequence; "
                f"got {X.shape[1:] if single else X.shape} instead."
            )
        low, high = self.target.low, self.target.high
        inside = (low <= X) & (high >= X)  # False for NaN
        if not inside.all():
            row, token, feature = (int(i) for i in np.argwhere(~inside)[0])
            raise InvalidInput(
                f"The input must lie in the domain [{low[feature]:g}, {high[feature]:g}]; "
                f"sequence {row}, token {token}, feature {feature} is {X[row, token, feature]:g}."
            )
        return X, single

    def cell_values(self, X: np.ndarray) -> np.ndarray:
        """f̄(X): the value this network was built to have on the cube of X."""
        return cell_values(self.target, self.grid, X, self.plan.construction == "compact")

    def estimate_distance(self, p: float = 1.0, samples: int = 4096, seed: int = 0) -> Distance:
        """d_p between the target and this network, estimated with a confidence interval."""
        return estimate_distance(self.target, self.run, p, samples, seed)

    def exactness(self, samples: int = 10_000, seed: int = 0) -> Exactness:
        """The largest |g − f̄| on random inputs off the ramps."""
        compact = self.plan.construction == "compact"
        return exactness(self.target, self.grid, self.run, samples, seed, compact)

    def describe(self) -> dict[str, Any]:
        """Plain data about the witness, as ``build --json`` and witness.json give it."""
        return {
            "target": self.target.name,
            **describe(self.plan),
            "distance": None if self.distance is None else dataclasses.asdict(self.distance),
        }

    def save(self, path: str | Path) -> None:
        """Write the directory ``path`` (model.safetensors, witness.json), whole or not at all; always in float64."""
        if isinstance(self.network, EmbeddedTransformer) and self.network.dtype != torch.float64:
            raise InvalidInput(
                f"A witness is saved in float64, and this one is in {self.network.dtype}: save the original, and load "
                "it in the dtype you want."
            )
        record = {
            "package_version": __version__,
            "dtype": "float64",
            "class": self.network.shape() | {"positional": self.network.E is not None},
            "structure": self.network.structure(),
            "target": self.target.describe(),
            "grid": dataclasses.asdict(self.grid),
            "plan": describe(self.plan),
            "distance": None if self.distance is None else dataclasses.asdict(self.distance),
        }
        weights = {name: tensor.detach().contiguous() for name, tensor in self.network.state_dict().items()}
        storage.write(Path(path), record, weights)


def load(path: str | Path, dtype: torch.dtype | str | None = None) -> Any:
    """Read a saved witness, in float64 unless said. Built-in functions come back with it; your own code is never run.

    A table or a memorised data set comes back as a ``TokenWitness``, in the dtype it was saved in unless said.
    """
    record, weights = storage.read(Path(path))
    if "vocabulary" in record:
        from thereexists.tokens import from_record

        return from_record(path, record, weights, dtype)
    if "program" in record:
        from thereexists.program.witness import from_record as program_from_record

        return program_from_record(path, record, weights, dtype)
    dtype = dtype or "float64"
    with malformed(path, "is not a complete witness"):
        storage.check_dtype(record, weights)
        check_plan(record["plan"])
        grid = Grid.from_dict(record["grid"])
        error = record["plan"]["error"]
        plan = Plan(
            theorem=record["plan"]["theorem"],
            grid=grid,
            layers=record["plan"]["layers"],
            sweeps=record["plan"]["sweeps"],
            parameters=record["plan"]["parameters"],
            id_bits=record["plan"]["id_bits"],
            memory_bytes=record["plan"]["memory_bytes"],
            error=None if error is None else ErrorBudget(*(error[k] for k in ("p", "grid", "equal_columns", "ramps"))),
            pattern=record["plan"]["pattern"],
            construction=record["plan"].get("construction", "faithful"),
            sizes=record["plan"].get("sizes"),
        )
        distance = None if record["distance"] is None else Distance(**record["distance"])
        network = Transformer.from_structure(record["structure"], weights)
        target = restore(record["target"])
        check_sizes(path, network, grid, target)
        if isinstance(network, EmbeddedTransformer):  # of what the record calls safe, only what the weights prove
            proved = verdicts(network, grid)
            network.safe = ("float64", *(n for n in network.safe if n != "float64" and proved[n].holds))
    return Witness(network=network, plan=plan, target=target, distance=distance).to(dtype)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Thousands of tiny layers: handing each to several threads costs far more than it saves."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _tiles(X: np.ndarray) -> list[np.ndarray]:
    return [X[start : start + _CHUNK] for start in range(0, len(X), _CHUNK)]
