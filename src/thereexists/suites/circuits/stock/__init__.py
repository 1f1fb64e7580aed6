"""Stock Llama folders whose circuits are known: causal programs over letters, lowered by ``exports/llama``.

programs.py   random causal programs with types, as data, NumPy and text
network.py    such a folder in NumPy, with some edges cut
naming.py     what every row of the residual stream says, looked at on all strings
circuit.py    which head and which units compute which operation, and which edges carry which value
model.py      the folder of one model, written and checked
"""
