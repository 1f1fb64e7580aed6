"""What the five ``train`` commands share: groups of options, each of which makes an object for the library."""

from __future__ import annotations

import dataclasses
import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from thereexists.cli import _complete
from thereexists.cli._applies import refuse
from thereexists.cli._output import AsJson
from thereexists.core.errors import InvalidInput

if TYPE_CHECKING:
    from thereexists.experiments.settings import Budget, Settings

Device = Annotated[str | None, typer.Option(help="cpu or cuda; default: cuda if there is one.")]
Checkpoint = Annotated[float, typer.Option(help="Seconds between checkpoints; 0: only when stopped.")]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model; naming a pattern means the mixer ``sparse``."""

    mixer: Annotated[
        str | None,
        typer.Option(
            help="attention, average, bproj, sepconv, hybrid or sparse.",
            autocompletion=_complete.names(_complete.MIXERS),
        ),
    ] = None
    size: Annotated[
        str,
        typer.Option(
            help="tiny (2×128), mini (4×256) or base (12×768).", autocompletion=_complete.names(_complete.SIZES)
        ),
    ] = "mini"
    pattern: Annotated[
        str | None,
        typer.Option(
            help="A sparse pattern, see `thereexists pattern list`.",
            autocompletion=_complete.names(_complete.PATTERNS),
        ),
    ] = None
    config: Annotated[str, typer.Option("--config", help="union, multihead or sequential.")] = "union"
    option: Annotated[
        list[str] | None, typer.Option("--option", help="An option of the pattern, as stride=16; repeatable.")
    ] = None

    def record(self) -> dict[str, Any]:
        """The fields of a mixer configuration."""
        if self.pattern is not None and self.mixer not in (None, "sparse"):
            raise InvalidInput(
                f"A pattern belongs to the mixer 'sparse'; got --mixer {self.mixer} and --pattern {self.pattern}."
            )
        if self.pattern is None and self.mixer == "sparse":
            raise InvalidInput("The mixer 'sparse' needs a --pattern, for example strided.")
        if self.pattern is None:
            refuse("only a --pattern has them", "config", "option")
            model: dict[str, Any] = {"size": self.size, "mixer": self.mixer or "attention"}
            return model | ({"hybrid_blocks": 0} if self.mixer == "hybrid" else {})
        options = dict(map(_pair, self.option or []))
        named = {"pattern": self.pattern, "pattern_config": self.config, "pattern_options": options}
        return {"size": self.size, "mixer": "sparse", **named}


@dataclass(frozen=True, kw_only=True)
class DeepModel(ModelOptions):
    """A model whose depth can be chosen."""

    layers: Annotated[int | None, typer.Option(help="Layers, instead of the size's own.")] = None

    def record(self) -> dict[str, Any]:
        return super().record() | ({} if self.layers is None else {"num_hidden_layers": self.layers})


@dataclass(frozen=True, kw_only=True)
class HybridModel(DeepModel):
    """A model that may change its mixer on the way."""

    hybrid_blocks: Annotated[
        int, typer.Option(help="For the mixer hybrid: use SepConv in this many blocks at the start.")
    ] = 0

    def record(self) -> dict[str, Any]:
        if self.mixer != "hybrid":
            refuse("only --mixer hybrid has blocks of two kinds", "hybrid_blocks")
        return super().record() | ({"hybrid_blocks": self.hybrid_blocks} if self.hybrid_blocks else {})


@dataclass(frozen=True, kw_only=True)
class CopyModel(ModelOptions):
    """A model of a depth that must be said: it decides what can be copied."""

    layers: Annotated[int, typer.Option(min=1, help="Layers.")] = 4

    def record(self) -> dict[str, Any]:
        return super().record() | {"num_hidden_layers": self.layers}


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """How long to train."""

    tokens: Annotated[str | None, typer.Option(help="Budget in tokens, such as 40M. Without a budget: a default.")] = (
        None
    )
    steps: Annotated[int | None, typer.Option(help="Budget in steps.")] = None
    seconds: Annotated[float | None, typer.Option(help="Budget in seconds; depends on the machine.")] = None

    def budget(self, otherwise: dict[str, float]) -> Budget:
        from thereexists.experiments.settings import Budget, count

        asked = dataclasses.asdict(self) | {"tokens": None if self.tokens is None else count(self.tokens)}
        return Budget(**(asked if any(value is not None for value in asked.values()) else otherwise))


@dataclass(frozen=True, kw_only=True)
class EpochBudget(BudgetOptions):
    """Of a task that has a data set to go through."""

    epochs: Annotated[float | None, typer.Option(help="Budget in passes over the data.")] = None


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The fields of a training run's settings that every task has."""

    length: Annotated[int, typer.Option(help="Tokens in a sequence.")] = 128
    batch: Annotated[int, typer.Option(help="Sequences in a step, on all devices together.")] = 128
    lr: Annotated[float, typer.Option("--lr", help="Peak learning rate.")] = 1e-3
    precision: Annotated[str, typer.Option(help="bf16 or fp32; a CPU computes in fp32.")] = "bf16"
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random; recorded.")] = 0
    compile: Annotated[bool, typer.Option("--compile", help="Compile the model first (a minute or so).")] = False


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """What a task reads, and what only it has."""

    def reads(self) -> dict[str, Path | list[Path] | None]:
        return {}

    def options(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """One training run, as a command is asked for it."""

    name: ClassVar[str]
    unless_said: ClassVar[dict[str, float]]  # the budget
    recipe: ClassVar[dict[str, Any]] = {
        "norm_first": True,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }

    task: TaskOptions
    out: Annotated[
        Path | None, typer.Option(help="Folder for the model, tokenizer and result.json; default: runs/TASK-MODEL.")
    ] = None
    model: ModelOptions
    budget: BudgetOptions
    schedule: Schedule
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")] = False
    device: Device = None
    checkpoint_seconds: Checkpoint = 60.0
    json: AsJson = False

    def start(self) -> Path | None:
        """The run to begin with."""
        return None

    def described(self) -> dict[str, Any]:
        """The fields of the model's configuration."""
        return self.model.record() | self.recipe

    def settings(self) -> Settings:
        from thereexists.experiments.settings import Settings

        read = {name: value for name, value in self.task.reads().items() if value is not None}
        start, model = self.start(), self.described()
        return Settings(
            self.name,
            self.budget.budget(self.unless_said),
            model,
            {name: [str(x) for x in value] if isinstance(value, list) else str(value) for name, value in read.items()},
            self.task.options(),
            start=None if start is None else str(start),
            **dataclasses.asdict(self.schedule),
        )

    def folder(self) -> Path:
        if self.out is not None:
            return self.out
        if self.start() is not None:
            return Path(f"{self.start()}-{self.name}")
        model = self.described()
        parts = (model.get("pattern") or model["mixer"], model.get("pattern_config"), model.get("num_hidden_layers"))
        return Path("runs") / "-".join([self.name, *(str(part) for part in parts if part is not None)])


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"--option must look like stride=16; got {text!r}.")
    try:
        return name, json_module.loads(value)
    except ValueError:
        raise InvalidInput(f"--option {name} must have a number, true, false or a list; got {value!r}.") from None
