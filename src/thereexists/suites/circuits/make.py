"""Make a suite of models with known circuits: program → certified network → circuit → dress → files, each checked.

models/0007-random-4-turned/
  config.json, model.safetensors   TransformerLens loads them without this package (``lens.py``)
  circuit.json                     components with their operations, edges with what they carry (``graph.py``)
  program.txt, program.py          the program in words and in NumPy (more of each, if the model computes more)
  data.safetensors                 64 inputs, every value of the program on them, the outputs
  witness/                         the network as it was compiled, with its certificate: ``thereexists verify`` reads it
  superposition.json               instead, where values share rows: their directions, and what was proved

A ``stock`` model is another folder: ``stock/model.py``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from thereexists.core.errors import CannotBuild
from thereexists.core.safe_path import nothing_from_here
from thereexists.core.tensor_files import save_tensors
from thereexists.functions.target import Array
from thereexists.suites.circuits import dress, lens, programs, superposed
from thereexists.suites.circuits.graph import SAME, Circuit, circuit_of
from thereexists.suites.circuits.programs import INPUTS, MORE, inputs
from thereexists.suites.circuits.run import run
from thereexists.suites.circuits.stock import programs as causal
from thereexists.suites.circuits.stock.model import draw, write_stock
from thereexists.suites.circuits.texts import pages
from thereexists.suites.disguise import disguise
from thereexists.suites.folders import FORMATS
from thereexists.suites.net import Net, net_of
from thereexists.suites.writing import seal, suite_appears

_, FORMAT = FORMATS
DRESSES = ("plain", "turned", "distractors", "pair", "superposed", "stock")
ENDINGS = ("", "_second", "_third")  # of the programs of a model


class Model(NamedTuple):
    """One or more programs in a network, and the circuit of all of it; ``bounds``: how far each is from the network."""

    net: Net
    circuit: Circuit
    steps: list[list[programs.Step]]
    witnesses: list[Any]
    bounds: list[float]
    dtype: str


def make_circuits(
    folder: str | Path, count: int = 200, seed: int = 0, workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:  # fmt: skip
    """Write ``count`` models to ``folder``; the same bytes for the same count and seed."""
    fill = partial(_fill, workers=workers, progress=progress)
    return suite_appears(Path(folder), "model", count, seed, workers, fill)


def _fill(beside: Path, count: int, seed: int, workers: int, progress: Callable[[int, int], None]) -> dict[str, Any]:
    (beside / "models").mkdir()
    jobs = [(beside / "models", seed, number) for number in range(count)]
    names = []
    if workers == 1:
        for done, job in enumerate(jobs):
            names.append(write_model(*job))
            progress(done + 1, count)
    else:
        with nothing_from_here(), ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for done, name in enumerate(pool.map(write_model, *zip(*jobs, strict=True), chunksize=4)):
                names.append(name)
                progress(done + 1, count)
    seal(beside, pages(), FORMAT, seed, count, {"models": names})
    return {"count": count, "seed": seed, "dresses": {d: sum(n.endswith(d) for n in names) for d in DRESSES}}


def write_model(models: Path, seed: int, number: int) -> str:
    """Draw, build, prove and check model ``number``, and write its folder."""
    rng = np.random.default_rng([seed, number])
    chosen, turn = DRESSES[number % len(DRESSES)], number // len(DRESSES)
    if chosen == "stock":
        return _write_stock(models, number, turn, rng)
    known = list(programs.GALLERY)
    gallery = turn < len(known)
    title = known[turn] if gallery else f"random-{2 + turn % 5}"
    tokens = programs.sample(np.random.default_rng([seed, number, 1]), 2 * INPUTS)
    if chosen == "superposed":
        title, model = "tables", _superposed(rng, tokens)
    else:
        steps = programs.GALLERY[title] if gallery else programs.random_program(rng, 2 + turn % 5)
        model = _dressed(_compiled(steps, tokens), chosen, rng, tokens)
    folder = models / f"{number:04d}-{title}-{chosen}"
    folder.mkdir()
    go = partial(run, model.net)
    more = programs.sample(np.random.default_rng([seed, number, 2]), 2 * MORE)
    few, many = ((inputs(some[: len(some) // 2]), inputs(some[len(some) // 2 :])) for some in (tokens, more))
    record = model.circuit.record(go, few, many)
    about = {"name": folder.name, "dress": chosen, "programs": model.steps, "dtype": model.dtype}
    (folder / "circuit.json").write_text(json.dumps(about | record, indent=1) + "\n")
    (folder / "config.json").write_text(json.dumps(lens.config_of(model.net, model.dtype), indent=1) + "\n")
    state = {
        name: torch.from_numpy(W.copy()).to(getattr(torch, model.dtype)) for name, W in lens.state_of(model.net).items()
    }
    save_tensors({name: W.contiguous() for name, W in state.items()}, folder / "model.safetensors")
    _write_programs(folder, model, tokens[:INPUTS])
    return folder.name


def _write_stock(models: Path, number: int, turn: int, rng: np.random.Generator) -> str:
    known = list(causal.GALLERY)
    title = known[turn] if turn < len(known) else f"random-{2 + turn % 5}"
    steps = causal.GALLERY[title] if turn < len(known) else draw(rng, 2 + turn % 5)
    folder = models / f"{number:04d}-{title}-stock"
    folder.mkdir()
    write_stock(folder, steps, rng)
    return folder.name


def _compiled(steps: list[programs.Step], tokens: Array) -> Model:
    """The certified network of a program, with its circuit."""
    from thereexists.constructions.build import build

    witness = build(programs.program_of(steps), dtype="float32", dtypes=("float64", "float32"))
    certificate = dataclasses.replace(witness.certificate, seconds=0.0)  # the same bytes every time
    witness = dataclasses.replace(witness, made=certificate)
    net = net_of(witness.network)
    bound = certificate.bounds["float64"]["bound"]
    return Model(net, circuit_of(net, list(witness.places), inputs(tokens)), [steps], [witness], [bound], "float32")


def _superposed(rng: np.random.Generator, tokens: Array) -> Model:
    """Three programs whose values share rows. The circuit is read off where every value has a row of its own."""
    steps = superposed.draw(rng)
    p, q = superposed.apart()
    plain = superposed.net_of(steps, p, q)
    circuit = circuit_of(plain, superposed.places_of(p.shape[1]), inputs(tokens))
    net = superposed.net_of(steps, *superposed.directions(rng))
    return Model(net, circuit, steps, [], [0.0] * len(steps), "float32")


def _dressed(model: Model, chosen: str, rng: np.random.Generator, tokens: Array) -> Model:
    if chosen == "distractors":
        model = model._replace(net=dress.with_distractors(model.net, rng))
    if chosen == "pair":
        other = _compiled(programs.random_program(rng, 3), tokens)
        (first,), (second,) = model.witnesses, other.witnesses
        places = dress.both_places(list(first.places), list(second.places), model.net.d)
        net = dress.side_by_side(model.net, other.net)
        circuit = circuit_of(net, places, inputs(tokens))
        model = Model(
            net, circuit, model.steps + other.steps, [first, second], model.bounds + other.bounds, "float32"
        )  # fmt: skip
    if chosen != "plain":
        try:
            net, key = disguise(model.net, rng, turn=True)
        except CannotBuild:  # numbers with too many bits for a rotation
            net, key = disguise(model.net, rng, turn=False)
        model = model._replace(net=net, circuit=dress.renamed(model.circuit, key))
    exact = all(np.array_equal(W, W.astype(np.float32)) for W in lens.state_of(model.net).values())
    return model._replace(dtype="float32" if exact else "float64")


def _write_programs(folder: Path, model: Model, tokens: Array) -> None:
    """Programs, data and witnesses; the values of the program must be what the network gives."""
    outputs = model.net.run(inputs(tokens))
    data = {"tokens": torch.from_numpy(tokens.copy()), "outputs": torch.from_numpy(np.ascontiguousarray(outputs))}
    for witness, ending in zip(model.witnesses, ENDINGS, strict=False):
        witness.save(folder / f"witness{ending}")
    if not model.witnesses:
        proof = superposed.proved(model.net, model.steps)
        (folder / "superposition.json").write_text(json.dumps(proof, indent=1) + "\n")
    for k, (steps, bound) in enumerate(zip(model.steps, model.bounds, strict=True)):
        ending = ENDINGS[k]
        (folder / f"program{ending}.txt").write_text(programs.plain_text(steps))
        (folder / f"program{ending}.py").write_text(programs.numpy_text(steps))
        values = programs.values_of(steps, tokens)
        off = float(np.abs(outputs[..., k : k + 1] - values[steps[-1]["name"]]).max())
        if not off <= bound + SAME:
            raise CannotBuild(f"{folder.name}: its network is {off:.3g} away from its program.")
        data |= {f"values{ending}.{name}": torch.from_numpy(v.copy()) for name, v in values.items()}
    save_tensors(data, folder / "data.safetensors")
