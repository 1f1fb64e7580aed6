# %% [markdown]
# # Your own function, as a Transformer with a certificate
#
# From a Python function on sequences to weights, to a proved bound on an integral over the domain, to a check by
# someone who has only the files.

# %%
from __future__ import annotations

import tempfile

import numpy as np

import thereexists as te


def smooth(X: np.ndarray) -> np.ndarray:
    """Half of each token, half of the one before it. X is (batch, n, d)."""
    before = np.concatenate([X[:, :1], X[:, :-1]], axis=1)
    return (X + before) / 2


# %% [markdown]
# Say what you know about it. Here: sequences of three numbers in [0, 1], and a Lipschitz constant in the maximum norm,
# which is what the proof of the bound will use. Order matters, so Theorem 2 applies and there is a positional encoding.

# %%
target = te.Target(smooth, n=3, lipschitz=1.0, name="smooth")

# %% [markdown]
# Build. Nothing is trained: the weights are written down, layer by layer, as the proof says. `epsilon` is the distance
# that you ask for: the grid is the coarsest power of two whose certificate proves it.

# %%
witness = te.build(target, epsilon=0.3)
print(f"{witness.network.depth:,} layers, delta = {witness.grid.delta}")

x = np.array([[[0.3], [0.1], [0.7]]])
print("function", smooth(x).ravel(), "network", witness(x).ravel())
witness

# %% [markdown]
# The certificate came with it: the network is enclosed on every cube of the grid by ball arithmetic, the function by
# its Lipschitz constant. The measured distance lies below the proved bound, as it must. (A witness that was built for a
# grid, by `delta`, is certified by `te.certify(witness)`.)

# %%
certificate = witness.certificate
measured = witness.estimate_distance()
print(f"measured d_1 = {measured.estimate:.4f}, proved d_1 ≤ {certificate.bound:.4f}")
certificate

# %% [markdown]
# Save, and let someone else verify from the files alone. They need your function again, because its code is not
# stored. Then change a single weight by one part in a million: the check notices.

# %%
with tempfile.TemporaryDirectory() as folder:
    witness.save(f"{folder}/w")  # the certificate is saved with it
    print("verified from the files alone:", te.verify(f"{folder}/w", target).holds)

    weight = next(iter(witness.network.parameters()))
    weight.data[-1] *= 1 + 1e-6
    witness.save(f"{folder}/spoilt")
    certificate.save(f"{folder}/spoilt")
    verdict = te.verify(f"{folder}/spoilt", target)
    failed = next(check.name for check in verdict.evidence if not check.passed)
    print(f"after one changed weight: {verdict.holds} because of {failed}")

verdict
