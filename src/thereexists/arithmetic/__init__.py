"""Balls, pairs of floats and rounding bounds: what whoever builds and whoever verifies both need, below both."""
