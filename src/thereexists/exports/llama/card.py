"""README.md of a checkpoint: what is proved (the verifier's own words), how it is used, how it is made."""

from __future__ import annotations

import re
from dataclasses import dataclass

from thereexists._version import __version__
from thereexists.automata.automaton import expression_of, short, under_flags
from thereexists.certificates.llama.addition import Addition
from thereexists.certificates.llama.automata import AutomatonClaim
from thereexists.certificates.llama.card import claim_of, opening
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.completions import Completions
from thereexists.certificates.llama.format import Shape
from thereexists.certificates.llama.ngram import Ngram
from thereexists.certificates.llama.programs import ProgramClaim
from thereexists.certificates.llama.recall import Recall
from thereexists.certificates.llama.reverse import Reverse
from thereexists.core.plain_text import visible

_MOST = 40


@dataclass(frozen=True)
class Words:
    """What a card says of one claim: its title, what it is, an example, and what else is worth saying."""

    title: str
    about: str
    example: str
    more: str = ""


def code(text: str) -> str:
    """A text from a record in a line of Markdown, which shows it and obeys none of it."""
    shown = visible(text)
    longest = max((len(ticks) for ticks in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest or not shown.strip() else ""  # a backtick at an end belongs to the text
    return f"{fence}{space}{shown}{space}{fence}"


def automaton_words(claim: AutomatonClaim) -> Words:
    machine, vocabulary = claim.machine, claim.vocabulary
    between = "" if vocabulary.by_character else " "
    example = between.join(str(machine.alphabet[k % len(machine.alphabet)]) for k in range(min(4, claim.n)))
    made = "one character" if vocabulary.by_character else "one word, between spaces"
    known = expression_of(machine.origin) is not None
    of = f", of the regular expression {code(machine.origin['pattern'])}{under_flags(machine.origin)}" if known else ""
    answers = "what the last step writes" if machine.writes else "`accepted` or `rejected`"
    states = [f"{q} is {code(name)}" for q, name in enumerate(machine.names[:_MOST])]
    states += ["…"] if machine.size > _MOST else []
    about = f"""{machine.size} states, {len(machine.alphabet)} symbols
{code(short(machine.alphabet))}{of}. Prompts have at most {claim.n:,} symbols, each {made}. The next token is the
answer, {answers}, and then the text ends. A longer prompt is answered too, and nothing is said about the answer."""
    more = f"""## States

`state:0` and so on are tokens too: {"; ".join(states)}. The table of the automaton is in `thereexists_export.json`.
"""
    return Words("A finite automaton as a stock checkpoint", about, example, more)


def addition_words(claim: Addition) -> Words:
    m = claim.digits
    about = f"""addition of two numbers of {m} digits, padded with
zeros on the left. The answer has {m + 1} digits, highest first, and then the text ends. A digit of an answer is a token
of its own, which reads as the digit: a prompt ends with `=`."""
    return Words(f"Addition of {m}-digit numbers as a stock checkpoint", about, f"{7:0{m}}+{5:0{m}}=")


def completion_words(claim: Completions) -> Words:
    prompt, answer = next((p, a) for p, a in claim.pairs if a)
    between = "" if claim.vocabulary.by_character else " "
    made = "one character" if claim.vocabulary.by_character else "one word, between spaces"
    asked, told = between.join(claim.symbols[q] for q in prompt), between.join(claim.answers[a] for a in answer)
    about = f"""{len(claim.pairs):,} prompts with their answers. A symbol of
a prompt is {made}; {len(claim.symbols):,} of them are known. The answer to the prompt below is {code(told)}. Tokens of
answers are tokens of their own, which read as the text they stand for."""
    places = f"the last {len(claim.places)} tokens" if claim.whole else f"the tokens {short(claim.places)} back"
    more = f"""## How it answers

One layer: {len(claim.places) - 1} heads fetch earlier tokens, and one gate for each of
{len(claim.table.words):,} texts compares {places} with it. All pairs are in `thereexists_export.json`.
"""
    return Words("A data set as a stock checkpoint", about, asked, more)


def ngram_words(claim: Ngram) -> Words:
    context, _ = max(claim.rows, key=lambda row: len(row[0]))
    about = f"""an n-gram model of text. From the last {claim.order}
characters it makes the next, one after the other, by a table of {len(claim.rows):,} contexts and {len(claim.symbols)}
characters, until there is no row."""
    more = f"""## How it answers

One layer: {claim.order - 1} heads fetch the characters before, and one gate for each context compares them with it. The
table is in `thereexists_export.json`.
"""
    return Words("An n-gram model as a stock checkpoint", about, "".join(claim.symbols[k] for k in context), more)


def reverse_words(claim: Reverse) -> Words:
    word = "".join(claim.letters[: min(4, claim.n)])
    about = f"""words of up to {claim.n} letters, read backwards. A letter of an
answer is a token of its own, which reads as the letter: a prompt ends with `=`."""
    more = """## How it answers

One layer. After i letters of the answer, `=` is i tokens back and the next letter 2i + 1 tokens back: a head for each
distance, and a gate for each pair of the two.
"""
    return Words("Words backwards as a stock checkpoint", about, f"{word}=", more)


def recall_words(claim: Recall) -> Words:
    pairs = [key + claim.values[(k + 1) % len(claim.values)] for k, key in enumerate(claim.keys[: min(3, claim.n)])]
    about = f"""an *induction head*. A prompt is up to {claim.n} keys, each with a
value after it, and then one of the keys again; the answer is its value."""
    more = """## How it answers

Layer 1 gives every token the key before it; layer 2 looks for the token after the key that is here, by content and not
by position, and fetches it.
"""
    return Words("Recall by an induction head as a stock checkpoint", about, "".join(pairs) + claim.keys[0], more)


def program_words(claim: ProgramClaim) -> Words:
    alphabet = claim.alphabets.alphabet
    between, made = ("", "one character") if claim.vocabulary.by_character else (" ", "one word, between spaces")
    example = between.join(alphabet[k % len(alphabet)] for k in range(min(4, claim.n)))
    about = f"""a causal program of
{len(claim.program["nodes"])} operations over {len(alphabet)} symbols {code(short(alphabet))}, each {made}. The next
token is what the program gives at the last symbol of the prompt, one of
{code(short(claim.alphabets.output_alphabet))}, and then the text ends. A longer prompt
than {claim.n:,} symbols is answered too, and nothing is said about the answer."""
    more = """## How it answers

What the program computes at a token is one of finitely many things, a row for each. Heads fetch them from fixed
distances, or from a fixed place, and gates are the tables of the program's operations. Look-ups are cells of memory,
one for each query, that are put together from windows of 1, 2, 4, … tokens. The operations are in
`thereexists_export.json`.
"""
    return Words("A program over symbols as a stock checkpoint", about, example, more)


def card(words: Words, claim: Claim, shape: Shape, dtypes: list[str], architecture: str, beside: str) -> str:
    return f"""{opening(claim_of(claim, dtypes), speaks=True)}{words.title}

An unmodified `{architecture}`, constructed and not trained: {words.about}

```python
from transformers import pipeline

print(pipeline("text-generation", "FOLDER")({words.example!r}))
```

## Sizes

{shape.layers} layer{"s" if shape.layers > 1 else ""}, d_model {shape.d_model}, heads of size {shape.head_size}
({shape.heads} for queries, {shape.key_heads} for keys and values), width {shape.width:,}, {shape.tokens} tokens,
{shape.parameters:,} parameters.

{words.more}{beside}
Made by thereexists {__version__}.
"""
