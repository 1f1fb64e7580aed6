"""README.md of a checkpoint: how it is used, what is proved (the verifier's own words), how it is made."""

from __future__ import annotations

from dataclasses import dataclass

from thereexists._version import __version__
from thereexists.automata.automaton import short
from thereexists.certificates.llama.addition import Addition
from thereexists.certificates.llama.automata import AutomatonClaim
from thereexists.certificates.llama.card import claim_of
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.format import Shape

_MOST = 40


@dataclass(frozen=True)
class Words:
    """What a card says of one claim: its title, what it is, an example, and what else is worth saying."""

    title: str
    about: str
    example: str
    more: str = ""


def automaton_words(claim: AutomatonClaim) -> Words:
    machine, vocabulary = claim.machine, claim.vocabulary
    between = "" if vocabulary.by_character else " "
    example = between.join(str(machine.alphabet[k % len(machine.alphabet)]) for k in range(min(4, claim.n)))
    made = "one character" if vocabulary.by_character else "one word, between spaces"
    pattern = machine.origin.get("pattern")
    of = f", of the regular expression `{pattern}`" if pattern else ""
    answers = "what the last step writes" if machine.writes else "`accepted` or `rejected`"
    states = [f"{q} is {name}" for q, name in enumerate(machine.names[:_MOST])]
    states += ["…"] if machine.size > _MOST else []
    about = f"""{machine.size} states, {len(machine.alphabet)} symbols
{short(machine.alphabet)}{of}. Prompts have at most {claim.n:,} symbols, each {made}. The next token is the answer,
{answers}, and then the text ends. A longer prompt is answered too, and nothing is said about the answer."""
    more = f"""## States

`state:0` and so on are tokens too: {"; ".join(states)}. The table of the automaton is in `thereexists_export.json`.
"""
    return Words("A finite automaton as a Llama checkpoint", about, example, more)


def addition_words(claim: Addition) -> Words:
    m = claim.digits
    about = f"""addition of two numbers of {m} digits, filled up with
zeros on the left. The answer has {m + 1} digits, highest first, and then the text ends. A digit of an answer is a token
of its own, which reads as the digit: a prompt ends with `=`."""
    return Words(f"Addition of {m}-digit numbers as a Llama checkpoint", about, f"{7:0{m}}+{5:0{m}}=")


def card(words: Words, claim: Claim, shape: Shape, dtypes: list[str]) -> str:
    return f"""---
library_name: transformers
pipeline_tag: text-generation
tags: [constructed, proved]
---

# {words.title}

An unmodified `LlamaForCausalLM`, constructed and not trained: {words.about}

```python
from transformers import pipeline

print(pipeline("text-generation", "FOLDER")({words.example!r}))
```

{claim_of(claim, dtypes)}
`thereexists verify FOLDER` reads config and weights and proves this again. Text that contains `<s>`, `</s>` or `<pad>`
is taken for those tokens, as every tokenizer of this kind does; a symbol that is not of the alphabet is an error.

## Sizes

{shape.layers} layers, d_model {shape.d_model}, heads of size {shape.head_size} ({shape.heads} for queries,
{shape.key_heads} for keys and values), width {shape.width:,}, {shape.tokens} tokens, {shape.parameters:,} parameters.

{words.more}
Made by thereexists {__version__}.
"""
