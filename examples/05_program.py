# %% [markdown]
# # A program over the reals
#
# The universal construction pays for assuming nothing but continuity. A function that is a short program need not: each
# operation has a small Transformer form, and the compiler puts them together.

# %%
from __future__ import annotations

import numpy as np

import thereexists as te
from thereexists import program as P

# %% [markdown]
# Distance of every token to the median of 33 numbers. Sort exchanges tokens along a network of comparisons, `broadcast`
# sends the middle one to every token.

# %%
x = P.tokens(n=33)
median = P.broadcast(P.sort(x), 16)
distance = P.abs(x - median)
distance

# %% [markdown]
# Compiled, it is a stack of standard blocks.

# %%
compiled = P.compile(distance)
print(f"{compiled.blocks} standard blocks, {compiled.network.parameter_count:,} parameters")

# %% [markdown]
# Beside NumPy, on random inputs, and the bound in the sup norm that holds for all inputs of the box, rounding included.

# %%
X = np.random.default_rng(0).random((1000, 33, 1))
wanted = np.abs(X - np.median(X, axis=1, keepdims=True))
print(f"largest difference in float64: {np.abs(compiled(X) - wanted).max():.1e}")
for dtype in ("float64", "float32", "bfloat16"):
    print(f"bound in {dtype}: {compiled.bound(dtype).total:.1e}")

# %% [markdown]
# The same for five numbers fits on a screen: which operation stands in which block, and which row each head carries.

# %%
y = P.tokens(n=5)
te.build(P.abs(y - P.broadcast(P.sort(y), 2)))

# %% [markdown]
# Where the grid construction would be: 33 numbers on a grid of eighths have 8^33 cubes.

# %%
print(f"{8.0**33:.0e} cubes; the program needs {compiled.network.parameter_count:,} parameters")
