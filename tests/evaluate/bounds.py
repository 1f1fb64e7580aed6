"""How far one half-layer, computed in float64 in any order of its sums, may be from the exact one.

Standard model: a sum of k products computed in any order, contracted or not, is within γ_k Σ|terms| of the exact one,
γ_k = ku/(1 − ku), u = 2^-53 (Higham, Accuracy and Stability, section 3.1). ReLU and the projections behind sparsemax
and 1.5-entmax are 1-Lipschitz; softmax turns an error E of every logit into a factor e^{±2E} on every probability.
"""

import numpy as np
import torch

from thereexists.model.probability import PROBABILITY_MAPS

U = 2.0**-53


def gamma(k):
    return k * U / (1 - k * U)


def feed_forward_bound(Z, W_1, b_1, W_2, b_2):
    """(batch, n, d) bound on the error of z + W_2 ReLU(W_1 z + b_1) + b_2."""
    r, d = W_1.shape
    Z, W_1, W_2 = Z.abs(), W_1.abs(), W_2.abs()
    pre = Z @ W_1.mT + b_1.abs()  # bounds |t| too
    pre_error = gamma(d + 1) * pre
    out = (pre + pre_error) @ W_2.mT + b_2.abs()
    return pre_error @ W_2.mT + gamma(r + 3) * (out + Z)


def attention_bound(Z, W_Q, b_Q, W_K, W_V, W_O, mask, rho):
    """(batch, n, d) bound on the error of an attention layer; ∞ where hardmax might choose differently."""
    _, m, d = W_Q.shape
    n = Z.shape[1]
    size = Z.abs()[:, None]  # (batch, 1, n, d)
    Q = size @ W_Q.abs().mT + b_Q.abs()[:, None]
    K, V = size @ W_K.abs().mT, size @ W_V.abs().mT
    dQ, dK, dV = gamma(d + 1) * Q, gamma(d) * K, gamma(d) * V
    E = dQ @ K.mT + Q @ dK.mT + dQ @ dK.mT + gamma(m) * ((Q + dQ) @ (K + dK).mT)  # (batch, h, n, n)
    logits = (Z[:, None] @ W_Q.mT + b_Q[:, None]) @ (Z[:, None] @ W_K.mT).mT
    logits = logits if mask is None else logits.masked_fill(~mask, -torch.inf)
    seen = torch.ones(n, n, dtype=torch.bool) if mask is None else mask
    gap = torch.where(seen, logits.amax(-1, keepdim=True) - logits, 0.0)
    E = (E * seen).amax(-1, keepdim=True) + 2 * U * gap.amax(-1, keepdim=True)
    P = PROBABILITY_MAPS[rho](logits)
    if rho == "softmax":
        dP = P * torch.expm1(4 * E + 2 * (n + 8) * U)  # both runs err; exp to 2 units in the last place
    elif rho == "hardmax":
        close = (gap <= 4 * E) & (gap > 0) & seen
        dP = torch.where(close.any(-1, keepdim=True), np.inf, P * 4 * n * U)
    else:
        dP = 2 * n**0.5 * E + 64 * n * U * (1 + gap.amax(-1, keepdim=True)) + 0 * P
    mixed = P @ V
    dmixed = dP @ V + (P + dP) @ dV + gamma(n) * ((P + dP) @ (V + dV))
    out = torch.einsum("bhjm,hdm->bjd", mixed + dmixed, W_O.abs())
    return torch.einsum("bhjm,hdm->bjd", dmixed, W_O.abs()) + gamma(W_O.shape[0] * m + 2) * (out + Z.abs())
