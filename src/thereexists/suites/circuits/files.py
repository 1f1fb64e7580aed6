"""The files of a circuit suite, read and looked at: which models there are, the circuit of one, its network.

Whoever checks or scores a suite reads them here. What cannot be read is refused in one sentence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import malformed, read_json
from thereexists.core.regular_files import read_regular
from thereexists.functions.target import Array
from thereexists.suites.circuits.lens import SCALE
from thereexists.suites.folders import MARK
from thereexists.suites.net import Block, Head, Hidden, Net
from thereexists.suites.plain import is_flag, is_name, is_number, is_whole

MOST_WEIGHTS = 1 << 28  # bytes
MOST_LAYERS = 256


def read_names(folder: Path, record: dict[str, Any]) -> list[str]:
    """The models that the record lists: names of folders, none twice, as many as it counts."""
    names = record.get("models")
    if not isinstance(names, list) or not names or not all(is_name(name) for name in names):
        raise InvalidInput(f"{folder / MARK} is not the record of a circuit suite: 'models' must list folders.")
    if len(set(names)) != len(names) or len(names) != record["count"]:
        raise InvalidInput(
            f"{folder / MARK} must list every model once, as many as it counts; it counts {record['count']} and lists "
            f"{len(names)}, {len(set(names))} of them different."
        )
    return names


def read_circuit(folder: Path) -> dict[str, Any]:
    """circuit.json of a model: its dress, and edges with their ends and whether they are needed."""
    found = read_json(folder / "circuit.json")
    edges = found.get("edges") if isinstance(found, dict) else None
    right = isinstance(edges, list) and all(
        isinstance(edge, dict)
        and isinstance(edge.get("from"), str)
        and isinstance(edge.get("to"), str)
        and is_flag(edge.get("needed"))
        for edge in edges
    )
    if not right or not isinstance(found.get("dress"), str):
        raise InvalidInput(
            f"{folder / 'circuit.json'} is not a circuit: it must be an object with a 'dress', and edges that have "
            "'from', 'to' and 'needed'."
        )
    return found


def read_model(folder: Path) -> tuple[Net, Array]:
    """The network from the files that TransformerLens reads, and the inputs of the data."""
    config = read_json(folder / "config.json")
    with malformed(folder, "is not a model of a circuit suite"):
        W = read_arrays(folder / "model.safetensors")
        if not is_whole(config["n_layers"], 0, MOST_LAYERS):
            raise InvalidInput(f"n_layers must be from 0 to {MOST_LAYERS}; got {config['n_layers']!r}")
        if not is_number(config["attn_scale"]) or config["attn_scale"] != SCALE:
            raise InvalidInput(f"attn_scale must be {SCALE:g}; got {config['attn_scale']!r}")
        for name in [name for name in W if name.endswith((".W_Q", ".b_Q"))]:
            W[name] = W[name] / SCALE  # a power of two
        blocks = tuple(_block(W, i, config["n_heads"]) for i in range(config["n_layers"]))
        tokens = read_arrays(folder / "data.safetensors")["tokens"]
        W_in = W["embed.W_E"][-1:]  # the last token is the number 1
        return Net(W_in, W["pos_embed.W_pos"], blocks, W["unembed.W_U"]), tokens.astype(np.int64)


def _block(W: dict[str, Array], i: int, count: int) -> Block:
    start = f"blocks.{i}."
    part = {name.removeprefix(start): array for name, array in W.items() if name.startswith(start)}
    heads = tuple(
        Head(*(part[f"attn.{name}"][j] for name in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "W_O"))) for j in range(count)
    )
    return Block(heads, Hidden(*(part[f"mlp.{name}"] for name in ("W_in", "b_in", "W_out", "b_out"))))


def read_tensors(file: Path) -> dict[str, Tensor]:
    """As they are stored."""
    try:
        return load(read_regular(file, MOST_WEIGHTS))
    except SafetensorError as error:
        raise InvalidInput(f"{file} is not a safetensors file: {error}") from None


def read_arrays(file: Path) -> dict[str, Array]:
    """Finite real numbers, in float64."""
    stored = read_tensors(file)
    if any(tensor.is_complex() for tensor in stored.values()):
        raise InvalidInput(f"{file} holds complex numbers.")
    found = {name: tensor.double().numpy() for name, tensor in stored.items()}
    if not all(np.isfinite(array).all() for array in found.values()):
        raise InvalidInput(f"{file} holds a number that is not finite.")
    return found
