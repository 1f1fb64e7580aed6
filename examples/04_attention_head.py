# %% [markdown]
# # The smallest head that attends as told
#
# Given the attention matrix that you want, which inputs make a head with *fixed* weights show it, and how small can its
# hidden size be? (Likhosherstov et al., AAAI 2023, and beyond it.)

# %%
from __future__ import annotations

import networkx
import numpy as np
import scipy.sparse

import thereexists as te

# %% [markdown]
# The target is a sparse matrix: here a social network, the karate club, each member attending to itself and its
# friends.

# %%
graph = networkx.karate_club_graph()
A = scipy.sparse.csr_array(networkx.to_scipy_sparse_array(graph, dtype=float) + scipy.sparse.eye_array(len(graph)))
print(f"{len(graph)} tokens, at most {np.diff(A.indptr).max()} friends")

# %% [markdown]
# Wanted: a stranger gets less than a thousandth of the weight of any friend, and the ratios between friends are right
# to one per cent. The trivial head needs hidden size 2 · 34 = 68.

# %%
head = te.heads.fit(A, eps1=1e-3, eps2=1e-2)
print(f"hidden size {head.hidden_size} by {head.method}; verified on every row: {head.verdict.holds}")
head

# %% [markdown]
# The theorem's own bound for such targets, with its constants, is true and far from useful:

# %%
print(f"theorem: {te.heads.bounds_for(te.heads.as_matrix(A), 1e-3, 1e-2).theorem_hidden_size:,}")

# %% [markdown]
# It is an ordinary head. As `nn.MultiheadAttention`, on the inputs that were found, in float64:

# %%
stock = te.heads.multihead_attention(head)
_, weights = stock(head.X[None], head.X[None], head.X[None])
friends = weights[0, 0].topk(4).indices.tolist()
print(f"member 0 attends to {friends}, all of them friends: {all(A[0, j] for j in friends)}")
