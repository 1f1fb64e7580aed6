"""Which of the three token networks of ``token_memory.py`` a network is, read off its weights alone.

The form is rebuilt from the few numbers that may vary (the codes of tokens and positions, the base, the defaults), and
every weight outside the memory (the stage *recall*) must be the same number. What the constructions prove then holds,
whatever a record says of the network.
"""

from __future__ import annotations

import numpy as np
import torch

from thereexists.model import EmbeddedTransformer

SUMS = ("slots", "counts", "codes")
_STAGES = {
    "slots": ("slots", "gather", "recall"),
    "counts": ("gather", "recall"),
    "codes": ("codes", "sums", "recall", "select"),
}


def sums_of(network: EmbeddedTransformer) -> str | None:
    """What the attention adds up: slots, counts or codes; None if the network is none of the three."""
    kind = next((kind for kind, names in _STAGES.items() if tuple(network.stages) == names), None)
    if kind is None or network.embedding is None or network.E is None or network.rho != "softmax":
        return None
    expected = _rebuilt(network, kind)
    return kind if expected is not None and _same_outside_recall(network, expected) else None


def _rebuilt(network: EmbeddedTransformer, kind: str) -> EmbeddedTransformer | None:
    """The network of this kind with these codes or defaults and an empty memory; None where the sizes allow none."""
    from thereexists.constructions.token_memory import code_network, count_network, slot_network  # for tokens only

    embedding, E = (_array(w) for w in (network.embedding, network.E))
    (g, d), n, V = network.W_out.shape, len(E), len(embedding) - 1
    if n < 1 or V < 1 or not 1 <= g <= d:
        return None
    if kind == "codes":
        D, odd = divmod(d - n * g - n - g, 2)
        select = network.stages["select"].feed_forward
        if D < 1 or odd or select is None or select.b_1.numel() == 0:
            return None
        tokens, positions = embedding[1:, :D], E[:, :D]
        base = -float(select.b_1.detach().flatten()[0])
        if not (np.abs(tokens) == 1).all() or not (np.abs(positions) == 1).all() or not 1 <= base < 2**24:
            return None
        if base != int(base):
            return None
        empty = np.zeros((1, D), dtype=np.int8), np.zeros((1, n, g), dtype=np.int64)
        return code_network(tokens, positions, *empty, int(base))
    default = E[:, d - g :]
    if kind == "slots":
        bits, rest = divmod(d - n - g, 1 + 3 * n)
        return None if bits < 1 or rest or bits > 32 else slot_network(n, bits, V, [], [], default)
    if d != 2 * (V - 1) + n + 2 * (V - 1) * n + g:
        return None
    return count_network(n, V, [], [], default)


def _same_outside_recall(network: EmbeddedTransformer, expected: EmbeddedTransformer) -> bool:
    """Every stage of the same halves, one layer each, and every weight but the memory's the same number."""
    for name, stage in network.stages.items():
        other = expected.stages[name]
        if stage.depth != 1 or (stage.attention is None) != (other.attention is None) or stage.feed_forward is None:
            return False
    found, wanted = (
        {key: w for key, w in net.state_dict().items() if not key.startswith("stages.recall.")}
        for net in (network, expected)
    )
    return found.keys() == wanted.keys() and all(
        w.shape == wanted[key].shape and torch.equal(w.double(), wanted[key].double()) for key, w in found.items()
    )


def _array(weight: torch.Tensor | None) -> np.ndarray:
    return np.zeros((0, 0)) if weight is None else weight.detach().double().cpu().numpy()
