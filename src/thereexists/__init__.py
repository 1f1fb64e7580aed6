"""There exists a Transformer that approximates your function. This package hands it to you.

    import thereexists as te

    target = te.Target(f, n=3, d=1, lipschitz=1.0)
    witness = te.build(target, delta=1 / 8)
    y = witness(x)

Names are imported on first use, so that ``import thereexists`` stays instant and each part needs only its own
dependencies.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thereexists._version import __version__

if TYPE_CHECKING:
    from thereexists import patterns
    from thereexists.errors import ThereExistsError
    from thereexists.verdict import Verdict

_PUBLIC = {
    "ThereExistsError": "thereexists.errors",
    "Verdict": "thereexists.verdict",
    "patterns": "thereexists.patterns",
}

__all__ = ["ThereExistsError", "Verdict", "__version__", "patterns"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'thereexists' has no attribute {name!r}")
    module = _PUBLIC[name]
    value = import_module(module) if module.rpartition(".")[2] == name else getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
