"""A network run as its formula says, with every sum in an order that no engine of ours has."""

import numpy as np


def shuffled(terms, rng):
    """Σ of arrays, one after the other in a random order."""
    order = rng.permutation(len(terms))
    total = terms[order[0]]
    for i in order[1:]:
        total = total + terms[i]
    return total


def affine(Z, w, b, rng):
    """w·z + b of every token."""
    return shuffled([*(Z[..., i] * w[i] for i in range(len(w))), np.full(Z.shape[:-1], b)], rng)


def run_in_another_order(network, X, rng, seen=lambda Z: None):
    """The network as its formula says, each sum in an order of its own; ``seen`` is shown what comes out of each layer."""
    Z = X if network.E is None else X + network.E.detach().numpy()
    for _, _, layer in network.layers():
        if layer.attention is not None:
            *weights, mask = layer.attention
            W_Q, b_Q, W_K, W_V, W_O = (w.detach().numpy() for w in weights)
            added = []
            for h in range(len(W_Q)):
                q, k, v = (affine(Z, W[h, 0], b, rng) for W, b in ((W_Q, b_Q[h, 0]), (W_K, 0.0), (W_V, 0.0)))
                logits = q[:, :, None] * k[:, None, :]
                logits = logits if mask is None else np.where(mask.numpy(), logits, -np.inf)
                P = np.exp(logits - logits.max(-1, keepdims=True))
                P = P / P.sum(-1, keepdims=True)
                head = shuffled([P[:, :, t] * v[:, None, t] for t in range(Z.shape[1])], rng)
                added.append(head[..., None] * W_O[h, :, 0])
            Z = shuffled([Z, *added], rng)
        if layer.feed_forward is not None:
            W_1, b_1, W_2, b_2 = (w.detach().numpy() for w in layer.feed_forward[:4])
            hidden = (np.maximum(affine(Z, w, b, rng), 0)[..., None] for w, b in zip(W_1, b_1, strict=True))
            Z = shuffled([Z, np.broadcast_to(b_2, Z.shape), *(h * W_2[:, k] for k, h in enumerate(hidden))], rng)
        seen(Z)
    return Z
