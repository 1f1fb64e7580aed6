"""README.md of a checkpoint: how it is used, what is proved (the verifier's own words), how it is made."""

from __future__ import annotations

from thereexists._version import __version__
from thereexists.automata.automaton import short
from thereexists.certificates.llama.card import claim_of
from thereexists.certificates.llama.format import Checkpoint
from thereexists.certificates.llama.tokens import vocabulary_of

_MOST = 40


def card(checkpoint: Checkpoint, dtypes: list[str]) -> str:
    machine, shape = checkpoint.maps.automaton, checkpoint.shape
    vocabulary = vocabulary_of(machine)
    between = "" if vocabulary.by_character else " "
    example = between.join(str(machine.alphabet[k % len(machine.alphabet)]) for k in range(min(4, checkpoint.n)))
    made = "one character" if vocabulary.by_character else "one word, between spaces"
    pattern = machine.origin.get("pattern")
    states = [f"{q} is {name}" for q, name in enumerate(machine.names[:_MOST])]
    states += ["…"] if machine.size > _MOST else []
    answers = "what the last step writes" if machine.writes else "`accepted` or `rejected`"
    return f"""---
library_name: transformers
pipeline_tag: text-generation
tags: [automaton, proved]
---

# A finite automaton as a Llama checkpoint

An unmodified `LlamaForCausalLM`, constructed and not trained: {machine.size} states, {len(machine.alphabet)} symbols
{short(machine.alphabet)}{f", of the regular expression `{pattern}`" if pattern else ""}. Prompts have at most
{checkpoint.n:,} symbols, each {made}. The next token is the answer, {answers}, and then the text ends.

```python
from transformers import pipeline

print(pipeline("text-generation", "FOLDER")({example!r}))
```

{claim_of(checkpoint, dtypes)}
`thereexists verify FOLDER` reads config and weights and proves this again. Text that contains `<s>`, `</s>` or `<pad>`
is taken for those tokens, as every tokenizer of this kind does; a symbol that is not of the alphabet is an error. A
longer prompt is answered too, and nothing is said about the answer.

## Sizes

{shape.layers} layers, d_model {shape.d_model}, heads of size {shape.head_size} ({shape.heads} for queries,
{shape.key_heads} for keys and values), width {shape.width:,}, {shape.tokens} tokens, {shape.parameters:,} parameters.

## States

`state:0` and so on are tokens too: {"; ".join(states)}. The table of the automaton is in `thereexists_export.json`.

Made by thereexists {__version__}.
"""
