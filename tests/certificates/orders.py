"""A network run as its formula says, with every sum in an order that no engine of ours has."""

import copy

import numpy as np
import torch


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
    """The network as its formula says, each sum in an order of its own; ``seen`` is shown what each layer gives."""
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


def with_rows_shuffled(network, rng):
    """A compact network with the rows of its residual stream and the units of its layers in another order."""
    other = copy.deepcopy(network)
    row = torch.from_numpy(rng.permutation(network.W_out.shape[1]))
    with torch.no_grad():
        for name, axis in (("W_in", 0), ("E", 1), ("W_out", 1)):
            weight = getattr(other, name)
            if weight is not None:
                weight.copy_(weight.index_select(axis, row))
        for stage in other.stages.values():
            if stage.attention is not None:
                W_Q, _, W_K, W_V, W_O = stage.attention.parameters_list()
                for w, axis in ((W_Q, 3), (W_K, 3), (W_V, 3), (W_O, 2)):
                    w.copy_(w.index_select(axis, row))
            if stage.feed_forward is not None:
                W_1, b_1, W_2, b_2 = stage.feed_forward.parameters_list()
                unit = torch.from_numpy(rng.permutation(b_1.shape[1]))
                W_1.copy_(W_1.index_select(2, row).index_select(1, unit))
                b_1.copy_(b_1.index_select(1, unit))
                W_2.copy_(W_2.index_select(1, row).index_select(2, unit))
                b_2.copy_(b_2.index_select(1, row))
    return other
