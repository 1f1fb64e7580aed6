"""The proof of a stock ``LlamaForCausalLM`` folder, read off its config and weights: ``verify.py`` is the main path.

format.py      which files such a folder has, and what stands in them
layouts.py     stock architectures with the blocks of Llama: Mistral, Qwen2, Phi-3
tokens.py      the vocabulary, and the tokenizer that belongs to it
claims.py      what a checkpoint claims to do; automata.py, addition.py, completions.py, ngram.py, reverse.py, recall.py
lookup.py      tables of what follows a text, in one layer
programs.py    causal programs over symbols: finite.py and finite_operations.py, as tables; decide.py, wiring.py and
               cells.py, as gates
circuit.py     what a network computes if every number is exact
rounding.py    what a dtype may do to a number, operation by operation
offsets.py     a head that looks a fixed number of tokens back
content.py     a head that looks for a code
gates.py       SwiGLU units that are ANDs, or clear a row
proof.py       the induction over the layers
"""
