"""What the site has beyond the pages in docs/: the reference, the sources that pages link to, the changelog, the
examples as notebooks, a page of explore, typeset mathematics.

All of it is made from the repository when the site is built; no module of the package is imported here (``live.py``
runs it in processes of its own).
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import live
import mathematics

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "thereexists"
MAIN = (  # the way that most people go: these come first, in this order
    "build", "Target", "plan", "certify", "verify", "load", "trace", "report", "explore", "export",
    "Faithful", "Compact", "Table", "memorise", "Witness", "Verdict", "ThereExistsError", "targets",
)  # fmt: skip
_STEPS = ("quantise", "sparse_shift", "value_mapping", "softmax_limit")  # the others are in te itself
REFERENCE = {  # page -> heading, and the modules whose public names it lists
    "witnesses": (
        "Functions and witnesses",
        ("thereexists", "thereexists.functions.targets", "thereexists.functions.domains"),
    ),
    "witness": ("What every witness can", ("thereexists.witness.function", "thereexists.witness.plan")),
    "model": ("The model class", ("thereexists.model",)),
    "constructions": ("Constructions", tuple(f"thereexists.constructions.faithful.{step}" for step in _STEPS)),
    "certificates": ("Certificates", ("thereexists.certificates",)),
    "evaluate": ("Engines and workers", ("thereexists.evaluate", "thereexists.parallel")),
    "patterns": ("Patterns", ("thereexists.patterns",)),
    "attention": ("Attention", ("thereexists.attention",)),
    "heads": ("Heads", ("thereexists.heads",)),
    "program": ("Programs", ("thereexists.program",)),
    "automata": ("Automata", ("thereexists.automata",)),
    "mixers": ("Mixers", ("thereexists.mixers",)),
    "experiments": ("Experiments", ("thereexists.experiments",)),
    "export": ("Exports and reports", ("thereexists.exports", "thereexists.reports")),
}
_LINK = re.compile(r"\]\(((?:\.\./)+)((?:src|examples|benchmarks|tests)/[^)#]+\.py)(#[^)]*)?\)")


def on_files(files, config):
    """Add the generated pages. A source file becomes a page as soon as some page links to it."""
    linked = set()
    for file in files.documentation_pages():
        linked |= {match[2] for match in _LINK.finditer(file.content_string)}
    pages = {f"source/{path.removesuffix('.py')}.md": _source(path) for path in sorted(linked)}
    pages |= {f"reference/{name}.md": _reference(*what) for name, what in REFERENCE.items()}
    pages["reference/index.md"] = _overview()
    pages["changelog.md"] = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    pages |= {f"notebooks/{script.stem}.md": _notebook(script) for script in sorted((ROOT / "examples").glob("0*.py"))}
    pages["live/sort.html"] = live.explore_page()
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """A link to a source file of the repository leads to its page; the marks of the tests are for the tests."""
    up = "../" * page.file.src_uri.count("/")
    markdown = _LINK.sub(lambda m: f"]({up}source/{m[2].removesuffix('.py')}.md)", markdown)
    return re.sub(r"<!-- test: .*? -->\n", "", markdown)


def on_page_content(html, page, config, files):
    """Formulas become MathML, which browsers typeset by themselves; results of notebooks come in as they are."""
    html = mathematics.typeset(html)
    return re.sub(r"<p>RESULT-(\d+)</p>", lambda m: f'<div class="result">{_results[int(m[1])]}</div>', html)


_results: list[str] = []  # of notebooks, in the order in which they were read: HTML that Markdown must not touch


def _notebook(script: Path) -> str:
    """An example as a page: text, code, and what the code printed and drew."""
    parts = []
    for cell in live.notebook(script):
        if cell["kind"] == "markdown":
            parts.append(cell["source"])
            continue
        parts.append(f"```python\n{cell['source']}\n```")
        if cell.get("printed"):
            parts.append(f"```text\n{cell['printed'].rstrip()}\n```")
        if cell.get("html"):
            _results.append(cell["html"])
            parts.append(f"RESULT-{len(_results) - 1}")
    parts.insert(1, f"*The file is `examples/{script.name}`; `make notebooks` makes a notebook of it.*")
    return "\n\n".join(parts) + "\n"


def _source(path: str) -> str:
    if not (ROOT / path).is_file():
        raise FileNotFoundError(f"A page links to {path}, which does not exist.")
    code = (ROOT / path).read_text(encoding="utf-8").rstrip("\n")
    return f'---\nsearch:\n  exclude: true\n---\n\n# `{path}`\n\n````python linenums="1"\n{code}\n````\n'


def _overview() -> str:
    about = (
        "Every public name, from the docstrings. `import thereexists as te` gives the first page; the others are "
        "modules of the same name, imported on first use (`te.heads`, `te.patterns`, …)."
    )
    lines = ["# Reference", "", about, ""]
    lines += [f"- [{heading}]({name}.md): `{'`, `'.join(modules)}`" for name, (heading, modules) in REFERENCE.items()]
    return "\n".join(lines) + "\n"


def _reference(heading: str, modules: tuple[str, ...]) -> str:
    """The module's docstring, then its public names, each from the file that defines it."""
    parts = [f"---\nsearch:\n  boost: 0.3\n---\n\n# {heading}\n"]  # found, but after the pages that explain
    shown: set[str] = set()
    for module in modules:
        parts.append(f"## `{module}`\n\n{_about(module)}\n")
        for path in public_names(module).values():
            if path is not None and path not in shown:
                shown.add(path)
                parts.append(f"::: {path}\n    options:\n      heading_level: 3\n")
    return "\n".join(parts)


def _about(module: str) -> str:
    """The module's docstring; paragraphs that are Python become code."""
    text = ast.get_docstring(ast.parse(_file(module).read_text(encoding="utf-8"))) or ""
    return "\n\n".join(f"```python\n{part}\n```" if _is_code(part) else part for part in text.split("\n\n"))


def _is_code(text: str) -> bool:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    return any(isinstance(node, (ast.Call, ast.Attribute)) for node in ast.walk(tree))


def public_names(module: str) -> dict[str, str | None]:
    """Public name -> where it is defined, read from the source; None for a public submodule."""
    tree = ast.parse(_file(module).read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("thereexists")
        for alias in node.names
    }
    names = next((ast.literal_eval(n.value) for n in tree.body if _assigns(n, "__all__")), None)
    if module == "thereexists":  # its names are what it imports, on first use
        every = [name for name in imported if not name.startswith("_")]
        names = [*MAIN, *(name for name in every if name not in MAIN)]
    if names is None:  # a plain module: what it defines
        kinds = (ast.FunctionDef, ast.ClassDef)
        names = [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    found = {name: imported.get(name, f"{module}.{name}") for name in names if not name.startswith("__")}
    return {name: None if _is_module(path) and name not in _functions(path) else path for name, path in found.items()}


def _file(module: str) -> Path:
    place = PACKAGE.parent / Path(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _is_module(path: str) -> bool:
    return _file(path).is_file()


def _functions(path: str) -> set[str]:
    """Names of the functions that the parent module defines: ``constructions.build.build`` is no module."""
    return _functions_in(path.rpartition(".")[0])


@cache
def _functions_in(module: str) -> set[str]:
    if not _file(module).is_file():
        return set()
    tree = ast.parse(_file(module).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def _assigns(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
