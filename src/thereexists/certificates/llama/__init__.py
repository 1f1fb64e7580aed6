"""The proof of a stock ``LlamaForCausalLM`` folder, read off its config and weights: ``verify.py`` is the main path.

format.py      which files such a folder has, and what stands in them
tokens.py      the vocabulary, and the tokenizer that belongs to it
rounding.py    what a dtype may do to a number, operation by operation
offsets.py     a head that looks a fixed number of tokens back
gates.py       SwiGLU units that compose two maps
proof.py       the induction over the layers
"""
