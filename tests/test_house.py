"""The rules of the house that a machine can check: which way imports point, and that the command starts quickly."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import thereexists

SOURCE = Path(thereexists.__file__).parent
FORBIDDEN = {  # package -> what it must never import
    "model": ("constructions", "build", "plan", "witness", "certificates", "cli"),
    "constructions": ("build", "plan", "witness", "certificates", "cli"),
    "arithmetic": ("constructions", "build", "plan", "program", "witness", "certificates", "cli"),
    "certificates": ("constructions", "build", "memorise", "plan", "program", "table", "cli"),
    "evaluate": ("constructions", "build", "plan", "witness", "certificates", "cli"),
}


def imports(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def offending(file, package):
    return [name for name in imports(file) if any(name.startswith(f"thereexists.{bad}") for bad in FORBIDDEN[package])]


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_point_one_way(package):
    for file in (SOURCE / package).rglob("*.py"):
        assert offending(file, package) == [], f"{file.name} imports what it must not"


def test_the_import_rule_can_fail(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("from thereexists.constructions.quantise import quantise\n")
    assert offending(bad, "certificates")
    bad.write_text("from thereexists.program.lowering import lower\n")
    assert offending(bad, "certificates")


def test_the_command_imports_nothing_heavy_to_print_its_help():
    code = "import sys, thereexists.cli; sys.exit(any(m in sys.modules for m in ('torch', 'numpy', 'scipy', 'numba')))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_every_public_name_resolves():
    for name in thereexists.__all__:
        assert getattr(thereexists, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        thereexists.nonsense  # noqa: B018
