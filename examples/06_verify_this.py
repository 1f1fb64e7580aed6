# %% [markdown]
# # Verify this
#
# For authors of neural-network verifiers: networks and properties whose verdicts are known, because the networks were
# written down from a proof and not trained. Half of the properties hold, the others have a counterexample.

# %%
from __future__ import annotations

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnx

from thereexists.suites import checked, scored
from thereexists.suites.verifier.interval import outputs
from thereexists.suites.verifier.make import make_verifier
from thereexists.suites.verifier.onnx_files import read, runner
from thereexists.suites.verifier.score import floor
from thereexists.suites.verifier.vnnlib import parse

folder = Path(tempfile.mkdtemp()) / "vnn"
made = make_verifier(folder, count=14)
print(f"{made['count']} instances: {made['unsat']} hold, {made['sat']} do not")

# %% [markdown]
# An instance is an ONNX file and a VNN-LIB file. The truth lies in a file of its own.

# %%
print("\n".join((folder / "instances.csv").read_text().splitlines()[:3]))
truth = {entry["family"]: entry for entry in json.loads((folder / "truth/truth.json").read_text())["instances"]}
entry = truth["needle"]
print(f"{entry['name']}: {entry['verdict']}, by a margin of {entry['margin']:.4f}")

# %% [markdown]
# A needle: the output is near its largest value only around one secret point, which random search hardly meets, and
# nothing of it is seen from afar. Interval propagation over the layers is of no use here.

# %%
network, text = folder / f"onnx/{entry['name']}.onnx", (folder / f"vnnlib/{entry['name']}.vnnlib").read_text()
graph = onnx.load(network).graph
asked = parse(text, (entry["params"]["n"], 1))
low, high = asked.boxes[0]
run = runner(read(network)[1])
X = low + np.random.default_rng(0).random((10_000, *low.shape)) * (high - low)
Y = run(X).reshape(len(X), -1)[:, asked.limits[0].index]
top = float(outputs(graph, low[None], high[None])[1].ravel()[asked.limits[0].index])

figure, axes = plt.subplots(figsize=(7, 3))
axes.hist(Y, bins=80, log=True, label="10,000 random inputs")
for value, label, colour in (
    (entry["extremes"][0], "largest value, proved", "C2"),
    (asked.limits[0].value, "limit of the property", "C3"),
):
    axes.axvline(value, color=colour, label=label)
axes.set_xlabel("output")
axes.legend()
print(f"largest output seen {Y.max():.3f}, proved {entry['extremes'][0]:.3f}, by intervals {top:.3f}")

# %% [markdown]
# Interval propagation is the floor. A tool writes such a CSV file too, and is scored in the same way.

# %%
floor(folder, folder.parent / "floor.csv")
print(scored(folder, folder.parent / "floor.csv")["total"])

# %% [markdown]
# The suite checks itself: a planted wrong verdict is found, even with the hashes mended.

# %%
print(f"all true: {checked(folder).holds}")
lies = json.loads((folder / "truth/truth.json").read_text())
lies["instances"][0] |= {"verdict": {"sat": "unsat", "unsat": "sat"}[lies["instances"][0]["verdict"]]}
(folder / "truth/truth.json").write_text(json.dumps(lies))
print(f"after one changed verdict: {checked(folder).problems[-1]}")
