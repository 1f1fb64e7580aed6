"""What no file system can hold as a name is refused in a sentence, wherever a folder is named."""

import pytest

import thereexists as te
from thereexists.core.errors import InvalidInput
from thereexists.core.named_folder import folder_named


@pytest.fixture(scope="module")
def table():
    return te.build(te.Table([[0, 1]], [[1, 0]]), construction="compact")


@pytest.mark.parametrize("name", ["a" * 300, "é" * 128, "a\0b", "\ud800", "a\udc80", "w/" + "a" * 300], ids=range(6))
def test_a_name_that_no_folder_can_have_is_refused(name, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for use in (
        lambda: te.export(table, "torch", name),
        lambda: table.save(name),
        lambda: te.load(name),
        lambda: te.verify(name),
        lambda: te.explore(name),
        lambda: te.explore(table, out=name),
    ):
        with pytest.raises(InvalidInput, match="at most 255 bytes without the character NUL"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_too_long_is_refused():
    with pytest.raises(InvalidInput, match="at most 4,000 bytes; got 'a/a/"):
        te.load("a/" * 3000)


def test_a_name_of_255_bytes_is_one(tmp_path):
    assert folder_named(tmp_path / ("a" * 255)).name == "a" * 255
    assert folder_named("é" * 127).name == "é" * 127
