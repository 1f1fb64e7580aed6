"""The folder, opened by ``transformers`` as anyone would: its own classes, offline, without progress bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thereexists.certificates.llama.tokens import BOS, SPECIAL, SYMBOLS, Vocabulary
from thereexists.core.dtypes import as_dtype

_LETTERS = 24  # of a random prompt


def loaded(folder: Path, dtype: str) -> Any:
    """``AutoModelForCausalLM.from_pretrained``, offline; ``ImportError`` where transformers is not installed."""
    from transformers.models.auto.modeling_auto import AutoModelForCausalLM
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=as_dtype(dtype)).eval()
    finally:
        if shown:
            logging.enable_progress_bar()


def misread(folder: Path, vocabulary: Vocabulary, rng: np.random.Generator) -> str | None:
    """A text that the tokenizer reads or writes in another way than ``tokenizer.json`` says; None if it reads all.

    ``AutoTokenizer`` takes a class by the model's type, and a class may bring rules of its own.
    """
    from transformers.models.auto.tokenization_auto import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    symbols, between = np.arange(SYMBOLS, vocabulary.outputs.start), "" if vocabulary.by_character else " "
    for drawn in (symbols[: 1 << 10], symbols[: 1 << 10][::-1], rng.choice(symbols, _LETTERS)):
        ids = _spelling_nothing_else(drawn.tolist(), vocabulary)
        text = between.join(vocabulary.texts[k] for k in ids)
        read = tokenizer(text, verbose=False)["input_ids"]  # not that the text is too long for the model
        if read != [BOS, *ids] or tokenizer.decode(read, skip_special_tokens=True) != text:
            return text
    said = tokenizer.decode(range(vocabulary.outputs.start, len(vocabulary)))
    if vocabulary.unseen and vocabulary.unseen in said:
        return said
    used = set("".join(vocabulary.texts))
    other = next((chr(code) for code in range(0x4E00, 0xD800) if chr(code) not in used), None)
    if other is None:  # a symbol of every kind: none is left to be refused
        return None
    try:
        tokenizer(other)
    except Exception:  # which one is the library's business
        return None
    return other


def _spelling_nothing_else(ids: list[int], vocabulary: Vocabulary) -> list[int]:
    """Without letters that end a text such as ``<s>``, which every tokenizer takes for the token: the card says so.

    Of all symbols in order and backwards none is left out twice, for no such text is another one backwards.
    """
    if not vocabulary.by_character:
        return ids
    kept: list[int] = []
    text = ""
    for k in ids:
        longer = text + vocabulary.texts[k]
        if not longer.endswith(SPECIAL):
            kept.append(k)
            text = longer
    return kept
