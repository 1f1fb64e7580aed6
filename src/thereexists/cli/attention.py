"""``thereexists attention``: how a pattern would be run, and how fast it is beside dense and FlexAttention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thereexists.cli._output import AsJson, console, print_json, say
from thereexists.cli._settings import command
from thereexists.cli.pattern import Config, What, assignment, check_heads, load_pattern
from thereexists.core.errors import InvalidInput

if TYPE_CHECKING:
    from thereexists.attention import Explanation
    from thereexists.attention.bench import Setting
    from thereexists.patterns import Pattern, Step

app = typer.Typer(name="attention", help="Fast exact attention over sparse patterns.", no_args_is_help=True)


class Device(StrEnum):
    cpu = "cpu"
    cuda = "cuda"


Causal = Annotated[bool, typer.Option("--causal", help="Tokens see only themselves and earlier ones.")]


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    what: What
    n: Annotated[int | None, typer.Option("--n", help="Number of tokens.")] = None
    device: Annotated[Device, typer.Option(help="The device it will run on; it need not be present.")] = Device.cpu
    config: Annotated[
        Config | None,
        typer.Option(
            "--config",
            help="How steps are spread over heads; default: union, or a config.json's own layers.",
        ),
    ] = None
    heads: Annotated[int, typer.Option(min=1, help="Heads of a multihead configuration.")] = 8
    parameter: Annotated[list[str] | None, typer.Option("--set", help="A size, as name=value.")] = None
    causal: Causal = False
    padded: Annotated[bool, typer.Option("--padded", help="For calls with a padding mask.")] = False
    dropout: Annotated[bool, typer.Option("--dropout", help="For calls with attention dropout.")] = False
    as_json: AsJson = False


@command(app)
def explain(asked: ExplainOptions) -> None:
    """How attention over a pattern will be run: its pieces, and why this way.

    Of a sequential pattern, every step; of a model's config.json, every kind of layer that the model has.

    Examples: thereexists attention explain strided --n 65536 --device cuda

    thereexists attention explain config.json --n 4096
    """
    check_heads(asked.config)
    sizes = dict(assignment(x) for x in asked.parameter or [])
    config = asked.config or Config.sequential
    pattern = load_pattern(asked.what, asked.n, sizes, config, asked.heads, asked.causal)
    if asked.config is None and pattern.layers is None:
        pattern = pattern.union()
    ways = _ways(pattern, asked)
    if asked.as_json:
        print_json({"ways": [way.to_json() | more | {"pattern": pattern.name} for way, more in ways]})
        return
    for way, _ in ways:
        for line in str(way).splitlines():
            say(line)


def _ways(pattern: Pattern, asked: ExplainOptions) -> list[tuple[Explanation, dict[str, Any]]]:
    """Each way, and what beside it: of a model, the layers that are run so."""
    from thereexists.attention import explain as explained

    how = (asked.device.value, asked.padded, asked.dropout)
    if pattern.heads is not None or (pattern.layers is None and pattern.cycle == 1):
        return [(explained(pattern, *how), {})]
    if pattern.layers is None:
        return [
            (replace(explained(step, *how), name=f"{pattern.name}, step {l}"), {})
            for l, step in enumerate(pattern.steps)
        ]
    layers: dict[Step, list[int]] = {}  # steps are equal only to themselves, and layers of a kind share one
    for t in range(pattern.layers):
        layers.setdefault(pattern.steps[t % pattern.cycle], []).append(t)
    return [
        (replace(explained(step, *how), name=f"{pattern.name}, {_in_words(mine)}"), {"layers": mine})
        for step, mine in layers.items()
    ]


def _in_words(layers: list[int]) -> str:
    """``layers 0–4, 6–10``, counted from 0 as in the model's own lists."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][1] + 1:
            runs[-1][1] = layer
        else:
            runs.append([layer, layer])
    shown = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs[:12])
    return f"layer{'s' * (len(layers) > 1)} {shown}{', …' * (len(runs) > 12)}"


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    n: Annotated[int, typer.Option("--n", min=2, help="Number of tokens.")] = 4096
    patterns: Annotated[str, typer.Option(help="'all', or names separated by commas.")] = "all"
    device: Annotated[Device, typer.Option(help="Where to measure.")] = Device.cpu
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16; depends on the device.")] = None
    heads: Annotated[int | None, typer.Option(min=1, help="Heads; default: 4 on the CPU, 12 on CUDA.")] = None
    head_dim: Annotated[int, typer.Option(min=1, help="Size of a head.")] = 64
    batch: Annotated[int, typer.Option(min=1, help="Sequences at once.")] = 1
    causal: Causal = False
    backward: Annotated[bool, typer.Option("--backward", help="Time forward + backward.")] = False
    flex: Annotated[bool, typer.Option("--flex/--no-flex", help="Measure compiled FlexAttention too.")] = True
    repetitions: Annotated[int, typer.Option(min=1, help="Interleaved repetitions.")] = 5
    seed: Annotated[int, typer.Option(min=0, help="Seed of the tensors.")] = 0
    as_json: AsJson = False

    @property
    def cuda(self) -> bool:
        return self.device is Device.cuda

    def setting(self) -> Setting:
        from thereexists.attention.bench import Setting

        same = ("n", "head_dim", "batch", "causal", "backward", "repetitions", "flex", "seed")
        return Setting(
            device=self.device.value,
            dtype=self.dtype or ("bfloat16" if self.cuda else "float32"),
            heads=self.heads or (12 if self.cuda else 4),
            **{name: getattr(self, name) for name in same},
        )


@command(app)
def bench(asked: BenchOptions) -> None:
    """Ours, dense SDPA and FlexAttention on the same tensors in the same run; one CPU thread.

    Example: thereexists attention bench --n 4096 --patterns strided,star --no-flex
    """
    import torch

    from thereexists.attention.bench import cases, measure
    from thereexists.core.threads import torch_threads

    if asked.cuda and not torch.cuda.is_available():
        raise InvalidInput("--device cuda needs a CUDA device, and PyTorch sees none here; use --device cpu.")
    setting = asked.setting()
    _ = setting.torch_dtype  # complain before the work
    rows = []
    with torch_threads(1):
        for name, step in cases(asked.n, asked.patterns, asked.causal).items():
            rows.append(measure(name, step, setting))
            if not asked.as_json:
                _print_row(rows[-1], header=len(rows) == 1)
    if asked.as_json:
        named = torch.cuda.get_device_name() if asked.cuda else "cpu, one thread"
        print_json({"setting": vars(setting) | {"hardware": named}, "rows": [row.to_json() for row in rows]})


def _print_row(row, header: bool) -> None:
    """A line per pattern as soon as it is measured."""
    out = console()
    if header:
        what = "forward + backward" if row.backward else "forward"
        out.print(f"n = {row.n:,}, {what}, milliseconds, ×: how many times faster ours is")
        out.print(f"{'pattern':<18}{'way':<9}{'ours':>10}{'dense':>10}{'×':>8}{'flex':>10}{'×':>8}", markup=False)
    cells = [_cell(row.ours_ms), _cell(row.dense_ms), _times(row.over_dense), _cell(row.flex_ms), _times(row.over_flex)]
    widths = (10, 10, 8, 10, 8)
    line = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    out.print(f"{row.pattern:<18}{row.way:<9}{line}", markup=False)
    for who, why in row.notes.items():
        out.print(f"    {who}: {why}", markup=False)


def _cell(ms: float | None) -> str:
    return "–" if ms is None else f"{ms:,.3f}" if ms < 10 else f"{ms:,.1f}"


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.0f}"
