"""Models with known circuits: small Transformers of random programs, with the graph of what computes what.

programs.py   random programs with types, as data, NumPy and text     run.py     a network with some edges cut
graph.py      which head and which units compute which operation      lens.py    for TransformerLens
make.py, check.py, score.py          files.py  what a suite holds, read and looked at
"""
