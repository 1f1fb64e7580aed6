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
