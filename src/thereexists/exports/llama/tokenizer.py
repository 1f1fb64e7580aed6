"""The tokenizer of a checkpoint, made with ``tokenizers``: one token for each symbol, <s> put in front by itself."""

from __future__ import annotations

from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from thereexists.certificates.llama.tokens import BOS, SPECIAL, UNKNOWN, Vocabulary


def tokenizer_for(vocabulary: Vocabulary) -> Tokenizer:
    """Characters, or words between spaces; what is not a symbol is refused by the library, for it has no token."""
    made: Any = Tokenizer(
        models.WordLevel({text: k for k, text in enumerate(vocabulary.texts)}, unk_token=UNKNOWN)  # which has no token
    )
    mark = vocabulary.unseen
    hidden = [decoders.Replace(mark, "")] if mark else []
    if vocabulary.by_character:
        made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        made.decoder = decoders.Sequence([*hidden, decoders.Fuse()]) if mark else decoders.Fuse()
    else:
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        if mark:
            made.decoder = decoders.Sequence([decoders.WordPiece(prefix=mark, cleanup=False), *hidden])
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    first = SPECIAL[BOS]
    made.post_processor = processors.TemplateProcessing(
        single=f"{first} $A", pair=f"{first} $A $B", special_tokens=[(first, BOS)]
    )
    return made
