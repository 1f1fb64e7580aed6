"""What is said of a command line that cannot be read: one plain sentence, with the nearest name where there is one."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import typer

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # pyright: ignore[reportAssignmentType]  # of the click that typer brings, whichever it is


def told(error: Any) -> str | None:
    """The sentence; None for a bare group of commands, which has shown its help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return None
    missing = getattr(error, "option_name", None)
    if type(error).__name__ == "NoSuchOption" and missing is not None:
        sentence = f"There is no option {missing}{_nearest(missing, error.ctx)}"
    else:
        sentence = " ".join(error.format_message().replace(": Value error, ", ": ").split())
    sentence = sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."
    return (
        sentence
        if error.ctx is None or "id you mean" in sentence
        else f"{sentence} See: {error.ctx.command_path} --help"
    )


def no_types_of_flags(command: Any) -> Any:
    """The command, in whose help a flag takes nothing: ``--json``, not ``--json <bool>``."""
    every = command.get_params  # --help among them

    def without_types(context: Any) -> Any:
        for flag in (parameter for parameter in every(context) if getattr(parameter, "is_flag", False)):
            flag.display_type_rich = lambda ctx: None
        return every(context)

    command.get_params = without_types
    for below in getattr(command, "commands", {}).values():
        no_types_of_flags(below)
    return command


def _nearest(name: str, context: Any) -> str:
    if context is None:
        return ""
    known = [option for p in context.command.params for option in (*p.opts, *p.secondary_opts) if option[:1] == "-"]
    found = get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]}?" if found else f" of {context.command_path}"
