"""Finite automata: what ``te.build`` turns into Transformers of few blocks, proved for all inputs.

    te.automata.regex(r"(ab|ba)*", alphabet="ab")
    te.automata.dfa({0: {"a": 1}, 1: {"b": 0}}, start=0, accept=[0])
    te.automata.nfa({0: {"a": [0, 1]}, 1: {"b": [2]}}, start=0, accept=[2])
    te.automata.mealy(step, states=[0, 1], alphabet="01")
    te.automata.from_function(step, start=0, alphabet="01", accept=lambda q: q == 0)
    te.automata.from_att("machine.fst")

Each of them gives a minimal ``Automaton``, which says how many states it had before.
"""

from thereexists.automata.att import from_att
from thereexists.automata.automaton import Automaton
from thereexists.automata.explore import from_function, mealy
from thereexists.automata.regex import regex
from thereexists.automata.tables import dfa, nfa

__all__ = ["Automaton", "dfa", "from_att", "from_function", "mealy", "nfa", "regex"]
