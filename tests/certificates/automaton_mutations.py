"""A forger of automata's networks: the same function over the real numbers, and perhaps another in a narrow dtype."""

import copy
import dataclasses

import numpy as np
import torch

from thereexists.certificates.verify_automaton import is_right
from thereexists.core.dtypes import as_dtype
from thereexists.evaluate.prefixes import run_prefixes
from thereexists.model import Attention, EmbeddedTransformer, FeedForward, Stage

ATTENTION = ("W_Q", "b_Q", "W_K", "W_V", "W_O")
FEED_FORWARD = ("W_1", "b_1", "W_2", "b_2")


def weights_of(witness):
    """Every array by its name, in float64, to be changed."""
    network = witness.network
    stage = network.stages["doubling"]
    parts = [(stage.attention, ATTENTION), (stage.feed_forward, FEED_FORWARD), (network, ("W_out", "embedding", "E"))]
    return {name: getattr(part, name).detach().double().clone() for part, names in parts for name in names}


def with_weights(witness, weights, dtype="float64"):
    """The witness with other weights, of other shapes perhaps, and no certificate."""
    w = {name: array.to(as_dtype(dtype)) for name, array in weights.items()}
    stage = Stage(Attention(*(w[k] for k in ATTENTION)), FeedForward(*(w[k] for k in FEED_FORWARD)))
    network = EmbeddedTransformer({"doubling": stage}, w["W_out"], embedding=w["embedding"], E=w["E"])
    return dataclasses.replace(witness, network=network, made=None, folder=None)


def wider_heads(w, copies):
    """``copies`` more dimensions of the head, all 0; the first of them."""
    m = w["W_Q"].shape[2]
    for name, axis in (("W_Q", 2), ("W_K", 2), ("W_V", 2), ("b_Q", 2), ("W_O", 3)):
        w[name] = padded(w[name], axis, copies)
    return m


def more_units(w, copies):
    """``copies`` more hidden units, all 0; the first of them."""
    r = w["W_1"].shape[1]
    for name, axis in (("W_1", 1), ("b_1", 1), ("W_2", 2)):
        w[name] = padded(w[name], axis, copies)
    return r


def padded(array, axis, count):
    shape = list(array.shape)
    shape[axis] = count
    return torch.cat([array, torch.zeros(shape, dtype=array.dtype)], axis)


def wrong_in(witness, dtype, ids):
    """Whether the run in a dtype differs from the automaton on strings (batch, length), whatever anybody says of it."""
    network = copy.deepcopy(witness.network).to(as_dtype(dtype))
    network.safe = (dtype,)
    tokens = np.concatenate([np.full((len(ids), 1), 1), np.asarray(ids) + 2], axis=1)
    return not is_right(witness.stored, np.asarray(ids), run_prefixes(network, tokens))


# ---- a random forger: each change keeps the function of the network over the real numbers ---------------------------


def power(rng, most=150):
    """A power of two: of a usual size, or near the ends of a dtype's range."""
    ends = (-149, -134, -133, -127, -126, -25, -24, -15, -14, -8, 0, 7, 15, 16, 100, 120, 126, 127, 128, 1000)
    draw = rng.random()
    if draw < 0.4:
        return 2.0 ** int(rng.choice(ends))
    return 2.0 ** int(rng.integers(-7, 8) if draw < 0.9 else rng.integers(-most, most))


def some_block(rng, w):
    """One block, or all of them."""
    T = len(w["W_Q"])
    return slice(None) if rng.random() < 0.5 else slice(k := int(rng.integers(T)), k + 1)


def scaled_values(rng, w, rows):
    t, x = some_block(rng, w), power(rng)
    w["W_V"][t] *= x
    w["W_O"][t] /= x


def split_value(rng, w, rows):
    """A head dimension becomes many, with larger values and smaller weights."""
    t, x, copies = some_block(rng, w), power(rng), int(2 ** rng.integers(1, 8))
    k, m = int(rng.integers(rows.fetched)), wider_heads(w, copies)
    w["W_V"][t, 0, m:] = w["W_V"][t, 0, k : k + 1] * x
    w["W_O"][t, 0, :, m:] = w["W_O"][t, 0, :, k : k + 1] / (x * copies)
    w["W_O"][t, 0, :, k] = 0


