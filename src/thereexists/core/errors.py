"""What a user may get wrong derives from ``ThereExistsError``: one sentence saying what was wrong and how to fix it.

A file, a value, an option, a size, a shape. (An argument that is no such thing at all, None in place of a tensor, is a
mistake in a program: Python may say so in its own words.)

The command line prints that sentence and exits with the error's ``code``; it never shows a stack trace for bad input.

    0   done; of a check: it holds
    1   looked at, and it does not hold, or is not proved
    2   could not be done or checked: a mistake in what was asked, or something that cannot be read or written
"""

from typing import ClassVar

from thereexists.core.plain_text import visible


class ThereExistsError(ValueError):
    """The base class of every error that a user can cause; the message says what was wrong and how to mend it.

        try:
            te.build(te.targets.builtin("sort", n=2), delta=0.3)
        except te.ThereExistsError as error:
            print(error)

    ``code`` is the exit code of a command that ends with it.
    """

    code: ClassVar[int] = 2

    def __str__(self) -> str:
        """The sentence may quote a stranger's file: what a terminal would obey is written out."""
        return "\n".join(visible(line) for line in super().__str__().split("\n"))


class InvalidInput(ThereExistsError):
    """An argument, an array or a file has the wrong form."""


class Obstructed(InvalidInput):
    """Something beside the files stood in the way: an option, a folder to work in, a pool, a function that is missing.

    A check that meets it says nothing about what it should have checked.
    """


class InvalidTarget(ThereExistsError):
    """The function itself is at fault: it raises, returns a wrong shape, or is not what it claims to be."""


class CannotBuild(ThereExistsError):
    """The construction exists on paper but not on this arithmetic or this machine; the message names the figure."""


class Recovered(UserWarning):
    """Something that was interrupted has been put in order; the message says what."""


class BadWitnessFile(ThereExistsError):
    """A saved artefact is missing, truncated, tampered with, or from a newer version."""


class Unreadable(BadWitnessFile):
    """A saved artefact is not there, cannot be read here, or is from a newer version: nothing is known of it."""


class NotProved(ThereExistsError):
    """No bound could be proved of a network. It may be right all the same; no certificate is made that says so."""

    code = 1
