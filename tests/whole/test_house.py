"""The rules of the house that a machine can check: where imports point, where tests lie, how the command starts."""

import ast
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

import thereexists
from tests.typechecker import SHAPED

SOURCE = Path(thereexists.__file__).parent
TESTS = Path(__file__).parents[1]


@lru_cache(maxsize=2048)
def nodes(text):
    """Every rule reads the whole source: it is parsed and walked once, as by ``ast.walk`` but faster."""
    found = [ast.parse(text)]
    for node in found:  # which grows
        for field in node._fields:
            value = getattr(node, field, None)
            for inner in value if isinstance(value, list) else (value,):
                if isinstance(inner, ast.AST) and not isinstance(inner, ast.expr_context):
                    found.append(inner)
    return found


@pytest.fixture(scope="module", autouse=True)
def forget():
    """A million nodes, which the collector of garbage would look at until the end of the suite."""
    yield
    nodes.cache_clear()


def test_what_is_shown_is_cut_in_one_place():
    """A text may end in a mark (``core/authors_word.py``): whoever cuts it by hand cuts the mark off."""
    cut = re.compile(r"\[[^\[\]]*:[^\[\]]*\] ?\+ ?[\"'] ?…|\[[^\[\]]*:[^\[\]]*\]\}…")
    for file in [*(SOURCE / "reports").rglob("*.py"), *(SOURCE / "cli").rglob("*.py"), SOURCE / "core/plain_text.py"]:
        assert not cut.findall(file.read_text()), file


# The floors of the house, from the ground up: a package imports packages below it, never one above, not even lazily.
FLOORS = [
    "_path",  # before anything else
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
    "suites",  # problems with known answers, for other people's tools
    "heads",
    "attention",
    "mixers",
    "experiments",
    "reports",
    "cli",
    "__main__",
]
MOST = 8  # parameters of a function; past that, an object that means something
# Whoever calls these hands over one value after the other: compiled kernels, and ops with a flat schema.
KERNELS = {"thereexists.core.compiled.njit", "triton.jit", "torch.library.custom_op"}
# What an independent verifier may stand on.
VERIFIER = {"_version", "core", "functions", "automata", "model", "arithmetic", "evaluate", "parallel", "certificates"}


def imports(file):
    """Every module that a file imports, at the top or inside a function."""
    for node in nodes(file.read_text()):
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


ELSEWHERE = {"docs", "whole"}  # tests of the documentation, and of the product as a whole
# Small packages inside another, whose parts only mean something there: tested in the folder of that one.
INSIDE = {"cli/kinds", "constructions/program/primitives", "reports/witness", "suites/verifier/families"}
A_TEST = re.compile(r"\btests(\.\w+)*\.(test_\w+|conftest)\b")  # the name of a module, as a command or a string has it


def folders_of(tests):
    return {file.parent.relative_to(tests).as_posix() for file in tests.rglob("test_*.py")}


def packages_in(source):
    return {file.parent.relative_to(source).as_posix() for file in source.rglob("__init__.py")} - {"."}


def unlike_the_package(tests, source):
    """Folders of tests that are no package by the same path, and packages without a folder of tests."""
    return (folders_of(tests) - ELSEWHERE) ^ (packages_in(source) - INSIDE)


def imported_tests(tests):
    """Modules that import from a test or a conftest; what several need is in a plain module beside them."""
    for file in sorted(tests.rglob("*.py")):
        for node in nodes(file.read_text()):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            parts = {part for name in names for part in name.split(".")}
            told = isinstance(node, ast.Constant) and isinstance(node.value, str) and A_TEST.search(node.value)
            if told or any(part == "conftest" or part.startswith("test_") for part in parts):
                yield file.relative_to(tests).as_posix()


def test_tests_lie_where_their_modules_lie():
    assert unlike_the_package(TESTS, SOURCE) == set()
    assert packages_in(SOURCE) >= INSIDE


