# %% [markdown]
# # A data set, recalled exactly, in a stock runtime
#
# A small dictionary becomes a Transformer of four standard blocks that recalls every pair, without training. Then a
# function of real numbers in the same form, exported and run by onnxruntime, which knows nothing of this package.

# %%
from __future__ import annotations

import tempfile

import numpy as np
import onnxruntime

import thereexists as te

english = [["a", "dog"], ["a", "cat"], ["two", "dogs"], ["the", "dog", "runs"]]
czech = [["pes"], ["kočka"], ["dva", "psi"], ["ten", "pes", "běží"]]

# %% [markdown]
# `memorise` gives every (token, position) a random sign vector; the signs of their sum are the key of the sequence, and
# one hidden unit for every pair writes its answer. The keys are checked to be distinct.

# %%
memory = te.memorise(english, czech, dtype="bfloat16")
print(memory([["a", "cat"], ["the", "dog", "runs"], ["a", "dogs"]]))  # nothing is stored for the last one
summary = memory.describe()
print(f"{summary['blocks']} blocks, d_model {summary['d_model']}, {summary['parameters']:,} parameters, in bfloat16")
memory

# %% [markdown]
# The same form for a function of numbers: sort, on a grid of eighths, in four blocks instead of 1,585 layers. It has a
# certificate like any other witness.

# %%
target = te.targets.builtin("sort", n=3)
witness = te.build(target, delta=1 / 8, construction="compact")
print(f"sort in {witness.network.depth} blocks, proved d_1 ≤ {te.certify(witness).bound:.4f}")
witness

# %% [markdown]
# Export. What was written is read back and compared with the witness on every cell before the folder appears.

# %%
with tempfile.TemporaryDirectory() as folder:
    done = te.export(witness, "onnx", f"{folder}/onnx", "float32")
    print(f"{done['compared']:,} {done['of']} compared")
    session = onnxruntime.InferenceSession(f"{folder}/onnx/model.onnx")
    x = np.array([[[0.7], [0.1], [0.4]]], dtype=np.float32)
    (y,) = session.run(None, {session.get_inputs()[0].name: x})
    print("onnxruntime", np.asarray(y).ravel(), "witness", witness(x).ravel())
