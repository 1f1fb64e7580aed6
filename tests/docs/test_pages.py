"""Every command line and code block of the README and the docs is run, page by page, in an empty folder each."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.docs import shell
from tests.docs.blocks import ROOT, BadBlock, Block, blocks, inline_commands, pages

PAGES = {str(page.relative_to(ROOT)): page for page in pages()}


def blocks_of(page: str) -> list[Block]:
    return blocks(page, PAGES[page].read_text(encoding="utf-8"))


SLOW = {  # two to ten seconds each; what the last three show, the README and the tests of the commands run too
    *("docs/training.md", "docs/scale.md", "docs/domains.md", "docs/symbols.md"),
    *("docs/patterns.md", "docs/experiments.md", "docs/heads.md"),
}


@pytest.mark.parametrize("page", [pytest.param(page, marks=pytest.mark.slow if page in SLOW else ()) for page in PAGES])
def test_every_block_of_the_page_runs(page, worker, tmp_path):
    worker(page, tmp_path, "always")


def pages_with(kind: str) -> list[str]:
    return [page for page in PAGES if f"<!-- test: {kind}:" in PAGES[page].read_text(encoding="utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("slow"))
def test_slow_blocks_run_too(page, worker, tmp_path):
    worker(page, tmp_path, "always,slow")


@pytest.mark.gpu
@pytest.mark.parametrize("page", pages_with("gpu"))
def test_gpu_blocks_run_too(page, worker, tmp_path):
    worker(page, tmp_path, "always,gpu")


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_text_exist(page):
    for command in inline_commands(PAGES[page].read_text(encoding="utf-8")):
        shell.parse_mention(command)


def test_few_blocks_are_never_run():
    """What no test runs is listed here, so that the list is looked at when it grows."""
    never = Counter(page for page in PAGES for block in blocks_of(page) if block.when == "never")
    assert never == {
        "README.md": 2,
        "docs/experiments.md": 1,
        "docs/explore.md": 2,
        "docs/scale.md": 2,
        "docs/suites.md": 1,
    }


@pytest.mark.parametrize(
    "text",
    [
        "```rust\nfn main() {}\n```",
        "```\nprint(1)\n```",
        "text\n\n    x = te.build(target)\n",
        "<!-- test: later: some day -->\n```sh\nmake demo\n```",
        "<!-- test: slow -->\n```sh\nmake demo\n```",
        "<!-- test: slow: stands before nothing -->\n\n# Heading\n",
    ],
)
def test_a_block_that_nobody_could_run_is_refused(text):
    with pytest.raises(BadBlock):
        blocks("page", text)


@pytest.mark.parametrize(
    "line",
    [
        "thereexists bild sort",
        "thereexists build sort --n 3 --grid 8",
        "thereexists pattern check strided --n 16 [--causal]",
        "thereexists heads random --length 8",
        "make coffee",
        "pip install 'thereexists[everything]'",
        "python benchmarks/nothing.py",
        "curl example.org",
    ],
)
def test_a_command_that_does_not_exist_is_refused(line):
    with pytest.raises(BadBlock):
        shell.parse(shell.lines(line)[0])


@pytest.mark.parametrize("text", ["thereexists bild", "thereexists build sort --grid 8", "make coffee"])
def test_a_mention_of_what_does_not_exist_is_refused(text):
    with pytest.raises(BadBlock):
        shell.parse_mention(text)


def test_a_failing_block_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="ended with 2"):
        shell.run_sh(Block("page", 1, "sh", "thereexists --grid 8\n"))
    with pytest.raises(AssertionError, match="ended with 0, not 2"):
        shell.run_sh(Block("page", 1, "sh", "thereexists --version\n", code_expected=2))
    with pytest.raises(AssertionError, match="printed"):
        shell.run_console(Block("page", 1, "console", "$ thereexists --version\n99.9\n"))
    shell.run_console(Block("page", 1, "console", "$ thereexists --version\n…\n"))


def test_an_ellipsis_stands_for_anything_but_not_for_the_rest():
    assert shell.same("a  b\nc … f", "a b c d e f\n")
    assert not shell.same("a … f", "a b c")
    assert not shell.same("a b", "a b c")


def test_every_link_leads_somewhere():
    for page in PAGES.values():
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            made = target.startswith("live/")  # by the build, whose own test looks for it
            assert made or (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_test_that_a_page_names_is_there():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES.values())
    named = set(re.findall(r"\btests/[\w/.]*\w", text))
    assert "tests/certificates/test_checkers.py" in named
    assert [path for path in named if not (ROOT / path).exists()] == []
