"""The experiments of papers A and B: tasks, training, tables. Needs ``pip install 'thereexists[train]'``.

from thereexists.experiments import Budget, Settings, train

settings = Settings("mlm", Budget(tokens=2_000_000), {"size": "tiny", "mixer": "sepconv"}, {"corpus": "wiki.txt.xz"})
result = train(settings, Path("runs/a"))
result["metrics"]["accuracy"]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thereexists.experiments.grid import EXPERIMENTS, Run, unfold
    from thereexists.experiments.runner import How, Outcome, run_all
    from thereexists.experiments.settings import Budget, Execution, Settings
    from thereexists.experiments.training import train

_LAZY = {
    "EXPERIMENTS": "grid",
    "Budget": "settings",
    "Execution": "settings",
    "How": "runner",
    "Outcome": "runner",
    "Run": "grid",
    "Settings": "settings",
    "run_all": "runner",
    "train": "training",
    "unfold": "grid",
}

__all__ = ["EXPERIMENTS", "Budget", "Execution", "How", "Outcome", "Run", "Settings", "run_all", "train", "unfold"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'thereexists.experiments' has no attribute {name!r}")
    return getattr(import_module(f"thereexists.experiments.{_LAZY[name]}"), name)
