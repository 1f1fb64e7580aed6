"""Ways to forge the weights of a network, each of which keeps their shapes: names and functions of (weights, rng)."""

import numpy as np
import torch


def _place(weights, rng, *ends):
    """A random array and the index of one of its numbers that is not 0."""
    names = sorted(name for name in weights if name.endswith(ends) and bool((weights[name] != 0).any()))
    name = names[rng.integers(len(names))]
    used = torch.nonzero(weights[name])
    return weights[name], tuple(used[rng.integers(len(used))].tolist())


ANY = ("W_Q", "b_Q", "W_K", "W_V", "W_O", "W_1", "b_1", "W_2", "b_2", "W_in", "W_out", "E")


def one_ulp(weights, rng):
    array, place = _place(weights, rng, *ANY)
    array[place] = np.nextafter(float(array[place]), rng.choice([-np.inf, np.inf]))


def a_little(weights, rng):
    """Anything between one part in 2^50 and one in 2^8."""
    array, place = _place(weights, rng, *ANY)
    array[place] *= 1 + float(rng.choice([-1, 1])) * 2.0 ** -float(rng.integers(8, 51))


def sign(weights, rng):
    array, place = _place(weights, rng, *ANY)
    array[place] *= -1


def moved_bias(weights, rng):
    names = sorted(name for name in weights if name.endswith("b_1"))
    array = weights[names[rng.integers(len(names))]]
    place = tuple(int(rng.integers(size)) for size in array.shape)
    array[place] += float(rng.choice([-1, 1])) * 2.0 ** -float(rng.integers(2, 50))


def deleted_unit(weights, rng):
    array, place = _place(weights, rng, "W_2")
    array[0, :, place[2]] = 0.0


def swapped_rows(weights, rng):
    array, place = _place(weights, rng, "W_2")
    other = int(rng.integers(array.shape[1]))
    array[0, [place[1], other]] = array[0, [other, place[1]]]


def scaled_pair(weights, rng):
    """A unit's input and bias by c, its output by 1/c: the same function if c is a power of two, and nearly if not."""
    names = sorted(name for name in weights if name.endswith("W_2"))
    name = names[rng.integers(len(names))]
    unit = int(rng.integers(weights[name].shape[2]))
    c = float(rng.choice([2.0, 0.25, 3.0, 0.1, 7.0]))
    weights[name.replace("W_2", "W_1")][0, unit] *= c
    weights[name.replace("W_2", "b_1")][0, unit] *= c
    weights[name][0, :, unit] /= c


def split_pair(weights, rng):
    """Two more units that cancel, up to the difference of their biases."""
    names = sorted(name for name in weights if name.endswith("W_2") and weights[name].shape[2] >= 2)
    if not names:
        return
    name = names[rng.integers(len(names))]
    W_1, b_1, W_2 = (weights[name.replace("W_2", part)] for part in ("W_1", "b_1", "W_2"))
    rows = W_1.shape[2]
    extra = torch.zeros(1, 2, rows, dtype=torch.float64)
    extra[0, :, int(rng.integers(rows))] = 1.0
    shift = float(rng.random()) - 0.5
    hair = 2.0 ** -float(rng.integers(4, 52))
    weights[name.replace("W_2", "W_1")] = torch.cat([W_1, extra], dim=1)
    weights[name.replace("W_2", "b_1")] = torch.cat([b_1, torch.tensor([[shift, shift + hair]]).double()], dim=1)
    out = torch.zeros(1, W_2.shape[1], 2, dtype=torch.float64)
    row, c = int(rng.integers(W_2.shape[1])), 2.0 ** float(rng.integers(-3, 4))
    out[0, row, 0], out[0, row, 1] = c, -c
    weights[name] = torch.cat([W_2, out], dim=2)


def scaled_block(weights, rng):
    names = sorted(name for name in weights if name.endswith(("W_V", "W_2")))
    weights[names[rng.integers(len(names))]].mul_(1 + 2.0 ** -float(rng.integers(20, 52)))


def blunt_head(weights, rng):
    names = sorted(name for name in weights if name.endswith("W_Q"))
    if names:
        weights[names[rng.integers(len(names))]].mul_(float(rng.choice([0.5, 0.75, 0.9, 1.5])))


_ALL = (
    one_ulp,
    a_little,
    sign,
    moved_bias,
    deleted_unit,
    swapped_rows,
    scaled_pair,
    split_pair,
    scaled_block,
    blunt_head,
)
MUTATIONS = {function.__name__: function for function in _ALL}
