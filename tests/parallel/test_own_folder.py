"""A folder for work in progress is emptied: so it must be ours, whoever could guess its name."""

import numpy as np
import pytest

from thereexists.constructions.faithful.sharded import build_sharded
from thereexists.core.errors import InvalidInput
from thereexists.functions.targets import builtin
from thereexists.parallel.own_folder import MARK, own_folder


@pytest.fixture
def victim(tmp_path):
    folder = tmp_path / "victim"
    (folder / "photos").mkdir(parents=True)
    (folder / "diary.txt").write_text("precious")
    (folder / "photos" / "1.jpg").write_text("p")
    return folder


def untouched(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*")) == [
        "diary.txt",
        "photos",
        "photos/1.jpg",
    ]


def build(out):
    return build_sharded(builtin("sort", n=2), out, 1 / 4, shard_bytes=1500)


def test_a_link_is_not_followed(tmp_path, victim):
    (tmp_path / ".w.build").symlink_to(victim)
    with pytest.raises(InvalidInput, match="is a link to somewhere else; remove it"):
        build(tmp_path / "w")
    assert untouched(victim)


def test_a_folder_that_came_along_is_left_alone(tmp_path, victim):
    """With links in it to the user's files, under the names that a build writes, and a stranger's mark."""
    (tmp_path / ".w.build" / "runs").mkdir(parents=True)
    (tmp_path / ".w.build" / "model.safetensors.index.json").symlink_to(victim / "diary.txt")
    (tmp_path / ".w.build" / MARK).write_text("0" * 64)
    with pytest.raises(InvalidInput, match="was not made by a job of yours; remove it"):
        build(tmp_path / "w")
    assert untouched(victim)
    assert (victim / "diary.txt").read_text() == "precious"


def test_ours_is_known_again_here_and_nowhere_else(tmp_path, monkeypatch):
    mine = own_folder(tmp_path / "mine")
    (mine / "work").write_text("half done")
    assert own_folder(mine) == mine
    mine.rename(tmp_path / "moved")
    with pytest.raises(InvalidInput, match="not made by"):
        own_folder(tmp_path / "moved")
    (tmp_path / "moved").rename(mine)
    monkeypatch.setenv("THEREEXISTS_STATE", str(tmp_path / "somebody else"))
    with pytest.raises(InvalidInput, match="not made by"):
        own_folder(mine)


def test_a_build_leaves_no_mark(tmp_path):
    witness = build(tmp_path / "w")
    assert MARK not in {file.name for file in (tmp_path / "w").iterdir()}
    assert not (tmp_path / ".w.build").exists()
    assert np.isfinite(witness(np.full((2, 1), 0.25))).all()
