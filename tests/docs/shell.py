"""Command lines of the docs: read them, check that they could work, run them in this process."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
import tomllib
from pathlib import Path
from unittest.mock import patch

from tests.docs.blocks import ROOT, BadBlock, Block
from thereexists.cli import command as whole_command
from thereexists.cli import main

_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
_EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def lines(code: str) -> list[list[str]]:
    """The commands of a block as lists of words: comments dropped, continued lines joined."""
    found = []
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            found.append(words)
    return found


def parse(words: list[str]) -> None:
    """Raise ``BadBlock`` for a command that cannot work: no such command, option, file or target."""
    first, *rest = words
    if first == "thereexists":
        _parse_click(rest)
    elif first == "make":
        if not set(rest) <= _TARGETS:
            raise BadBlock(f"make has no target {' '.join(rest)}")
    elif first == "pip":
        for extra in re.findall(r"thereexists\[([^]]*)\]", " ".join(rest)):
            if not set(extra.split(",")) <= _EXTRAS:
                raise BadBlock(f"the package has no extra among {extra}")
    elif first in ("python", "pytest"):
        for word in rest:
            read = re.match(r"(benchmarks|examples|tests)/", word)
            if read and not (ROOT / word.split("::")[0]).exists():
                raise BadBlock(f"there is no {word}")
    elif first != "torchrun":
        raise BadBlock(f"the test cannot run {first!r}")


def _parse_click(arguments: list[str]) -> None:
    """Let the command itself read its options; files need not exist."""
    command, words = find(arguments)
    if hasattr(command, "commands") or words == ["--help"]:
        return
    try:
        command.make_context(command.name, list(words), resilient_parsing=False)
    except Exception as error:
        raise BadBlock(f"thereexists {' '.join(arguments)}: {getattr(error, 'message', None) or error}") from error


def find(arguments: list[str]):
    """Walk the groups of the command: the command that is named, and the words after its name."""
    command, words = whole_command(), list(arguments)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name = words.pop(0)
        if name not in command.commands:
            raise BadBlock(f"there is no command {name!r}")
        command = command.commands[name]
    return command, words


def parse_mention(text: str) -> None:
    """A command in the running text may be a fragment: its name, its options and its files must exist."""
    words = text.replace("[", " ").replace("]", " ").split()
    if words[0] != "thereexists":
        if words[0] in ("make", "pip") or words[1].endswith(".py"):
            parse(text.split())
        return
    command, rest = find(words[1:])
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for word in rest:
        if word.startswith("--") and word.split("=")[0] not in known | {"--help"}:
            raise BadBlock(f"{text}: no such option {word}")


def run(words: list[str]) -> tuple[int, str]:
    """Exit code and everything that was printed. Nothing is started outside this process."""
    parse(words)
    first, *rest = words
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        if first == "thereexists":
            code = _in_process(main, ["thereexists", *rest])
        elif first == "python" and rest[0].endswith(".py"):
            with patch.object(sys, "path", [str(Path(rest[0]).parent), *sys.path]):  # as Python does
                code = _in_process(lambda: runpy.run_path(rest[0], run_name="__main__"), rest)
        elif first in ("make", "pip"):
            code = 0  # parsed above: running them here would build the environment that runs this test
        else:
            raise BadBlock(f"the test cannot run {' '.join(words)}")
    return code, out.getvalue()


def _in_process(call, argv: list[str]) -> int:
    with patch.object(sys, "argv", argv):
        try:
            call()
        except SystemExit as exit:
            return exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    return 0


def run_sh(block: Block) -> str:
    """Every command of a block; the last one's exit code must be the expected one, all others' 0."""
    printed, commands = "", lines(block.code)
    for i, words in enumerate(commands):
        code, output = run(words)
        printed += output
        wanted = block.code_expected if i == len(commands) - 1 else 0
        if code != wanted:
            raise AssertionError(f"{block}: {shlex.join(words)} ended with {code}, not {wanted}:\n{output}")
    return printed


def run_console(block: Block) -> None:
    """``$ command`` lines are run; what stands below each must be what it prints, … standing for anything."""
    pieces = re.split(r"^\$ ", block.code, flags=re.M)
    if pieces[0].strip():
        raise BadBlock(f"{block}: a console block begins with '$ '")
    for piece in pieces[1:]:
        command, _, shown = piece.partition("\n")
        (words,) = lines(command)
        code, output = run(words)
        if code != block.code_expected:
            raise AssertionError(f"{block}: {command} ended with {code}:\n{output}")
        if not same(shown, output):
            raise AssertionError(f"{block}: {command} printed\n{output}\nand not\n{shown}")


def same(shown: str, printed: str) -> bool:
    """Equal up to spaces, with … in ``shown`` for anything."""
    pieces = [re.escape(" ".join(piece.split())) for piece in shown.split("…")]
    pattern = r".*".join(piece.replace(r"\ ", r"\s*") for piece in pieces)
    return re.fullmatch(rf"\s*{pattern}\s*", " ".join(printed.split()), flags=re.S) is not None
