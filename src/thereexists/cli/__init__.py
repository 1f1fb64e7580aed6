"""The command ``thereexists``. One file per group of commands; heavy imports happen inside the commands."""

from __future__ import annotations

import atexit
import functools
import gc
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer

from thereexists._version import __version__
from thereexists.cli import (
    attention,
    certificate,
    compact,
    experiment,
    explore,
    gallery,
    heads,
    mixers,
    pattern,
    report,
    suite,
    train,
    witness,
)
from thereexists.cli._in_words import in_words
from thereexists.cli._output import ClosedPipe, output_to_its_end, say
from thereexists.cli._usage import UsageError, no_types_of_flags, told
from thereexists.core.errors import Recovered, ThereExistsError

app = typer.Typer(
    name="thereexists",
    help="There exists a Transformer that approximates your function. This command hands it to you.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(witness.app)
app.add_typer(certificate.app)
app.add_typer(compact.app)
app.add_typer(heads.app, name="heads")
app.add_typer(pattern.app, name="pattern")
app.add_typer(attention.app, name="attention")
app.add_typer(mixers.app)
app.add_typer(train.app, name="train")
app.add_typer(experiment.app)
app.add_typer(report.app)
app.add_typer(explore.app)
app.add_typer(gallery.app)
app.add_typer(suite.app, name="suite")


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@functools.cache
def command() -> Callable[..., Any]:
    """All commands with their options, made once in a process: it takes a tenth of a second."""
    return no_types_of_flags(typer.main.get_command(app))


def _show_warning(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """What was put in order is said in one sentence; other warnings are for programmers, as ever."""
    if issubclass(category, Recovered):
        say(f"Note: {message}", error=True)
    else:
        print(warnings.formatwarning(message, category, *place[:2]), end="", file=sys.stderr)


def main() -> None:
    """Run the command; an error becomes one sentence on stderr and its exit code (``core/errors.py``)."""
    warnings.showwarning = _show_warning
    if not sys.warnoptions:
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of strange weights: what they give is checked
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)  # the last search for cycles among torch's objects would take half a second
    try:
        with output_to_its_end():
            code = command()(
                prog_name="thereexists", standalone_mode=False
            )  # its errors come to us, its exits as numbers
        if code == 130:  # Ctrl-C, as Typer tells it
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except ClosedPipe as error:
        sys.exit(error.code)  # nobody listens any more
    except UsageError as error:
        if (sentence := told(error)) is not None:
            say(f"Error: {sentence}", error=True)
        sys.exit(2)
    except ThereExistsError as error:
        say(f"Error: {error}" if error.code == 2 else str(error), error=True)
        sys.exit(error.code)
    except KeyboardInterrupt:
        say("Interrupted.", error=True)
        sys.exit(130)
    except Exception as error:
        if (sentence := in_words(error)) is None:
            raise
        say(f"Error: {sentence}", error=True)
        sys.exit(2)
