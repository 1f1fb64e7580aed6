"""Every command there is, and the command lines that its help shows."""

import inspect

from thereexists.cli import command


def walk(command, path=()):
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(below, (*path, name))
    if not hasattr(command, "commands"):
        yield " ".join(path), command


COMMANDS = dict(walk(command()))


def examples(name):
    """The command lines in a command's help."""
    lines = [line.split(": ", 1)[-1] for line in inspect.cleandoc(COMMANDS[name].help or "").splitlines()]
    return [line for line in lines if line.startswith("thereexists ")]
