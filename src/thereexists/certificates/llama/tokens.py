"""The vocabulary of a checkpoint, and its tokenizer as ``tokenizer.json`` has it. Of an automaton:

    0 <pad>   1 <s>   2 </s>   then the symbols, the output symbols, accepted, rejected, and the states

Text becomes symbols one by one: characters where every symbol is one, else words between spaces. <s> is put in front.
What stands behind the symbols is never made of text: it is what the model answers. A character or word that is no
symbol is an error of the tokenizer, for there is no token for unknown ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from thereexists.automata.automaton import Automaton
from thereexists.core.errors import InvalidInput

PAD, BOS, EOS, SYMBOLS = 0, 1, 2, 3
MOST_TOKENS = 1 << 15
Numbers = tuple[int, ...]
SPECIAL = ("<pad>", "<s>", "</s>")
UNSEEN = "▁"
UNKNOWN = "<unk>"  # what the library calls a token for the unknown; there is none
CHARACTERS = {"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated", "invert": False}
WORDS = {"type": "WhitespaceSplit"}


@dataclass(frozen=True)
class Vocabulary:
    """Texts by number. ``outputs``, ``verdicts`` (accepted, rejected) and ``states`` are where those stand.

    ``unseen``: what an answer's text begins with and no reader is to see, as its token must differ from a symbol's.
    """

    texts: tuple[str, ...]
    by_character: bool
    outputs: slice
    verdicts: slice = field(default_factory=lambda: slice(0, 0))
    states: slice = field(default_factory=lambda: slice(0, 0))
    unseen: str = ""

    def __post_init__(self) -> None:
        odd = next((text for text in self.texts if not _is_text(text)), None)
        if odd is not None:
            raise InvalidInput(f"The symbol {odd!r} is no text: halves of characters cannot be written down.")

    def __len__(self) -> int:
        return len(self.texts)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def vocabulary_of(machine: Automaton) -> Vocabulary:
    """Refused where text cannot be cut into the symbols of the alphabet."""
    symbols = [str(symbol) for symbol in machine.alphabet]
    by_character = all(len(symbol) == 1 for symbol in symbols)
    if not by_character and any(not symbol or symbol.split() != [symbol] for symbol in symbols):
        raise InvalidInput(
            "A symbol must be one character, as all others, or a word without spaces, to be read in text."
        )
    taken = next((symbol for symbol in symbols for special in SPECIAL if special in symbol), None)
    if taken is not None:
        raise InvalidInput(
            f"The symbol {taken!r} cannot be used: {', '.join(SPECIAL)} have a meaning of their own in the text. "
            "Rename it."
        )
    before = " " if by_character else "→ "  # with a space, so that no text is read as an answer
    said = [before + str(symbol) for symbol in machine.output_alphabet]
    states = [f"{before}state:{q}" for q in range(machine.size)]
    texts = (*SPECIAL, *symbols, *said, f"{before}accepted", f"{before}rejected", *states)
    if len(set(texts)) != len(texts) or UNKNOWN in texts:
        twice = next((text for text in texts if texts.count(text) > 1), UNKNOWN)
        raise InvalidInput(f"Two tokens would both be written {twice!r}: rename that symbol of the automaton.")
    outputs = slice(SYMBOLS + len(symbols), SYMBOLS + len(symbols) + len(said))
    verdicts = slice(outputs.stop, outputs.stop + 2)
    return Vocabulary(texts, by_character, outputs, verdicts, slice(verdicts.stop, len(texts)))


def completion_vocabulary(symbols: tuple[str, ...], answers: tuple[str, ...]) -> Vocabulary:
    """Symbols of prompts, then answers: tokens of their own, with a mark in front that no reader sees."""
    by_character = all(len(symbol) == 1 for symbol in symbols)
    for text in (*symbols, *answers):
        if UNSEEN in text or UNKNOWN in text or any(special in text for special in SPECIAL):
            raise InvalidInput(
                f"A token cannot be written {text!r}: {UNSEEN}, {UNKNOWN}, {', '.join(SPECIAL)} are taken."
            )
        if not text or (not by_character and text.split() != [text]):
            raise InvalidInput(
                "A token must be a word without spaces, or every symbol of a prompt must be one character."
            )
    mark = UNSEEN if by_character else UNSEEN + " "
    texts = (*SPECIAL, *symbols, *(mark + text for text in answers))
    if len(set(texts)) != len(texts):
        raise InvalidInput(
            "Two tokens would be written the same way, as are the number 1 and the text '1'. Rename one of them."
        )
    outputs = slice(SYMBOLS + len(symbols), len(texts))
    return Vocabulary(texts, by_character, outputs, unseen=UNSEEN)


def check_texts(stored: Any) -> tuple[str, ...]:
    """Symbols or answers as a record has them."""
    if not isinstance(stored, list) or len(stored) > MOST_TOKENS or not all(type(text) is str for text in stored):
        raise InvalidInput(f"symbols and answers must be lists of up to {MOST_TOKENS:,} texts")
    return tuple(stored)


def check_numbers(stored: Any, amount: int) -> Numbers:
    """Numbers of such texts as a record has them."""
    if not isinstance(stored, list) or not all(type(number) is int and 0 <= number < amount for number in stored):
        raise InvalidInput(f"wanted lists of whole numbers below {amount:,}")
    return tuple(stored)


def tokenizer_of(vocabulary: Vocabulary) -> dict[str, Any]:
    """What ``tokenizer.json`` must say."""
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    begin, text = {"SpecialToken": {"id": SPECIAL[BOS], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    special = {SPECIAL[BOS]: {"id": SPECIAL[BOS], "ids": [BOS], "tokens": [SPECIAL[BOS]]}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": k, "content": text, **added} for k, text in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": CHARACTERS if vocabulary.by_character else WORDS,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [begin, text],
            "pair": [begin, text, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": special,
        },
        "decoder": _decoder(vocabulary),
        "model": {
            "type": "WordLevel",
            "vocab": {text: k for k, text in enumerate(vocabulary.texts)},
            "unk_token": UNKNOWN,
        },
    }


def tokenizer_config_of(length: int) -> dict[str, Any]:
    """What ``tokenizer_config.json`` must say; sequences in a batch are filled up on the left."""
    return {
        "bos_token": SPECIAL[BOS],
        "clean_up_tokenization_spaces": False,
        "eos_token": SPECIAL[EOS],
        "model_max_length": length,
        "pad_token": SPECIAL[PAD],
        "padding_side": "left",
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def _decoder(vocabulary: Vocabulary) -> dict[str, Any] | None:
    """Characters are put together; of words, each but the first gets a space in front, and a marked one has its own."""
    if not vocabulary.unseen:
        return {"type": "Fuse"} if vocabulary.by_character else None
    hidden = {"type": "Replace", "pattern": {"String": vocabulary.unseen}, "content": ""}
    spaced = {"type": "WordPiece", "prefix": vocabulary.unseen, "cleanup": False}
    return {"type": "Sequence", "decoders": [hidden, {"type": "Fuse"}] if vocabulary.by_character else [spaced, hidden]}
