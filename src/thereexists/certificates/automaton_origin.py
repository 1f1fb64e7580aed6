"""Where an automaton is said to come from, checked where that can be: a regular expression is read again."""

from __future__ import annotations

from thereexists.automata.automaton import Automaton, under_flags
from thereexists.automata.regex import regex
from thereexists.certificates.check import Check
from thereexists.core.errors import ThereExistsError


def check_origin(machine: Automaton) -> Check:
    """Whether a machine that is said to be a regular expression's is its minimal automaton."""
    origin = machine.origin
    if origin.get("kind") != "regex":
        return Check("origin", True, "the automaton of the record; where it came from is its author's word")
    if origin.keys() != {"kind", "pattern", "flags"} or type(origin["flags"]) is not int:
        return Check("origin", False, "a regular expression is named by its pattern and its flags")
    try:
        again = regex(origin["pattern"], machine.alphabet, origin["flags"])
    except ThereExistsError as error:
        return Check("origin", False, str(error))
    same = again == machine and again.before == machine.before
    words = "is" if same else "is not"
    expression = f"{origin['pattern']!r}{under_flags(origin)}"
    return Check("origin", same, f"the automaton {words} the minimal one of {expression} over its alphabet")
