"""Building a witness larger than memory: the same weights as ``build``, made shard by shard, by any number of workers.

    contexts   every block of contexts is tabulated and sorted by itself, and left on disk: ids, columns, values
    shards     the ids are cut into runs by fixed pivots; whoever makes a shard collects its run from all blocks,
               sorts it, and writes the layers of that run as one stage in one safetensors file

What a layer needs of the whole table is a handful of numbers (``Extremes``) and the number of ids before its own. Both
steps go through the parallel map: an interrupted build resumes, and no process ever holds more than a block or a shard.
For targets with positions (Theorems 2 and B); without them the contexts are not numbered one by one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists._version import __version__
from thereexists.constructions.faithful.budget import error_budget
from thereexists.constructions.faithful.plan import (
    MAX_ID_BITS,
    Mapping,
    Request,
    ask_one_by_one,
    check_arguments,
    check_claims,
    deep_plan,
    id_bits,
    mapping_for,
)
from thereexists.constructions.faithful.quantise import quantise, ramp_widths
from thereexists.constructions.faithful.softmax_limit import (
    WIDTH,
    clamp,
    clamp_levels,
    relu_limit,
    temperature,
    tempered,
    value_limit,
)
from thereexists.constructions.faithful.value_mapping import (
    Extremes,
    ValueTable,
    contexts_with_positions,
    entries,
    layer_count,
    ranks,
    steps,
    sweeps,
)
from thereexists.constructions.faithful.witness import FaithfulWitness
from thereexists.core import shards, storage
from thereexists.core.atomic_files import the_error_in_words
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.tensor_files import save_tensors
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.model import Stage, Transformer
from thereexists.parallel import HERE, Workers, parallel_map
from thereexists.parallel.estimate import Estimate, estimate
from thereexists.parallel.own_folder import own_folder
from thereexists.parallel.ship import ShippedTarget, identity_of
from thereexists.patterns import Pattern
from thereexists.witness.load import load

SHARD_BYTES = 64 << 20
_IDS_AT_ONCE = 1 << 20
_SAMPLES = 1 << 10  # of every block, for the pivots


def build_sharded(
    target: Target,
    out: str | Path,
    delta: float | str | Fraction,
    p: float = 1.0,
    pattern: Pattern | None = None,
    rho: str = "softmax",
    shard_bytes: int = SHARD_BYTES,
    workers: Workers = HERE,
) -> FaithfulWitness:
    """Build straight into the folder ``out``; the witness that is returned is mapped from there, not in memory."""
    out = Path(out)
    check_arguments(target, Request(delta, p=p))
    storage.check_writable(out)
    mapping = mapping_for(target, delta, pattern)
    _refuse(mapping, rho, shard_bytes)
    check_claims(target)
    ask_one_by_one(target)
    scratch = own_folder(out.parent / f".{out.name}.build")
    contexts = Contexts.of(mapping, target, scratch, stays=workers.alone)
    summaries = parallel_map(contexts, workers, scratch / "contexts.job", contexts.opener(target))
    extremes = Extremes.joined([Extremes.from_dict(summary["extremes"]) for summary in summaries], mapping.grid)
    _same_files({contexts.run(i): summary["sha256"] for i, summary in enumerate(summaries)})
    pivots = _pivots(summaries, layer_count(mapping.grid), shard_bytes // _bytes_per_layer(mapping.grid))
    layers = Layers.of(contexts, extremes, pivots)
    made = parallel_map(layers, workers, scratch / "shards.job")
    record = _assemble(mapping, target, rho, p, extremes, made, scratch)
    storage.finish_shards(out, scratch, record)
    shutil.rmtree(scratch)
    witness = load(out)
    return dataclasses.replace(witness, target=target)


def _same_files(recorded: dict[Path, str]) -> None:
    """What a job that resumes finds must be what it wrote: the jobs' records carry a code, these files their hash."""
    for file, sha256 in recorded.items():
        if not file.is_file() or storage.file_sha256(file) != sha256:
            raise CannotBuild(f"{file} is not the file that this build wrote; remove {file.parent} and build again.")


