"""The contract of an engine, and the registry of them.

An engine is a way to compute g(X) for a network of the class T^{h,m,r} and a batch X (batch, n, d). All of them compute
the same function; ``reference`` is its definition. An engine says what it cannot do (``refuses``), and is then replaced
by ``reference``; it says how it will do the rest (``explain``), and what it promises about its bits (``promise``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from thereexists.core.errors import InvalidInput
from thereexists.evaluate._parts import LARGEST_COLUMN, WIDEST, facts_of, host
from thereexists.model import Transformer

LONGEST = 64  # tokens


class Engine(ABC):
    """One way to run a network: an entry of ``te.evaluate.ENGINES``.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        te.evaluate.ENGINES["skip"].refuses(witness.network, torch.rand(8, 2, 1).double())  # None: it can

    Attributes:
        name: what it is called.
        promise: what it promises about the bits of its results.
    """

    name: str
    promise: str

    @abstractmethod
    def refuses(self, network: Transformer, X: Tensor) -> str | None:
        """Why this engine cannot run the network on X, in words, or None if it can."""

    @abstractmethod
    def __call__(self, network: Transformer, X: Tensor) -> Tensor:
        """g(X), on the device of X; X and the network are left as they are. Only for what is not refused."""

    @abstractmethod
    def explain(self, network: Transformer, X: Tensor) -> tuple[str, ...]:
        """How each part of the network will be run."""


@dataclass(frozen=True)
class Choice:
    """Which engine was asked for, which one runs, why, and how it runs each part: what ``te.evaluate.explain`` returns.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        te.evaluate.explain(witness.network, torch.rand(8, 2, 1).double()).because

    Attributes:
        asked: the engine that was asked for.
        used: the engine that runs.
        because: why that one.
        parts: how it runs each part of the network.
        promise: what it promises about the bits of its results.
    """

    asked: str
    used: str
    because: str
    parts: tuple[str, ...]
    promise: str


ENGINES: dict[str, Engine] = {}


def register(engine: Engine) -> Engine:
    if engine.name in ENGINES:
        raise InvalidInput(f"There is already an engine named {engine.name!r}.")
    ENGINES[engine.name] = engine
    return engine


def needs_gradients(network: Transformer, X: Tensor) -> bool:
    return torch.is_grad_enabled() and (X.requires_grad or any(p.requires_grad for p in network.parameters()))


def refused_by_every_kernel(network: Transformer, X: Tensor) -> str | None:
    """What keeps a network or an input from the compiled engines, whatever the device."""
    if type(network) is not Transformer:
        return "it has an embedding and a read-out, which only the reference applies"
    if needs_gradients(network, X):
        return "gradients are wanted, and only the reference has them"
    first = next(network.parameters())
    if X.dtype != torch.float64 or first.dtype != torch.float64:
        return f"the fast engines compute in float64; this is {X.dtype} with weights in {first.dtype}"
    if X.device != first.device:
        return None  # the reference will say it better
    facts = facts_of(network)
    if facts.width > WIDEST or X.shape[1] > LONGEST:
        return (
            f"the network is wide ({facts.width} features, units or heads; {X.shape[1]} tokens): "
            "matrix products are faster"
        )
    if facts.trouble is not None:
        return facts.trouble
    if not small(X):
        return "the input holds NaN, infinities or numbers beyond 2^100"
    return None


def small(Z: Tensor) -> bool:
    """Whether all columns are small enough for whatever adds 0 to be left out."""
    return bool((Z.abs() <= LARGEST_COLUMN).all())


def masks_of(pattern: Tensor | None, n: int):
    import numpy as np

    return np.zeros((0, n, n), dtype=np.bool_) if pattern is None else host(pattern)
