"""The fixed attention as a module, and as the weights of a stock ``nn.MultiheadAttention``."""

from __future__ import annotations

import math

import torch
from torch import nn

from thereexists.core.errors import InvalidInput
from thereexists.core.shapes import Float
from thereexists.heads.head import Head


class FixedAttention(nn.Module):
    """A head as a module: ``softmax(X W_Q W_K^T X^T)``, with no ``1/sqrt(m)`` and no values.

        head = te.heads.fit(te.heads.random_matrix(16, 2))
        te.heads.Module(head.W_Q, head.W_K)(head.X).shape  # (16, 16)

    The weights are buffers: nothing here is trained.

    Args:
        W_Q: (d, m).
        W_K: (d, m).
    """

    W_Q: torch.Tensor
    W_K: torch.Tensor

    def __init__(self, W_Q: torch.Tensor, W_K: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("W_Q", W_Q.clone())
        self.register_buffer("W_K", W_K.clone())

    def forward(self, X: Float[torch.Tensor, "*batch L d"]) -> Float[torch.Tensor, "*batch L L"]:
        if X.shape[-1] != self.W_Q.shape[0]:
            raise InvalidInput(f"This head takes inputs of hidden size {self.W_Q.shape[0]}. Got {X.shape[-1]}.")
        return torch.softmax((X @ self.W_Q) @ (X @ self.W_K).mT, dim=-1)


def multihead_attention(head: Head) -> nn.MultiheadAttention:
    """A stock one-head ``nn.MultiheadAttention`` (batch first, no bias) that attends on ``head.X`` like the target.

        te.heads.multihead_attention(te.heads.fit(te.heads.random_matrix(16, 2)))

    PyTorch divides the logits by ``sqrt(embed_dim)``; the query projection carries the factor ``sqrt(d)`` that undoes
    it. A head narrower than ``d`` is padded with zero rows; value and output projections are the identity.

    Args:
        head: the head.

    Returns:
        The module; its weights are the head's.

    Raises:
        InvalidInput: float64 does not hold the head, or its queries are wider than its inputs.
    """
    head.check_that_float64_holds_it()
    d, m = head.W_Q.shape
    if m > d:
        raise InvalidInput(
            f"The queries of this head have {m} numbers and its inputs {d}; those of a stock nn.MultiheadAttention are "
            "no wider than its inputs. Use head.module()."
        )
    stock = nn.MultiheadAttention(d, 1, bias=False, batch_first=True, dtype=torch.float64)
    query, key = torch.zeros(d, d, dtype=torch.float64), torch.zeros(d, d, dtype=torch.float64)
    query[:m], key[:m] = math.sqrt(d) * head.W_Q.T, head.W_K.T
    with torch.no_grad():
        stock.in_proj_weight.copy_(torch.cat([query, key, torch.eye(d, dtype=torch.float64)]))
        stock.out_proj.weight.copy_(torch.eye(d, dtype=torch.float64))
    return stock.requires_grad_(False).eval()
