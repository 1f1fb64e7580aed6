"""Every example from the program to the ONNX file: built, certified, verified from the files, exported, compared."""

import numpy as np
import pytest

import thereexists as te
from tests.program.cases import inputs
from tests.program.claims import in_dtype
from tests.program.examples import EXAMPLES, example
from thereexists import program as P


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_certified_verified_and_equal_to_numpy_in_onnx(name, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    module = example(name)
    witness = te.build(module.program, dtype="float32")
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds is True
    te.export(witness, "onnx", tmp_path / "e", "float32")
    session = onnxruntime.InferenceSession(str(tmp_path / "e" / "model.onnx"), providers=["CPUExecutionProvider"])
    source = P.compile(module.program).source
    X = in_dtype(inputs(source, 10_000, 5), "float32", source)
    given = X.astype(np.float32)
    if session.get_inputs()[0].shape[-1] > source.d:  # a program of shorter lengths reads a flag: here is a token
        given = np.concatenate([given, np.ones_like(given[..., :1])], axis=-1)
    found = np.concatenate([session.run(None, {"features": part})[0] for part in np.split(given, 10)])
    wanted = module.reference(X.astype(np.longdouble))
    assert np.abs(found - wanted).max() <= witness.certificate.bounds["float32"]["bound"]
