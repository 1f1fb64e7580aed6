"""``thereexists train``: one model for one task. Each command adds its own few options to ``TrainOptions``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from thereexists.cli._applies import refuse
from thereexists.cli._output import console, print_json
from thereexists.cli._settings import command
from thereexists.cli._training import (
    CopyModel,
    DeepModel,
    EpochBudget,
    HybridModel,
    Schedule,
    TaskOptions,
    TrainOptions,
)

app = typer.Typer(help="Train one model for one task.", no_args_is_help=True)


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(TaskOptions):
    corpus: Annotated[Path, typer.Option(help="Text (.txt, .xz, .gz), articles separated by blank lines.")]
    valid: Annotated[Path | None, typer.Option(help="Held-out text; default: the last 1 % of the corpus.")] = None
    vocabulary: Annotated[int, typer.Option(help="Entries of the tokenizer trained on the corpus.")] = 16_384

    def reads(self) -> dict[str, Path | list[Path] | None]:
        return {"corpus": self.corpus, "valid": self.valid}

    def options(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary}


@dataclass(frozen=True, kw_only=True)
class MaskedOptions(TrainOptions):
    name = "mlm"
    unless_said: ClassVar = {"epochs": 1.0}
    task: CorpusOptions
    model: HybridModel
    budget: EpochBudget


@command(app)
def mlm(asked: MaskedOptions) -> None:
    """Masked language modelling, as in BERT; accuracy on held-out text.

    thereexists train mlm --mixer sepconv --size tiny --corpus wiki.txt.xz --tokens 2M --out runs/a
    """
    _train(asked)


@dataclass(frozen=True, kw_only=True)
class SentenceOptions(TaskOptions):
    data: Annotated[Path, typer.Option(help="Folder with train and dev files: MNLI (.jsonl) or SST-2 (.tsv).")]
    start: Annotated[Path | None, typer.Option("--from", help="The run of `train mlm` to start from.")] = None

    def reads(self) -> dict[str, Path | list[Path] | None]:
        return {"data": self.data}


@dataclass(frozen=True, kw_only=True)
class ClassifyOptions(TrainOptions):
    name = "nli"
    unless_said: ClassVar = {"epochs": 3.0}
    recipe: ClassVar = {}
    task: SentenceOptions
    budget: EpochBudget
    schedule: Schedule = Schedule(lr=3e-4)  # noqa: RUF009  (frozen)

    def start(self) -> Path | None:
        return self.task.start

    def described(self) -> dict[str, Any]:
        if self.start() is None:
            return super().described()
        refuse("the model is that of --from", "size", "config", "option")
        mixer, pattern = self.model.mixer, self.model.pattern  # the model is the run's; what is named must agree
        named = {"mixer": mixer or ("sparse" if pattern else None), "pattern": pattern}
        return {name: value for name, value in named.items() if value is not None}


@command(app)
def nli(asked: ClassifyOptions) -> None:
    """Sentence(-pair) classification from a pre-trained run; accuracy on the dev set.

    thereexists train nli --from runs/a --data mnli/ --epochs 3 --out runs/a-nli
    """
    _train(asked)


@dataclass(frozen=True, kw_only=True)
class SymbolOptions(TaskOptions):
    symbols: Annotated[int, typer.Option(help="Size of the alphabet.")] = 127

    def options(self) -> dict[str, Any]:
        return {"symbols": self.symbols}


@dataclass(frozen=True, kw_only=True)
class CopyOptions(TrainOptions):
    name = "copy"
    unless_said: ClassVar = {"steps": 2500}
    task: SymbolOptions
    model: CopyModel


@command(app)
def copy(asked: CopyOptions) -> None:
    """Synthetic copying through a pattern; accuracy, and the most that the pattern allows at this depth.

    thereexists train copy --pattern strided --config union --layers 4 --steps 500 --length 32
    """
    _train(asked)


@dataclass(frozen=True, kw_only=True)
class CausalOptions(TrainOptions):
    name = "lm"
    unless_said: ClassVar = {"epochs": 1.0}
    task: CorpusOptions
    model: HybridModel
    budget: EpochBudget
    schedule: Schedule = Schedule(length=256, batch=64)  # noqa: RUF009  (frozen)


@command(app)
def lm(asked: CausalOptions) -> None:
    """Causal language modelling; perplexity on held-out text.

    thereexists train lm --pattern star --size tiny --corpus wiki.txt.xz --tokens 2M --out runs/lm-star
    """
    _train(asked)


@dataclass(frozen=True, kw_only=True)
class PairOptions(TaskOptions):
    data: Annotated[list[Path], typer.Option(help="Folder with train.en, train.cs and test files; repeatable.")]
    source: Annotated[str, typer.Option(help="Ending of the source files.")] = "en"
    target: Annotated[str, typer.Option(help="Ending of the target files.")] = "cs"
    vocabulary: Annotated[int, typer.Option(help="Entries of the tokenizer of both languages.")] = 8192

    def reads(self) -> dict[str, Path | list[Path] | None]:
        return {"data": self.data}

    def options(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary, "source": self.source, "target": self.target}


@dataclass(frozen=True, kw_only=True)
class TranslateOptions(TrainOptions):
    name = "mt"
    unless_said: ClassVar = {"epochs": 10.0}
    recipe: ClassVar = {"norm_first": True}
    task: PairOptions
    model: DeepModel
    budget: EpochBudget
    schedule: Schedule = Schedule(length=64, batch=256)  # noqa: RUF009  (frozen)


@command(app)
def mt(asked: TranslateOptions) -> None:
    """Translation with an encoder–decoder; BLEU (sacrebleu) on every test set in the folders.

    thereexists train mt --pattern fixed --data multi30k_en_cs/ --epochs 10 --out runs/mt-fixed
    """
    _train(asked)


def _train(asked: TrainOptions) -> None:
    from thereexists.experiments.run_folder import SHOWN
    from thereexists.experiments.settings import Execution
    from thereexists.experiments.training import train

    settings, out = asked.settings(), asked.folder()
    how = Execution(device=asked.device, checkpoint_seconds=asked.checkpoint_seconds, quiet=asked.json)
    result = train(settings, out, how, resume=asked.resume)
    if not result:  # one process of several: the first one speaks
        return
    result: dict[str, Any] = result | {"out": str(out)}
    if asked.json:
        print_json({name: value for name, value in result.items() if name != "hypotheses"})
        return
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for name, value in _flat(result["metrics"]):
        table.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    for name in (*SHOWN, "out"):
        table.add_row(
            name.replace("_", " "), f"{result[name]:,}" if isinstance(result[name], int) else str(result[name])
        )
    console().print(table)


def _flat(metrics: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for name, value in metrics.items():
        label = f"{before} {name}".strip().replace("_", " ")
        out += _flat(value, label) if isinstance(value, dict) else [(label, value)]
    return [(name, value) for name, value in out if value is not None]
