"""What the examples, the help and the front page say of themselves is true."""

import re
import shlex
import tomllib

import thereexists as te
from tests.command import thereexists
from tests.docs.blocks import ROOT, blocks, pages
from tests.docs.listed import COMMANDS, examples
from thereexists.constructions.faithful.plan import MAX_ID_BITS


def shown_commands():
    """Every command line of the README, the docs and the help."""
    for page in pages():
        for block in blocks(page.name, page.read_text(encoding="utf-8")):
            yield from (line.strip().removeprefix("$ ") for line in block.code.splitlines() if "thereexists " in line)
    for name in COMMANDS:
        yield from examples(name)


def test_every_example_of_a_sparse_build_is_sparse():
    found = 0
    for line in shown_commands():
        words = shlex.split(line, comments=True)
        if words[:2] == ["thereexists", "build"] and "--pattern" in words:
            name, n = (words[words.index(option) + 1] for option in ("--pattern", "--n"))
            sizes = dict(words[k + 1].split("=") for k, word in enumerate(words) if word == "--set")
            pattern = te.patterns.build(name, int(n), **{size: int(value) for size, value in sizes.items()})
            assert max(pattern.connections) < int(n) ** 2, line
            found += 1
    assert found >= 3
    example = (ROOT / "examples/03_sparse_pattern.py").read_text(encoding="utf-8")
    build = re.search(r"pattern=te\.patterns\.(\w+)\(n=(\d+)", example)
    small = re.findall(r"te\.patterns\.(\w+)\(n=(\d), ?\w+=(\d)\)", example) if build is None else []
    for name, n in [build.groups()] if build is not None else [found[:2] for found in small]:
        assert max(te.patterns.build(name, int(n)).connections) < int(n) ** 2
    assert build is not None or small


def test_a_pattern_that_is_dense_is_called_dense(tmp_path):
    """Planted fault: the star of four tokens, which connects all of them."""
    plan = ("plan", "sort", "--n", "4", "--delta", "1/2", "--pattern")
    said = thereexists(*plan, "star", cwd=tmp_path).stdout
    assert "16 of 16 connections" in said
    assert "this attention is dense" in said
    said = thereexists(*plan, "fixed", cwd=tmp_path).stdout
    assert "8 and 10 of 16 connections" in said
    assert "dense" not in said


def test_the_help_says_how_many_blocks_there_are():
    help_ = next(p.help for p in COMMANDS["build"].params if p.name == "construction")
    words = {3: "three", 4: "four"}
    function = te.plan(te.targets.builtin("sort", n=2), delta=1 / 2, construction="compact")
    table = te.build(te.Table([[0, 0], [0, 1]], [[0, 0], [0, 1]]))
    assert f"{words[function.layers['total']]} standard blocks for a function" in " ".join(help_.split())
    assert f"{words[table.network.depth]} for a table" in " ".join(help_.split())


def test_the_front_page_knows_the_limit_of_the_ids():
    said = re.search(r"of which float64 carries (\d+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert int(said[1]) == MAX_ID_BITS


def test_makefile_and_pyproject_agree_on_the_large_test():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    marker = next(m for m in settings["tool"]["pytest"]["ini_options"]["markers"] if m.startswith("large:"))
    target = re.search(r"^test-large:.*##(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)[1]
    sizes = re.compile(r"[\d.]+ GB")
    assert sizes.findall(marker) == sizes.findall(target) == ["4.4 GB", "10 GB"]


def test_the_front_page_says_what_it_is_for_and_gives_a_command():
    """Before the first scroll or two: the purpose in plain words, one picture, one block of code and one command."""
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    opening = page[: page.index("\n## ")]
    words = opening[: opening.index("![")]
    assert len(words.strip().splitlines()) <= 14
    assert "weights of a Transformer" in words
    assert opening.count("![") == 1
    assert opening.count("```python") == 1
    assert "`make demo`" in opening
    for part in ("What it is for", "Beside its neighbours", "Citation"):
        assert f"\n## {part}\n" in page