@pytest.mark.parametrize(
    ("found", "file"),
    [
        ("forged", "tests/forged/test_a.py"),
        (".", "tests/test_a.py"),
        ("core/forged", "tests/core/forged/test_a.py"),
        ("core/docs", "tests/core/docs/test_a.py"),
        ("heads", "source/heads/__init__.py"),
        ("core/files", "source/core/files/__init__.py"),
    ],
)
def test_a_folder_unlike_the_package_is_found(tmp_path, found, file):
    there = ("source/__init__.py", "source/core/__init__.py", "tests/__init__.py", "tests/core/test_a.py")
    for name in (*there, "tests/docs/test_a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert unlike_the_package(tmp_path / "tests", tmp_path / "source") == set()
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).touch()
    assert unlike_the_package(tmp_path / "tests", tmp_path / "source") == {found}


def test_no_test_is_imported():
    assert list(imported_tests(TESTS)) == []


@pytest.mark.parametrize("name", ["test_a", "conftest"])
@pytest.mark.parametrize(
    "line",
    [
        "from tests.core.{} import forge",
        "from tests.core import {}",
        "def f():\n    import tests.core.{} as forging",
        "from . import {}",
        "from .{} import forge",
        "CODE = 'from tests.core.{} import forge'",
        "COMMAND = [sys.executable, '-m', 'tests.core.{}']",
    ],
)
def test_an_imported_test_is_found(tmp_path, line, name):
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "test_b.py").write_text(line.format(name) + "\n")
    assert list(imported_tests(tmp_path)) == ["core/test_b.py"]


# Words with one meaning each (docs/notation.md): the one class of that name, and who returns what from ``explain``.
ONLY = {
    "Target": "functions/target.py",
    "Plan": "witness/plan.py",
    "Step": "patterns/step.py",
    "Settings": "experiments/settings.py",
    "Engine": "evaluate/_engine.py",
}
EXPLAINS = {"Choice", "Explanation", "tuple[str, ...]"}  # ways to run a network, or attention; of an engine, its parts
RUNS_NETWORKS = {"evaluate", "witness", "constructions", "certificates", "cli", "reports"}  # who may speak of an engine


def second_meanings(source):
    """Every class, function, parameter or field of the package that gives one of these words another meaning."""
    for file in sorted(source.rglob("*.py")):
        place = file.relative_to(source).as_posix()
        for node in nodes(file.read_text()):
            if isinstance(node, ast.ClassDef) and ONLY.get(node.name, place) != place:
                yield f"{place}: class {node.name}"
            if isinstance(node, ast.FunctionDef) and node.name == "explain":
                says = node.returns and ast.unparse(node.returns)
                if says not in EXPLAINS and not place.startswith("cli/"):
                    yield f"{place}: explain"
            named = node.arg if isinstance(node, ast.arg) else node.target if isinstance(node, ast.AnnAssign) else None
            named = named.id if isinstance(named, ast.Name) else named
            if named == "engine" and place.split("/")[0] not in RUNS_NETWORKS:
                yield f"{place}: engine"


def test_words_with_one_meaning_have_no_second_one():
    assert list(second_meanings(SOURCE)) == []
    for name, place in ONLY.items():
        assert f"class {name}" in (SOURCE / place).read_text()
    command = "".join(file.read_text() for file in (SOURCE / "cli").rglob("*.py"))
    assert command.count('"--engine"') == 0  # the one option of that name is spelt by its parameter
    assert command.count(" engine: Annotated[") == 1


@pytest.mark.parametrize(
    "line",
    [
        "class Step:\n    pass",
        "class Plan:\n    pass",
        "def explain(self) -> str: ...",
        "def work(pieces, engine: str): ...",
        "class Workers:\n    engine: str = 'loky'",
    ],
)
def test_a_second_meaning_is_found(tmp_path, line):
    (tmp_path / "parallel").mkdir()
    (tmp_path / "parallel" / "bad.py").write_text(line + "\n")
    assert len(list(second_meanings(tmp_path))) == 1


MEASURED = {  # what certificates/ may print rounded to the nearest, having measured it
    "certificates/asked.py: np.abs(answers - alone).max()",
    "certificates/llama/reals/verify.py: off",
    "certificates/verify_bound.py: fresh['max']",
}


