"""What an error says is harmless to print, whoever's file it quotes."""

import json

import pytest

import thereexists as te
from thereexists.core.storage import record_digest


def test_a_sentence_that_quotes_a_file_has_nothing_that_a_terminal_obeys(tmp_path):
    folder = tmp_path / "w"
    te.build(te.targets.builtin("sort", n=2), delta=1 / 2).save(folder)
    record = json.loads((folder / "witness.json").read_text())
    record["format_version"] = "\x1b[31mhi\x07"
    record["digest"] = record_digest(record)
    (folder / "witness.json").write_text(json.dumps(record))
    with pytest.raises(te.ThereExistsError) as refused:
        te.load(folder)
    assert "\\x1b[31mhi\\x07" in str(refused.value)
    assert not {"\x1b", "\x07"} & set(str(refused.value))
