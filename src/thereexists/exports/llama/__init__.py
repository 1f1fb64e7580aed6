"""Automata, data sets, tables and tasks over text as an unmodified ``LlamaForCausalLM`` folder.

layout.py      sizes, and where everything stands in the residual stream
offsets.py     heads that look a fixed number of tokens back, by RoPE
lower.py       a circuit as Llama blocks: the weights
answers.py     which logits say what
tokenizer.py   the tokenizer, made with ``tokenizers``
card.py        README.md
forms.py       one entry a claim
folder.py      the main path: lower, prove, write, run again
"""

from thereexists.exports.llama.folder import write_llama as write_llama
from thereexists.exports.llama.layout import plan_llama as plan_llama
