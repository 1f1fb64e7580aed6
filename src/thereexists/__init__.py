"""There exists a Transformer that approximates your function. This package hands it to you.

    import thereexists as te

    target = te.Target(f, n=3, d=1, lipschitz=1.0)
    witness = te.build(target, delta=1 / 8)
    y = witness(x)

Names are imported on first use, so that ``import thereexists`` stays instant and each part needs only its own
dependencies.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from thereexists._version import __version__

if TYPE_CHECKING:
    from thereexists import (
        attention,
        evaluate,
        experiments,
        heads,
        mixers,
        parallel,
        patterns,
        program,
        report,
        targets,
    )
    from thereexists.build import build
    from thereexists.certificates import certify, verify
    from thereexists.constructions import contextual_mapping, global_shift, selective_shift
    from thereexists.contextual import is_contextual_mapping
    from thereexists.errors import ThereExistsError
    from thereexists.export import export
    from thereexists.grid import Grid
    from thereexists.memorise import memorise
    from thereexists.model import Transformer
    from thereexists.plan import plan
    from thereexists.table import Table
    from thereexists.target import Target
    from thereexists.tokens import TokenWitness
    from thereexists.trace import trace
    from thereexists.verdict import Verdict
    from thereexists.witness import Witness, load

_PUBLIC = {
    "Grid": "thereexists.grid",
    "Table": "thereexists.table",
    "Target": "thereexists.target",
    "ThereExistsError": "thereexists.errors",
    "TokenWitness": "thereexists.tokens",
    "Transformer": "thereexists.model",
    "Verdict": "thereexists.verdict",
    "Witness": "thereexists.witness",
    "attention": "thereexists.attention",
    "build": "thereexists.build",
    "certify": "thereexists.certificates",
    "contextual_mapping": "thereexists.constructions",
    "evaluate": "thereexists.evaluate",
    "experiments": "thereexists.experiments",
    "export": "thereexists.export",
    "global_shift": "thereexists.constructions",
    "heads": "thereexists.heads",
    "is_contextual_mapping": "thereexists.contextual",
    "load": "thereexists.witness",
    "mixers": "thereexists.mixers",
    "memorise": "thereexists.memorise",
    "parallel": "thereexists.parallel",
    "patterns": "thereexists.patterns",
    "plan": "thereexists.plan",
    "program": "thereexists.program",
    "report": "thereexists.report",
    "selective_shift": "thereexists.constructions",
    "targets": "thereexists.targets",
    "trace": "thereexists.trace",
    "verify": "thereexists.certificates",
}
# Public names that are modules themselves.
_MODULES = {
    "attention",
    "evaluate",
    "experiments",
    "heads",
    "mixers",
    "parallel",
    "patterns",
    "program",
    "report",
    "targets",
}

__all__ = [
    "Grid",
    "Table",
    "Target",
    "ThereExistsError",
    "TokenWitness",
    "Transformer",
    "Verdict",
    "Witness",
    "__version__",
    "attention",
    "build",
    "certify",
    "contextual_mapping",
    "evaluate",
    "experiments",
    "export",
    "global_shift",
    "heads",
    "is_contextual_mapping",
    "load",
    "memorise",
    "mixers",
    "parallel",
    "patterns",
    "plan",
    "program",
    "report",
    "selective_shift",
    "targets",
    "trace",
    "verify",
]


class _Package(ModuleType):
    """``te.build`` is the function, though it lives in ``build.py``: importing a file does not hide what it defines."""

    def __getattr__(self, name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'thereexists' has no attribute {name!r}")
        module = import_module(_PUBLIC[name])
        value = module if name in _MODULES else getattr(module, name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        hides_a_function = isinstance(value, ModuleType) and name in _PUBLIC and name not in _MODULES
        if not hides_a_function:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(__all__)


sys.modules[__name__].__class__ = _Package
