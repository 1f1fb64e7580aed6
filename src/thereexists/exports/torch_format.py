"""A plain torch export: a state dict (``model.safetensors``), its sizes (``config.json``) and code (``network.py``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from thereexists.core.tensor_files import save_tensors
from thereexists.exports import alone
from thereexists.exports.alone.network import StockNetwork
from thereexists.exports.check import same_weights
from thereexists.exports.stock import stock_config, stock_state


def write_torch(witness: Any, folder: Path):
    """Write the files; the returned function runs what was read back from them."""
    network = witness.network
    n = witness.positions
    save_tensors(stock_state(network), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(stock_config(network, n), indent=1) + "\n", encoding="utf-8")
    alone.put(folder, network="network")
    write_words(witness, folder, "use_torch")

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    with torch.device("meta"):
        module = StockNetwork(config)
    state = load_file(folder / "model.safetensors")
    same_weights(state, network)
    module.load_state_dict(state, assign=True)
    return runner(module)


def write_words(witness: Any, folder: Path, use: str) -> None:
    """For a network on words, ``tokens.json`` and the script ``use.py``, which asks the export without this package."""
    told = witness.vocabularies()
    if told is not None:
        (folder / "tokens.json").write_text(json.dumps(told, ensure_ascii=False) + "\n", encoding="utf-8")
        alone.put(folder, words="words", use=use)


def runner(module: torch.nn.Module):
    dtype = next(module.parameters()).dtype

    def run(X: np.ndarray) -> np.ndarray:
        given = torch.from_numpy(np.ascontiguousarray(X))
        with torch.no_grad():
            return module(given if given.dtype == torch.int64 else given.to(dtype)).to(torch.float64).numpy()

    return run
