"""The package as others get it: its papers, its wheel, and what runs from the wheel alone."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from thereexists import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_the_package_says_that_it_is_typed():
    assert files("thereexists").joinpath("py.typed").is_file()
    assert "Typing :: Typed" in PROJECT["classifiers"]


def test_the_package_says_where_it_comes_from_and_what_it_is_about():
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= PROJECT["urls"].keys()
    assert len(PROJECT["keywords"]) >= 5
    for minor in (11, 12, 13):
        assert f"Programming Language :: Python :: 3.{minor}" in PROJECT["classifiers"]


def test_the_citation_is_of_this_version_and_stands_in_the_readme():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "@software{thereexists" in readme
    for reference in cited["references"]:
        assert reference["identifiers"][0]["value"].removeprefix("arXiv:") in readme


def test_the_changelog_has_this_release():
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", [path.name for path in WORKFLOWS])
def test_a_workflow_runs_the_make_targets_that_there_are(file):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    jobs = yaml.safe_load((ROOT / ".github/workflows" / file).read_text(encoding="utf-8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    made = [word for command in commands if command.startswith("make ") for word in command.split()[1:]]
    assert made
    assert set(made) <= targets


def test_the_tests_run_on_every_python_that_is_promised():
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))["jobs"]
    promised = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert jobs["test"]["strategy"]["matrix"]["python"] == promised


def test_a_release_is_published_without_a_token():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", ["CONTRIBUTING.md", "SECURITY.md"])
def test_every_link_of_a_paper_leads_somewhere(file):
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / file).read_text(encoding="utf-8")):
        assert (ROOT / target).is_file(), target


def test_the_demo_needs_the_core_only():
    """And pins what it installs: torch above all."""
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo: \$\(CORE\)", rules, flags=re.M)
    core = re.search(r"^\$\(CORE\):.*\n((?:\t.*\n)+)", rules, flags=re.M)[1]
    assert "-c constraints.txt -e .\n" in core
    assert re.search(r"^torch==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), flags=re.M)


SMOKE = """
import numpy as np, sys
import thereexists as te
assert "site-packages" in te.__file__, te.__file__
target = te.targets.builtin("sort", n=2)
witness = te.build(target, delta=1 / 4)
witness.save("w")
te.certify(witness).save("w")
assert te.verify("w", target).holds
assert witness(np.array([[0.7], [0.1]])).ravel().tolist() == [0.125, 0.625]
te.report("w").save("w.html")
assert te.patterns.check(te.patterns.strided(n=64, stride=8)).universal
for module in ("numba", "matplotlib", "transformers", "ray", "mkdocs", "onnx"):
    try:
        __import__(module)
    except ImportError:
        continue
    sys.exit(f"{module} is installed: this is no clean environment")
"""


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(tmp_path):
    """Built by ``python -m build``, installed without extras, and used there: in Python and on the command line."""
    pytest.importorskip("build")
    outside = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*command, timeout=900):
        done = subprocess.run(command, cwd=tmp_path, env=outside, capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path / "dist"), str(ROOT))
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    run(sys.executable, "-m", "venv", str(tmp_path / "clean"))
    binaries = tmp_path / "clean" / "bin"
    run(str(binaries / "pip"), "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel))
    run(str(binaries / "python"), "-c", SMOKE)
    run(str(binaries / "thereexists"), "build", "sort", "--n", "2", "--delta", "1/4", "--out", "v")
    assert run(str(binaries / "thereexists"), "verify", "v").strip().endswith("holds")
