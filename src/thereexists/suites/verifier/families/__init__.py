"""The families of networks, by name. One file each: add it here."""

from thereexists.suites.verifier.families.automata import Automata
from thereexists.suites.verifier.families.base import Built, Family, Question
from thereexists.suites.verifier.families.compact import CompactCells
from thereexists.suites.verifier.families.lookup import Lookup, Needle
from thereexists.suites.verifier.families.memory import Pairs, Table
from thereexists.suites.verifier.families.softmax import SoftmaxLayer
from thereexists.suites.verifier.families.sort import Sort
from thereexists.suites.verifier.families.spline import Spline

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Sort(), CompactCells(), Spline(), Lookup(), Needle(), Automata(), SoftmaxLayer(), Table(), Pairs(),
    )
}  # fmt: skip

__all__ = ["FAMILIES", "Built", "Family", "Question"]
