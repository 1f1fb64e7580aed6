"""Matplotlib by its one door: no other module of the package imports it (``tests/whole/test_house.py``).

Pictures are drawn with matplotlib's own settings. A ``matplotlibrc`` in the current folder would come before the user's
own, and in a stranger's folder it could ask for LaTeX, with a preamble that LaTeX obeys.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from thereexists.core.errors import InvalidInput


@contextmanager
def drawing() -> Iterator[None]:
    """What is drawn and saved inside, or by a function that this decorates, has matplotlib's own settings."""
    try:
        import matplotlib
    except ImportError:
        raise InvalidInput("Pictures need matplotlib: pip install 'thereexists[plot]'.") from None
    except Exception as error:  # a matplotlibrc that it cannot read
        raise InvalidInput(f"matplotlib cannot be loaded: {type(error).__name__}: {error}.") from error
    own: Any = {name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith("backend")}
    with matplotlib.rc_context(own):
        yield


def new_figure(**how: Any) -> Any:
    """Without pyplot: no window, and no backend to choose."""
    from matplotlib.figure import Figure

    return Figure(**how)
