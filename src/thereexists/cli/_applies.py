"""An option that has no use for what it is given with is refused, not ignored: who wrote it wanted something of it.

What was *said* counts, not the value: ``--p 1`` is refused where no p is read, though 1 is the default. A kind states
what it takes; all else is refused, future options too. A dry run takes the options of the run that it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from thereexists.core.errors import InvalidInput

ALWAYS = ("as_json", "json")  # every command prints


def said() -> dict[str, str]:
    """The options and arguments on the command line: the name of each, and how it is written."""
    context = _context()
    if context is None:  # called from Python: nothing was typed
        return {}
    typed = {name: context.get_parameter_source(name) for name in context.params}
    written = {parameter.name: _written(parameter, context) for parameter in context.command.params}
    return {
        name: written[name] for name, source in typed.items() if source is not None and source.name == "COMMANDLINE"
    }


def refuse(why: str, *names: str) -> None:
    """Options that have no use here, with the reason."""
    for name, option in said().items():
        if name in names:
            raise InvalidInput(f"{option} does not apply here: {why}; leave it out.")


def take_only(names: Collection[str], why: str) -> None:
    """Refuse whatever else was said."""
    refuse(why, *(name for name in said() if name not in names and name not in ALWAYS))


def at_the_end(do: Callable[[], Any]) -> None:
    """When the command is over, however it ended; of a call from Python, never."""
    context = _context()
    if context is not None:
        context.call_on_close(do)


def _written(parameter: Any, context: Any) -> str:
    """``--heads``; of a pair such as --certify/--no-certify the one that was meant."""
    off = getattr(parameter, "secondary_opts", None) and context.params.get(parameter.name) is False
    options = parameter.secondary_opts if off else parameter.opts
    return max(options, key=len)


def _context() -> Any:
    try:
        from typer._click.globals import get_current_context
    except ImportError:  # before typer brought click along
        from click import get_current_context  # pyright: ignore[reportMissingImports]
    return get_current_context(silent=True)