def to_the_nearest(source):
    """Formats such as ``:.3g`` where things are proved: half of all bounds would be printed smaller than they are."""
    for file in sorted((source / "certificates").rglob("*.py")):
        for node in nodes(file.read_text()):
            if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
                form = "".join(str(part.value) for part in node.format_spec.values if isinstance(part, ast.Constant))
                what = f"{file.relative_to(source).as_posix()}: {ast.unparse(node.value)}"
                if re.search("[eEgG%]$", form) and form != ".17g" and what not in MEASURED:
                    yield what


def test_nothing_proved_is_rounded_to_the_nearest():
    assert list(to_the_nearest(SOURCE)) == []


@pytest.mark.parametrize("form", [".3g", "g", ",.2e", ".0%"])
def test_a_bound_rounded_to_the_nearest_is_found(tmp_path, form):
    (tmp_path / "certificates").mkdir()
    (tmp_path / "certificates/bad.py").write_text(f"def words(bound):\n    return f'≤ {{bound:{form}}}'\n")
    assert list(to_the_nearest(tmp_path)) == ["certificates/bad.py: bound"]


MOST_LINES = 400
REASON = "Longer than 400 lines because "  # of a docstring at the head of a file


def too_long(source):
    """Files above the limit without a reason in their first lines, and reasons that are none."""
    for file in sorted(source.rglob("*.py")):
        text, place = file.read_text(), file.relative_to(source).as_posix()
        about = ast.get_docstring(nodes(text)[0]) or ""
        reason = about.partition(REASON)[2].partition(".")[0]
        long = len(text.splitlines()) > MOST_LINES
        if long != (len(reason.split()) >= 5):
            yield place


def test_a_long_file_says_why():
    assert list(too_long(SOURCE)) == []


@pytest.mark.parametrize("about", ["Much.", "Longer than 400 lines because it is."])
def test_a_long_file_without_a_reason_is_found(tmp_path, about):
    (tmp_path / "bad.py").write_text(f'"""{about}"""\n' + "x = 1\n" * MOST_LINES)
    assert list(too_long(tmp_path)) == ["bad.py"]
    (tmp_path / "bad.py").write_text(
        f'"""{REASON}it is one table that is read from top to bottom."""\n' + "x = 1\n" * 500
    )
    assert list(too_long(tmp_path)) == []


def test_the_command_imports_nothing_heavy_to_print_its_help():
    code = "import sys, thereexists.cli; sys.exit(any(m in sys.modules for m in ('torch', 'numpy', 'scipy', 'numba')))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_every_public_name_resolves():
    assert {"build", "certify", "verify", "load", "Witness", "Faithful"} <= set(dir(thereexists))
    for name in dir(thereexists):
        assert getattr(thereexists, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        thereexists.nonsense  # noqa: B018


def transformers_itself(text):
    """``from transformers import …``: basedpyright then reads all of its 2,900 files, twenty seconds of every check."""
    for node in nodes(text):
        whole = isinstance(node, ast.Import) and any(alias.name == "transformers" for alias in node.names)
        if whole or (isinstance(node, ast.ImportFrom) and node.module == "transformers"):
            yield node.lineno


DOORS = {"numba": "compiled.py", "matplotlib": "drawing.py"}  # both read settings from the current folder


def by_another_door(text, package):
    for node in nodes(text):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(name.split(".")[0] == package for name in names):
            yield node.lineno


@pytest.mark.parametrize("package", DOORS)
def test_what_reads_settings_from_the_folder_has_one_door(package):
    found = {file.name for file in SOURCE.rglob("*.py") for _ in by_another_door(file.read_text(), package)}
    assert found == {DOORS[package]}


@pytest.mark.parametrize("line", ["from numba import njit", "def f():\n    import numba.core.config as c"])
def test_a_second_door_is_noticed(line):
    assert list(by_another_door(line, "numba"))
    assert not list(by_another_door("from thereexists.core.compiled import njit", "numba"))


def test_transformers_is_imported_file_by_file():
    files = [*SOURCE.rglob("*.py"), *(TESTS.parent / "benchmarks").glob("*.py")]
    assert [file.name for file in files for _ in transformers_itself(file.read_text())] == []


@pytest.mark.parametrize("line", ["from transformers import AutoModel", "def f():\n    import transformers"])
def test_transformers_itself_would_be_noticed(line):
    assert list(transformers_itself(line))
    assert not list(transformers_itself("from transformers.modeling_utils import PreTrainedModel"))


def test_every_annotated_shape_is_checked_in_the_suite():
    shaped = {packages_of(file) for file in SOURCE.rglob("*.py") if "thereexists.core.shapes" in set(imports(file))}
    assert shaped <= set(SHAPED)
    with pytest.raises(Exception, match="type"):
        thereexists.Transformer({}, "softmax", E=3)


def full_names(tree):
    """What the names that a file imports stand for: ``{"njit": "numba.njit", "torch": "torch"}``."""
    found = {}
    for node in tree:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]  # which ``import a.b`` binds, and ``import a.b as c`` does not
                found |= {alias.asname: alias.name} if alias.asname else {top: top}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def is_kernel(function, imported):
    for decorator in getattr(function, "decorator_list", ()):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        first, dot, rest = ast.unparse(called).partition(".")
        if imported.get(first, "") + dot + rest in KERNELS:
            return True
    return False


