"""A folder from a stranger decides about numbers and about nothing that runs."""

import hashlib
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import thereexists as te
from tests import hostile
from thereexists.cli.certificate import given_target
from thereexists.functions.target import from_file

COMMANDS = """
import sys
from pathlib import Path
from thereexists.certificates import cubes
from thereexists.parallel import map as parallel_map
import thereexists as te
from thereexists import cli

cubes.CUBES, parallel_map.CHUNK_SECONDS, parallel_map.WORTH_STARTING = 1, 0.0, 0.0  # workers even for so little
function, pool, scratch, every = sys.argv[1:4] + [sys.argv[4] == "every"]
one, two = (["--function", function, "--workers", count, "--pool", pool] for count in "12")
codes = []
with_code = [["verify", "."], ["certify", "."]]
ways = [words + way for words in with_code for way in (one, two)] if every else [with_code[0] + two, with_code[1] + one]
for words in (
    *ways, ["show", "."],
    ["run", ".", "--input", "0.3 0.1"], ["trace", ".", "--input", "0.3 0.1"],
    ["report", ".", "--out", f"{scratch}/page.html", "--function", function],
):
    sys.argv = ["thereexists", *words]
    try:
        cli.main()
        codes.append(0)
    except SystemExit as ended:
        codes.append(ended.code)
te.load(".")
from thereexists.reports.explore import open_viewer
open_viewer(Path("."), None)
print(codes)
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thereexists.certificates.cubes.CUBES", 1)
        hostile.honest(folder / "w", folder / "mine.py")
    return folder


@pytest.fixture
def trapped(original, tmp_path):
    shutil.copytree(original / "w", tmp_path / "w")
    hostile.lay_traps(tmp_path / "w", tmp_path / "mark")
    return tmp_path


@pytest.mark.parametrize(
    ("pool", "ways"),
    [("loky", 2), *(pytest.param(pool, 4, marks=pytest.mark.slow) for pool in ("loky", "ray"))],
)
def test_no_command_runs_code_that_a_folder_brings_or_names(original, trapped, pool, ways):
    """With one worker and with two; for the quick run, one of the two commands that call the function has two."""
    more = ["every" if ways == 4 else "some"]
    ran = hostile.python(COMMANDS, f"{original / 'mine.py'}:f", pool, trapped, *more, cwd=trapped / "w", timeout=280)
    assert not (trapped / "mark").exists(), (trapped / "mark").read_text()
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == str([0] * (ways + 4)), ran.stdout + ran.stderr


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_moved_function_file_is_the_same_function(original, tmp_path, monkeypatch, workers):
    """However many cubes and workers: the bytes count, not the place (what a worker gets: the test below)."""
    shutil.copytree(original / "w", tmp_path / "w")
    moved = tmp_path / "elsewhere.py"
    moved.write_text(hostile.FUNCTION)
    hostile.forge_record(tmp_path / "w", lambda r: r["target"]["origin"].update(reference="/nowhere/mine.py:f"))
    hostile.forge_certificate(tmp_path / "w", lambda r: r["target"]["origin"].update(reference="/nowhere/mine.py:f"))
    from thereexists.parallel import map as parallel_map

    monkeypatch.setattr("thereexists.certificates.cubes.CUBES", 1)
    monkeypatch.setattr(parallel_map, "CHUNK_SECONDS", 0.0)
    monkeypatch.setattr(parallel_map, "WORTH_STARTING", 0.0)
    target = given_target(te.load(tmp_path / "w").target, f"{moved}:f")
    assert te.verify(tmp_path / "w", target, opinions=1, workers=te.parallel.Workers(workers)).holds is True
    by_hand = from_file(f"{moved}:f", n=2, lipschitz=1.0)
    assert te.verify(tmp_path / "w", by_hand, opinions=1).holds is True


WORKERS = """
import sys
from contextlib import suppress
from pathlib import Path
from thereexists.experiments import runner
from thereexists.suites.verifier.make import make_verifier

