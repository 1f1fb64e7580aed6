"""What was found out about a network, kept as long as torch has seen no change of its weights.

Torch counts in-place changes of a tensor, and its own autograd relies on that count. The steps of fused optimizers it
does not count: we do, by a hook, for the memory of what was stepped, which other tensors may share. A change made
behind torch's back (through ``.data`` or a NumPy view) goes unnoticed: call :func:`forget` after one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from thereexists.model.transformer import Transformer

T = TypeVar("T")
N = TypeVar("N", bound=Transformer)
_steps: Counter[int] = Counter()  # of any optimizer, by address; memory that is used again only has a larger count


def version_of(tensors: Iterable[torch.Tensor]) -> tuple | None:
    """Another one after every change in place; None of tensors that do not count their changes."""
    tensors = list(tensors)
    if any(t.is_inference() for t in tensors):
        return None
    return tuple((t.data_ptr(), t._version, t.dtype, t.shape, t.stride(), _steps[_memory(t)]) for t in tensors)


class WhileUnchanged(Generic[N, T]):
    """A function of a network that is not asked again before a weight has changed."""

    all: ClassVar[list[WhileUnchanged[Any, Any]]] = []

    def __init__(self, find: Callable[[N], T]):
        self._find = find
        self._known: WeakKeyDictionary[N, tuple[tuple | None, T, list[torch.Tensor]]] = WeakKeyDictionary()
        self.all.append(self)

    def __call__(self, network: N) -> T:
        tensors = [*network.parameters(), *network.buffers()]
        version = version_of(tensors)
        known = self._known.get(network)
        if known is None or version is None or known[0] != version:
            held = [t.detach() for t in tensors]  # while these live, no other tensor gets their addresses
            known = self._known[network] = (version, self._find(network), held)
        return known[1]

    def forget(self, network: N) -> None:
        self._known.pop(network, None)


def forget(network: Transformer) -> None:
    """Forget what is known of a network's weights.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        te.evaluate.forget(witness.network)

    Args:
        network: whose weights were changed in place.
    """
    for kept in WhileUnchanged.all:
        kept.forget(network)


def _memory(tensor: torch.Tensor) -> int:
    """Where its numbers are, or those of the tensor that it is a view of; 0 of a tensor that has no memory itself."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def _count_steps(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    """Torch does not count what a fused step of an optimizer changes."""
    _steps.update(_memory(p) for group in optimizer.param_groups for p in group["params"])


register_optimizer_step_post_hook(_count_steps)
