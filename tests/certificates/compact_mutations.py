"""Networks changed as a forger would change them: the same function in float64, or nearly, and another in low dtypes.

``mutate(network, rng)`` gives a new network and the name of what was done. ``forged(witness, network)`` is a witness
around it whose plan is true again, so that only mathematics can notice.
"""

import copy
import dataclasses

import torch

from thereexists.model import EmbeddedTransformer, FeedForward, Stage

AMOUNTS = (0.25, 0.5, 1.0, 2.0, 512.0, 2.0**20, 2.0**30, -0.5, -1.0, 2.0**-24, 1e-3)


def rebuilt(network, stages, **ends):
    """The same ends around other stages."""
    first = {"W_in": network.W_in, "embedding": network.embedding, "E": network.E} | ends
    first = {name: None if w is None else w.detach().clone() for name, w in first.items()}
    return EmbeddedTransformer(stages, network.W_out.detach().clone(), safe=network.safe, **first)


def layer(network, stage):
    return [w.detach().clone() for w in network.stages[stage].feed_forward.parameters_list()]


def with_layer(network, stage, weights, name=None):
    """One feed-forward part replaced, or a stage added behind all others."""
    stages = copy.deepcopy(dict(network.stages.items()))
    attention = stages[stage].attention if name is None else None
    stages[name or stage] = Stage(attention, FeedForward(*weights))
    return rebuilt(network, stages)


def out_rows(network):
    return network.W_out.detach().argmax(dim=1)


def added_and_taken_away(network, amount, first, last):
    """A constant on the outputs in one layer, and its opposite in another."""
    network = copy.deepcopy(network)
    with torch.no_grad():
        network.stages[first].feed_forward.b_2[0, out_rows(network)] += amount
        network.stages[last].feed_forward.b_2[0, out_rows(network)] -= amount
    return network


def split_unit(network, stage, unit, amount):
    """A unit becomes two that fire together; what they write adds up to the old value."""
    W_1, b_1, W_2, b_2 = layer(network, stage)
    extra = torch.zeros_like(W_2[..., :1])
    extra[0, out_rows(network)] = amount
    W_2[0, out_rows(network), unit] -= amount
    return with_layer(
        network, stage,
        (torch.cat([W_1, W_1[:, unit : unit + 1]], 1), torch.cat([b_1, b_1[:, unit : unit + 1]], 1),
         torch.cat([W_2, extra], 2), b_2),
    )  # fmt: skip


def dead_unit(network, stage, amount):
    """One more unit, which never fires, and what it would write."""
    W_1, b_1, W_2, b_2 = layer(network, stage)
    extra = torch.zeros_like(W_2[..., :1])
    extra[0, out_rows(network)] = amount
    zeros = torch.zeros_like(W_1[:, :1]), torch.zeros_like(b_1[:, :1])
    return with_layer(network, stage, (torch.cat([W_1, zeros[0]], 1), torch.cat([b_1, zeros[1]], 1),
                                       torch.cat([W_2, extra], 2), b_2))  # fmt: skip


def deep_stage(network, amount):
    """A last stage of three layers: nothing, + amount, − amount."""
    d = network.W_out.shape[1]
    like = {"dtype": network.dtype}
    b_2 = torch.zeros(3, d, **like)
    b_2[1, out_rows(network)], b_2[2, out_rows(network)] = amount, -amount
    weights = (torch.zeros(3, 1, d, **like), torch.zeros(3, 1, **like), torch.zeros(3, d, 1, **like), b_2)
    return with_layer(network, next(iter(network.stages)), weights, "last")


def permuted_rows(network, rng):
    """The rows of the residual stream in another order: the same function in every dtype."""
    order = torch.from_numpy(rng.permutation(network.W_out.shape[1]))
    network = copy.deepcopy(network)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            axis = -1
            if name.endswith("W_O") or name.endswith("W_2"):
                axis = -2
            elif name == "W_in":
                axis = 0
            elif name.endswith(("b_1", "b_Q")):
                continue
            weight.copy_(weight.index_select(weight.ndim + axis if axis < 0 else axis, order))
    return network


def scaled_literal(network, stage, unit, factor):
    """A unit writes a multiple, and all readers of its row divide."""
    network = copy.deepcopy(network)
    with torch.no_grad():
        W_2 = network.stages[stage].feed_forward.W_2[0]
        rows = W_2[:, unit].nonzero().flatten()
        W_2[rows] *= factor
        for part in network.stages.values():
            part.feed_forward.W_1[..., rows] /= factor
            if part.attention is not None:
                part.attention.W_V[..., rows] /= factor
    return network


def one_weight(network, rng, amount):
    network = copy.deepcopy(network)
    names = [name for name, w in network.named_parameters() if w.numel()]
    weight = dict(network.named_parameters())[names[rng.integers(len(names))]]
    with torch.no_grad():
        weight.view(-1)[int(rng.integers(weight.numel()))] += amount
    return network


def mutate(network, rng):
    stages = [name for name, s in network.stages.items() if s.feed_forward is not None and s.feed_forward.b_1.numel()]
    recall = "recall" if "recall" in stages else stages[-1]
    amount = AMOUNTS[rng.integers(len(AMOUNTS))]
    first, last = (stages[i] for i in rng.integers(0, len(stages), 2))
    unit = int(rng.integers(network.stages[recall].feed_forward.b_1.shape[1]))
    any_unit = int(rng.integers(network.stages[first].feed_forward.b_1.shape[1]))
    ways = {
        "added and taken away": lambda: added_and_taken_away(network, amount, first, last),
        "a split unit": lambda: split_unit(network, recall, unit, amount),
        "a dead unit": lambda: dead_unit(network, recall, amount * 1e39),
        "a stage of three layers": lambda: deep_stage(network, amount),
        "permuted rows": lambda: permuted_rows(network, rng),
        "a scaled row": lambda: scaled_literal(network, first, any_unit, 2.0 ** int(rng.integers(-4, 5))),
        "one weight": lambda: one_weight(network, rng, amount),
        "two weights": lambda: one_weight(one_weight(network, rng, amount), rng, -amount),
    }
    name = list(ways)[rng.integers(len(ways))]
    return name, ways[name]()


def forged(witness, network, **sizes):
    """A witness around another network, its plan's figures true again."""
    layers = {name: stage.depth for name, stage in network.stages.items()} | {"total": network.depth}
    plan = dataclasses.replace(
        witness.plan, layers=layers, parameters=network.parameter_count, sizes={**witness.plan.sizes, **sizes}
    )
    return dataclasses.replace(witness, network=network, plan=plan)