def crowded(file):
    """Functions with more than eight parameters by name; ``self``, ``cls`` and what ``*`` collects are not counted."""
    tree = nodes(file.read_text())
    imported = full_names(tree)
    for node in tree:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if len(names[names[:1] in (["self"], ["cls"]) :]) > MOST and not is_kernel(node, imported):
                yield f"{getattr(node, 'name', 'lambda')} (line {node.lineno}) takes {len(names)}"


def test_no_function_takes_more_than_eight_parameters():
    found = {str(file.relative_to(SOURCE)): list(crowded(file)) for file in SOURCE.rglob("*.py")}
    assert {file: functions for file, functions in found.items() if functions} == {}


NINE = "a, b, c, d, e, f, g, h, i"


@pytest.mark.parametrize(
    "source",
    [
        f"def many({NINE}): ...",
        f"many = lambda {NINE}: 0",
        "def many(a, b, c, d, /, e, f, *, g=1, h=2, i=3): ...",
        f"class C:\n    async def many(self, {NINE}): ...",
        f"def outer():\n    def many({NINE}): ...",
        f"@staticmethod\ndef many({NINE}): ...",
        f"from elsewhere import njit\n@njit\ndef many({NINE}): ...",
        f"def njit(f): return f\n@njit(cache=True)\ndef many({NINE}): ...",
    ],
)
def test_a_ninth_parameter_is_noticed(tmp_path, source):
    (tmp_path / "bad.py").write_text(source + "\n")
    assert len(list(crowded(tmp_path / "bad.py"))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "class C:\n    def few(self, a, b, c, d, e, f, g, h, **more): ...",
        f"import triton\n@triton.jit\ndef kernel({NINE}): ...",
        f"from thereexists.core.compiled import njit\n@njit(cache=True)\ndef kernel({NINE}): ...",
        f"import torch\n@torch.library.custom_op('a::b', mutates_args=())\ndef op({NINE}): ...",
    ],
)
def test_a_kernel_may_have_nine(tmp_path, source):
    (tmp_path / "good.py").write_text(source + "\n")
    assert list(crowded(tmp_path / "good.py")) == []


def test_no_function_reads_its_own_locals():
    for file in SOURCE.rglob("*.py"):
        calls = [node.func for node in nodes(file.read_text()) if isinstance(node, ast.Call)]
        assert "locals" not in {call.id for call in calls if isinstance(call, ast.Name)}, file


def hidden_state(tree):
    """Memories keyed by the address of an object, which another object may get later; and hooks on all imports."""
    for node in tree:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "id":
            yield ast.unparse(node)
        if isinstance(node, ast.Attribute) and node.attr in ("meta_path", "path_hooks"):
            yield ast.unparse(node)


def test_no_state_hides_behind_addresses_or_import_hooks():
    """A compiler's walk may number the nodes of the graph it holds: their ``==`` is an operation of the program."""
    files = [file for file in SOURCE.rglob("*.py") if "constructions/program" not in file.as_posix()]
    assert [(file.name, what) for file in files for what in hidden_state(nodes(file.read_text()))] == []
    for planted in ("memory[id(launch), 3] = made", "sys.meta_path.insert(0, watch)"):
        assert list(hidden_state(nodes(planted)))