def predict_sharded(
    target: Target, delta: float | str | Fraction, pattern: Pattern | None = None, workers: Workers = HERE
) -> Estimate:
    """What such a build will cost: one block of contexts is tabulated and its layers are written, elsewhere."""
    check_arguments(target, Request(delta))
    mapping = mapping_for(target, delta, pattern)
    _refuse(mapping, "softmax", SHARD_BYTES)
    check_claims(target)
    with tempfile.TemporaryDirectory() as scratch:
        contexts = Contexts.of(mapping, target, Path(scratch), stays=True)
        return estimate(contexts, workers, lambda: lambda number: _rehearse(contexts, target, number))


def _rehearse(contexts: Contexts, target: Target, number: int) -> None:
    """Both steps for the contexts of one block alone."""
    summary = contexts.opener(target)()(number)
    contexts.run(number).replace(contexts.run(0))
    extremes = Extremes.joined([Extremes.from_dict(summary["extremes"])], contexts.mapping.grid)
    Layers.of(contexts, extremes, []).write(0, np.array([[0, summary["count"]]]))


def _refuse(mapping: Mapping, rho: str, shard_bytes: int) -> None:
    grid, bits = mapping.grid, id_bits(mapping)
    if rho not in ("softmax", "sparsemax"):
        raise InvalidInput(f"'rho' must be softmax or sparsemax; got {rho!r} instead.")
    if not grid.positional:
        raise CannotBuild(
            "Shards are made for targets with positions (Theorems 2 and B); build an equivariant one with "
            "--no-equivariant, or in memory."
        )
    if bits > MAX_ID_BITS:
        raise CannotBuild(f"The ids need {bits:.0f} bits and float64 carries {MAX_ID_BITS} safely: more memory or more "
                          "machines do not help. Choose a coarser grid.")  # fmt: skip
    if shard_bytes < 4 * grid.d * _bytes_per_layer(grid):
        raise InvalidInput(f"A shard must hold a few layers; got a shard size of {shard_bytes} bytes.")


def _bytes_per_layer(grid: Grid) -> int:
    return 8 * (2 * WIDTH * grid.d + WIDTH + grid.d)


