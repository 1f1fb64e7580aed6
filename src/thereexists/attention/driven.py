"""Is this model's attention really ours? Hooks that refuse, by name, a model that computes attention without us.

transformers accepts any registered ``attn_implementation`` for any model and does not look whether the model asks the
registry. Three looks close that gap:

- before the model is built, at the source of its class: attention classes and no word of the registry;
- after every run of an attention module (a class with *Attention* in its name, or with ``is_causal``), at whether our
  function ran inside it;
- after every run of the model, at whether our function ran at all.

What is left over is caught by the mask itself (``pattern_mask``). The hooks also note which modules are
cross-attention, which stays dense, and in which layer each module stands (``layer_of``). The state is one stack for
each thread: the modules that are running.
"""

from __future__ import annotations

import inspect
import re
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from thereexists.attention.pattern_mask import not_driven
from thereexists.core.constant_result import constant_result
from thereexists.core.errors import InvalidInput

NAME = "thereexists"
_CROSS = re.compile(r"cross|encoder_?attn|enc_?dec|encoder_decoder", re.IGNORECASE)
_OTHER_STATES = ("key_value_states", "encoder_hidden_states", "cross_attention_states", "context_hidden_states")
WATCHED = "_thereexists_watched"
_ASKED = "_thereexists_asked"  # of a module around compiled code that calls us


@dataclass
class Running:
    """A watched module that is running now."""

    module: nn.Module
    attends: bool  # an attention module, not a whole model
    ours: bool  # the model around it runs with our implementation
    cross: bool
    calls: int = 0  # of our attention function, so far
    inside: list[nn.Module] = field(default_factory=list)  # of a whole model: the modules that called it, in order


class _Stack(threading.local):
    def __init__(self) -> None:
        self.running: list[Running] = []


_STACK = _Stack()


def refuse_by_source(model: nn.Module) -> None:
    """Refuse a class whose file defines attention and never asks the registry, or asks a table without our name."""
    module = sys.modules.get(type(model).__module__)
    try:
        source = inspect.getsource(module) if module is not None else ""
    except (OSError, TypeError):
        return  # no source to read: the hooks decide
    defines = re.search(r"^class \w*Attention\w*\((nn\.)?Module\):", source, re.MULTILINE)
    if defines and "ALL_ATTENTION_FUNCTIONS" not in source:
        raise not_driven(owner_of(model), "its file never asks the interface")
    asked = re.findall(r"(\w+ATTENTION_CLASSES)\[\w*\.?config\._attn_implementation\]", source)
    for table in asked:
        if NAME not in getattr(module, table, {NAME: None}):
            raise not_driven(owner_of(model), f"it looks its attention up in {table}")


def watch(model: nn.Module) -> None:
    """Install the hooks in ``model`` and in its attention modules; harmless when repeated."""
    _hook(model, attends=False)
    for path, module in _ours(model):
        if is_attention(module):
            named = _CROSS.search(path.rpartition(".")[2]) or _CROSS.search(type(module).__name__)
            module._thereexists_cross = bool(named or getattr(module, "is_cross_attention", False))  # type: ignore
            _hook(module, attends=True)
    _number(model)


def ran(module: nn.Module) -> None:
    """Our attention function has been called by ``module``."""
    if torch.compiler.is_compiling():
        _asked_in_compiled_code()
        return
    for running in _STACK.running:
        running.calls += 1
    if (around := _model_around()) is not None:
        around.inside.append(module)


@constant_result
def _asked_in_compiled_code() -> bool:
    """A compiler calls this once, while the modules run that are around the code it makes; that code counts nothing."""
    for running in _STACK.running:
        running.module.__dict__[_ASKED] = True
    return True


def layer_of(module: nn.Module, pattern: str) -> int:
    """The layer in which ``module`` stands; asked only for a ``pattern`` that differs from layer to layer."""
    layer = getattr(module, "_thereexists_layer", None)
    around = None if torch.compiler.is_compiling() else _model_around()
    if around is not None:
        shared = sum(other is module for other in around.inside) > 1
    else:  # compiled, or computed again in a backward: the calls are not counted, so compare the numbers of layers
        depth = getattr(getattr(module, "config", None), "num_hidden_layers", None)
        shared = isinstance(depth, int) and getattr(module, "_thereexists_layers", depth) < depth
    if layer is None:
        layer = getattr(module, "layer_idx", None)
    if shared or not isinstance(layer, int):
        why = "uses one attention module in several layers" if shared else "does not number its attention modules"
        raise InvalidInput(
            f"{owner_of(module)} {why}, and '{pattern}' differs from layer to layer; give a pattern with one step, "
            "its union() or its multihead(heads), or in a config 'config': 'union' or 'multihead'."
        )
    return layer


