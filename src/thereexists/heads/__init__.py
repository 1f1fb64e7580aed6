"""Fixed attention heads that reproduce a given sparse attention matrix (paper C, and ways past its bound).

head = te.heads.fit(A, eps1=1e-3, eps2=1e-2, method="auto")     # A: scipy.sparse, never densified
head.X, head.W_Q, head.W_K, head.hidden_size, head.verdict
"""

from thereexists.heads.bound import Bounds, bounds, bounds_for, theorem_hidden_size
from thereexists.heads.fit import FitOptions, fit
from thereexists.heads.head import Head
from thereexists.heads.io import load, load_target, save_target
from thereexists.heads.module import FixedAttention as Module
from thereexists.heads.module import multihead_attention
from thereexists.heads.study import Study, run_study
from thereexists.heads.target import SparseTarget, as_target, random_target
from thereexists.heads.verify import Arithmetic, Verification, verify

__all__ = [
    "Arithmetic",
    "Bounds",
    "FitOptions",
    "Head",
    "Module",
    "SparseTarget",
    "Study",
    "Verification",
    "as_target",
    "bounds",
    "bounds_for",
    "fit",
    "load",
    "load_target",
    "multihead_attention",
    "random_target",
    "run_study",
    "save_target",
    "theorem_hidden_size",
    "verify",
]