@dataclass(frozen=True)
class Contexts:
    """The first task: a block of contexts, tabulated, sorted by decreasing id, and saved."""

    mapping: Mapping
    target: ShippedTarget
    folder: str
    key: str

    @classmethod
    def of(cls, mapping: Mapping, target: Target, scratch: Path, stays: bool) -> Contexts:
        from thereexists.certificates.cubes import fingerprint

        content = [
            mapping.grid.describe(),
            type(mapping).__name__,
            fingerprint(target),
            identity_of(target),
            __version__,
        ]
        route = getattr(mapping, "route", None)
        content += [] if route is None else [route.masks.tolist(), route.path, route.edge_steps]
        key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        (scratch / "runs").mkdir(parents=True, exist_ok=True)
        return cls(mapping, ShippedTarget.of(target, stays), str(scratch.resolve()), key)

    @property
    def cells(self) -> int:
        return self.mapping.grid.cells

    @property
    def block(self) -> int:
        return max(1, _IDS_AT_ONCE // self.mapping.grid.n)

    @property
    def blocks(self) -> int:
        return -(-self.cells // self.block)

    def opener(self, target: Target) -> Callable[[], Callable[[int], dict[str, Any]]]:
        return lambda: lambda number: self._tabulate(target, number)

    def open(self) -> Callable[[int], dict[str, Any]]:
        return self.opener(self.target.load())()

    def run(self, number: int) -> Path:
        return Path(self.folder) / "runs" / f"{number:06d}.npy"

    def _tabulate(self, target: Target, number: int) -> dict[str, Any]:
        """Extremes and a sample of the ids; ids, columns and values go to one array (ids, 1 + 2d)."""
        grid = self.mapping.grid
        l = contexts_with_positions(grid, number * self.block, min((number + 1) * self.block, grid.cells))
        q, z, A = entries(target, grid, l, self.mapping.ids(l))
        order = np.argsort(-q, kind="stable")
        q, z, A = q[order], z[order], A[order]
        extremes = Extremes.of(q * grid.unit, z, A, grid)
        table = np.column_stack([q.astype(np.float64), z, A])  # ids have at most 52 bits
        beside = self.run(number).with_suffix(".part.npy")
        with the_error_in_words(beside):
            np.save(beside, table)
        sha256 = storage.file_sha256(beside)
        beside.replace(self.run(number))
        sample = q[:: max(1, len(q) // _SAMPLES)]
        return {"extremes": dataclasses.asdict(extremes), "count": len(q), "sample": sample.tolist(), "sha256": sha256}


def _pivots(summaries: list[dict[str, Any]], ids: int, per_shard: int) -> list[float]:
    """Descending ids that cut the table into shards of about equal size, at most ``per_shard`` by a wide margin."""
    sample = np.sort(np.concatenate([summary["sample"] for summary in summaries]).astype(np.float64))[::-1]
    count = max(1, -(-ids * 5 // (per_shard * 4)))
    at = (np.arange(1, count) * len(sample)) // count
    return sorted(set(sample[at].tolist()), reverse=True)


@dataclass(frozen=True)
class Layers:
    """The second task: shard number i holds the ids from pivot i−1 (excluded) down to pivot i (included)."""

    contexts: Contexts
    extremes: Extremes
    pivots: tuple[float, ...]
    key: str
    block: int = 1

    @classmethod
    def of(cls, contexts: Contexts, extremes: Extremes, pivots: list[float]) -> Layers:
        content = [contexts.key, dataclasses.asdict(extremes), pivots]
        return cls(contexts, extremes, tuple(pivots), hashlib.sha256(json.dumps(content).encode()).hexdigest())

    @property
    def cells(self) -> int:
        return len(self.pivots) + 1

    def open(self) -> Callable[[int], list[dict[str, Any]]]:
        """How many ids of every block lie before each pivot: found once, by bisection in the sorted blocks."""
        edges = np.zeros((self.contexts.blocks, self.cells + 1), dtype=np.int64)
        for number in range(self.contexts.blocks):
            q = np.load(self.contexts.run(number), mmap_mode="r")[:, 0]
            edges[number, 1:-1] = np.searchsorted(-q, -np.array(self.pivots), side="right")
            edges[number, -1] = len(q)
        return lambda shard: self.write(shard, edges)

    def write(self, shard: int, edges: np.ndarray) -> list[dict[str, Any]]:
        """One file for every sweep; its name says the sweep and the shard, until all of them are numbered."""
        grid = self.contexts.mapping.grid
        pieces = [
            np.load(self.contexts.run(number), mmap_mode="r")[edge[shard] : edge[shard + 1]]
            for number, edge in enumerate(edges)
        ]
        table = np.concatenate(pieces)
        del pieces
        table = table[np.argsort(-table[:, 0], kind="stable")]
        first = int(edges[:, shard].sum())
        q, z, A = table[:, 0], table[:, 1 : 1 + grid.d], table[:, 1 + grid.d :]
        part = ValueTable(q * grid.unit, np.ascontiguousarray(z), np.ascontiguousarray(A), self.extremes)
        made = []
        for number, sweep in enumerate(sweeps(part, first, grid)):
            modified = steps([sweep]).feed_forward
            result = value_limit(modified)  # pyright: ignore[reportArgumentType]
            last = shard == 0 if self.extremes.two_sweeps else shard == self.cells - 1
            if last and number == int(self.extremes.two_sweeps):
                columns = ranks(part, 0, grid)[: grid.d][::-1] if self.extremes.two_sweeps else part.z[-grid.d :]
                clamp(result, clamp_levels(self.extremes), columns, modified)  # pyright: ignore[reportArgumentType]
            name = f"sweep{number}-{shard:05d}"
            file = Path(self.contexts.folder) / f"{name}.safetensors"
            beside = file.with_suffix(".part")
            stored = {k: v.detach() for k, v in result.state_dict().items()}
            save_tensors(
                {f"stages.{stage_name(number, shard, self)}.feed_forward.{k}": v for k, v in stored.items()}, beside
            )
            stage, sha256 = stage_name(number, shard, self), storage.file_sha256(beside)
            beside.replace(file)
            made.append({"file": file.name, "depth": len(q), "stage": stage, "sha256": sha256})
        return made


def stage_name(sweep: int, shard: int, layers: Layers) -> str:
    """Value stages in the order they run: all shards of the first sweep, then those of the second backwards."""
    place = shard if sweep == 0 else 2 * layers.cells - 1 - shard
    return f"value-{place + 1:05d}"


def _assemble(
    mapping: Mapping, target: Target, rho: str, p: float, extremes: Extremes, made: list[Any], scratch: Path
) -> dict[str, Any]:
    """The stages before the values, the final names of all files, the index, and the record."""
    grid, E = mapping.grid, mapping.grid.encoding
    values = sorted((part for shard in made for part in shard), key=lambda part: part["stage"])
    first = Transformer(
        {
            "quantise": Stage(feed_forward=relu_limit(quantise(grid).feed_forward, ramp_widths(grid))),  # pyright: ignore[reportArgumentType]
            "context": Stage(attention=tempered(mapping.stage().attention, temperature(grid))),  # pyright: ignore[reportArgumentType]
        },
        rho=rho,
        E=None if E is None else torch.from_numpy(E),
        needs=torch.float64,
    )
    count = len(values) + 1
    weight_map: dict[str, str] = {}
    weights = {name: tensor.detach().contiguous() for name, tensor in first.state_dict().items()}
    save_tensors(weights, scratch / shard_name(1, count))
    weight_map |= dict.fromkeys(weights, shard_name(1, count))
    structure, total = first.structure(), sum(w.numel() * w.element_size() for w in weights.values())
    layers = {name: stage.depth for name, stage in first.stages.items()}
    for i, part in enumerate(values, 2):
        name, source = shard_name(i, count), scratch / part["file"]
        if source.exists():  # else a build that was stopped here has renamed it already
            source.replace(scratch / name)
        _same_files({scratch / name: part["sha256"]})
        weight_map |= {f"stages.{part['stage']}.feed_forward.{k}": name for k in ("W_1", "b_1", "W_2", "b_2")}
        structure["stages"][part["stage"]] = {
            "depth": part["depth"], "attention": False, "pattern": False, "feed_forward": True, "phi": False
        }  # fmt: skip
        layers[part["stage"]] = part["depth"]
        total += part["depth"] * _bytes_per_layer(grid)
    shards.write_index(scratch, weight_map, total)
    route = getattr(mapping, "route", None)
    parameters = sum(w.numel() for name, w in weights.items() if not name.endswith(".pattern"))
    parameters += sum(part["depth"] for part in values) * _bytes_per_layer(grid) // 8
    plan = deep_plan(
        route,
        theorem="B" if route is not None else 2,
        grid=grid,
        layers={**layers, "total": sum(layers.values())},
        sweeps=2 if extremes.two_sweeps else 1,
        parameters=parameters,
        id_bits=id_bits(mapping),
        memory_bytes=total,
        error=error_budget(target, grid, extremes, p),
    )
    shape = {"h": 2, "m": 1, "r": WIDTH, "d": grid.d, "positional": True}
    return {
        "construction": FaithfulWitness.construction,
        "package_version": __version__,
        "dtype": "float64",
        "class": shape,
        "structure": structure,
        "target": target.describe(),
        "grid": grid.describe(),
        "plan": plan.describe(),
        "distance": None,
    }


def shard_name(number: int, count: int) -> str:
    return f"model-{number:05d}-of-{count:05d}.safetensors"
