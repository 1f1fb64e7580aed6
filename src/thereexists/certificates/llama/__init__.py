"""The proof of a stock ``LlamaForCausalLM`` folder, read off its config and weights: ``verify.py`` is the main path.

format.py      which files such a folder has, and what stands in them
tokens.py      the vocabulary, and the tokenizer that belongs to it
claims.py      what a checkpoint claims to do; automata.py and addition.py, one file a claim
circuit.py     what a network computes if every number is exact
rounding.py    what a dtype may do to a number, operation by operation
offsets.py     a head that looks a fixed number of tokens back
gates.py       SwiGLU units that are ANDs, or clear a row
proof.py       the induction over the layers
"""
