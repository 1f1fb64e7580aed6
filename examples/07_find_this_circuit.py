# %% [markdown]
# # Find this circuit
#
# For authors of circuit-discovery and attribution methods: models that compute a known program, with the exact graph of
# which head and which units compute what, and of which edges carry which value.

# %%
from __future__ import annotations

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from thereexists.suites import scored
from thereexists.suites.circuits.make import make_circuits
from thereexists.suites.circuits.ready import read_ready

folder = Path(tempfile.mkdtemp()) / "bench"
made = make_circuits(folder, count=7)
names = json.loads((folder / "suite.json").read_text())["models"]
print(names)

# %% [markdown]
# One of them, and its circuit. `carries` says which operation's value an edge brings, `effect` how much the output
# changes if it brings that of another input instead.

# %%
model = folder / "models" / names[6]
print((model / "program.txt").read_text())
circuit = json.loads((model / "circuit.json").read_text())
for edge in circuit["edges"][:8]:
    print(f"{edge['from']:6} → {edge['to']:8} {', '.join(edge['carries']):28} effect {edge['effect']:.3g}")

# %% [markdown]
# A method of one line: rank the edges by what they change when they alone are cut in the full model. On plain weights
# that is nearly the truth; the picture shows which edges are, and which are not.

# %%
go, X, every = read_ready(model)
clean, other = go(X), go(np.roll(X, 1, axis=0)).writes
change = {edge: float(np.abs(go(X, set(every) - {edge}, other).output - clean.output).mean()) for edge in every}
needed = {(edge["from"], edge["to"]) for edge in circuit["edges"] if edge["needed"]}
ranked = sorted(change, key=lambda edge: -change[edge])

figure, axes = plt.subplots(figsize=(7, 3))
axes.bar(range(len(ranked)), [change[e] for e in ranked], color=["C2" if e in needed else "C7" for e in ranked])
axes.set_xlabel("edges, in order (green: in the circuit)")
axes.set_ylabel("change of the output")

# %% [markdown]
# Scored as any method is: precision and recall of the best edges, average precision, and whether those edges alone do
# the work when all others are cut.

# %%
answers = folder.parent / "edges.json"
answers.write_text(json.dumps({names[6]: [[*edge, change[edge]] for edge in every]}))
print({key: round(value, 3) for key, value in scored(folder, answers)["total"].items()})
truth = [[edge["from"], edge["to"]] for edge in circuit["edges"]]
answers.write_text(json.dumps({names[6]: truth}))
total = scored(folder, answers)["total"]
print(f"the circuit itself: precision {total['precision']}, recall {total['recall']}, faithful {total['resample']:.6f}")

# %% [markdown]
# One model in six is a stock Llama folder of a causal program over letters, which `transformers` and TransformerLens
# load by its path. Every row of its residual stream is a bit, and `circuit.json` says which: below, those of one
# string, behind the last block.

# %%
model = folder / "models" / names[5]
circuit = json.loads((model / "circuit.json").read_text())
go, X, _ = read_ready(model)
stream = np.sum(list(go(X[:1]).writes.values()), axis=0)[0]  # (tokens, rows)
rows = {r["row"]: f"{r['value']} is {'/'.join(r['is'])}" for c in circuit["components"].values() for r in c["rows"]}
del rows[0]  # the constant, 4096
print((model / "program.txt").read_text(), "string", ["<s>", *("abc"[k - 3] for k in X[0, 1:])])

figure, axes = plt.subplots(figsize=(7, 4))
axes.imshow(stream[:, list(rows)].T, cmap="Greens", aspect="auto")
axes.set_xticks(range(7), ["<s>", *("abc"[k - 3] for k in X[0, 1:])])
axes.set_yticks(range(len(rows)), rows.values())
figure.tight_layout()
