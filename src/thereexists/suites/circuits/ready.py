"""A model of a suite as whoever scores a method needs it: ready to be run on its own data, with edges cut or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from thereexists.functions.target import Array
from thereexists.suites.circuits.files import read_model
from thereexists.suites.circuits.programs import INPUTS, inputs
from thereexists.suites.circuits.run import Edge, Run, edges_of, run
from thereexists.suites.circuits.stock.model import FOLDER, read_tokens
from thereexists.suites.circuits.stock.network import read_stock
from thereexists.suites.folders import files_of

OWN = ("config.json", "model.safetensors")  # of TransformerLens' own architecture


class Ready(NamedTuple):
    """``go(X, kept, other)``, on the inputs ``X``; ``edges``: all that the architecture has."""

    go: Callable[..., Run]
    X: Array
    edges: list[Edge]


def files_to_score(folder: Path, name: str) -> list[str]:
    """What is read of a model, by its path in the suite: the files of its network, its data, its circuit."""
    model = folder / "models" / name
    stock = (model / FOLDER).is_dir()
    network = [f"{FOLDER}/{file}" for file in sorted(files_of(model / FOLDER))] if stock else OWN
    return [f"models/{name}/{file}" for file in (*network, "data.safetensors", "circuit.json")]


def read_ready(folder: Path) -> Ready:
    """Of a stock folder, or of a model of TransformerLens' own."""
    if (folder / FOLDER).is_dir():
        net, _ = read_stock(folder / FOLDER)
        return Ready(net.run, read_tokens(folder)[:INPUTS], net.edges())
    net, tokens = read_model(folder)
    return Ready(partial(run, net), inputs(tokens[:INPUTS]), edges_of(net))
