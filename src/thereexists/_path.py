"""``python -m thereexists`` in a stranger's folder must not run what lies in it.

With ``-m``, Python puts the current folder first on the path: a ``rich.py`` or an ``ast.py`` there would be imported in
place of the right one. So the folder is taken off again before anything is imported but what Python itself has started
with: ``__init__.py`` imports this file first, as ``__main__.py`` comes too late for what stands in ``__init__.py``. If
the package itself was found in the current folder, the folder stays. Whoever imports the package keeps his path.

What Python imports before it comes here (``importlib``, ``functools``, a package called ``thereexists``), it still
takes from the folder. The installed command, and ``python -P -m thereexists``, do not look there at all.
"""

import os
import sys


def taken_off() -> bool:
    """Whether it was; ``argv[0]`` is "-m" as long as Python looks for the module that it is to run."""
    if sys.argv[:1] != ["-m"] or _module() != "thereexists" or sys.flags.safe_path:
        return False
    try:
        here = os.getcwd()
    except OSError:  # the folder is gone, and all that lay in it
        return False
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.path or os.path.abspath(sys.path[0]) != here or os.path.samefile(home, here):
        return False
    del sys.path[0]
    return True


def _module() -> str:
    """The package of ``-m NAME``, ``-um NAME`` or ``-mNAME``; by hand, for ``re`` could be the folder's."""
    words = iter(sys.orig_argv[1:])
    for word in words:
        if word in ("-X", "-W"):
            next(words, "")
        elif word.startswith("-") and not word.startswith(("-X", "-W", "--")) and "m" in word:
            return (word.partition("m")[2] or next(words, "")).partition(".")[0]
    return ""


taken_off()
