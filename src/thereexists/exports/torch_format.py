"""A plain torch export: ``model.safetensors`` (the state dict) and ``config.json`` (the sizes). See docs/compact.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from thereexists.core.tensor_files import save_tensors
from thereexists.exports.stock import StockNetwork, stock_config, stock_state


def write_torch(witness: Any, folder: Path):
    """Write both files; the returned function runs what was read back from them."""
    network = witness.network
    n = witness.positions
    save_tensors(stock_state(network), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    (folder / "config.json").write_text(json.dumps(stock_config(network, n), indent=1) + "\n", encoding="utf-8")

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    with torch.device("meta"):
        module = StockNetwork(config)
    module.load_state_dict(load_file(folder / "model.safetensors"), assign=True)
    return runner(module)


def runner(module: torch.nn.Module):
    dtype = next(module.parameters()).dtype

    def run(X: np.ndarray) -> np.ndarray:
        given = torch.from_numpy(np.ascontiguousarray(X))
        with torch.no_grad():
            return module(given if given.dtype == torch.int64 else given.to(dtype)).to(torch.float64).numpy()

    return run
