"""Files of a suite that somebody has changed, hashes mended: whoever reads them says so in a sentence."""

import contextlib
import json
import shutil

import pytest

from tests.suites.verifier.forging import mended, rehashed
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.suites import checked, scored
from thereexists.suites.folders import MARK
from thereexists.suites.verifier.make import TRUTH, make_verifier
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
                      b"onnx/a/b.onnx,vnnlib/a/b.vnnlib,3",
                      *(f"{LINE},{seconds}{end}".encode() for seconds in ("30", "0030")
                        for end in ("", "\x0b", "\u2028", "\r\n", "\n\n") + ("\n",) * (seconds == "0030"))],
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


def test_a_score_reads_nothing_that_was_changed(suite, tmp_path):
    """Verdicts turned around, another limit, another network: none is judged by, and no answer is made of one."""
    folder, answers = tmp_path / "s", tmp_path / "a.csv"
    (entry,) = json.loads((suite / TRUTH).read_text())["instances"]
    (tmp_path / "p.txt").write_text(" ".join(f"(X_{i} 0.5)" for i in range(4)))
    answers.write_text(f"{LINE},sat,1,p.txt\n")
    other = {"sat": "unsat", "unsat": "sat"}[entry["verdict"]]
    for file, content in {
        TRUTH: json.dumps({"instances": [entry | {"verdict": other}]}).encode(),
        f"vnnlib/{NAME}.vnnlib": (suite / f"vnnlib/{NAME}.vnnlib").read_bytes() + b"; more\n",
        f"onnx/{NAME}.onnx": (suite / f"onnx/{NAME}.onnx").read_bytes() + b"\0",
        "instances.csv": f"{LINE},31\n".encode(),
    }.items():
        shutil.copytree(suite, folder)
        (folder / file).write_bytes(content)
        if file != "instances.csv":  # a score does not read it
            with pytest.raises(InvalidInput, match=f"{file} has another SHA-256"):
                scored(folder, answers)
        if file != TRUTH:  # a suite that was given out blind has none
            with pytest.raises(InvalidInput, match=f"{file} has another SHA-256"):
                floor(folder, tmp_path / "f.csv")
        assert not (tmp_path / "f.csv").exists()
        record = json.loads((folder / MARK).read_text())
        del record["files"][file]
        (folder / MARK).write_text(json.dumps(record))
        with pytest.raises(InvalidInput, match=f"{file} is not in {MARK}"):
            floor(folder, tmp_path / "f.csv") if file != TRUTH else scored(folder, answers)
        shutil.rmtree(folder)


def test_a_blind_suite_is_answered(suite, tmp_path):
    shutil.copytree(suite, tmp_path / "s")
    shutil.rmtree(tmp_path / "s" / "truth")
    assert sum(floor(tmp_path / "s", tmp_path / "f.csv").values()) == 1


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


LIES = {
    "extremes": [-777.0], "float32": 1e-300, "level": 5, "proof": "proved by Fermat", "timeout": 3, "margin": 0.01,
    "bound": 0.5, "params": {"level": 1, "n": 4, "folded": 0},
    "disguise": {"seed": [0, 1, 2], "worn": False, "split": False},
}  # fmt: skip


def test_a_measured_figure_is_a_power_of_ten(suite, tmp_path):
    """As whoever made the suite rounded it; of 2.7 times that, nobody measured the digits."""
    folder = tmp_path / "s"
    shutil.copytree(suite, folder)
    truth = json.loads((suite / TRUTH).read_text())["instances"][0]
    for figure in (2.7 * truth["float32"], 0):
        (folder / TRUTH).write_text(json.dumps({"instances": [truth | {"float32": figure}]}))
        assert f"{NAME}: float32 must be a power of ten, and is {figure}" in checked(mended(folder)).problems


def test_a_count_is_a_whole_number(suite, tmp_path):
    shutil.copytree(suite, tmp_path / "s")
    record = json.loads((suite / MARK).read_text())
    for word in ("sat", "unsat"):
        for strange in (float(record[word]), bool(record[word])):
            (tmp_path / "s" / MARK).write_text(json.dumps(record | {word: strange}))
            assert any("counts otherwise" in problem for problem in checked(tmp_path / "s").problems)


def test_every_entry_is_compared_with_what_the_seed_gives(suite, tmp_path):
    """Hashes, table and counts are mended, so that nothing but the entry itself is wrong."""
    assert checked(suite).problems == ()
    truth = json.loads((suite / TRUTH).read_text())["instances"][0]
    folder = tmp_path / "s"
    shutil.copytree(suite, folder)
    slight = {"margin": truth["margin"] * (1 + 9e-7)}
    slight["extremes"] = [one * (1 + 9e-7) for one in truth["extremes"]]
    for key, lie in (*LIES.items(), *slight.items()):
        assert truth[key] != lie or key == "params"
        (folder / TRUTH).write_text(json.dumps({"instances": [truth | {key: lie}]}))
        found = checked(mended(folder))
        assert not found.holds, key
    (folder / TRUTH).write_text(json.dumps({"instances": [truth]}))
    assert checked(mended(folder)).holds


def test_pages_strangers_and_records_are_compared(suite, tmp_path):
    record = json.loads((suite / MARK).read_text())
    for k, (file, text) in enumerate(
        [
            ("README.md", "{}"),
            ("suite.schema.json", "{}"),
            ("truth.schema.json", "{}"),
            ("onnx/more.onnx", "x"),
            ("x", ""),
        ]
    ):
        shutil.copytree(suite, tmp_path / f"s{k}")
        (tmp_path / f"s{k}" / file).write_text(text)
        found = checked(rehashed(tmp_path / f"s{k}"))
        assert any(problem.startswith(file) for problem in found.problems)
    shutil.copytree(suite, tmp_path / "gone")
    (tmp_path / "gone" / "truth.schema.json").unlink()
    assert "truth.schema.json is missing" in checked(rehashed(tmp_path / "gone")).problems
    folder = tmp_path / "r"
    shutil.copytree(suite, folder)
    for lie in ({"seed": 1}, {"count": 5000}, {"families": ["needle"]}, {"sat": 7}, {"version": 2}, {"more": 1},
                {"package_version": "99"}, {"format": "thereexists circuit suite"}):  # fmt: skip
        (folder / MARK).write_text(json.dumps(record | lie))
        with contextlib.suppress(ThereExistsError):
            assert not checked(folder).holds, lie


def test_an_instance_of_another_number_is_not_the_first(suite, tmp_path):
    """Renamed, as if it were another instance; every file and every table goes along."""
    folder, name = tmp_path / "s", "sort-1-0045"
    shutil.copytree(suite, folder)
    for part in ("onnx", "vnnlib"):
        (folder / part / f"{NAME}.{part}").rename(folder / part / f"{name}.{part}")
    truth = json.loads((folder / TRUTH).read_text())
    truth["instances"][0]["name"] = name
    (folder / TRUTH).write_text(json.dumps(truth))
    found = " ".join(checked(mended(folder)).problems)
    assert "not the first 1 of the suite" in found
    assert "not the one that the seed gives" in found
