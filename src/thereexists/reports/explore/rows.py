"""What the rows of a residual stream are called, and the key match of the memory unit that answers.

The names are those of the construction: of a compact network or a table they follow from its sizes, of a program they
are in its record. A network with other sizes than its construction's gets no names.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from thereexists.model import EmbeddedTransformer

MOST_UNITS = 4  # active units that are named
Group = tuple[str, int, int]  # name, first row, how many


def groups_of(counts: dict[str, int], width: int) -> list[Group]:
    """Rows in the order in which they are counted."""
    if sum(counts.values()) != width:
        return []
    groups, first = [], 0
    for name, size in counts.items():
        groups.append((name, first, size))
        first += size
    return [group for group in groups if group[2]]


def token_rows(network: EmbeddedTransformer, n: int) -> list[Group]:
    """Of the three networks on tokens (``tokens/token_memory.py``): by slots, by counts, by codes."""
    width, digits = network.shape()["d"], len(network.W_out)
    if "codes" in network.stages:
        D = (width - n * digits - n - digits) // 2
        return groups_of({"code": D, "mean": D, "value": n * digits, "position": n, "out": digits}, width)
    if "slots" in network.stages:
        bits = (width - n - digits) // (1 + 3 * n)
        slots = n * bits
        return groups_of({"token": bits, "position": n, "slots": slots, "literals": 2 * slots, "out": digits}, width)
    L = (width - n - digits) // (2 + 2 * n)
    return groups_of({"token": L, "position": n, "counts": L, "literals": 2 * L * n, "out": digits}, width)


def program_rows(places: Any, block: int) -> list[Group]:
    """The operations whose results stand in the rows after a block; neighbours of one name are one group."""
    held: dict[int, str] = {}
    for place in places:
        if place["block"] <= block:
            held |= {int(row): str(name) for name, row in place["made"]}
    groups: list[Group] = []
    for row in sorted(held):
        if groups and groups[-1][0] == held[row] and sum(groups[-1][1:]) == row:
            groups[-1] = (held[row], groups[-1][1], groups[-1][2] + 1)
        else:
            groups.append((held[row][:40], row, 1))
    return groups


def key_match(W_1: Tensor, before: Tensor, read: Tensor, most_rows: int) -> list[dict[str, Any]]:
    """Of every token (n, …) the units that fire: which rows they read, and the unit that came nearest.

    ``before`` (n, r) are the pre-activations, ``read`` (n, d) the stream that is read. A unit is a gate minus the rows
    that contradict its key: it fires only if all of those are 0.
    """
    found = []
    for j, fires in enumerate(before > 0):
        units = fires.nonzero()[:, 0].tolist()
        if not 1 <= len(units) <= MOST_UNITS:
            continue
        unit = units[0]
        weights = W_1[unit, :most_rows]
        against = torch.relu(-W_1) @ read[j]  # (r,): what is subtracted from every unit's gate
        near = torch.where((before[j] + against > 0) & (against > 0), before[j], -torch.inf)
        rival = int(near.argmax()) if bool((near > -torch.inf).any()) else None
        stops = [] if rival is None else ((W_1[rival] < 0) & (read[j] != 0)).nonzero()[:, 0].tolist()
        found.append(
            {
                "token": j,
                "unit": unit,
                "at": float(before[j, unit]),
                "gate": (weights > 0).nonzero()[:, 0].tolist(),
                "must": (weights < 0).nonzero()[:, 0].tolist(),
                "rival": rival,
                "stops": [row for row in stops if row < most_rows],
            }
        )
    return found
