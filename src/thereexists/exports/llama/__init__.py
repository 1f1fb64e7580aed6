"""Automata, and addition as text, as an unmodified ``LlamaForCausalLM`` folder that plain ``transformers`` loads.

layout.py      sizes, and where everything stands in the residual stream
offsets.py     heads that look a fixed number of tokens back, by RoPE
lower.py       a circuit as Llama blocks: the weights
answers.py     which logits say what
tokenizer.py   the tokenizer, made with ``tokenizers``
card.py        README.md
folder.py      the main path: lower, prove, write, run again
"""

from thereexists.exports.llama.folder import write_addition as write_addition
from thereexists.exports.llama.folder import write_llama as write_llama
from thereexists.exports.llama.layout import plan_llama as plan_llama