def value_of_two_parts(rng, w, rows):
    """1 = (1 − ε) + ε, in two dimensions of the head."""
    t, x = some_block(rng, w), power(rng, 30)
    k, m = int(rng.integers(rows.fetched)), wider_heads(w, 1)
    w["W_V"][t, 0, m] = w["W_V"][t, 0, k]
    w["W_O"][t, 0, :, m] = w["W_O"][t, 0, :, k] * x
    w["W_O"][t, 0, :, k] *= 1 - x


def cancelled_values(rng, w, rows):
    """Two dimensions of the head that read the same and write the opposite."""
    t, m = some_block(rng, w), wider_heads(w, 2)
    read, written = int(rng.integers(w["E"].shape[1])), int(rng.integers(w["E"].shape[1]))
    w["W_V"][t, 0, m:, read] = power(rng)
    size = power(rng)
    w["W_O"][t, 0, written, m], w["W_O"][t, 0, written, m + 1] = size, -size


def scaled_units(rng, w, rows):
    t, x = some_block(rng, w), power(rng)
    u = slice(None) if rng.random() < 0.5 else int(rng.integers(w["W_1"].shape[1]))
    w["W_1"][t, u] *= x
    w["b_1"][t, u] *= x
    w["W_2"][t, :, u] /= x


def split_unit(rng, w, rows):
    t, x, copies = some_block(rng, w), power(rng), int(2 ** rng.integers(1, 8))
    u, r = int(rng.integers(w["W_1"].shape[1])), more_units(w, copies)
    w["W_1"][t, r:] = w["W_1"][t, u : u + 1] * x
    w["b_1"][t, r:] = w["b_1"][t, u : u + 1] * x
    w["W_2"][t, :, r:] = w["W_2"][t, :, u : u + 1] / (x * copies)
    w["W_2"][t, :, u] = 0


def cancelled_units(rng, w, rows):
    t, r, d = some_block(rng, w), more_units(w, 2), w["E"].shape[1]
    for row in rng.integers(0, rows.own + rows.fetched, int(rng.integers(0, 3))):
        w["W_1"][t, r:, int(row)] = power(rng) * float(rng.choice([1, -1]))
    w["b_1"][t, r:] = power(rng) * float(rng.choice([1, -1, 0]))
    size, written = power(rng), int(rng.integers(d))
    w["W_2"][t, written, r], w["W_2"][t, written, r + 1] = size, -size


def cancelled_bias(rng, w, rows):
    t, r, written = some_block(rng, w), more_units(w, 1), int(rng.integers(w["E"].shape[1]))
    x, y = power(rng, 60), power(rng, 60)
    w["b_1"][t, r], w["W_2"][t, written, r] = x, y
    w["b_2"][t, written] -= x * y


def scaled_logits(rng, w, rows):
    """The lead grows, or stays."""
    t, x, y = some_block(rng, w), power(rng), abs(power(rng))
    y = y if x * y >= 1 else 1 / x
    w["W_Q"][t] *= x
    w["b_Q"][t] *= x
    w["W_K"][t] *= y


def split_logits(rng, w, rows):
    t, m, k = some_block(rng, w), w["W_Q"].shape[2], int(rng.integers(w["W_Q"].shape[2]))
    x, copies = power(rng), int(2 ** rng.integers(1, 8))
    wider_heads(w, copies)
    w["W_Q"][t, 0, m:] = w["W_Q"][t, 0, k : k + 1] * x
    w["b_Q"][t, 0, m:] = w["b_Q"][t, 0, k : k + 1] * x
    w["W_K"][t, 0, m:] = w["W_K"][t, 0, k : k + 1] / (x * copies)
    w["W_K"][t, 0, k] = 0


def cancelled_logits(rng, w, rows):
    t, m, d = some_block(rng, w), wider_heads(w, 2), w["E"].shape[1]
    w["W_Q"][t, 0, m:, int(rng.integers(d))] = power(rng)
    size, read = power(rng), int(rng.integers(d))
    w["W_K"][t, 0, m, read], w["W_K"][t, 0, m + 1, read] = size, -size


def raised_logits(rng, w, rows):
    """Positions that are not the right one come nearer to it: by as much as keeps the lead above 800."""
    t, moduli = int(rng.integers(len(w["W_Q"]))), rows.moduli
    start, k = rows.own + rows.fetched, int(rng.integers(len(moduli)))
    m, place = moduli[k], sum(moduli[:k])
    shift, r = int(rng.integers(m)), np.arange(m)
    w["W_Q"][t, 0, place + (r - shift) % m, start + place + r] += float(rng.choice([100.0, 200.0, 224.0, -2048.0]))


