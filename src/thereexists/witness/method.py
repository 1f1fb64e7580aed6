"""A way to build: its options are the fields of a dataclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from thereexists.witness.plan import Plan
from thereexists.witness.witness import Witness


class Method(ABC):
    """``te.Faithful(…)``, ``te.Compact(…)``: what ``te.plan`` and ``te.build`` ask."""

    @abstractmethod
    def plan(self, target: Any) -> Plan:
        """What a build will give."""

    @abstractmethod
    def build(self, target: Any) -> Witness:
        """The witness."""
