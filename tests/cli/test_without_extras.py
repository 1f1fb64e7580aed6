"""With the core dependencies only, every command works, or one sentence names the extra to install."""

import json
import shutil

from tests.cli.fuzz import SENSIBLE

WORK = {  # what a plain install must do
    *("targets", "plan", "build", "run", "show", "trace", "certify", "verify", "report", "memorise", "explore"),
    *(
        "pattern list",
        "pattern check",
        "pattern compare",
        "pattern draw",
        "heads random",
        "heads bound",
        "heads verify",
    ),
    *("attention explain",),
}


def test_every_command_without_extras(artefacts, tmp_path, fresh):
    shutil.copytree(artefacts, tmp_path / "here")
    done = fresh("-m", "tests.cli.without_extras", tmp_path / "here")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    for line, (code, error) in said.items():
        names_an_extra = "pip install 'thereexists[" in error and error.count("\n") == 1
        assert code in (0, 130) or (code == 2 and names_an_extra), (line, code, error)
    for name in WORK:
        assert all(code in (0, 130) for line, (code, _) in said.items() if line == f"{name} {SENSIBLE[name]}"), name
    trained = [error for line, (_, error) in said.items() if line.startswith("train copy")]
    assert "'thereexists[train]'" in trained[0], "the imports are blocked, and the right extra is named"
