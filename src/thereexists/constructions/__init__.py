"""Ways to build a witness, a folder each: ``faithful``, ``compact``, ``tokens``, ``program``, ``automata``."""