if __name__ == "__main__":
    out = Path(sys.argv[1])
    with suppress(Exception):
        runner._in_parallel(["no run"], runner.How(out, out), print, lambda: False)
    make_verifier(out / "suite", 2, workers=2)
    print("done")
"""


def test_workers_do_not_import_from_the_folder_that_they_start_in(tmp_path):
    (tmp_path / "w").mkdir()
    for name in ("multiprocessing", "concurrent", "queue"):
        (tmp_path / "w" / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'a').write(__name__ + ' ')\n")
    (tmp_path / "script.py").write_text(WORKERS)
    command = [sys.executable, tmp_path / "script.py", tmp_path]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path / "w")
    assert not (tmp_path / "mark").exists(), (tmp_path / "mark").read_text()
    assert ran.stdout.endswith("done\n"), ran.stderr


def test_a_file_is_read_once_and_travels_as_those_bytes(tmp_path):
    """A file that rewrites itself while it is run, or afterwards, changes neither the hash nor what a worker gets."""
    import hashlib

    other = hostile.FUNCTION.replace("np.sort(X, axis=1)", "-X")
    first = f"import pathlib; pathlib.Path(__file__).write_text({other!r})\n" + hostile.FUNCTION
    file = tmp_path / "mine.py"
    file.write_text(first)
    target = from_file(f"{file}:f", n=2)
    assert file.read_text() == other
    assert target.origin["sha256"] == hashlib.sha256(first.encode()).hexdigest()
    file.unlink()
    again = pickle.loads(pickle.dumps(target.f))
    X = [[[0.7], [0.2]]]
    assert again(X).tolist() == target.f(X).tolist() == [[[0.2], [0.7]]]


HOME = str(Path(te.__file__).parents[1])  # wherever these tests found the package
NAMES = ("ast", "pathlib", "typing", "re", "rich", "typer", "click", "numpy", "json")


def test_python_m_does_not_import_what_lies_in_the_folder(tmp_path):
    """Planted: modules of those names, as soon as the current folder is first on the path."""
    (tmp_path / "w").mkdir()
    for name in NAMES:
        (tmp_path / "w" / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'a').write(__name__ + ' ')\n")
    ran = subprocess.run(
        [sys.executable, "-m", "thereexists", "--help"],
        capture_output=True, text=True, timeout=120, cwd=tmp_path / "w", env={**os.environ, "PYTHONPATH": HOME},
    )  # fmt: skip
    assert not (tmp_path / "mark").exists(), (tmp_path / "mark").read_text()
    assert ran.returncode == 0
    assert "verify" in ran.stdout


@pytest.mark.parametrize(
    ("argv", "started", "wanted"),
    [
        (["-m"], ["python", "-m", "thereexists", "verify", "."], True),
        (["-m"], ["python", "-mthereexists"], True),
        (["-m"], ["python", "-X", "importtime", "-um", "thereexists.experiments"], True),
        (["-m"], ["python", "-Ximporttime", "-m", "mine"], False),
        (["-m"], ["python", "-m", "mine", "thereexists"], False),
        (["mine.py"], ["python", "mine.py"], False),
        (["/bin/thereexists"], ["python", "/bin/thereexists"], False),
    ],
)
def test_the_path_of_others_is_left_alone(argv, started, wanted, tmp_path, monkeypatch):
    from thereexists import _path

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), "/elsewhere"])
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", started)
    assert _path.taken_off() is wanted
    assert sys.path == ["/elsewhere"] if wanted else [str(tmp_path), "/elsewhere"]


def test_the_folder_of_the_package_itself_stays(monkeypatch):
    """In the src of a checkout, with nothing installed: processes that are started need it."""
    from thereexists import _path

    monkeypatch.chdir(HOME)
    monkeypatch.setattr(sys, "path", [HOME])
    monkeypatch.setattr(sys, "argv", ["-m"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "thereexists"])
    assert _path.taken_off() is False
    assert sys.path == [HOME]


class Trap:
    """Whoever unpickles it makes a folder."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def lay_numba_traps(folder, mark):
    """Settings of Numba that move its cache into the folder, and pickles there in the place of every index."""
    folder.mkdir()
    (folder / ".numba_config.yaml").write_text("cache_dir: cache\n")
    trap = pickle.dumps(Trap(str(mark)), protocol=4)
    package = Path(te.__file__).parent
    for file in package.rglob("*.py"):
        lines = file.read_text().splitlines()
        where = folder / "cache" / f"{file.parent.name}_{hashlib.sha1(str(file.parent).encode()).hexdigest()}"
        for k, line in enumerate(lines):
            if line.startswith("@njit"):
                name = next(re.match(r"def (\w+)", one)[1] for one in lines[k:] if one.startswith("def "))
                where.mkdir(parents=True, exist_ok=True)
                for number in range(k + 1, k + 4):  # the line of the decorator, or of the function
                    index = f"{file.stem}.{name}-{number}.py{sys.version_info[0]}{sys.version_info[1]}.nbi"
                    (where / index).write_bytes(trap)


