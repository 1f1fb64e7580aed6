"""Where tensors live: the device of a name, if this machine has it."""

from __future__ import annotations

import torch

from thereexists.core.errors import InvalidInput, Obstructed


def as_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")  # no numbers lie there
    if device.type == "meta":
        raise InvalidInput(f"'device' must be cpu, cuda or the like; got {name!r} instead.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise Obstructed(f"The device {name!r} was asked for, and this machine does not have it; use 'cpu'.")
    return device
