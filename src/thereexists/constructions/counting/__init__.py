"""Commutative groups, run by counting letters: two blocks at every length."""
