"""Finite functions and data sets, recalled exactly."""
