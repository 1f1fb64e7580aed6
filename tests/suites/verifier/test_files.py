"""Files of a suite that somebody has changed, hashes mended: whoever reads them says so in a sentence."""

import json
import shutil

import pytest

from tests.suites.verifier.forging import rehashed
from thereexists.core.errors import ThereExistsError
from thereexists.suites import checked, scored
from thereexists.suites.verifier.make import MARK, TRUTH, make_verifier
from thereexists.suites.verifier.score import floor

NAME = "sort-1-0000"
LINE = f"onnx/{NAME}.onnx,vnnlib/{NAME}.vnnlib"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one") / "vnn"
    make_verifier(folder, count=1)
    return folder


def asked(folder, answers, out):
    """What check, floor and score say: whether it holds, or the sentence."""
    answers.write_text(f"{LINE},sat,1\n")
    said = []
    for ask in (lambda: checked(folder).holds, lambda: floor(folder, out), lambda: scored(folder, answers)):
        try:
            said.append(ask())
        except ThereExistsError as error:
            said.append(str(error))
    return said


TEXTS = {
    "instances.csv": [b"\xff\xfe", b"a,b", b"", b"\n", b"../x,../y,3\n", LINE.encode() + b",3,4\n",
                      f"{LINE},-3\n".encode(), f"{LINE},30\n{LINE},30\n".encode(),
                      b"onnx/a/b.onnx,vnnlib/a/b.vnnlib,3"],
    f"vnnlib/{NAME}.vnnlib": [b"\xff", b"", b"(", b"(assert (>= X_0 1e999999999))"],
    f"onnx/{NAME}.onnx": [b"", b"\xff\xfe", b"\x08\x08"],
    TRUTH: [b"\xff", b"[]", b"{}", b'{"instances": []}', b'{"instances": [[]]}', b'{"instances": [{}]}'],
    MARK: [b"\xff", b"[]", b"{}", b'{"files": {}}'],
}  # fmt: skip


@pytest.mark.parametrize("file", TEXTS)
def test_a_changed_file_is_refused_in_a_sentence(suite, tmp_path, file):
    for k, content in enumerate(TEXTS[file]):
        folder = tmp_path / f"s{k}"
        shutil.copytree(suite, folder)
        (folder / file).write_bytes(content)
        if file != MARK:
            rehashed(folder)
        held, answered, marked = asked(folder, tmp_path / "a.csv", tmp_path / "f.csv")
        assert held is not True
        if file != TRUTH and file != MARK:
            assert isinstance(answered, str)
        assert isinstance(marked, str) or file not in (TRUTH, MARK)


def test_every_entry_of_the_truth_is_looked_at(suite, tmp_path):
    folder = tmp_path / "s"
    shutil.copytree(suite, folder)
    truth = json.loads((suite / TRUTH).read_text())
    (tmp_path / "a.csv").write_text(f"{LINE},sat,1\n")
    for key in truth["instances"][0]:
        for strange in ({}, "\u202e/../x", True, -1, None, [[]], "missing"):
            entry = truth["instances"][0] | {key: strange}
            if strange == "missing":
                del entry[key]
            if (key, strange) in (("params", {}), ("counterexample", None), ("proof", "\u202e/../x")):
                continue
            (folder / TRUTH).write_text(json.dumps({"instances": [entry]}))
            rehashed(folder)
            for ask in (checked, lambda folder: scored(folder, tmp_path / "a.csv")):
                with pytest.raises(ThereExistsError, match=f"'{key}'"):
                    ask(folder)


def test_what_is_not_a_file_is_not_waited_for(suite, tmp_path):
    import os

    folder = tmp_path / "s"
    shutil.copytree(suite, folder)
    (folder / "instances.csv").unlink()
    os.mkfifo(folder / "instances.csv")
    (folder / "more").symlink_to(tmp_path)
    held, answered, _ = asked(folder, tmp_path / "a.csv", tmp_path / "f.csv")
    assert "pipe" in held
    assert "pipe" in answered
