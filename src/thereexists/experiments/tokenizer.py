"""Sub-word tokenizers trained on the corpus given, the same every time.

WordPiece (lower-cased, as BERT) for text that is only read; BPE (cased, spaces kept in the tokens, so that decoding
gives the sentence back) for text that is also written. The trainer of the ``tokenizers`` package breaks ties between
equally frequent pairs by token number, and numbers the continuing letters (``##a``) in a hash table's order, so two
runs on one text give two vocabularies. Giving every letter its number beforehand removes the only source of chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from thereexists.core.errors import InvalidInput
from thereexists.core.regular_files import read_regular
from thereexists.experiments.files import MOST_BYTES, write_atomically

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
DEFAULT_SIZE = 16_384
SAMPLE = 30_000_000  # characters to train on: more changes the vocabulary little and costs linearly
_ALPHABET = 1000


def train_wordpiece(texts: Sequence[str], size: int = DEFAULT_SIZE) -> Tokenizer:
    """BERT's lower-cased WordPiece with at most ``size`` entries, numbers 0..4 being ``SPECIAL``."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    _check_size(size)
    normalizer = normalizers.BertNormalizer(lowercase=True)
    letters = _alphabet([normalizer.normalize_str(text) for text in texts], size)
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*SPECIAL, *letters, *(f"##{letter}" for letter in letters)],
        limit_alphabet=_ALPHABET,
        show_progress=False,
    )
    raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    raw.normalizer, raw.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    raw.train_from_iterator(texts, trainer, length=len(texts))
    # Built again from its vocabulary, so that only the five special tokens are special.
    tokenizer = Tokenizer(models.WordPiece(raw.get_vocab(), unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def train_bpe(texts: Sequence[str], size: int = 8192) -> Tokenizer:
    """Cased BPE whose decoding restores the sentence, numbers 0..4 being ``SPECIAL``."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    _check_size(size)
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, limit_alphabet=_ALPHABET, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer, length=len(texts))
    return tokenizer


def save(tokenizer: Tokenizer, path: Path) -> None:
    write_atomically(path, lambda beside: beside.write_text(tokenizer.to_str(), encoding="utf-8"))


def load(path: Path) -> Tokenizer:
    if not path.is_file():
        raise InvalidInput(f"There is no tokenizer at {path}.")
    try:
        text = read_regular(path, MOST_BYTES, InvalidInput).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not a tokenizer file: it is not text in UTF-8 ({error}).") from error
    return from_text(text, path)


def from_text(text: str, path: Path) -> Tokenizer:
    """The tokenizer written as JSON; ``path`` says in errors where that stood."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the package raises plain Exception
        raise InvalidInput(f"{path} is not a tokenizer file: {error}.") from error
    if [tokenizer.id_to_token(i) for i in range(len(SPECIAL))] != SPECIAL:
        raise InvalidInput(f"The tokenizer {path} must number {', '.join(SPECIAL)} from 0; train it with this package.")
    return tokenizer


def _alphabet(texts: Sequence[str], size: int) -> list[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    letters = [letter for letter in counts if not letter.isspace()]
    room = min(_ALPHABET, (size - len(SPECIAL)) // 2)
    return sorted(sorted(letters, key=lambda letter: (-counts[letter], letter))[:room])


def _check_size(size: int) -> None:
    if not 64 <= size <= 65_536:
        raise InvalidInput(f"The vocabulary must have 64 to 65,536 entries (tokens are stored as uint16); got {size}.")
