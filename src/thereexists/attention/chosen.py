"""Which pattern a layer of a ``transformers`` model attends to, at the length at hand; and how a config holds it.

A module's own pattern (``use_pattern``) comes first, then that of its config (``asked``), then everything. A config may
be a stranger's: what it names is checked, and its work bounded, before anything is built. What was made for a length is
kept, for the layers of a model share it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from torch import nn

from thereexists.attention.asked import pattern_asked
from thereexists.attention.driven import layer_of
from thereexists.core.errors import InvalidInput
from thereexists.patterns import Pattern, Step
from thereexists.patterns.library import of_kinds
from thereexists.patterns.numbers import shown
from thereexists.patterns.stated import build_stated, check_stated
from thereexists.patterns.stored import record, restore

Source = Pattern | Callable[[int], Pattern]


def pattern_of(module: nn.Module, n: int, heads: int, causal: bool) -> Pattern | Step:
    """What this module attends to at length n."""
    source = _source_of(module)
    if not (isinstance(source, str | dict | Pattern) or callable(source)):
        raise InvalidInput(f"'thereexists_pattern' must be a pattern's name or a dictionary; got {shown(source)}.")
    if isinstance(source, dict) and "function" in source:
        raise InvalidInput(
            f"This model was saved with a pattern made by a function ({source['function']}), which a config cannot "
            "hold; call te.attention.use_pattern(model, function) after loading it."
        )
    if isinstance(source, dict) and "stored" in source:
        source = _decoded(module, source, n)
    if isinstance(source, str | dict):
        pattern = _from_spec(spec_of(source), n, heads, causal)
    else:
        pattern = _called(_ThisVery(source), n, causal)
    if isinstance(pattern, Step) or pattern.heads is not None:
        return pattern
    return pattern.step(layer_of(module, pattern.name) % pattern.cycle if pattern.cycle > 1 else 0)


def asks_for_a_pattern(module: nn.Module) -> bool:
    """Whether a pattern is given that is not simply full attention."""
    source = _source_of(module)
    return source not in ("dense", {"name": "dense"})


def _source_of(module: nn.Module) -> Any:
    """As it was given: to this module, or in a config; full attention where nothing was."""
    source = getattr(module, "_thereexists_pattern", None)
    source = pattern_asked(module) if source is None else source
    return "dense" if source is None else source


def to_store(pattern: Source | str | dict[str, Any]) -> str | dict[str, Any]:
    """What stands in config.json for the pattern."""
    if isinstance(pattern, str | dict):
        return pattern
    if isinstance(pattern, Pattern):
        return {"stored": record(pattern)}
    return {"function": getattr(pattern, "__qualname__", type(pattern).__name__)}


def _decoded(module: nn.Module, source: dict[str, Any], n: int) -> Pattern:
    """The pattern of a record, kept with the module for as long as its config holds this very record."""
    kept = getattr(module, "_thereexists_decoded", None)
    if kept is None or kept[0] is not source or kept[1].n != n:
        kept = (source, restore(source["stored"], n))
        module._thereexists_decoded = kept  # type: ignore[assignment]
    return kept[1]


def spec_of(source: str | dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    spec = {"name": source} if isinstance(source, str) else dict(source)
    config = spec.setdefault("config", "sequential")
    if "name" not in spec or config not in ("sequential", "union", "multihead"):
        raise InvalidInput(
            "'thereexists_pattern' must be a pattern's name or a dictionary with 'name', its sizes and 'config' "
            f"(sequential, union or multihead); got {shown(source)}."
        )
    sizes = {k: tuple(v) if isinstance(v, list) else v for k, v in spec.items()}
    for name, size in sizes.items():
        if not all(isinstance(x, int | float | str) for x in (name, *(size if isinstance(size, tuple) else (size,)))):
            raise InvalidInput(f"'{name}' of a pattern must be a number, a name or a list of them; got {shown(size)}.")
    if not isinstance(sizes["name"], str):
        raise InvalidInput(f"The 'name' of a pattern must be a text; got {shown(sizes['name'])}.")
    # Before the cache, in which true is 1 and 2.0 is 2.
    of_kinds(sizes["name"], {k: v for k, v in sizes.items() if k not in ("name", "config")})
    return tuple(sorted(sizes.items()))


@lru_cache(maxsize=256)
def _from_spec(spec: tuple[tuple[str, Any], ...], n: int, heads: int, causal: bool) -> Pattern | Step:
    sizes = dict(spec)
    name, config = sizes.pop("name"), sizes.pop("config")
    check_stated(name, n, sizes, union=config == "union", at_hand=True)  # a config may be a stranger's
    pattern = _whole(name, tuple(sizes.items()), n, causal)
    if config == "union":
        return _union(pattern)
    if config == "multihead" and pattern.cycle > 1:
        return pattern.multihead(heads)
    return pattern


@lru_cache(maxsize=64)
def _whole(name: str, sizes: tuple[tuple[str, Any], ...], n: int, causal: bool) -> Pattern:
    pattern = build_stated(name, n, dict(sizes), at_hand=True)
    return _no_future(pattern) if causal else pattern


@lru_cache(maxsize=64)
def _union(pattern: Pattern) -> Step:
    return pattern.union_step()  # layers share it, and with it the plan


class _ThisVery:
    """A key that only the very same object matches, whatever that object's own ``__eq__`` and ``__hash__`` say."""

    def __init__(self, source: Pattern | Callable[..., object]) -> None:
        self.source = source

    def __hash__(self) -> int:
        return object.__hash__(self.source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ThisVery) and other.source is self.source


@lru_cache(maxsize=64)
def _called(key: _ThisVery, n: int, causal: bool) -> Pattern:
    source = key.source
    pattern = source if isinstance(source, Pattern) else source(n)
    if not isinstance(pattern, Pattern):
        raise InvalidInput(
            f"The function given to 'use_pattern' must return a pattern; for n = {n} it returned a "
            f"{type(pattern).__name__}. Give pattern.union() or the like instead of one of its steps."
        )
    if pattern.n != n:
        raise InvalidInput(
            f"'{pattern.name}' has {pattern.n} tokens and the model got {n}; give use_pattern a function of n, such as "
            "lambda n: te.patterns.strided(n, 32)."
        )
    return _no_future(pattern) if causal else pattern


def _no_future(pattern: Pattern) -> Pattern:
    """With j ≤ k asked of every pair, and not only found by counting, as ``pattern.causal`` is."""
    return pattern if all(step.causal for step in pattern.steps) else pattern.as_causal()
