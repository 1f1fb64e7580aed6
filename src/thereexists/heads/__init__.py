"""Fixed attention heads that reproduce a given sparse attention matrix (paper C, and ways past its bound).

head = te.heads.fit(A, eps1=1e-3, eps2=1e-2, method="auto")     # A: scipy.sparse, never densified
head.X, head.W_Q, head.W_K, head.hidden_size, head.verdict
"""

from thereexists.heads.bound import Bounds, bounds, bounds_for, theorem_hidden_size
from thereexists.heads.fit import FitOptions, fit
from thereexists.heads.head import Head
from thereexists.heads.io import load, load_matrix, save_matrix
from thereexists.heads.matrix import AttentionMatrix, as_matrix, random_matrix
from thereexists.heads.module import FixedAttention as Module
from thereexists.heads.module import multihead_attention
from thereexists.heads.study import Study, run_study
from thereexists.heads.verify import Arithmetic, Verification, verify

__all__ = [
    "Arithmetic",
    "AttentionMatrix",
    "Bounds",
    "FitOptions",
    "Head",
    "Module",
    "Study",
    "Verification",
    "as_matrix",
    "bounds",
    "bounds_for",
    "fit",
    "load",
    "load_matrix",
    "multihead_attention",
    "random_matrix",
    "run_study",
    "save_matrix",
    "theorem_hidden_size",
    "verify",
]
