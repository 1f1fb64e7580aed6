"""The rules of the house that a machine can check: which way imports point, and that the command starts quickly."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import thereexists
from tests.typechecker import SHAPED

SOURCE = Path(thereexists.__file__).parent
# The floors of the house, from the ground up: a package imports packages below it, never one above, not even lazily.
FLOORS = [
    "_version",
    "core",  # errors, verdicts, files, dtypes, the registry of kinds
    "functions",  # what a witness is built for
    "automata",  # and finite automata, which are built too
    "model",  # the networks
    "arithmetic",  # balls, roundings: what builders and verifiers share
    "evaluate",  # engines
    "patterns",
    "parallel",
    "certificates",  # proves and verifies
    "witness",  # what every witness is and can
    "constructions",  # builds
    "program",  # the language, as users import it
    "exports",
    "heads",
    "attention",
    "mixers",
    "experiments",
    "reports",
    "cli",
    "__main__",
]
# What an independent verifier may stand on.
VERIFIER = {"_version", "core", "functions", "automata", "model", "arithmetic", "evaluate", "parallel", "certificates"}


def imports(file):
    """Every module that a file imports, at the top or inside a function."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file} imports relatively"
            yield node.module
            if node.module == "thereexists":
                yield from (f"thereexists.{alias.name}" for alias in node.names)


def packages(file):
    names = [name.split(".") for name in imports(file)]
    return {parts[1] for parts in names if parts[0] == "thereexists" and len(parts) > 1}


def packages_of(file):
    return file.relative_to(SOURCE).parts[0]


def offending(file, package):
    allowed = VERIFIER if package == "certificates" else set(FLOORS[: FLOORS.index(package) + 1])
    return packages(file) - allowed


def test_every_package_has_its_floor():
    there = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert there == {*FLOORS, "__init__"}


@pytest.mark.parametrize("package", FLOORS)
def test_imports_point_down(package):
    files = (SOURCE / package).rglob("*.py") if (SOURCE / package).is_dir() else [SOURCE / f"{package}.py"]
    for file in files:
        assert offending(file, package) == set(), f"{file} imports what is above it"


@pytest.mark.parametrize(
    "line",
    [
        "from thereexists.constructions.faithful.quantise import quantise",
        "def f():\n    from thereexists.constructions.program.lowering import lower",
        "import thereexists.witness.load",
        "from thereexists import program",
    ],
)
def test_the_import_rule_can_fail(tmp_path, line):
    bad = tmp_path / "bad.py"
    bad.write_text(line + "\n")
    assert offending(bad, "certificates")


def test_the_command_imports_nothing_heavy_to_print_its_help():
    code = "import sys, thereexists.cli; sys.exit(any(m in sys.modules for m in ('torch', 'numpy', 'scipy', 'numba')))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_every_public_name_resolves():
    assert {"build", "certify", "verify", "load", "Witness", "Faithful"} <= set(dir(thereexists))
    for name in dir(thereexists):
        assert getattr(thereexists, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        thereexists.nonsense  # noqa: B018


def test_every_annotated_shape_is_checked_in_the_suite():
    shaped = {packages_of(file) for file in SOURCE.rglob("*.py") if "thereexists.core.shapes" in set(imports(file))}
    assert shaped <= set(SHAPED)
    with pytest.raises(Exception, match="type"):
        thereexists.Transformer({}, "softmax", E=3)
