"""Finite automata, run by doubling over maps of states."""