def unused(rng, w, rows):
    """Weights of rows that are 0 when they are read."""
    name = str(rng.choice(["W_Q", "W_K", "W_V", "W_out"]))
    sign = float(rng.choice([1, -1]))
    w[name][..., rows.own + int(rng.integers(rows.fetched))] = sign * power(rng) * float(rng.choice([1, 1 + 2.0**-9]))


def negative_nothing(rng, w, rows):
    name = str(rng.choice(list(w)))
    w[name][(w[name] == 0) & (torch.rand(w[name].shape) < 0.5)] = -0.0


FORGERS = (
    scaled_values, split_value, value_of_two_parts, cancelled_values, scaled_units, split_unit, cancelled_units,
    cancelled_bias, scaled_logits, split_logits, cancelled_logits, raised_logits, unused, negative_nothing,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Rows:
    own: int
    fetched: int
    moduli: tuple[int, ...]


def forged_at_random(rng, witness):
    """A witness after one to three changes, stored in float64 or float32; and what was done to it."""
    w, rows = weights_of(witness), Rows(witness.maps.own, witness.maps.fetched, witness.moduli)
    chosen = [FORGERS[k] for k in rng.integers(0, len(FORGERS), int(rng.integers(1, 4)))]
    for change in chosen:
        change(rng, w, rows)
    return with_weights(witness, w, str(rng.choice(["float64", "float64", "float32"]))), [f.__name__ for f in chosen]


def in_parts(network, tokens, part, lazy, backward):
    """The run of a kernel that takes the keys ``part`` by part, and adds up in float32 or in a wider dtype."""
    wide = torch.promote_types(network.dtype, torch.float32)
    Z = network.embedding[tokens] + network.E[: tokens.shape[1]]
    for _, _, layer in network.layers():
        W_Q, b_Q, W_K, W_V, W_O = (x[0] for x in layer.attention[:-1])
        q, k, v = (Z @ W_Q.T + b_Q).to(wide), (Z @ W_K.T).to(wide), (Z @ W_V.T).to(wide)
        logits = q @ k.transpose(1, 2)
        held = torch.full(logits.shape[:2], -torch.inf, dtype=wide)
        total, out = torch.zeros_like(held), torch.zeros_like(v)
        for keys in torch.arange(tokens.shape[1]).split(part)[:: -1 if backward else 1]:
            met = logits[:, :, keys].amax(-1)
            new = torch.where(met > held + lazy, met, held)
            old, weights = (held - new).exp(), (logits[:, :, keys] - new[..., None]).exp()
            total = total * old + weights.sum(-1)
            out = out * old[..., None] + weights @ v[:, keys]
            held = new
        Z = Z + (out / total[..., None]).to(Z.dtype) @ W_O.T
        W_1, b_1, W_2, b_2, _ = layer.feed_forward
        Z = Z + (torch.relu(Z @ W_1.T + b_1) @ W_2.T + b_2)
    return Z @ network.W_out.T


def ways_it_is_wrong(witness, dtype, ids):
    """Which of several honest ways to run it differ from the automaton: torch's, in parts, with subnormals flushed."""
    network = copy.deepcopy(witness.network).to(as_dtype(dtype))
    network.safe = (dtype,)
    tokens = torch.from_numpy(np.concatenate([np.full((len(ids), 1), 1), np.asarray(ids) + 2], axis=1))
    lazy = 5.0 if dtype != "float64" else 0.0  # 8·log 2 = 5.5

    def flushed():
        torch.set_flush_denormal(True)
        try:
            return in_parts(copy.deepcopy(witness.network).to(as_dtype(dtype)), tokens, 3, 0.0, True)
        finally:
            torch.set_flush_denormal(False)

    ways = {
        "fused": lambda: torch.from_numpy(run_prefixes(network, tokens.numpy())),
        "in parts": lambda: in_parts(network, tokens, 2, 0.0, False),
        "lazy, backward": lambda: in_parts(network, tokens, 1, lazy, True),
        "flushed": flushed,
    }
    with torch.no_grad():
        found = {name: run().double().numpy() for name, run in ways.items()}
    return [name for name, rows in found.items() if not is_right(witness.stored, np.asarray(ids), rows)]
