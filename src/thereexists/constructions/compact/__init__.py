"""The same function in four standard blocks."""
