"""What every command shares: the ``--json`` option, one JSON object on stdout, and a console that knows pipes."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on stdout.")]


def print_json(payload: dict[str, Any]) -> None:
    """One JSON object on stdout. Infinities and NaN are not JSON: they become null."""
    print(json.dumps(_plain(payload), ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def console():
    """A rich console for people; plain text when piped."""
    from rich.console import Console

    return Console(highlight=False)
