"""Matplotlib by its one door: no other module of the package imports it (``tests/whole/test_house.py``).

Pictures are drawn with matplotlib's own settings. A ``matplotlibrc`` in the current folder would come before the user's
own, and in a stranger's folder it could ask for LaTeX, with a preamble that LaTeX obeys. Matplotlib reads the file when
it is imported, whatever comes of it; so it must be an ordinary file of moderate size, and what matplotlib has to say
about it is not repeated.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.core.regular_files import read_regular

SETTINGS = "matplotlibrc"  # of the current folder
MOST_SETTINGS = 1 << 20  # bytes; matplotlib's own has 45,000


@contextmanager
def drawing() -> Iterator[None]:
    """What is drawn and saved inside, or by a function that this decorates, has matplotlib's own settings."""
    if "matplotlib" not in sys.modules and Path(SETTINGS).exists():
        read_regular(SETTINGS, MOST_SETTINGS, InvalidInput)
    warner = logging.getLogger("matplotlib")
    level = warner.level
    try:
        warner.setLevel(logging.CRITICAL)
        import matplotlib
    except ImportError:
        raise InvalidInput("Pictures need matplotlib: pip install 'thereexists[plot]'.") from None
    except Exception as error:  # a matplotlibrc that it cannot read
        raise InvalidInput(f"matplotlib cannot be loaded: {type(error).__name__}: {error}.") from error
    finally:
        warner.setLevel(level)
    own: Any = {name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith("backend")}
    with matplotlib.rc_context(own):
        yield


def new_figure(**how: Any) -> Any:
    """Without pyplot: no window, and no backend to choose."""
    from matplotlib.figure import Figure

    return Figure(**how)
