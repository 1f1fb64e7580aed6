"""The one notion of a witness: a network that computes what it was built for, its plan, and its certificate.

    witness(x)                  run it
    witness.network             the torch module
    witness.plan                its sizes
    witness.certificate         what is proved of it, or None
    witness.trace(x)            watch one sequence go through
    witness.to("float32")       the same in another dtype, refused where that is not proved safe
    witness.save("w")           and ``te.load("w")``

The final variants are in ``constructions/``, one for each kind (``core/kinds.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from thereexists._version import __version__
from thereexists.core import storage
from thereexists.core.dtypes import dtype_name
from thereexists.core.errors import CannotBuild, InvalidInput
from thereexists.core.kinds import KINDS, Kind
from thereexists.core.named_folder import folder_named
from thereexists.core.neutral import neutral
from thereexists.core.notebook import InNotebook
from thereexists.core.plain_text import brief, counted
from thereexists.core.verdict import Verdict
from thereexists.model import Transformer
from thereexists.model.digest import known_sha256
from thereexists.witness.plan import Plan
from thereexists.witness.trace import Trace

if TYPE_CHECKING:
    from thereexists.certificates.certificate import Certificate


_COMPUTES = frozenset(("__call__", "run", "trace", "interpret", "meant", "to", "samples", "verdicts"))


@dataclass(frozen=True)
class Samples:
    """Inputs as the network takes them, with the outputs that are right, in parts; ``of`` says what they are.

    An output may be off by ``allowed``: 0 where every number is exact.
    """

    parts: tuple[tuple[np.ndarray, np.ndarray], ...]
    of: str
    allowed: float = 0.0

    def __len__(self) -> int:
        return sum(len(inputs) for inputs, _ in self.parts)


class Witness(InNotebook, ABC):
    """A network that computes what it was built for; what ``te.build``, ``te.memorise`` and ``te.load`` return.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        witness(np.array([[0.7], [0.1]]))  # its answer to one sequence
        witness.save("sorted")  # te.load("sorted") reads it back

    ``construction`` is the name of its kind, as in its record.

    Attributes:
        network: the network itself, a ``torch.nn.Module``.
        plan: its sizes and, for a function, the predicted error.
        certificate: what is claimed of it; None before there is a certificate.
        n: the most tokens that a sequence may have.
    """

    construction: ClassVar[str]
    network: Transformer
    plan: Plan
    certificate: Certificate | None
    n: int

    def __init_subclass__(cls, **options: Any) -> None:
        """Whatever computes, computes in a state of our own, in every kind."""
        super().__init_subclass__(**options)
        for name in _COMPUTES & vars(cls).keys():
            setattr(cls, name, neutral()(vars(cls)[name]))

    @property
    def kind(self) -> Kind:
        return KINDS[self.construction]

    @property
    def positions(self) -> int:
        """Positions of the network for a longest sequence: one for each token, unless it has others of its own."""
        return self.n

    @abstractmethod
    def __call__(self, x: Any) -> Any:
        """The network's answer."""

    @abstractmethod
    def trace(self, x: Any) -> Trace:
        """One sequence, block by block."""

    @abstractmethod
    def samples(self) -> Samples:
        """Everything the witness is about, or a sample that cannot be foreseen."""

    def to_compute(self) -> Any:
        """What the network should compute, by which a certificate names it; None where there are no certificates."""
        return None

    def its_own(self, found: Certificate | None) -> Any:
        """A certificate, if it is about these weights and what they are meant to compute; None otherwise."""
        return found if found is not None and found.is_about(known_sha256(self.network), self.to_compute()) else None

    def vocabularies(self) -> dict[str, Any] | None:
        """What turns words into the network's numbers and its numbers into words; None where it takes no words."""
        return None

    @abstractmethod
    def verdicts(self) -> dict[str, Verdict]:
        """For every dtype whether the network is right in it, with the reason."""

    def safe(self) -> tuple[str, ...]:
        """The dtypes that are proved for the weights as they are, of those in which the network runs."""
        found = self.verdicts()
        return tuple(name for name in self.network.safe if found[name].holds)

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Plain data about the witness. Of a loaded one much is its author's word, and these data do not say what:
        ``thereexists show --json`` does, under ``as_its_author_says``.
        """

    @abstractmethod
    def to(self, dtype: torch.dtype | str) -> Witness:
        """The witness in another dtype. One that is not proved safe for it is refused, with the reason."""

    def lowerable(self) -> Any:
        """What a stock checkpoint claims (``certificates/llama``); refused by every kind that has no such form."""
        raise CannotBuild(
            "A stock Llama checkpoint is made of an automaton's witness (te.build of te.automata…), of a causal "
            "program, of a table or of a memorised data set; a witness of this kind goes to onnx, hf or torch."
        )

    @abstractmethod
    def contents(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """What the record and the weights hold that only this kind has."""

    def save(self, path: str | Path) -> None:
        """Write the directory ``path`` (model.safetensors, witness.json), whole or not at all."""
        own, arrays = self.contents()
        weights = {name: tensor.detach().contiguous() for name, tensor in self.network.state_dict().items()}
        storage.write(folder_named(path), header(self) | own, weights | arrays)

    def __repr__(self) -> str:
        """What it is, in a few lines."""
        shape = self.network.shape()
        return brief(
            f"{type(self).__name__}: {self.kind.what}",
            f"{self.network.depth:,} blocks, {self.network.parameter_count:,} parameters, "
            f"{shape['h']} heads of size {shape['m']}, width {shape['r']}, {counted(shape['d'], 'row')}",
            *self.facts(),
        )

    def blocks(self) -> dict[str, Any]:
        """The network as a stack of standard blocks, in numbers, for ``describe``."""
        shape = self.network.shape()
        return {
            "blocks": self.network.depth,
            "d_model": shape["d"],
            "heads": shape["h"],
            "head_size": shape["m"],
            "width": shape["r"],
            "parameters": self.network.parameter_count,
            "dtype": dtype_name(next(self.network.parameters()).dtype),
            "safe": list(self.safe()),
        }

    def facts(self) -> list[str]:
        """At most four lines more, for ``repr``."""
        return []


def header(witness: Witness) -> dict[str, Any]:
    """What the record of every witness says."""
    network = witness.network
    return {
        "construction": witness.construction,
        "package_version": __version__,
        "dtype": dtype_name(next(network.parameters()).dtype),
        "class": network.shape() | {"positional": network.E is not None},
        "structure": network.structure(),
    }


def require_float64(network: Transformer) -> None:
    """Witnesses that are right in float64 are saved in it, and give other dtypes when they are loaded."""
    dtype = next(network.parameters()).dtype
    if dtype != torch.float64:
        raise InvalidInput(
            f"A witness is saved in float64, and this one is in {dtype}: save the original, and load it in the dtype "
            "you want."
        )
