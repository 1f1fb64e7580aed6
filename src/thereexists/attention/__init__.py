"""Sparse attention at the speed its sparsity promises: exact, forward and backward, on CPU and CUDA.

out  = te.attention.sparse_attention(q, k, v, pattern)      # (batch, heads, n, head_dim)
attn = te.attention.SparseAttention(pattern, heads=12, dim=768)
te.attention.explain(pattern, device="cuda")                # how it will be run, and why

Imported after transformers, it enters ``attn_implementation="thereexists"`` there; imported before, it does so when
``register_with_transformers()`` is called, for nothing of ours watches what else is imported.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thereexists.attention.functional import Dropout, sparse_attention
    from thereexists.attention.hugging_face import register_with_transformers, use_pattern
    from thereexists.attention.module import SparseAttention
    from thereexists.attention.pattern_module import PaperAttention, SparseTransformer
    from thereexists.attention.ways import Explanation, explain

_LAZY = {  # these need torch
    "Dropout": "thereexists.attention.functional",
    "PaperAttention": "thereexists.attention.pattern_module",
    "Explanation": "thereexists.attention.ways",
    "SparseAttention": "thereexists.attention.module",
    "SparseTransformer": "thereexists.attention.pattern_module",
    "explain": "thereexists.attention.ways",
    "register_with_transformers": "thereexists.attention.hugging_face",
    "sparse_attention": "thereexists.attention.functional",
    "use_pattern": "thereexists.attention.hugging_face",
}

__all__ = [
    "Dropout",
    "Explanation",
    "PaperAttention",
    "SparseAttention",
    "SparseTransformer",
    "explain",
    "register_with_transformers",
    "sparse_attention",
    "use_pattern",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'thereexists.attention' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


if sys.modules.get("transformers") is not None:
    __getattr__("register_with_transformers")()
