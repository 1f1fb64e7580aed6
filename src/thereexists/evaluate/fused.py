"""``fused``: the stacked weights stream past a tile of tokens, in cache on a CPU (Numba), in registers on a GPU.

Nothing is assumed, and what is left out adds 0: any narrow network, any weights. The order of every sum is stated in
the kernels. Where each operation of the reference is exact, or rounds alike in every order (the networks of our proofs
on inputs off the ramps: short dyadic numbers), the bits are those of the reference. Elsewhere each half-layer is within
the rounding error of its sums of the exact one, as the reference is (``tests/evaluate/bounds.py`` computes it).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from thereexists.evaluate._engine import Engine, masks_of, refused_by_every_kernel, register, small
from thereexists.evaluate._parts import NEEDED_GAP, Part, host, parts_of
from thereexists.model import Stage, Transformer

PROMISE = (
    "the bits of the reference where every operation is exact (built networks, inputs off the ramps); "
    "elsewhere every half-layer to within the rounding of its sums, except where that decides a tie of hardmax or a "
    "jump of φ"
)


class Fused(Engine):
    name = "fused"
    promise = PROMISE

    def refuses(self, network: Transformer, X: Tensor) -> str | None:
        if X.device.type == "cpu":
            if find_spec("numba") is None:
                return "on a CPU this engine needs Numba: pip install 'thereexists[fast]'"
        elif X.device.type != "cuda" or find_spec("triton") is None:
            return f"on {X.device.type} this engine needs CUDA and Triton"
        return refused_by_every_kernel(network, X)

    def __call__(self, network: Transformer, X: Tensor) -> Tensor:
        if X.device.type == "cuda":
            from thereexists.evaluate._triton import run_parts

            Z = run_parts(network, X)
            return network(X) if Z is None else Z
        Z = X if network.E is None else X + network.E  # (batch, n, d)
        small_all_the_way = small(Z)
        Z = host(Z).copy()
        for part in parts_of(network):
            small_all_the_way = small_all_the_way and run_part(Z, part, network.stages[part.stage], network.rho)
        return torch.from_numpy(Z + 0.0) if small_all_the_way else network(X)

    def explain(self, network: Transformer, X: Tensor) -> tuple[str, ...]:
        how = "streamed by one Triton kernel" if X.device.type == "cuda" else "streamed by one Numba loop"
        return tuple(f"{part.what}: {how}" for part in parts_of(network))


def run_part(Z, part: Part, stage: Stage, rho: str) -> bool:
    """Every layer of a part on sequences Z (batch, n, d), a NumPy array, in place; whether all columns stayed small."""
    from thereexists.evaluate import _numba

    kernels: Any = _numba  # its functions are compiled ones

    if part.kind == "attention":
        weights, masks, layers = attention_weights(part, stage, Z.shape[1])
        return kernels.attention(Z, *weights, masks, layers, kernels.RHO[rho], NEEDED_GAP[rho]) == 0
    tokens = Z.reshape(-1, Z.shape[-1])
    weights, phi = feed_forward_weights(part, stage)
    if phi is None:
        return kernels.feed_forward(tokens, *weights) == 0
    return kernels.feed_forward_phi(tokens, *weights, *phi) == 0


def attention_weights(part: Part, stage: Stage, n: int):
    """The weights of an attention part as NumPy views, the masks, the numbers of its layers."""
    if stage.attention is None:
        raise ValueError(f"{part.what} is not in this stage.")
    if "views" not in part.known:
        part.known["views"] = [host(w)[part.span] for w in stage.attention.parameters_list()]
    return part.known["views"], masks_of(stage.attention.pattern, n), part.layers


def feed_forward_weights(part: Part, stage: Stage):
    """The weights of a feed-forward part as NumPy views, and those of its φ, if it has one."""
    if stage.feed_forward is None:
        raise ValueError(f"{part.what} is not in this stage.")
    phi = stage.feed_forward.phi
    if "views" not in part.known:
        part.known["views"] = [host(w)[part.span] for w in stage.feed_forward.parameters_list()]
        part.known["phi"] = None if phi is None else [host(w)[part.span] for w in phi.parameters_list()]
    return part.known["views"], part.known["phi"]


register(Fused())
