"""The constructions of the theorems, one proof step per file."""
