"""A command takes one object: a frozen dataclass whose annotated fields declare its arguments and options.

    @dataclass(frozen=True, kw_only=True)
    class Look:
        witness: Annotated[Path, typer.Argument(help="The folder of a witness.")]
        crew: WorkerOptions  # a group: its fields are options of the command too
        as_json: AsJson = False

    @command(app)
    def look(asked: Look) -> None: ...

What several commands share is declared once, as a group (or a base class). A command gives a group other defaults by an
instance: ``schedule: Schedule = Schedule(length=256)``. The groups are the objects that a command hands on.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

import typer
from typer.core import TyperCommand


def command(
    app: typer.Typer, name: str | None = None, kind_of_command: type[TyperCommand] | None = None
) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Register a function of one settings object as a command; its docstring is the help."""

    def register(body: Callable[[Any], None]) -> Callable[[Any], None]:
        (kind,) = [hint for name, hint in typing.get_type_hints(body).items() if name != "return"]
        options = list(_options(kind))
        twice = {option.name for option in options if [other.name for other in options].count(option.name) > 1}
        if twice:
            raise TypeError(f"{kind.__name__} declares {', '.join(sorted(twice))} twice.")

        def run(**given: Any) -> None:
            body(_made(kind, given))

        run.__name__, run.__doc__ = body.__name__, body.__doc__
        run.__annotations__ = {option.name: option.annotation for option in options}
        run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # what typer reads
        app.command(name, cls=kind_of_command)(run)
        return body

    return register


def _options(kind: type, defaults: Any = None) -> Iterator[inspect.Parameter]:
    """The options that ``kind`` declares, those of its groups in their place; ``defaults``: an instance, if any."""
    for field, hint in _fields(kind):
        default = field.default if defaults is None else getattr(defaults, field.name)
        missing = default is dataclasses.MISSING
        if not _is_group(hint):
            default = inspect.Parameter.empty if missing else default
            yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        elif missing or type(default) is hint:
            yield from _options(hint, None if missing else default)
        else:  # its options would be those of the annotation
            raise TypeError(f"{kind.__name__}.{field.name} is {hint.__name__}, its default {type(default).__name__}.")


def _made(kind: type, given: dict[str, Any]) -> Any:
    """The settings object of the values that typer read, groups first."""
    return kind(
        **{field.name: _made(hint, given) if _is_group(hint) else given[field.name] for field, hint in _fields(kind)}
    )


def _is_group(hint: Any) -> TypeGuard[type]:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def _fields(kind: type) -> list[tuple[dataclasses.Field[Any], Any]]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return [(field, hints[field.name]) for field in dataclasses.fields(kind)]