def is_cross(module: nn.Module) -> bool:
    """Whether ``module`` attends to another sequence: by its place in the model, or by what it was given."""
    if getattr(module, "_thereexists_cross", False) or "Cross" in type(module).__name__:
        return True
    if torch.compiler.is_compiling():
        return False
    return any(running.cross for running in _STACK.running if running.module is module)


def owner_of(module: nn.Module) -> str:
    """The name of the model for errors: class and model_type."""
    outer = _STACK.running[0].module if _STACK.running else module
    kind = getattr(getattr(outer, "config", None), "model_type", None)
    return f"{type(outer).__name__} (model_type {kind!r})" if kind else type(outer).__name__


def owner_of_config(config: Any) -> str:
    """The same where only the config is at hand."""
    if _STACK.running:
        return owner_of(_STACK.running[0].module)
    return f"A model of model_type {getattr(config, 'model_type', None)!r}"


def _ours(model: nn.Module, path: str = "") -> Any:
    """All modules, without those of sub-models that run with another implementation (a vision tower, say)."""
    yield path, model
    for name, child in model.named_children():
        used = getattr(getattr(child, "config", None), "_attn_implementation", NAME)
        if not (hasattr(child, "set_attn_implementation") and used != NAME):
            yield from _ours(child, f"{path}.{name}" if path else name)


def _model_around() -> Running | None:
    """The innermost whole model that is running."""
    return next((running for running in reversed(_STACK.running) if not running.attends), None)


def _number(model: nn.Module) -> None:
    """Note in every self-attention module which layer of its stack it stands in, and how many layers that has.

    ``layer_idx`` is there for caches, so that encoders do not have it, or all have None. The place in the model tells
    as well: modules with the same path up to its first number are one stack, their numbers say the order. Where the
    model's own numbers tell the layers of a stack apart, they are kept: they also count layers without attention.
    """
    stacks: dict[str, dict[tuple[int, ...], list[nn.Module]]] = {}
    for path, module in _ours(model):
        if is_attention(module) and not getattr(module, "_thereexists_cross", False):
            place = tuple(int(name) for name in path.split(".") if name.isdigit())
            stack = re.split(r"\.\d+(?:\.|$)", f".{path}", maxsplit=1)[0] if place else ""
            stacks.setdefault(stack, {}).setdefault(place, []).append(module)
    for places in stacks.values():
        given = [{i for m in places[p] if isinstance(i := getattr(m, "layer_idx", None), int)} for p in sorted(places)]
        own = all(len(i) == 1 for i in given) and len(set.union(*given)) == len(places)
        for number, (place, numbers) in enumerate(zip(sorted(places), given, strict=True)):
            for module in places[place]:
                module._thereexists_layer = next(iter(numbers)) if own else number  # type: ignore[assignment]
                module._thereexists_layers = sys.maxsize if own else len(places)  # type: ignore[assignment]


def is_attention(module: nn.Module) -> bool:
    """Whether ``module`` may be one that calls the interface: by its name, or by what the interface asks of it."""
    if hasattr(module, "set_attn_implementation"):  # a whole model
        return False
    return "Attention" in type(module).__name__ or hasattr(module, "is_causal")


def _hook(module: nn.Module, attends: bool) -> None:
    if WATCHED in module.__dict__:
        return
    module.__dict__[WATCHED] = attends
    module.register_forward_pre_hook(_enter, with_kwargs=True)
    module.register_forward_hook(_leave, always_call=True)


def _enter(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
    if torch.compiler.is_compiling():
        return
    attends, stack = module.__dict__[WATCHED], _STACK.running
    config = getattr(module, "config", None)
    ours = stack[-1].ours if attends and stack else getattr(config, "_attn_implementation", None) == NAME
    others = [kwargs[name] for name in _OTHER_STATES if kwargs.get(name) is not None]
    own = args[0] if args else kwargs.get("hidden_states")
    stack.append(Running(module, attends, ours, cross=any(other is not own for other in others)))


def _leave(module: nn.Module, args: Any, output: Any) -> None:
    """Raise when no call of ours has happened inside a whole model, or inside a self-contained attention module.

    torch calls this after an error too, with the output None: then only the stack is put in order.
    """
    if torch.compiler.is_compiling():
        return
    stack = _STACK.running
    while stack and stack[-1].module is not module:
        stack.pop()
    if not stack:
        return
    mine = stack.pop()
    if output is None or mine.calls or not mine.ours or _ASKED in module.__dict__:
        return
    if not mine.attends and stack:
        return  # a part without attention, such as a convolution, of a larger model, which answers for itself
    if mine.attends and any(outer.attends for outer in stack) and not hasattr(module, "is_causal"):
        return  # a helper inside an attention module, which answers for itself
    outermost = stack[0].module if stack else module
    raise not_driven(owner_of(outermost), f"{type(module).__name__} ran without calling it")
