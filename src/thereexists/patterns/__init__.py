"""Sparsity patterns and whether a sparse Transformer with them is universal (paper B), with the witness.

    p = te.patterns.strided(n=1024, stride=32)
    v = te.patterns.check(p)
    v.universal, v.path, v.depth, v.reasons
"""
