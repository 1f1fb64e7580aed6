"""Where and with what a figure was made."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from thereexists._version import __version__
from thereexists.experiments.sampling import Place

_PACKAGES = ("torch", "transformers", "accelerate", "tokenizers")


def versions() -> dict[str, str]:
    """Of Python, this package and the ones a result depends on."""
    found = {"python": platform.python_version(), "thereexists": __version__}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def device_name(place: Place) -> str:
    name = torch.cuda.get_device_name(place.device) if place.device.type == "cuda" else f"{place.device.type}"
    return name if place.world == 1 else f"{place.world} × {name}"
