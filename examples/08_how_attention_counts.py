# %% [markdown]
# # How attention counts, sorts and looks up
#
# Three things that a Transformer can be told to do, each with its attention matrix. The weights are written down, not
# trained; the bound of each holds for all inputs.

# %%
from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import torch

import thereexists as te
from thereexists import program as P


def attention_of(witness, X):
    """The attention matrix of the first head of every block, for one sequence (n, d)."""
    found = []
    with torch.no_grad():
        Z = witness.network.embed(torch.from_numpy(X[None]))
        for _, _, layer in witness.network.layers():
            weights = layer.attention_weights(Z)
            found += [] if weights is None else [weights[0, 0].numpy()]
            Z = layer(Z)
    return found


# %% [markdown]
# **Counting.** Equal logits are an average, and an average of flags is a count: here the share above one half.

# %%
x = P.tokens(n=8)
counting = te.build(P.mean(P.greater(x, 0.5, margin=0.125)))
X = np.array([0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.95, 0.05])[:, None]
print(f"share above one half: {counting(X)[0, 0]:.3f}; for all inputs {counting.certificate.claim()}")

# %% [markdown]
# **Sorting.** Each block looks at one partner, by its position, and keeps the smaller or the larger number.

# %%
sorting = te.build(P.sort(x))
print(f"sorted: {np.round(sorting(X)[:, 0], 2).tolist()}, {sorting.network.depth} blocks")

# %% [markdown]
# **Looking up.** Keys are compared with queries: each token asks for the value at the key nearest to its number. The
# sharper the softmax, the nearer to a table, and the smaller the gradient that is left.

# %%
pair = P.tokens(n=8, d=2)
keys = np.arange(8)[:, None] / 8
pictures = [attention_of(counting, X)[-1], *attention_of(sorting, X)[:3]]
for sharpness in (16.0, 1024.0):
    lookup = te.build(P.lookup(pair[:, 0], keys, pair[:, 1], sharpness=sharpness))
    both = np.concatenate([X, np.arange(8)[:, None] / 8], axis=1)
    pictures.append(attention_of(lookup, both)[0])
    print(f"sharpness {sharpness:g}: token 0 asks for 0.9 and gets {lookup(both)[0, 0]:.3f}")

figure, axes = plt.subplots(1, len(pictures), figsize=(12, 2.4))
titles = ["count", "sort, block 1", "block 2", "block 3", "look-up, soft", "look-up, sharp"]
for place, picture, title in zip(axes, pictures, titles, strict=True):
    place.imshow(picture, vmin=0, vmax=1, cmap="Greys")
    place.set_title(title, fontsize=9)
    place.set_xticks([])
    place.set_yticks([])
