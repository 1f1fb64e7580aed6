"""There exists a Transformer that approximates your function. This package hands it to you.

    import thereexists as te

    target = te.Target(f, n=3, d=1, lipschitz=1.0)
    witness = te.build(target, delta=1 / 8)
    y = witness(x)

Names are imported on first use, so that ``import thereexists`` stays instant and each part needs only its own
dependencies.
"""

from thereexists import _path as _path

# isort: split
import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thereexists._version import __version__ as __version__

if TYPE_CHECKING:
    from thereexists import attention as attention
    from thereexists import automata as automata
    from thereexists import evaluate as evaluate
    from thereexists import experiments as experiments
    from thereexists import heads as heads
    from thereexists import mixers as mixers
    from thereexists import parallel as parallel
    from thereexists import patterns as patterns
    from thereexists import program as program
    from thereexists.certificates.verify import verify as verify
    from thereexists.constructions.build import build as build
    from thereexists.constructions.build import plan as plan
    from thereexists.constructions.compact.build import Compact as Compact
    from thereexists.constructions.faithful.build import Faithful as Faithful
    from thereexists.constructions.faithful.contextual import is_contextual_mapping as is_contextual_mapping
    from thereexists.constructions.faithful.selective_shift import contextual_mapping as contextual_mapping
    from thereexists.constructions.faithful.selective_shift import global_shift as global_shift
    from thereexists.constructions.faithful.selective_shift import selective_shift as selective_shift
    from thereexists.constructions.tokens.memorise import memorise as memorise
    from thereexists.constructions.tokens.table import Table as Table
    from thereexists.core.errors import ThereExistsError as ThereExistsError
    from thereexists.core.verdict import Verdict as Verdict
    from thereexists.exports import export as export
    from thereexists.functions import domains as domains
    from thereexists.functions import targets as targets
    from thereexists.functions.grid import Grid as Grid
    from thereexists.functions.target import Target as Target
    from thereexists.model import Transformer as Transformer
    from thereexists.reports.artefact import report as report
    from thereexists.reports.explore import explore as explore
    from thereexists.witness.load import load as load
    from thereexists.witness.verbs import certify as certify
    from thereexists.witness.verbs import trace as trace
    from thereexists.witness.witness import Witness as Witness


def __getattr__(name: str) -> Any:
    found = _names().get(name)
    if found is None:
        raise AttributeError(f"module 'thereexists' has no attribute {name!r}")
    try:
        value = import_module(f"{found}.{name}")  # a module of its own
    except ModuleNotFoundError:
        value = getattr(import_module(found), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_names(), "__version__"})


@cache
def _names() -> dict[str, str]:
    """Every public name, with the module it comes from. Each is written once: above, for readers and checkers."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    lines = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {name.name: line.module or "" for line in lines for name in line.names}
