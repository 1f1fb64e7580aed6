"""Launches of Triton kernels that are written down once and repeated.

Triton looks at every argument of every launch to find the compiled kernel, which takes it longer than most kernels
run. What it finds depends on types, alignment and integers only: a call with the same layouts launches the same
kernels with the same numbers, and differs in its tensors. So the first call writes its launches down (``launch`` with a
``tape``), and the others put their own tensors in (``Recorded``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Tape = list[tuple[Any, tuple[int, int, int], tuple[Any, ...]]]  # compiled kernel, grid, all of its arguments


def note(call: Callable[..., None], tensors: Sequence[Any], tape: Tape | None) -> None:
    """A call that is none of Triton's, to be repeated with other tensors."""
    if tape is not None:
        tape.append((_Called(call), (1, 1, 1), tuple(tensors)))


class _Called:
    """In the place of a compiled kernel: there is no grid."""

    def __init__(self, call: Callable[..., None]):
        self.call = call

    def __getitem__(self, grid: tuple[int, int, int]) -> Callable[..., None]:
        return self.call


def launch(
    kernel: Any, grid: tuple[int, int], args: Sequence[Any], constants: Mapping[str, Any], tape: Tape | None = None
) -> None:
    """``constants``: what the kernel is compiled for; ``num_warps`` and ``num_stages`` are among them."""
    compiled = kernel[grid](*args, **constants)
    if tape is not None:
        names = kernel.arg_names[len(args) :]
        tape.append((compiled, (*grid, 1), (*args, *(constants[name] for name in names))))


class Recorded:
    """The launches of a tape, with other tensors in place of ``tensors``."""

    def __init__(self, tape: Tape, tensors: Sequence[Any]):
        self._calls = []
        for compiled, grid, args in tape:
            slots = [(at, which) for at, arg in enumerate(args) for which, x in enumerate(tensors) if arg is x]
            kept = [None if any(at == slot for slot, _ in slots) else arg for at, arg in enumerate(args)]
            self._calls.append((compiled[grid], kept, slots))

    def __call__(self, *tensors: Any) -> None:
        for run, kept, slots in self._calls:
            args = kept.copy()  # nobody's tensors stay here
            for at, which in slots:
                args[at] = tensors[which]
            run(*args)
