"""Every error a user can cause derives from ``ThereExistsError``: one sentence saying what was wrong and how to fix it.

The command line prints that sentence and exits with code 2; it never shows a stack trace for bad input.
"""


class ThereExistsError(ValueError):
    """Base class: something the user gave cannot be worked with, and the message says why and what to do."""


class InvalidInput(ThereExistsError):
    """An argument, an array or a file has the wrong form."""


class InvalidTarget(ThereExistsError):
    """The function itself is at fault: it raises, returns a wrong shape, or is not what it claims to be."""


class CannotBuild(ThereExistsError):
    """The construction exists on paper but not on this arithmetic or this machine; the message names the figure."""


class Recovered(UserWarning):
    """Something that was interrupted has been put in order; the message says what."""


class BadWitnessFile(ThereExistsError):
    """A saved artefact is missing, truncated, tampered with, or from a newer version."""


class NotProved(ThereExistsError):
    """No bound could be proved of a network. It may be right all the same; no certificate is made that says so."""
