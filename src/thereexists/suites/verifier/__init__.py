"""Verification problems with known answers: make, check, score.

make.py       draws instances, checks and writes them         check.py    finds out again whether all of it is true
families/     one file per family: network, function, extremes score.py   a tool's answers against the truth
net.py        the network as plain arrays                      interval.py interval propagation, the floor
disguise.py   other weights, the same function, exactly        onnx_files.py, vnnlib.py   the two formats
files.py      the tables of a suite, read and looked at
"""
