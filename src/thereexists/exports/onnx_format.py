"""An ONNX export: ``model.onnx``, made by torch's exporter from the stock module, checked, and run by onnxruntime."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.core.errors import CannotBuild
from thereexists.exports.check import same_weights
from thereexists.exports.stock import stock_network
from thereexists.exports.torch_format import write_words

FILE = "model.onnx"
LARGEST = 1_900_000_000  # one protobuf holds 2 GB


def write_onnx(witness: Any, folder: Path):
    """Write the file; the returned function runs it with onnxruntime on the CPU."""
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401  (torch's exporter needs it)
    except ImportError as missing:
        raise CannotBuild(
            f"The ONNX export needs the package {missing.name}: pip install 'thereexists[export]'."
        ) from None
    network = witness.network
    if network.dtype == torch.bfloat16:
        raise CannotBuild("onnxruntime computes in float64, float32 and float16 on the CPU: choose one with --dtype.")
    if network.parameter_count * network.W_out.element_size() > LARGEST:
        raise CannotBuild(f"{network.parameter_count:,} parameters do not fit into one ONNX file of 2 GB.")
    tokens = network.embedding is not None
    n = witness.positions
    features = 0 if network.W_in is None else network.W_in.shape[1]
    example = torch.ones(2, n, dtype=torch.int64) if tokens else torch.zeros(2, n, features, dtype=network.dtype)
    name = "input_ids" if tokens else "features"
    quiet = logging.getLogger("torch.onnx")
    level = quiet.level
    quiet.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # the exporter warns about its own internals
            program = torch.onnx.export(
                stock_network(network, n),
                (example,),
                input_names=[name],
                output_names=["output"],
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                dynamo=True,
                optimize=False,
                verbose=False,
            )
        program.save(str(folder / FILE), external_data=False)  # pyright: ignore[reportOptionalMemberAccess]
    finally:
        quiet.setLevel(level)
    onnx.checker.check_model(str(folder / FILE), full_check=True)
    stored = onnx.load(str(folder / FILE)).graph.initializer
    arrays = {weight.name: onnx.numpy_helper.to_array(weight) for weight in stored}
    same_weights({name: torch.from_numpy(array.copy()) for name, array in arrays.items()}, network)
    write_words(witness, folder, "use_onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(folder / FILE), options, providers=["CPUExecutionProvider"])
    kind = {torch.float64: np.float64, torch.float32: np.float32, torch.float16: np.float16}[network.dtype]

    def run(X: np.ndarray) -> np.ndarray:
        given = X.astype(np.int64) if tokens else X.astype(kind)
        return np.asarray(session.run(None, {name: np.ascontiguousarray(given)})[0])

    return run
