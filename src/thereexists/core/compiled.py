"""Numba by its one door: no other module of the package imports it (``tests/whole/test_house.py``).

*Its settings.* When it is imported, and again at every compilation, Numba reads ``.numba_config.yaml`` in the current
folder. In a stranger's folder that file could move Numba's cache there, and the index of a cache is a pickle: opening a
witness would run code that the folder brings. So the file is not read; variables ``NUMBA_…`` of the environment are.
Whoever imports Numba before us has chosen otherwise for the process.

*Its threads* are started so that torch does not notice. Over OpenMP, starting them sets the number of threads for the
whole process, and torch would forget the one that it was given (``OMP_NUM_THREADS``, ``torch.set_num_threads``): small
tensors are then a hundred times slower.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from thereexists.core.errors import Obstructed


@contextmanager
def _no_settings_of_the_folder() -> Iterator[None]:
    """Numba reads no file as long as there is no ``yaml``; afterwards it looks for one that there cannot be."""
    if "numba" in sys.modules:
        yield
        return
    yaml = sys.modules.get("yaml")
    sys.modules["yaml"] = None  # type: ignore[assignment]  # to import it is an ImportError
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A Numba config file is found")
            yield
    finally:
        del sys.modules["yaml"]
        if yaml is not None:
            sys.modules["yaml"] = yaml
    config = sys.modules["numba.core.config"]
    assert hasattr(config, "_config_fname")
    config._config_fname = os.devnull  # type: ignore[attr-defined]  # no regular file


with _no_settings_of_the_folder():
    try:
        from numba import config, get_num_threads, njit, prange, set_num_threads
    except ValueError as error:  # of a variable NUMBA_…; no file that is being checked is at fault
        raise Obstructed(
            f"Numba cannot be loaded ({error}); look at the variables NUMBA_… of the environment."
        ) from error

__all__ = ["config", "njit", "prange", "set_num_threads", "start_threads"]


@cache
def start_threads() -> None:
    """Before the first parallel kernel of a process."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else None
    set_num_threads(get_num_threads())  # which starts them all
    if torch is not None:
        torch.set_num_threads(before)
