"""Readers, tokenizers and the token cache: right on good files, one sentence on bad ones."""

import gzip
import lzma

import numpy as np
import pytest

from tests.experiments.small_data import WORDS
from thereexists.core.errors import InvalidInput
from thereexists.experiments import tokenizer as tokenizers
from thereexists.experiments.corpus import read_articles, read_nli, read_parallel, read_sst2, read_text
from thereexists.experiments.tokenizer import SEP
from thereexists.experiments.tokens import corpus_tokenizer, stream, windows


@pytest.mark.parametrize("suffix", ["", ".xz", ".gz"])
def test_articles_are_the_same_however_they_are_packed(tmp_path, suffix):
    path = tmp_path / f"text.txt{suffix}"
    opener = {"": open, ".xz": lzma.open, ".gz": gzip.open}[suffix]
    with opener(path, "wb") as file:
        file.write("První článek\nzweite Zeile\n\n \n\nsecond\n".encode())
    assert read_articles(path) == ["První článek\nzweite Zeile", "second\n"]


BAD_TEXT = {
    "missing": (None, "There is no file"),
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "binary": (b"\xff\xfe\x00", "UTF-8"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_a_bad_corpus_is_refused_in_one_sentence(tmp_path, case):
    content, message = BAD_TEXT[case]
    path = tmp_path / "corpus.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        read_text(path)


def test_a_truncated_archive_is_refused(tmp_path):
    path = tmp_path / "corpus.txt.xz"
    path.write_bytes(lzma.compress(b"word " * 1000)[:-20])
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_text(path)


BAD_NLI = [
    ('{"premise": "a", "hypothesis": "b"}', "line 2"),
    ("not json", "line 2"),
    ('{"premise": "a", "hypothesis": "b", "label": "maybe"}', "label must be one of"),
    ('{"premise": 3, "hypothesis": "b", "label": "neutral"}', "line 2"),
]


@pytest.mark.parametrize(("line", "message"), BAD_NLI)
def test_a_malformed_line_is_named(tmp_path, line, message):
    path = tmp_path / "train.jsonl"
    path.write_text('{"premise": "a", "hypothesis": "b", "label": 1}\n' + line)
    with pytest.raises(InvalidInput, match=message):
        read_nli(path)


def test_nli_and_sst2_are_read_as_written(data):
    pairs, labels = read_nli(data / "mnli/train.jsonl")
    assert len(pairs) == len(labels) == 200
    assert all(pair[1].split()[0] == WORDS[label] for pair, label in zip(pairs, labels, strict=True))
    sentences, labels = read_sst2(data / "sst2/dev.tsv")
    assert len(sentences) == len(labels) == 80
    with pytest.raises(InvalidInput, match="sentence<TAB>label"):
        read_sst2(data / "mnli/train.jsonl")


def test_parallel_files_must_have_the_same_number_of_lines(tmp_path):
    (tmp_path / "a").write_text("x\n\ny\n")
    (tmp_path / "b").write_text("u\nv\nw\n")
    assert read_parallel(tmp_path / "a", tmp_path / "b") == [("x", "u"), ("y", "w")]
    (tmp_path / "b").write_text("u\nv\n")
    with pytest.raises(InvalidInput, match="same number of lines"):
        read_parallel(tmp_path / "a", tmp_path / "b")


def test_training_a_tokenizer_twice_gives_the_same_one(data):
    texts = read_articles(data / "wikipedia/wiki_train_1.txt")
    first, second = (tokenizers.train_wordpiece(texts, 150).to_str() for _ in range(2))
    assert first == second
    assert tokenizers.train_bpe(texts, 150).to_str() == tokenizers.train_bpe(texts, 150).to_str()


def test_bpe_gives_the_sentence_back():
    sentences = ["Ahoj, světe! To je (asi) test.", "Nedělej to: 3,5 % stačí."]
    tokenizer = tokenizers.train_bpe(sentences * 3, 120)
    for sentence in sentences:
        assert tokenizer.decode(tokenizer.encode(sentence, add_special_tokens=False).ids) == sentence


def test_the_stream_is_the_corpus(data, cache):
    corpus = data / "wikipedia/wiki_valid.txt"
    tokenizer, _ = corpus_tokenizer(corpus, 200, cache)
    made = stream(corpus, tokenizer, cache)
    pieces = np.split(made.tokens, np.flatnonzero(made.tokens == SEP)[:-1] + 1)
    assert [tokenizer.decode(piece.tolist()) for piece in pieces] == read_articles(corpus)
    again = stream(corpus, tokenizer, cache)
    assert isinstance(again.tokens, np.memmap)
    np.testing.assert_array_equal(made.tokens, again.tokens)
    assert windows(made, 16).shape == (len(made.tokens) // 16, 16)
    with pytest.raises(InvalidInput, match="fewer than one sequence"):
        windows(made, 10**6)


def test_a_changed_corpus_is_not_taken_for_the_old_one(tmp_path, cache):
    corpus = tmp_path / "c.txt"
    corpus.write_text("one two three")
    tokenizer = tokenizers.train_wordpiece(["one two three four"], 64)
    first = stream(corpus, tokenizer, cache).tokens
    corpus.write_text("four two one")
    assert stream(corpus, tokenizer, cache).tokens.tolist() != first.tolist()
