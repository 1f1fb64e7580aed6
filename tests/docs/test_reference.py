"""The reference, object by object: nothing is missing from an explanation, and the examples run.

Objects are read from the source, as the site does: nothing is imported to count.
"""

import ast
import re
import textwrap
from functools import cache

import numpy as np
import pytest
import torch

import thereexists as te
from tests.docs.site_hooks import PACKAGE, hooks

NEEDS = (  # examples with a model of transformers, a run or several processes
    "use_pattern", "register_with_transformers", "load_model", "saved_config", "from_bert", "config_from_bert",
    "state_from_bert", "register_mixer", "run_all", "train", "Workers",
)  # fmt: skip
CHEAP = ("patterns", "program", "model", "constructions")  # pages whose examples take a few milliseconds each
ON_PAPER = (  # the main path: its examples are parts of what the README runs
    "build", "Target", "plan", "certify", "verify", "load", "trace", "report", "explore", "export", "Faithful",
    "Compact", "Table", "memorise",
)  # fmt: skip


@cache
def public():
    """(page, name, definition) for every function and class that the reference shows."""
    reference, found = hooks(), {}
    for page, (_, modules) in reference.REFERENCE.items():
        for module in modules:
            for name, path in reference.public_names(module).items():
                node = None if path is None or path in found else definition(path)
                if node is not None:
                    found[path] = (page, name, node)
    return list(found.values())


@cache
def parsed(module):
    place = PACKAGE.parent.joinpath(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8")).body


def definition(path):
    module, _, name = path.rpartition(".")
    kinds = (ast.FunctionDef, ast.ClassDef)
    return next((node for node in parsed(module) if isinstance(node, kinds) and node.name == name), None)


def parameters(node):
    """Names of the arguments of a function, or of those that make an object: of ``__init__``, or the public fields."""
    if isinstance(node, ast.ClassDef):
        makers = [child for child in node.body if isinstance(child, ast.FunctionDef) and child.name == "__init__"]
        if makers:
            return parameters(makers[0])[1:]
        fields = [
            child for child in node.body if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name)
        ]
        shown = [child for child in fields if "ClassVar" not in ast.unparse(child.annotation)]
        return [child.target.id for child in shown if not child.target.id.startswith("_")]
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [argument.arg for argument in given] + [a.arg for a in (node.args.vararg, node.args.kwarg) if a]


def lacks(node):
    """What the explanation of an object lacks: an argument, what comes back, what is refused, an example."""
    text = ast.get_docstring(node) or ""
    listed = re.split(r"\n(?:Args|Attributes):\n", text)[-1].partition("\n\n")[0]
    missing = [name for name in parameters(node) if not re.search(rf"^    \**{re.escape(name)}: ", listed, flags=re.M)]
    if isinstance(node, ast.FunctionDef) and ast.unparse(node.returns or ast.Constant(None)) != "None":
        missing += [] if "\nReturns:\n" in text else ["Returns"]
    if any(isinstance(child, ast.Raise) for child in ast.walk(node)) and isinstance(node, ast.FunctionDef):
        missing += [] if "\nRaises:\n" in text else ["Raises"]
    return missing + ([] if example_of(node) else ["an example"])


def example_of(node):
    """The indented lines between the first sentence and the arguments."""
    text = ast.get_docstring(node) or ""
    text = re.split(r"\n(?:Args|Attributes):\n", text)[0]
    blocks = re.findall(r"\n\n((?:    .*(?:\n|$)|\n(?=    ))+)", text)
    return next((textwrap.dedent(block) for block in blocks if re.search(r"\b(te|P)\.", block)), None)


def test_every_public_object_is_explained():
    missing = {f"{page}: {name}": lacks(node) for page, name, node in public()}
    assert {name: those for name, those in missing.items() if those} == {}


def test_what_is_missing_would_be_seen():
    bare = ast.parse('def f(x, *, y, **more) -> int:\n    """Adds."""').body[0]
    full = ast.parse(
        'def f(x, **more) -> int:\n    """Adds.\n\n        te.f(1)\n\n    Args:\n        x: a number.\n'
        '        **more: others.\n\n    Returns:\n        The sum.\n    """'
    ).body[0]
    assert lacks(bare) == ["x", "y", "more", "Returns", "an example"]
    assert lacks(full) == []
    kept = ast.parse(
        'class C:\n    """One.\n\n        te.C(1)\n\n    More.\n    """\n    x: int\n    _y: int = 0'
    ).body[0]
    assert lacks(kept) == ["x"]


def run_examples(pages, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "machine.fst").write_text("0 1 a b\n1\n")
    from thereexists import program

    given = {"te": te, "np": np, "torch": torch, "P": program, "A": te.heads.random_matrix(16, 2)}
    ran = 0
    for page, name, node in public():
        example = example_of(node) if page in pages else None
        if example and name not in (*NEEDS, *ON_PAPER):
            exec(compile(example, f"<{page}: {name}>", "exec"), given.copy())
            ran += 1
    return ran


def test_the_examples_of_cheap_pages_run(tmp_path, monkeypatch):
    assert run_examples(CHEAP, tmp_path, monkeypatch) > 100


@pytest.mark.slow
def test_the_other_examples_run(tmp_path, monkeypatch):
    rest = {*hooks().REFERENCE} - {*CHEAP}
    assert run_examples(rest, tmp_path, monkeypatch) > 100
