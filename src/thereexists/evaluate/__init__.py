"""Ways to run a network: ``reference`` defines the result, ``fused`` and ``skip`` compute it faster.

    evaluate(network, X)                  # the fastest engine that qualifies
    evaluate(network, X, engine="skip")   # this one, or the reference where it refuses
    explain(network, X)                   # which one, why, and how it runs each part

Compiled engines are opaque to ``torch.compile``: a compiled caller breaks its graph there and goes on after it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from thereexists.core import shards
from thereexists.core.errors import InvalidInput
from thereexists.core.shapes import Float
from thereexists.evaluate import fused, reference, skip  # noqa: F401  (they register themselves)
from thereexists.evaluate._engine import ENGINES, Choice, Engine
from thereexists.model import Transformer
from thereexists.model.unchanged import forget

__all__ = ["ENGINES", "Choice", "Engine", "check_engine", "evaluate", "explain", "forget", "run_batch"]

DEEP = 32  # below this many layers plain torch is as good as anything
LONG_ON_GPU = (
    200_000  # layers a GPU streams in about the time that the launches of a bisection take (docs/performance.md)
)


def evaluate(network: Transformer, X: Float[Tensor, "batch n d"], engine: str = "auto") -> Float[Tensor, "batch n d"]:
    """g(X) by the named engine, or by the one that :func:`explain` names for "auto".

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        te.evaluate.evaluate(witness.network, torch.rand(8, 2, 1).double())

    Args:
        network: the network of a witness.
        X: (batch, n, d).
        engine: one of ``te.evaluate.ENGINES``, or ``auto``.

    Returns:
        The outputs (batch, n, d).

    Raises:
        InvalidInput: there is no such engine, or it does not take this network.
    """
    if torch.compiler.is_compiling():
        from thereexists.evaluate._opaque import run_opaque  # marking a function as opaque loads torch's compiler

        return run_opaque(network, X, engine)  # pyright: ignore[reportCallIssue]
    return run(network, X, engine)


def run_batch(network: Transformer, X: np.ndarray) -> np.ndarray:
    """A batch of features in float64; a few wide blocks run as they are, in tiles of their own.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        te.evaluate.run_batch(witness.network, np.random.rand(8, 2, 1))

    Args:
        network: the network of a witness.
        X: (batch, n, d).

    Returns:
        The outputs (batch, n, d).
    """
    if network.wide:
        return network.run(X)
    with torch.no_grad():
        return evaluate(network, torch.from_numpy(X)).numpy()


def run(network: Transformer, X: Tensor, engine: str) -> Tensor:
    _check_shape(network, X)
    if shards.is_mapped(network):
        return _stage_by_stage(network, X, engine)
    return ENGINES[_choose(network, X, engine)[0]](network, X)


def _check_shape(network: Transformer, X: Tensor) -> None:
    """Kernels believe sizes: what the reference would refuse, they would read beside their arrays."""
    if type(network) is not Transformer:
        return  # these run by their own reference only
    patterns = [stage.attention.pattern for stage in network.stages.values() if stage.attention is not None]
    lengths = {mask.shape[-1] for mask in patterns if mask is not None} | (
        {len(network.E)} if network.E is not None else set()
    )
    d = network.shape()["d"]
    if X.ndim != 3 or X.shape[2] != d or not lengths <= {X.shape[1]}:
        n = " or ".join(map(str, sorted(lengths))) or "n"
        raise InvalidInput(f"This network takes an array (batch, {n}, {d}); got the shape {tuple(X.shape)} instead.")


def explain(network: Transformer, X: Tensor, engine: str = "auto") -> Choice:
    """Which engine would run the network on X, and how.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        te.evaluate.explain(witness.network, torch.rand(8, 2, 1).double())

    Args:
        network: the network of a witness.
        X: (batch, n, d).
        engine: one of ``te.evaluate.ENGINES``, or ``auto``.

    Returns:
        The engine, and why.

    Raises:
        InvalidInput: there is no such engine.
    """
    if shards.is_mapped(network):
        parts = tuple(f"{name}: {_chosen_alone(network, part, X, engine)}" for name, part in _single_stages(network))
        because = "the weights are mapped from files and run through once, stage by stage"
        return Choice(engine, "stages", because, parts, "those of the engines that run the stages")
    _check_shape(network, X)
    used, because = _choose(network, X, engine)
    return Choice(engine, used, because, ENGINES[used].explain(network, X), ENGINES[used].promise)


def _stage_by_stage(network: Transformer, X: Tensor, engine: str) -> Tensor:
    """A network larger than memory: the whole batch goes through one stage, whose pages are then given back."""
    for _, part in _single_stages(network):
        X = ENGINES[_choose(part, X, engine, network.depth)[0]](part, X)
        forget(part)
        shards.release(network)
    return X


def _chosen_alone(network: Transformer, part: Transformer, X: Tensor, engine: str) -> str:
    used = _choose(part, X, engine, network.depth)[0]
    forget(part)
    shards.release(network)
    return used


def _single_stages(network: Transformer) -> Iterator[tuple[str, Transformer]]:
    """Every stage as a network of its own, the positional encoding with the first."""
    E = None if network.E is None else network.E.detach()
    for name, stage in network.stages.items():
        yield name, Transformer({name: stage}, network.rho, E, network.needs)
        E = None


def check_engine(engine: str) -> None:
    """Refuse a name that no engine has.

        te.evaluate.check_engine("fused")

    Args:
        engine: one of ``te.evaluate.ENGINES``, or ``auto``.

    Raises:
        InvalidInput: there is no such engine.
    """
    if engine not in ("auto", *ENGINES):
        raise InvalidInput(f"'engine' must be auto or one of {', '.join(ENGINES)}; got {engine!r} instead.")


def _choose(network: Transformer, X: Tensor, engine: str, depth: int | None = None) -> tuple[str, str]:
    check_engine(engine)
    depth = network.depth if depth is None else depth  # of the whole, where the network is a part
    if engine == "auto":
        if depth < DEEP:
            return "reference", f"the network has {depth} layers: plain torch is as fast"
        reasons = []
        for name, because in _preference(network, X):
            reason = ENGINES[name].refuses(network, X)
            if reason is None:
                return name, "; ".join([*reasons, because])
            reasons.append(f"not {name}: {reason}")
        return "reference", "; ".join(reasons)
    reason = ENGINES[engine].refuses(network, X)
    return (engine, "asked for") if reason is None else ("reference", f"not {engine}: {reason}")


def _preference(network: Transformer, X: Tensor) -> tuple[tuple[str, str], tuple[str, str]]:
    skip_first = (
        ("skip", "a run of layers qualifies for bisection"),
        ("fused", "stacked weights stream past the tokens"),
    )
    return skip_first if X.device.type == "cpu" or network.depth > LONG_ON_GPU else (skip_first[1], skip_first[0])