def test_numba_takes_neither_settings_nor_a_cache_from_the_folder(original, tmp_path):
    """Planted first where Numba itself would fall for it: so the trap is one."""
    lay_numba_traps(tmp_path / "w", tmp_path / "mark")
    words = ["run", "--input", "0.3 0.1", "--engine", "fused"]
    run = f"from thereexists import cli\ncli.sys.argv[1:1] = {words}\ncli.main()"
    stock = hostile.python(f"import numba\n{run}", original / "w", cwd=tmp_path / "w")
    assert (tmp_path / "mark").exists(), stock.stderr
    (tmp_path / "mark").rmdir()
    ours = hostile.python(run, original / "w", cwd=tmp_path / "w")
    assert ours.returncode == 0, ours.stderr
    assert not (tmp_path / "mark").exists()
    for text in ("[", "- a", "disable_jit: true", "opt: 7"):
        (tmp_path / "w/.numba_config.yaml").write_text(text)
        again = hostile.python(run, original / "w", cwd=tmp_path / "w")
        assert (again.returncode, again.stdout) == (0, ours.stdout), again.stderr


def test_pictures_take_no_settings_from_the_folder(tmp_path):
    """LaTeX would obey its preamble."""
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\ntext.latex.preamble: \\\\input{mine}\nfigure.dpi: 7\n")
    code = (
        "from thereexists import cli\ncli.sys.argv[1:1] = ['pattern', 'draw', 'star', '--n', '8', '--out']\ncli.main()"
    )
    drawn = hostile.python(code, "p.png", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    first = (tmp_path / "p.png").read_bytes()
    (tmp_path / "p.png").unlink()
    (tmp_path / "matplotlibrc").unlink()
    hostile.python(code, "p.png", cwd=tmp_path)
    assert (tmp_path / "p.png").read_bytes() == first
    (tmp_path / "matplotlibrc").write_bytes(b"\xff\xfe")
    torn = hostile.python(code, "q.png", cwd=tmp_path)
    assert torn.returncode == 2
    assert torn.stderr.splitlines() == [torn.stderr.strip()]
    assert torn.stderr.startswith("Error: matplotlib cannot be loaded")
    (tmp_path / "matplotlibrc").write_text("a\x1b]0;title\x07: 3\n")
    odd = hostile.python(code, "q.png", cwd=tmp_path)
    assert (odd.returncode, "\x1b" in odd.stderr) == (0, False)
    (tmp_path / "matplotlibrc").unlink()
    os.mkfifo(tmp_path / "matplotlibrc")
    pipe = hostile.python(code, "r.png", cwd=tmp_path)
    assert pipe.returncode == 2
    assert "it is a pipe" in pipe.stderr
